"""Text of PDF, Excel and Word files, read in a sandboxed process."""
