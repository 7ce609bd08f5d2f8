"""The Agent Client Protocol: goose_like inside editors, over standard input and output."""
