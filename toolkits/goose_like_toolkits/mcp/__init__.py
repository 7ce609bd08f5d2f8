"""MCP servers: their tools, resources and prompts as parts of a session."""
