"""The command `mcp serve`: tools of goose_like for other agents."""
