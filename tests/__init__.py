"""Tests of goose_like, one folder for each package, and the helpers that they share."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
