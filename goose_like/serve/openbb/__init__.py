"""The OpenBB copilot protocol over HTTP."""
