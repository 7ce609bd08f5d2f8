"""Another user of the same ledger."""

from guidebook.clerk import Clerk


def constructor(config):
    return Clerk(config)
