"""Toolkit: tools, the prompt that goes with them, and their state. Authors import everything from here."""

from collections.abc import Awaitable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Self

from goose_like.config.profile import Limits, Profile
from goose_like.core.entry_points import did_you_mean
from goose_like.core.errors import ProfileError
from goose_like.core.events import ToolProgress
from goose_like.core.notifier import Notifier
from goose_like.core.tool import Final, Passing, Picture, Tool, ToolError, ToolOptions, current_call, make_tool, tool
from goose_like.sessions.session import Session
from goose_like.workspace.workspace import Workspace

from .slash_command import Command, command, is_command, make_command
from .view import ExchangeView

__all__ = [
    "ExchangeView",
    "Final",
    "Notifier",
    "Passing",
    "Picture",
    "Requirements",
    "Tool",
    "ToolError",
    "Toolkit",
    "Workspace",
    "command",
    "tool",
]


class Requirements(Mapping[str, "Toolkit"]):
    """The toolkits that a toolkit depends on, under its own names for them."""

    def __init__(self, toolkit: str, found: Mapping[str, "Toolkit"]) -> None:
        self._toolkit = toolkit
        self._found = found

    def __getitem__(self, name: str) -> "Toolkit":
        if name not in self._found:
            near = f" ({did_you_mean(name, self._found)})" if self._found else ""
            raise ProfileError(
                f"toolkit {self._toolkit!r} needs {name!r}{near}; add `requires: {{{name}: TOOLKIT}}` to it",
                ("requires",),
            )
        return self._found[name]

    def get(self, name: str, default: Any = ...) -> Any:
        """The toolkit required as `name`.

        Raises:
            ProfileError: when the profile gives none and no default is given here.
        """
        return self[name] if default is ... or name in self else default

    def __contains__(self, name: object) -> bool:
        return name in self._found

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)


class Toolkit:
    """Subclass it, give methods `@tool`, a docstring and type hints, and say in `prompt` what a model must know.

    Set by the base class: `notifier` (also `interface`), `dependencies`, `exchange_view`, `workspace`, `session`,
    `limits`, `profile`, and `config`: what the profile says below the toolkit's `config:`. `config: {tools: [...]}`
    picks among the tools of any toolkit.

    `touches_machine` says whether its tools may read, change or run anything here; a toolkit that does is served over
    HTTP only where it is named.
    """

    touches_machine: ClassVar[bool] = True
    exchange_view: ExchangeView
    workspace: Workspace
    session: Session
    limits: Limits
    profile: Profile

    def __init__(self, notifier: Notifier, requires: Requirements, **kwargs: Any) -> None:
        self.notifier = self.interface = notifier
        self.dependencies = requires
        self.config: dict[str, Any] = dict(kwargs.pop("config", None) or {})
        for name, value in kwargs.items():
            setattr(self, name, value)

    @classmethod
    async def prepared(cls, notifier: Notifier, requires: Requirements, **kwargs: Any) -> Self:
        """One that is made, for a session that begins. Override it where something must be waited for before that.

        The person sees what goes on by `notifier.status`, and who stops it cancels this.
        """
        return cls(notifier, requires, **kwargs)

    def prompt(self) -> str:
        """What this toolkit adds to the system prompt. Asked once; it must not change within a session."""
        return self.system()

    def system(self) -> str:
        """The older spelling of `prompt`."""
        return ""

    def tools(self) -> tuple[Tool, ...]:
        """The tools of this toolkit, in the order in which they are written.

        Raises:
            ProfileError: when `config: {tools: [...]}` names one that there is not.
        """
        names = self.tool_names()
        picked = self.config.get("tools")
        if picked is None:
            picked = [name for name in names if isinstance(_marks(getattr(self, name)), ToolOptions)]
        if not isinstance(picked, list):
            raise ProfileError(f"`tools` takes a list, e.g. [{', '.join(names)}], not {picked!r}", ("config", "tools"))
        for name in map(str, picked):
            if name not in names:
                raise ProfileError(f"no tool {name!r} to pick; {did_you_mean(name, names)}", ("config", "tools"))
        return tuple(make_tool(getattr(self, name)) for name in picked)

    @classmethod
    def tool_names(cls) -> tuple[str, ...]:
        """The names of the methods that are tools."""
        names: dict[str, None] = {}
        for kind in reversed(cls.__mro__):
            names |= {name: None for name, value in vars(kind).items() if isinstance(_marks(value), ToolOptions)}
        return tuple(names)

    def commands(self) -> tuple[Command, ...]:
        """The methods marked with `@command`: what a person can type as `/name` in a session."""
        names = dict.fromkeys(name for kind in reversed(type(self).__mro__) for name in vars(kind))
        methods = [getattr(type(self), name) for name in names]
        return tuple(make_command(getattr(self, method.__name__)) for method in methods if is_command(method))

    def doubt(self) -> str | None:
        """What speaks against being done, when the model says that it is. It is asked back once a turn."""
        return None

    def demand(self) -> str | None:
        """What must be done before the turn ends, when the model says that it is over; asked back each time."""
        return None

    async def begin(self) -> None:
        """Does what must be done in a turn before its first step; it may take long. What it raises ends the turn."""

    def news(self) -> Mapping[str, str] | Awaitable[Mapping[str, str]]:
        """What is true now and may change (`{"git branch": "main"}`), asked before each step; must be quick.

        The model is told what differs from what it was told last. May be `async`.
        """
        return {}

    def live(self) -> Sequence[tuple[str, str]]:
        """What is true now, as titles and texts, for a moderator that tells the model these in place of the past."""
        return ()

    def progress(self, text: str) -> None:
        """Shows a piece of the running tool's output at once. It does not last and the model doesn't see it."""
        self.notifier.notify(ToolProgress(call_id=current_call.get(""), text=text))

    async def close(self) -> None:
        """Gives back what the toolkit holds. Called once, after the toolkits that depend on this one."""


def _marks(function: object) -> object:
    return getattr(getattr(function, "__func__", function), "__tool__", None)
