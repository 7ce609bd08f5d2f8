"""OpenBB's copilot protocol: its requests, its event stream and its client-side tools."""
