"""The hooks of toolkits, and the boundary that turns errors of foreign code into one sentence."""

import asyncio
import inspect
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from goose_like.config.entry_points import find_entry_point
from goose_like.core.errors import GooseLikeError, describe_foreign_error, prefix_error_path
from goose_like.core.masking import mask_text
from goose_like.core.notifier import Notifier

from .toolkit import FollowUp, RunningTask, Toolkit


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


async def close_toolkit(name: str, toolkit: Toolkit, notifier: Notifier) -> None:
    """Close a toolkit. A second Ctrl-C does not interrupt this, and a failure is only logged."""
    closing = asyncio.ensure_future(toolkit.close())
    try:
        try:
            await asyncio.shield(closing)
        except asyncio.CancelledError:
            await closing
            raise
    except Exception as error:
        notifier.log(f"toolkit {name!r} failed to close: {type(error).__name__}: {error}")


class ToolkitHooks:
    """The hooks of all toolkits of an exchange, by name. A hook that fails is logged once and not called again."""

    def __init__(self, notifier: Notifier, toolkits: Mapping[str, Toolkit] = {}) -> None:
        self.commands = {command.name: command for toolkit in toolkits.values() for command in toolkit.commands()}
        self._notifier = notifier
        self._toolkits = toolkits
        self._failed: set[tuple[str, str]] = set()
        self._objected: set[str] = set()

    def list_tools(self, names: Collection[str]) -> set[str]:
        """Return the names of the tools of some toolkits, and of those that only read."""
        toolkits = [toolkit for name, toolkit in self._toolkits.items() if name in names or toolkit.is_read_only]
        return {tool.name for toolkit in toolkits for tool in toolkit.tools()}

    def list_missing_tools(self) -> dict[str, str]:
        """Return the tools that are left out because they need something, with what they need."""
        missing: dict[str, str] = {}
        for toolkit in self._toolkits.values():
            picked = toolkit.config.get("tools", toolkit.tool_names())
            needs = {name: getattr(toolkit, name).__tool__.needs for name in toolkit.tool_names() if name in picked}
            offered = {tool.name for tool in toolkit.tools()} if any(needs.values()) else set()
            missing |= {name: text for name, text in needs.items() if text and name not in offered}
        return missing

    async def start_turn(self) -> None:
        """Let each toolkit prepare a turn.

        Raises:
            GooseLikeError: a toolkit failed; this ends the turn.
        """
        self._objected.clear()
        for name, toolkit in self._toolkits.items():
            with toolkit_errors(name):
                await toolkit.on_turn_start()

    def find_follow_up(self, *, only_repeated: bool = False) -> str | None:
        """Return the first reason of a toolkit to continue the turn, when the model wants to finish."""
        for name, before_finish in self._list_hooks("before_finish"):
            with self._guard(name, "before_finish"):
                reason = None if name in self._objected else before_finish()
                follow_up = reason if isinstance(reason, FollowUp) else FollowUp(str(reason or ""))
                if follow_up.text and (follow_up.is_repeated or not only_repeated):
                    if not follow_up.is_repeated:
                        self._objected.add(name)
                    return follow_up.text
        return None

    def list_state_sections(self) -> list[tuple[str, str]]:
        """Return the state of all toolkits as titles and texts."""
        sections: list[tuple[str, str]] = []
        for name, state_sections in self._list_hooks("state_sections"):
            with self._guard(name, "state_sections"):
                sections += [(str(title), str(text)) for title, text in state_sections()]
        return sections

    def list_running_tasks(self) -> list[RunningTask]:
        """Return the running tasks of all toolkits."""
        tasks: list[RunningTask] = []
        for name, running_tasks in self._list_hooks("running_tasks"):
            with self._guard(name, "running_tasks"):
                tasks += running_tasks()
        return tasks

    async def collect_facts(self) -> dict[str, str]:
        """Return the current facts of all toolkits by `toolkit.key`."""
        facts: dict[str, str] = {}
        for name, context_updates in self._list_hooks("context_updates"):
            with self._guard(name, "context_updates"):
                updates = context_updates()
                updates = await updates if inspect.isawaitable(updates) else updates
                facts |= {f"{name}.{key}": mask_text(str(value)) for key, value in updates.items()}
        return facts

    def _list_hooks(self, hook: str) -> list[tuple[str, Callable[[], Any]]]:
        toolkits = self._toolkits.items()
        return [(name, getattr(toolkit, hook)) for name, toolkit in toolkits if (name, hook) not in self._failed]

    @contextmanager
    def _guard(self, name: str, hook: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # foreign code must not end the turn
            self._failed.add((name, hook))
            text = f"toolkit {name!r} failed in {hook!r}, which is not called again: {_describe(name, error)}"
            self._notifier.log(text)


def _describe(name: str, error: Exception) -> str:
    point = find_entry_point("goose_like.toolkit", name)
    return describe_foreign_error(error, point.module if point else "")
