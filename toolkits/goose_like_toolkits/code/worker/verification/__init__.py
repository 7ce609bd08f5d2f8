"""Checks that refuse a cell which breaks the user's rules.

Verification reads the syntax tree of a cell before the cell runs, and checks each attribute, import, builtin and callee
by value while the cell runs. A renamed function or an indirect path leads to the same object and is refused too.

Verification lives in the process that it watches, so it is no security boundary: the sandbox is. Verification does not
cover code of libraries and plugins (an allowed library may run text as code, start programs or read files for a cell),
files that a cell writes and another program runs, installed packages, or faults in extension modules.
"""
