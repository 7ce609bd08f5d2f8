"""Hooks of toolkits: found once for an exchange, and run so that a failing one is reported and harms nothing."""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from goose_like.config.entry_points import find_entry_point
from goose_like.core.errors import describe_foreign_error
from goose_like.core.notifier import Notifier

from .toolkit import Toolkit

T = TypeVar("T")

HOOK_POINTS = (
    "on_session_start",
    "on_prompt_submitted",
    "before_call",
    "after_call",
    "on_permission_asked",
    "on_permission_denied",
    "on_notification",
    "before_compaction",
    "after_compaction",
    "on_subagent_start",
    "on_subagent_stop",
    "on_event",
    "before_finish",
    "on_session_end",
)
"""The methods of a toolkit that judge or learn what happens in a session, in the order of docs/hook-points.md."""


@dataclass(slots=True, eq=False)
class Hook:
    """A method of one toolkit for one hook point. `has_failed`: a failure was reported.

    `config` is that of the toolkit.
    """

    toolkit: str
    name: str
    function: Callable[..., Any]
    config: Mapping[str, Any]
    has_failed: bool = False

    async def call(self, *values: object) -> Any:
        """Call the method, which may be `async` or not."""
        answer = self.function(*values)
        if inspect.isawaitable(answer):
            return await answer
        return answer

    async def ask(self, value: object, kind: type[T]) -> T | None:
        """Call the method, and check the type of its answer.

        Raises:
            TypeError: the answer is neither None nor of this type.
        """
        answer = await self.call(value)
        if answer is None or isinstance(answer, kind):
            return answer
        raise TypeError(f"its answer is a {type(answer).__name__}, not a {kind.__name__}")


def list_hooks(toolkits: Mapping[str, Toolkit], name: str, inherited: Iterable[Hook] = ()) -> list[Hook]:
    """List the toolkits that override a hook, in the order of the profile.

    Those of a parent come first, except of toolkits that are here as well, with the same config.
    """
    default = getattr(Toolkit, name)
    configs = get_configs(toolkits)
    hooks = [hook for hook in inherited if configs.get(hook.toolkit) != hook.config]
    for toolkit_name, toolkit in toolkits.items():
        function = getattr(toolkit, name)
        if getattr(function, "__func__", None) is not default:
            hooks.append(Hook(toolkit_name, name, function, configs[toolkit_name]))
    return hooks


def get_configs(toolkits: Mapping[str, Toolkit]) -> dict[str, Mapping[str, Any]]:
    """Return the config of each toolkit by its name."""
    return {name: getattr(toolkit, "config", {}) for name, toolkit in toolkits.items()}


def list_hook_points(kind: type[Toolkit]) -> list[str]:
    """List the hook points that a class of toolkits overrides."""
    names: list[str] = []
    for name in HOOK_POINTS:
        if getattr(kind, name) is not getattr(Toolkit, name):
            names.append(name)
    return names


class HookRunner:
    """Runs hooks that only add something. A hook that fails is logged once and not called again."""

    def __init__(self, notifier: Notifier) -> None:
        self._notifier = notifier

    @contextmanager
    def guard(self, hook: Hook) -> Iterator[None]:
        """Report an error of a hook, and continue behind the block: foreign code must not end the turn."""
        try:
            yield
        except Exception as error:
            self.report(hook, error, "which is not called again")

    def report(self, hook: Hook, error: Exception, effect: str) -> str:
        """Describe a failure, and log it the first time. `effect` is a clause about the hook."""
        reason = describe_error(hook.toolkit, error)
        text = f"toolkit {hook.toolkit!r} failed in {hook.name!r}, {effect}: {reason}"
        if not hook.has_failed:
            hook.has_failed = True
            self._notifier.log(text)
        return text

    async def tell(self, hooks: Sequence[Hook], *values: object) -> None:
        """Call hooks that have no answer."""
        for hook in hooks:
            if hook.has_failed:
                continue
            with self.guard(hook):
                await hook.call(*values)

    async def collect_texts(self, hooks: Sequence[Hook], value: object) -> list[str]:
        """Call hooks that may answer with a text, and return the texts."""
        texts: list[str] = []
        for hook in hooks:
            if hook.has_failed:
                continue
            with self.guard(hook):
                text = await hook.ask(value, str)
                if text:
                    texts.append(text)
        return texts


def describe_error(toolkit: str, error: Exception) -> str:
    """Describe an error of a toolkit's code, with the place in its package."""
    point = find_entry_point("goose_like.toolkit", toolkit)
    return describe_foreign_error(error, point.module if point else "")
