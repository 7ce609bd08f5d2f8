"""The base class of toolkits: tools, the prompt section that goes with them, state and hooks."""

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

from typing_extensions import override

from goose_like.config.kept_values import compute_once
from goose_like.config.profile import Limits, Profile
from goose_like.config.trust import ProjectConfig
from goose_like.core.dataclass import dataclass
from goose_like.core.docstring import read_docstring
from goose_like.core.errors import ProfileError
from goose_like.core.events import Event, FileChanged, ToolProgress
from goose_like.core.example import Example
from goose_like.core.notifier import Notifier
from goose_like.core.spelling import did_you_mean
from goose_like.core.tool import InnerCall, Tool, ToolOptions, current_call, make_tool
from goose_like.providers.base import ModelPair
from goose_like.sessions.session import Session
from goose_like.workspace.workspace import Workspace

from .budget import Budget
from .hook_values import (
    AfterCall,
    BeforeCall,
    CallVerdict,
    CompactionEnd,
    CompactionStart,
    Notification,
    PermissionAsked,
    PermissionDenied,
    PermissionVerdict,
    PromptSubmitted,
    PromptVerdict,
    ResultChange,
    SessionStart,
    SubagentStart,
    SubagentStop,
)
from .slash_command import SlashCommand, is_command, make_command
from .view import ExchangeView


@dataclass(frozen=True, slots=True)
class FollowUp:
    """A text that the model reads instead of finishing the turn, once a turn or each time."""

    text: str
    is_repeated: bool = False


@dataclass(frozen=True, slots=True)
class RunningTask:
    """A process or subagent that runs now, for the person.

    `name` is short, such as `p1`. `started_at` is a time of the event loop. `get_tail` returns its last output.
    """

    name: str
    title: str
    started_at: float
    get_tail: Callable[[], str]
    stop: Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Resource:
    """Something that other agents may read by its address. In a template, `uri` has places such as `{path}`."""

    uri: str
    name: str
    description: str = ""
    media_type: str = ""
    is_template: bool = False


class Requirements(dict[str, "Toolkit"]):
    """The toolkits that another toolkit requires, by the names it uses for them."""

    def __init__(self, toolkit: str, required: Mapping[str, "Toolkit"]) -> None:
        super().__init__(required)
        self._toolkit = toolkit

    def __missing__(self, name: str) -> "Toolkit":
        near = f" ({did_you_mean(name, self)})" if self else ""
        text = f"toolkit {self._toolkit!r} needs {name!r}{near}; add `requires: {{{name}: TOOLKIT}}` to it"
        raise ProfileError(text, ("requires",))

    @override
    def get(self, name: str, default: Any = ...) -> Any:
        """Return the toolkit required as `name`, or the default.

        Raises:
            ProfileError: the profile names no such toolkit, and there is no default.
        """
        if default is ... or name in self:
            return self[name]
        return default


