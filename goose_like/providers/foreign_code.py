"""Calls into the code of providers, which may come from other packages: an exception there becomes one sentence."""

import inspect
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager

from goose_like.config.profile import ModelChoice
from goose_like.core.errors import GooseLikeError, ProviderError, describe_foreign_error

from .base import Delta, ProbeResult, Provider, ProviderInfo, Request, SupportsProbe

_OWN_PACKAGE = "goose_like"
_MEMBERS = ("find_setup_error", "stream", "close")


@contextmanager
def name_faults(factory: type, method: str) -> Iterator[None]:
    """Turn an exception of another package's provider into a sentence that names class and line.

    Raises:
        ProviderError: The code in the block raised an exception that is no `GooseLikeError`.
    """
    try:
        yield
    except GooseLikeError:
        raise
    except Exception as error:
        if factory.__module__.partition(".")[0] == _OWN_PACKAGE:
            raise  # a fault of ours: its traceback tells more
        problem = " ".join(describe_foreign_error(error, factory.__module__).split())
        raise _describe_fault(factory, method, problem) from error


def _describe_fault(factory: type, method: str, problem: str) -> ProviderError:
    name = f"{factory.__module__}.{factory.__qualname__}"
    return ProviderError(f"the provider {name} failed in `{method}`: {problem}; tell its author")


def find_class_problem(found: object) -> str:
    """Find out why an object cannot be used as a provider class. The text is empty if it can."""
    if not isinstance(found, type):
        return f"it is no class, but of type {type(found).__name__}"
    if not isinstance(getattr(found, "info", None), ProviderInfo):
        return f"the class {found.__qualname__} has no `info = ProviderInfo(...)`"
    for name in _MEMBERS:
        if not callable(getattr(found, name, None)):
            return f"the class {found.__qualname__} has no method `{name}`"
    return ""


def find_setup_error(factory: type[Provider], choice: ModelChoice) -> GooseLikeError | None:
    """Return the error about what a choice still needs, or about a fault in the provider's code."""
    try:
        with name_faults(factory, "find_setup_error"):
            found: object = factory.find_setup_error(choice)
    except GooseLikeError as error:
        return error
    if found is None or isinstance(found, GooseLikeError):
        return found
    return _describe_fault(factory, "find_setup_error", f"it returned a value of type {type(found).__name__}, no error")


async def probe_server(factory: SupportsProbe, choice: ModelChoice, key: str = "") -> ProbeResult:
    """Send the test request of a provider class; see `SupportsProbe.probe`."""
    assert isinstance(factory, type)
    with name_faults(factory, "probe"):
        found: object = await (factory.probe(choice, key) if key else factory.probe(choice))
    if not isinstance(found, ProbeResult):
        raise _describe_fault(factory, "probe", f"it returned a value of type {type(found).__name__}")
    return found


def open_stream(provider: Provider, request: Request) -> AsyncGenerator[Delta, None]:
    """Begin the answer to a request.

    Raises:
        ProviderError: The provider's `stream` is no async generator.
    """
    with name_faults(type(provider), "stream"):
        stream: object = provider.stream(request)
    if isinstance(stream, AsyncGenerator):
        return stream
    if inspect.iscoroutine(stream):
        stream.close()
    advice = "`async def` with `yield` makes one"
    raise _describe_fault(
        type(provider), "stream", f"it is no async generator, but a {type(stream).__name__}; {advice}"
    )
