"""CodeToolkit: a stateful Python kernel, and TaskWeaver plugins as functions in it."""

from goose_like.toolkit import Toolkit


class CodeToolkit(Toolkit):
    """Python that remembers from call to call, run in the session's sandbox."""
