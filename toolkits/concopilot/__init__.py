"""ConCopilot components as tools. Nothing is imported here: `cli.py` must stay light."""
