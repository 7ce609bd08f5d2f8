"""Session files: write, find, fork, export and import them."""
