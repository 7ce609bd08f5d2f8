"""Where components run: a Python environment for each working directory, and what is installed there."""
