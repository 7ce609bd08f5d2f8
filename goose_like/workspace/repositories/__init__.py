"""Git repositories and start files: what commands changed that would run outside the sandbox."""
