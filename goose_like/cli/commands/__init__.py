"""Commands. Each reports a failure by raising a GooseLikeError, which `exit.run_guarded` prints as one line."""