class Toolkit:
    """The base class of all toolkits.

    Mark methods with `@tool` and give them type hints and a docstring. Explain in `prompt` what the model must know.

    The base class sets `notifier` (also as `interface`), `dependencies`, `exchange_view`, `workspace`, `session`,
    `limits`, `profile`, `project` (the trusted files of the repository, if given) and `config`, the toolkit's `config:`
    in the profile. With `config: {tools: [...]}` a profile
    picks some of the tools.

    `has_local_access`: the tools may read, change or run something on this machine. The HTTP server serves such a
    toolkit only when it is named. `is_read_only`: the tools change nothing, here or elsewhere. In the sandbox mode
    `read-only`, the model gets the toolkits of other packages only with this promise. `is_confined`: the tools change
    things only through the workspace, which refuses in a turn that only reads, and keep no process that has rights of
    an earlier turn. Such a turn has the tools of these toolkits, too. A subclass makes the promise itself.

    `examples`: worked examples that the smallest models read before the conversation, if all their tools are offered.
    `file_kind`: what the files of a project hold that make the toolkit active, such as `hooks`, for the question about
    trust. By default it is the name of the toolkit.
    """

    has_local_access: ClassVar[bool] = True
    is_read_only: ClassVar[bool] = False
    is_confined: ClassVar[bool] = False
    examples: ClassVar[Sequence[Example]] = ()
    file_kind: ClassVar[str] = ""
    exchange_view: ExchangeView
    workspace: Workspace
    session: Session
    limits: Limits
    profile: Profile
    project: ProjectConfig | None = None

    def __init__(self, notifier: Notifier, requires: Requirements, **kwargs: Any) -> None:
        self.notifier = notifier
        self.interface = notifier
        self.dependencies = requires
        self.config: dict[str, Any] = dict(kwargs.pop("config", None) or {})
        for name, value in kwargs.items():
            setattr(self, name, value)

    @property
    def budget(self) -> Budget:
        """The budget of the running turn. Pass it to the exchange of a subagent, which draws from it."""
        return self.exchange_view.budget

    @classmethod
    def is_present(cls, folder: Path, project: ProjectConfig | None) -> bool:
        """Return whether the toolkit is active without a line in the profile, because its files exist.

        The class is asked if a file exists that the entry-point group `goose_like.toolkit_files` names for it. `folder`
        is the workspace. Of the files in it, judge only those of `project`: the person trusts them. This must be quick.
        """
        return True

    @classmethod
    def describe_files(cls, project: ProjectConfig) -> Sequence[str]:
        """Describe what the files of a project would run and get, in lines for the person who decides about trust.

        Nobody trusts the files yet: read only the texts in `project`. The class is asked if one of them is declared for
        it in the entry-point group `goose_like.toolkit_files`. This must be quick.
        """
        return ()

    @classmethod
    async def create(cls, notifier: Notifier, requires: Requirements, **kwargs: Any) -> Self:
        """Create the toolkit for a session. Override this to wait for something first, such as a download.

        The user sees `notifier.status` meanwhile and may cancel.
        """
        return cls(notifier, requires, **kwargs)

    def prompt(self) -> str:
        """Return the section for the system prompt, which is read once by each process of a session.

        A session keeps its first prompt, so that caches hold. The model is told which paragraphs differ after a resume.
        """
        return self.system()

    def system(self) -> str:
        """Return the section for the system prompt, as toolkits of goose 0.9 name it."""
        return ""

    def tools(self) -> tuple[Tool, ...]:
        """Return the tools, in the order of their definition.

        Raises:
            ProfileError: `config: {tools: [...]}` names an unknown tool.
        """
        names = self.tool_names()
        picked = self.config.get("tools", names)
        place = ("config", "tools")
        if not isinstance(picked, list):
            example = ", ".join(names)
            raise ProfileError(f"`tools` takes a list, e.g. [{example}], not {picked!r}", place)
        for name in map(str, picked):
            if name not in names:
                hint = did_you_mean(name, names)
                raise ProfileError(f"no tool {name!r} to pick; {hint}", place)
        methods = [getattr(self, name) for name in picked]
        return tuple(map(make_kept_tool, methods))

    @classmethod
    def tool_names(cls) -> list[str]:
        """Return the names of the methods that are tools."""
        names: dict[str, None] = {}
        for base in reversed(cls.__mro__):
            names.update(dict.fromkeys(vars(base)))
        return [name for name in names if _is_tool(getattr(cls, name, None))]

    def commands(self) -> tuple[SlashCommand, ...]:
        """Return the slash commands: the methods marked with `@command`."""
        marked = inspect.getmembers(type(self), is_command)
        return tuple(make_command(getattr(self, name)) for name, _ in marked)

    def use_profile(self, profile: Profile, models: ModelPair) -> None:
        """Continue under a changed profile: with other models, or with another approval in the same sandbox."""
        self.profile = profile
        self.exchange_view.use_models(models)

    async def on_turn_start(self) -> None:
        """Prepare a turn before its first step. This may take long; an error ends the turn."""

    def context_updates(self) -> Mapping[str, str] | Awaitable[Mapping[str, str]]:
        """Return facts that may change, such as `{"git branch": "main"}`. This may be `async` and must be quick.

        The exchange asks before each step and tells the model which facts changed.
        """
        return {}

    def prompt_parts(self) -> Mapping[str, str]:
        """Return parts of the prompt that `/context` counts on their own, by their name: `{"skills": text}`."""
        return {}

    def state_sections(self) -> Sequence[tuple[str, str]]:
        """Return the current state as titles and texts, for moderators that send the state instead of the past."""
        return ()

    def before_finish(self) -> str | FollowUp | Awaitable[str | FollowUp | None] | None:
        """Return a reason to continue when the model wants to finish, or None to let it finish. This may be `async`.

        The model reads a string once a turn, and a `FollowUp` with `is_repeated` until this returns None.
        """
        return None

    def running_tasks(self) -> Sequence[RunningTask]:
        """Return what runs beside the conversation. The person lists and stops it with `/tasks`. This must be quick."""
        return ()

    def mention_choices(self) -> Sequence[tuple[str, str]]:
        """Return words that the person may write behind `@`, with descriptions, for completion. This must be quick."""
        return ()

    def resources(self) -> Sequence[Resource]:
        """Return what `mcp serve` offers to other agents for reading. This must be quick."""
        return ()

    def resource_call(self, uri: str) -> InnerCall | None:
        """Return the call that reads a resource with one of the toolkit's tools, or None if there is none.

        The call runs like one of the model, so rules, hooks and the session file know it.
        """
        return None

    # --- hook points: only the overridden ones are called; see docs/hook-points.md

    async def on_session_start(self, start: SessionStart) -> str | None:
        """Return context for the model, or None. Called before the first message of a process."""
        return None

    async def on_session_end(self) -> None:
        """Finish work of the session. Called after the last turn, while all toolkits are still open."""

    def on_event(self, event: Event) -> None:
        """Learn of each event of the session, after it is saved. This is no `async def`, and must be quick.

        Events of subagents arrive as `SubagentEvent`. What a toolkit emits in this method, it is not told.
        """

    async def on_prompt_submitted(self, prompt: PromptSubmitted) -> PromptVerdict | None:
        """Block a message of the person, or add context for the model."""
        return None

    async def before_call(self, call: BeforeCall) -> CallVerdict | None:
        """Deny a tool call, let the person decide, replace its arguments, or add context for the model.

        If this raises, the person decides. It never allows more than the rules and the sandbox do.
        """
        return None

    async def after_call(self, call: AfterCall) -> ResultChange | None:
        """Replace the output of a tool call, or add context for the model. Calls that failed are included."""
        return None

    async def on_permission_asked(self, permission: PermissionAsked) -> PermissionVerdict | None:
        """Deny a permission before the person is asked for it. If this raises, the person decides."""
        return None

    async def on_permission_denied(self, denial: PermissionDenied) -> None:
        """Learn that a tool call failed because a permission was denied."""

    async def on_notification(self, notification: Notification) -> None:
        """Tell the person in another way that a question waits, or that a turn ended. Nothing waits for this."""

    async def before_compaction(self, compaction: CompactionStart) -> str | None:
        """Return what a summary of the conversation must keep, or None."""
        return None

    async def after_compaction(self, compaction: CompactionEnd) -> None:
        """Learn that the conversation was shortened."""

    async def on_subagent_start(self, subagent: SubagentStart) -> str | None:
        """Return context for a subagent, or None. Called before its first message."""
        return None

    async def on_subagent_stop(self, subagent: SubagentStop) -> None:
        """Learn that a subagent ended."""

    def report_progress(self, text: str, skipped_line_count: int = 0) -> None:
        """Show output of the running tool at once. The output does not last, and the model does not see it.

        `skipped_line_count` is the number of lines before the text that are left out.
        """
        call_id = current_call.get("")
        self.notifier.notify(ToolProgress(call_id=call_id, text=text, skipped_line_count=skipped_line_count))

    def report_change(self, path: str | Path, diff: str = "") -> None:
        """Show that the running tool changed a file. A relative path starts at the root of the workspace.

        `diff` is a unified diff; leave it empty if there is none to show, as for a binary file.
        """
        call_id = current_call.get("")
        absolute = self.workspace.root / path
        self.notifier.notify(FileChanged(call_id=call_id, path=str(absolute), diff=diff))

    async def close(self) -> None:
        """Release all resources. Toolkits that depend on this one are closed before it."""


def _is_tool(function: object) -> bool:
    options = getattr(function, "__tool__", None)
    return isinstance(options, ToolOptions)


def make_kept_tool(method: Callable[..., Any]) -> Tool:
    """Make the tool of a method. The texts of its docstring are kept, because a parser is slow to import."""
    return make_tool(method, _read_kept_docstring)


def _read_kept_docstring(text: str) -> dict[str, str]:
    texts: dict[str, str] = compute_once("docstrings", text, read_docstring)
    return texts
