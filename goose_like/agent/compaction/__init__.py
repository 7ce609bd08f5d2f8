"""Moderators: strategies that keep a long conversation within the model's context window."""
