"""The commands of goose-like. `run`, `session`, `profile`, `toolkit`, `provider` and `trust` declare options only.

A command fails with a GooseLikeError, which `exit.run_guarded` prints as one line.
"""
