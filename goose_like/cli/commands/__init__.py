"""The commands of goose-like. `session` and `groups` declare options; the other modules do the work.

A command fails with a GooseLikeError, which `exit.run_guarded` prints as one line.
"""
