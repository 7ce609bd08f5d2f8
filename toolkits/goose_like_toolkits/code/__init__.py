"""TaskWeaver plugins in a code kernel: the toolkit `code`. Nothing is imported here: `cli.py` must stay light."""
