"""Everything that goose_like raises on purpose, and the exit code that each kind ends a command with.

    GooseLikeError                 1   something failed; the sentence says what to do next
    ├── UsageError                 2   the command line was wrong
    │   └── ProfileError           2   a profile, toolkit or provider was misspelt, missing or circular
    ├── DeniedError                6   a question was answered with no, or nobody was there to answer
    ├── SandboxError               7   commands can't be confined here
    ├── SessionError               1   a session file is missing, taken or damaged
    └── ProviderError              1   a model gave no answer
        ├── RateLimitError        75   too many requests or no credit; later may work
        ├── CredentialError       76   the API key is missing or was refused
        ├── ModelUnavailableError 77   server unreachable, model unknown, weights missing
        ├── ContextLengthError     1   the request is longer than the model's window
        └── BrokenStreamError     77   the answer stopped, stalled or was not what the protocol says

The other codes belong to ends that are no errors: 0 done, 3 steps, 4 cost, 5 tokens, 124 time, 130 SIGINT,
143 SIGTERM (see `events.TurnFinished`).
"""

from collections.abc import Iterator
from contextlib import contextmanager


class GooseLikeError(Exception):
    """A failure told to the person in one sentence that ends with the next step."""

    exit_code = 1


class UsageError(GooseLikeError):
    exit_code = 2


class ProfileError(UsageError):
    """A profile can't be used. `path` is the place within the profile, from which its reader gets the line."""

    def __init__(self, text: str, path: tuple[str | int, ...] = ()) -> None:
        super().__init__(text)
        self.path = path


@contextmanager
def at_place(*path: str | int) -> Iterator[None]:
    """Profile errors that come up within are about this place of the profile, and the place within that they say."""
    try:
        yield
    except ProfileError as error:
        error.path = (*path, *error.path)
        raise


class DeniedError(GooseLikeError):
    exit_code = 6


class SandboxError(GooseLikeError):
    exit_code = 7


class SessionError(GooseLikeError):
    pass


class ProviderError(GooseLikeError):
    """A model gave no usable answer.

    `is_retryable` says whether the same request may work later; `retry_after_s` is the server's own wish.
    """

    is_retryable = False

    def __init__(self, text: str, *, is_retryable: bool | None = None, retry_after_s: float | None = None) -> None:
        super().__init__(text)
        if is_retryable is not None:
            self.is_retryable = is_retryable
        self.retry_after_s = retry_after_s


class RateLimitError(ProviderError):
    exit_code = 75
    is_retryable = True


class CredentialError(ProviderError):
    """The API key is missing or was refused."""

    exit_code = 76


class ModelUnavailableError(ProviderError):
    exit_code = 77


class ContextLengthError(ProviderError):
    pass


class BrokenStreamError(ProviderError):
    exit_code = 77
    is_retryable = True
