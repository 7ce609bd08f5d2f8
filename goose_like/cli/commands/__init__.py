"""The subcommands of goose-like, one module each."""
