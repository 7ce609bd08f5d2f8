"""Public import path for the tests of toolkit authors."""

from goose_like.sdk.testing import Trial, trial

__all__ = ["Trial", "trial"]
