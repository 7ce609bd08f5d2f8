"""ConCopilot components in the shell: the toolkit `components`. Nothing is imported here: `cli.py` must stay light."""
