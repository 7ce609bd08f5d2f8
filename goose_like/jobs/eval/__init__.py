"""Evaluations: folders of tasks, tried by several profiles and models, as one batch."""
