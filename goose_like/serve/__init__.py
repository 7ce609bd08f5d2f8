"""A profile over HTTP, as a copilot of OpenBB Workspace and of any client that speaks its protocol."""
