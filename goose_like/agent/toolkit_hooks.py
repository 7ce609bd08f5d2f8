"""The hooks of toolkits, and the boundary that turns errors of foreign code into one sentence."""

import asyncio
import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from goose_like.core.entry_points import find_entry_point
from goose_like.core.errors import GooseLikeError, describe_foreign_error, prefix_error_path

from .journal import Journal
from .slash_command import SlashCommand
from .toolkit import FollowUp, Toolkit

T = TypeVar("T")


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
        self._toolkit = toolkit
        self._journal = journal
        self._failed: set[str] = set()
        self._has_objected = False

    @property
    def commands(self) -> tuple[SlashCommand, ...]:
        """The slash commands of the toolkit."""
        return self._toolkit.commands()

    async def start_turn(self) -> None:
        """Call `on_turn_start`.

        Raises:
            GooseLikeError: the hook failed; this ends the turn.
        """
        self._has_objected = False
        with toolkit_errors(self.name):
            await self._toolkit.on_turn_start()

    def find_follow_up(self) -> str | None:
        """Call `before_finish`, except after an objection that counts once a turn."""
        if self._has_objected:
            return None
        follow_up = self._call("before_finish", _read_follow_up, None)
        if follow_up is None:
            return None
        self._has_objected = not follow_up.is_repeated
        return follow_up.text

    def list_state_sections(self) -> tuple[tuple[str, str], ...]:
        """Call `state_sections`."""
        return self._call("state_sections", _read_sections, ())

    async def collect_facts(self) -> dict[str, str]:
        """Call `context_updates`, which may be `async`."""
        if "context_updates" not in self._failed:
            with self._catch("context_updates"):
                value = self._toolkit.context_updates()
                value = await value if inspect.isawaitable(value) else value
                return {str(key): str(fact) for key, fact in value.items()}
        return {}

    async def close(self) -> None:
        """Close the toolkit. A second Ctrl-C does not interrupt this, and a failure is only logged."""
        closing = asyncio.ensure_future(self._toolkit.close())
        try:
            try:
                await asyncio.shield(closing)
            except asyncio.CancelledError:
                await closing
                raise
        except Exception as error:
            self._journal.log(f"toolkit {self.name!r} failed to close: {type(error).__name__}: {error}")

    def _call(self, hook: str, read: Callable[[Any], T], default: T) -> T:
        if hook not in self._failed:
            with self._catch(hook):
                return read(getattr(self._toolkit, hook)())
        return default

    @contextmanager
    def _catch(self, hook: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # foreign code must not end the turn
            self._failed.add(hook)
            text = f"toolkit {self.name!r} failed in {hook!r}, which is not called again: {_describe(self.name, error)}"
            self._journal.log(text)


class ToolkitHooks:
    """The hooks of all toolkits of an exchange, in order of dependency."""

    def __init__(self, toolkits: Sequence[ToolkitGuard] = ()) -> None:
        self._toolkits = toolkits
        self.commands = {command.name: command for toolkit in toolkits for command in toolkit.commands}

    async def start_turn(self) -> None:
        """Let each toolkit prepare a turn.

        Raises:
            GooseLikeError: a toolkit failed; this ends the turn.
        """
        for toolkit in self._toolkits:
            await toolkit.start_turn()

    def find_follow_up(self) -> str | None:
        """Return the first reason of a toolkit to continue the turn, when the model wants to finish."""
        return next(filter(None, (toolkit.find_follow_up() for toolkit in self._toolkits)), None)

    async def collect_facts(self) -> dict[str, tuple[str, str]]:
        """Return the current facts of all toolkits: `toolkit.key` -> (key, value)."""
        return {
            f"{toolkit.name}.{key}": (key, value)
            for toolkit in self._toolkits
            for key, value in (await toolkit.collect_facts()).items()
        }

    def list_state_sections(self) -> list[tuple[str, str]]:
        """Return the state of all toolkits as titles and texts."""
        return [section for toolkit in self._toolkits for section in toolkit.list_state_sections()]


def _describe(name: str, error: Exception) -> str:
    point = find_entry_point("goose_like.toolkit", name)
    return describe_foreign_error(error, point.module if point else "")


def _read_follow_up(value: Any) -> FollowUp | None:
    if isinstance(value, FollowUp):
        return value
    return FollowUp(str(value)) if value else None


def _read_sections(value: Any) -> tuple[tuple[str, str], ...]:
    return tuple((str(title), str(text)) for title, text in value)
