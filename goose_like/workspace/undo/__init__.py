"""Undo of file changes: snapshots, stored file contents, the log and the restore."""
