"""The general guide's skeletons, filled in: each field that it names, where it names it."""
