"""Configurations of the components that PyPI's `concopilot` contains, whose wheel has none, and who works with them."""
