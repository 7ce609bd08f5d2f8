"""Plugins that come with goose-like, in TaskWeaver's form: a YAML file beside a Python file."""
