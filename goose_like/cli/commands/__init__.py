"""The commands of goose-like. `run`, `session`, `profile`, `toolkit`, `provider` and `trust` declare options only."""
