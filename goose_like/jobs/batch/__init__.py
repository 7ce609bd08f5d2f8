"""Batches: one recipe on many inputs, by workers on this machine or on a cluster."""
