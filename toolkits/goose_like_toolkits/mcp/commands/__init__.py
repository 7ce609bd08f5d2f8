"""The work of the commands `mcp ...`."""
