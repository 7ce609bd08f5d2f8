"""A book that must be opened and closed, and that says when it was."""

from concopilot.framework.resource import Resource


class Ledger(Resource):
    def initialize(self):
        self.write("opened")

    def finalize(self):
        self.write("closed")

    def write(self, line):
        with open("ledger.log", "a") as book:
            book.write(f"{line}\n")


def constructor(config):
    return Ledger(config)
