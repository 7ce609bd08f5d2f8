"""The port to files and processes: path checks, sandbox, policy, git audit and undo."""
