"""Compatibility with aiflows 0.1.x: its classes for Python programs and its YAML configurations."""
