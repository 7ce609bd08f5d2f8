"""Nothing of its own: a basic copilot, configured."""
