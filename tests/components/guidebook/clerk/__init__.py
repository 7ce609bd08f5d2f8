"""Uses a ledger that is not its own."""

import os
import time

from concopilot.framework.plugin import AbstractPlugin


class Clerk(AbstractPlugin):
    def initialize(self):
        self.ledger = self.get_resource(resource_type="ledger")
        self.ledger.write(f"{self.name} came")
        self.fail("initialize")

    def finalize(self):
        self.ledger.write(f"{self.name} went")
        self.fail("finalize")

    def fail(self, what):
        if self.config.config.fails == what:
            raise RuntimeError(f"no {what} today")

    def command(self, command_name, param, **kwargs):
        self.ledger.write(f"{self.name}: {param.line}")
        if param.then == "raise":
            raise RuntimeError("out of ink")
        if param.then == "crash":
            os._exit(5)
        while param.then in ("hang", "ignore"):
            try:
                time.sleep(0.05)
            except KeyboardInterrupt:
                if param.then == "hang":
                    raise
        return f"{len(param.line)} characters"


def constructor(config):
    return Clerk(config)
