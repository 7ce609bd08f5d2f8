"""Prints, writes and leaves a thread behind while it is imported; its class is defined twice, registered once."""

import sys
import threading

from taskweaver.plugin import Plugin, register_plugin

print("restless is here")
print("and complains", file=sys.stderr)
threading.Thread(target=threading.Event().wait, daemon=True).start()


class Restless(Plugin):
    def __call__(self):
        return "the first"


@register_plugin
class Restless(Plugin):  # noqa: F811
    def __call__(self):
        return "the second"
