"""HTTP server: code that all protocols share, and one sub-package for each protocol."""
