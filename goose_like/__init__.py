"""goose_like: a developer agent for the shell. `(Profile, Notifier) -> [Toolkits] -> Exchange`."""

__version__ = "0.1.0"
