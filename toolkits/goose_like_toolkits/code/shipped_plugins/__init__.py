"""Plugins that come along, written as TaskWeaver plugins: a YAML file beside a Python file."""
