"""The kernel process as the host sees it: start, channels, cells and their files."""
