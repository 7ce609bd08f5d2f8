"""The toolkit `code`: a Python kernel with TaskWeaver plugins. Imports nothing, because `cli.py` must stay light."""
