"""A browser of a person who allows everything: it follows the page at the address in its argument."""

import sys
import urllib.request

urllib.request.urlopen(sys.argv[1]).read()
