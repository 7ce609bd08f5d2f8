"""Confinement of commands: path rules, variables, and the mechanisms of the operating system."""
