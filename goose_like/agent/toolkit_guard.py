"""Guarded: toolkits' own code, which may fail in any way; that becomes one sentence that names the toolkit."""

import asyncio
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from goose_like.core.entry_points import found
from goose_like.core.errors import GooseLikeError, at_place
from goose_like.core.frames import told

from .journal import Journal
from .toolkit import Toolkit

T = TypeVar("T")


@contextmanager
def code_of(name: str, *path: str | int) -> Iterator[None]:
    """Around a toolkit's own code: whatever it raises becomes one sentence. `path` is its place in the profile."""
    try:
        with at_place(*path):
            yield
    except GooseLikeError:
        raise
    except Exception as error:
        raise GooseLikeError(
            f"toolkit {name!r} can't be used: {_told(name, error)}; repair it or leave it out of the profile"
        ) from error


class Guarded:
    """What an exchange asks of a toolkit while it runs: what has failed once is told, and not asked again."""

    def __init__(self, name: str, toolkit: Toolkit, journal: Journal) -> None:
        self.name = name
        self._toolkit = toolkit
        self._journal = journal
        self._failed: set[str] = set()

    def live(self) -> tuple[tuple[str, str], ...]:
        return self._asked("live", _pairs, ())

    def demand(self) -> str | None:
        return self._asked("demand", _text, None)

    def doubt(self) -> str | None:
        return self._asked("doubt", _text, None)

    async def news(self) -> dict[str, str]:
        """Its method may be `async`."""
        if "news" not in self._failed:
            with self._guard("news"):
                given = self._toolkit.news()
                return _facts(await given if inspect.isawaitable(given) else given)
        return {}

    async def begin(self) -> None:
        """
        Raises:
            GooseLikeError: it raised something; this ends the turn.
        """
        with code_of(self.name):
            await self._toolkit.begin()

    async def close(self) -> None:
        """A second Ctrl-C does not stop it half-way, and what it raises does not undo the work that was done."""
        closing = asyncio.ensure_future(self._toolkit.close())
        try:
            try:
                await asyncio.shield(closing)
            except asyncio.CancelledError:
                await closing
                raise
        except Exception as error:
            self._journal.log(f"toolkit {self.name!r} failed to close: {type(error).__name__}: {error}")

    def _asked(self, method: str, read: Callable[[Any], T], default: T) -> T:
        if method not in self._failed:
            with self._guard(method):
                return read(getattr(self._toolkit, method)())
        return default

    @contextmanager
    def _guard(self, method: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # somebody else's code, which must not end the turn
            self._failed.add(method)
            text = f"toolkit {self.name!r} failed and is not asked again for {method!r}: {_told(self.name, error)}"
            self._journal.log(text)


def _told(name: str, error: Exception) -> str:
    return told(error, found("goose_like.toolkit")[name].module)


def _pairs(given: Any) -> tuple[tuple[str, str], ...]:
    return tuple((str(title), str(text)) for title, text in given)


def _facts(given: Any) -> dict[str, str]:
    return {str(key): str(value) for key, value in given.items()}


def _text(given: Any) -> str | None:
    return str(given) if given else None
