"""The plugins of a project: their files, the check of their signatures, and the selection for the model."""
