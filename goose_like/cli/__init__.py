"""The command line of goose-like and the interactive session."""
