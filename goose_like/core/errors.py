"""Errors that goose_like raises on purpose, with their exit codes, and descriptions of errors in foreign code.

docs/exit-codes.md lists all exit codes, including those of turns that end without an error.
"""

from collections.abc import Iterator
from contextlib import contextmanager


class GooseLikeError(Exception):
    """A failure with a message for people: one sentence that ends with the next step."""

    exit_code = 1


class UsageError(GooseLikeError):
    """A wrong command line, or a wrong file or schema that it names."""

    exit_code = 2


class ProfileError(UsageError):
    """An unusable profile, toolkit or provider. `path` is the place in the profile and leads to the line number."""

    def __init__(self, text: str, path: tuple[str | int, ...] = ()) -> None:
        super().__init__(text)
        self.path = path


@contextmanager
def prefix_error_path(*path: str | int) -> Iterator[None]:
    """Prefix the `path` of each ProfileError raised in the block with a place in the profile."""
    try:
        yield
    except ProfileError as error:
        error.path = (*path, *error.path)
        raise


class DeniedError(GooseLikeError):
    """A permission that was denied, or that nobody was there to grant."""

    exit_code = 6


class PromptBlockedError(DeniedError):
    """A message of the person that a toolkit does not let through. No turn starts."""


class SandboxError(GooseLikeError):
    """A machine on which commands cannot be sandboxed."""

    exit_code = 7


class TimeLimitError(GooseLikeError):
    """Work that took longer than the person allowed."""

    exit_code = 124


class SessionError(GooseLikeError):
    """A session file that is missing, in use or damaged."""


class ProviderError(GooseLikeError):
    """A model that gave no usable answer.

    `is_retryable`: the same request may succeed later. `retry_after_s`: the wait that the server asked for.
    `max_attempts`: the number of attempts that are worth while, if fewer than usual. `refusal`: the server's reason
    for refusing the request, if it was one about the content of the request.
    """

    is_retryable = False
    refusal: str = ""
    max_attempts: int | None = None

    def __init__(
        self,
        text: str,
        *,
        is_retryable: bool | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(text)
        if is_retryable is not None:
            self.is_retryable = is_retryable
        self.retry_after_s = retry_after_s


class RateLimitError(ProviderError):
    """Too many requests, or no credit left."""

    exit_code = 75
    is_retryable = True


class CredentialError(ProviderError):
    """A missing or refused API key."""

    exit_code = 76


class ModelUnavailableError(ProviderError):
    """An unreachable server, an unknown model or missing weights."""

    exit_code = 77


class ContextLengthError(ProviderError):
    """A request that is longer than the model's context window, or larger than the server takes."""


class AnswerRefusedError(ProviderError):
    """A model that declined to answer, or a filter of its server that stopped the answer."""


class BrokenStreamError(ProviderError):
    """An answer that stopped, stalled or violated the protocol."""

    exit_code = 77
    is_retryable = True


def list_inner_errors(error: BaseException) -> list[BaseException]:
    """List the errors in an exception group, also in groups within it. Another error stands for itself."""
    if not isinstance(error, BaseExceptionGroup):
        return [error]
    inner: list[BaseException] = []
    for each in error.exceptions:
        inner += list_inner_errors(each)
    return inner


def find_foreign_frames(error: BaseException, module: object) -> list[str]:
    """Find the stack frames of an error that lie in the top-level package of `module`.

    Each frame is `module:line in function: source`, the newest last. An error that was raised because of another one
    has its frames: a thread turns `sys.exit` into such an error.
    """
    frames = _list_frames(error, module)
    if not frames and error.__cause__:
        return find_foreign_frames(error.__cause__, module)
    return frames


def _list_frames(error: BaseException, module: object) -> list[str]:
    import traceback  # imported here: a command without an error starts faster

    package = str(module).partition(".")[0]
    # The summaries have the lines of the source, and only the frames have the names of the modules.
    frames = traceback.walk_tb(error.__traceback__)
    summaries = traceback.extract_tb(error.__traceback__)
    descriptions = []
    for (frame, _), summary in zip(frames, summaries, strict=True):
        name = str(frame.f_globals.get("__name__"))
        if name.partition(".")[0] == package:
            descriptions.append(f"{name}:{summary.lineno} in {summary.name}: {summary.line}")
    return descriptions


def describe_foreign_error(error: BaseException, module: object) -> str:
    """Describe an error in one line: its type, its message and the newest frame in the package of `module`."""
    parts = []
    if isinstance(error, BaseExceptionGroup):
        parts.append(f"{type(error).__name__}: {error}")
    for each in list_inner_errors(error):
        parts.append(f"{type(each).__name__}: {each}")
        frames = find_foreign_frames(each, module)
        if frames:
            parts.append(f"at {frames[-1]}")
    return "; ".join(parts)
