"""The hooks of toolkits, and the boundary that turns errors of foreign code into one sentence."""

import asyncio
import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from goose_like.core.entry_points import find_entry_point
from goose_like.core.errors import GooseLikeError, describe_foreign_error, prefix_error_path

from .journal import Journal
from .toolkit import FollowUp, Toolkit


@contextmanager
def toolkit_errors(name: str, *path: str | int) -> Iterator[None]:
    """Turn any error of a toolkit's code into one sentence with its name. `path` is its place in the profile."""
    try:
        with prefix_error_path(*path):
            yield
    except GooseLikeError:
        raise
    except Exception as error:
        raise GooseLikeError(
            f"toolkit {name!r} can't be used: {_describe(name, error)}; repair it or leave it out of the profile"
        ) from error


class ToolkitGuard:
    """The hooks of one toolkit. A hook that fails is logged once and not called again."""

    def __init__(self, name: str, toolkit: Toolkit, journal: Journal) -> None:
        self.name = name
        self.toolkit = toolkit
        self._journal = journal
        self._failed: set[str] = set()
        self._has_objected = False

    async def start_turn(self) -> None:
        """Call `on_turn_start`.

        Raises:
            GooseLikeError: the hook failed; this ends the turn.
        """
        self._has_objected = False
        with toolkit_errors(self.name):
            await self.toolkit.on_turn_start()

    def find_follow_up(self) -> str | None:
        """Call `before_finish`, except after an objection that counts once a turn."""
        if not self._has_objected:
            with self._guard("before_finish") as before_finish:
                reason = before_finish()
                follow_up = reason if isinstance(reason, FollowUp) else FollowUp(str(reason or ""))
                self._has_objected = bool(reason) and not follow_up.is_repeated
                return follow_up.text
        return None

    def list_state_sections(self) -> list[tuple[str, str]]:
        """Call `state_sections`."""
        with self._guard("state_sections") as state_sections:
            return [(str(title), str(text)) for title, text in state_sections()]
        return []

    async def collect_facts(self) -> dict[str, str]:
        """Call `context_updates`, which may be `async`."""
        with self._guard("context_updates") as context_updates:
            value = context_updates()
            value = await value if inspect.isawaitable(value) else value
            return {str(key): str(fact) for key, fact in value.items()}
        return {}

    async def close(self) -> None:
        """Close the toolkit. A second Ctrl-C does not interrupt this, and a failure is only logged."""
        closing = asyncio.ensure_future(self.toolkit.close())
        try:
            try:
                await asyncio.shield(closing)
            except asyncio.CancelledError:
                await closing
                raise
        except Exception as error:
            self._journal.log(f"toolkit {self.name!r} failed to close: {type(error).__name__}: {error}")

    @contextmanager
    def _guard(self, hook: str) -> Iterator[Callable[[], Any]]:
        """Yield the hook, or after a failure the hook of the base class, which does nothing."""
        default = partial(getattr(Toolkit, hook), self.toolkit)
        try:
            yield default if hook in self._failed else getattr(self.toolkit, hook)
        except Exception as error:  # foreign code must not end the turn
            self._failed.add(hook)
            text = f"toolkit {self.name!r} failed in {hook!r}, which is not called again: {_describe(self.name, error)}"
            self._journal.log(text)


class ToolkitHooks:
    """The hooks of all toolkits of an exchange, in order of dependency."""

    def __init__(self, guards: Sequence[ToolkitGuard] = ()) -> None:
        self._guards = guards
        self.commands = {command.name: command for guard in guards for command in guard.toolkit.commands()}

    async def start_turn(self) -> None:
        """Let each toolkit prepare a turn.

        Raises:
            GooseLikeError: a toolkit failed; this ends the turn.
        """
        for guard in self._guards:
            await guard.start_turn()

    def find_follow_up(self) -> str | None:
        """Return the first reason of a toolkit to continue the turn, when the model wants to finish."""
        return next(filter(None, (guard.find_follow_up() for guard in self._guards)), None)

    async def collect_facts(self) -> dict[str, tuple[str, str]]:
        """Return the current facts of all toolkits: `toolkit.key` -> (key, value)."""
        return {
            f"{guard.name}.{key}": (key, value)
            for guard in self._guards
            for key, value in (await guard.collect_facts()).items()
        }

    def list_state_sections(self) -> list[tuple[str, str]]:
        """Return the state of all toolkits as titles and texts."""
        return [section for guard in self._guards for section in guard.list_state_sections()]


def _describe(name: str, error: Exception) -> str:
    point = find_entry_point("goose_like.toolkit", name)
    return describe_foreign_error(error, point.module if point else "")
