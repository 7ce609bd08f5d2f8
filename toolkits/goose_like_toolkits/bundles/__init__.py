"""Bundles: skills, commands, agents, hooks and MCP servers that are added, updated and removed together."""
