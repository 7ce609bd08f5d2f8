"""The pages that `goose-like help` shows."""
