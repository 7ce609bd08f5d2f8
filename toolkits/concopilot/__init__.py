"""ConCopilot components as tools."""
