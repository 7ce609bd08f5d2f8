"""Helpers for toolkit packages: test harness, lint, diagnostics and a cache of parsed files."""
