"""A pool of connections that tells in a file when it is opened and closed."""

import time
import urllib.request

from concopilot.framework.resource import Resource


class Pool(Resource):
    def initialize(self):
        self._opener = urllib.request.build_opener()
        self._tell("open")
        try:
            time.sleep(self.config.config.slow_s)
        except KeyboardInterrupt:
            self._tell("interrupted")

    def finalize(self):
        self._tell("close")

    def fetch(self, url):
        with self._opener.open(url, timeout=10) as answer:
            return answer.read().decode()

    def _tell(self, what):
        with open(self.config.config.log, "a") as log:
            log.write(f"{what} {self.name or self.resource_type}\n")


def constructor(config):
    return Pool(config)
