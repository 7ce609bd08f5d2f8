"""The input of hooks: the fields of each event, with the names that the format of the hook expects."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from goose_like.config.profile import Profile
from goose_like.sessions.session import Session
from goose_like.workspace.workspace import Workspace

from .engine import HookEngine, Run
from .foreign import list_names, make_response, translate_call
from .matching import meets
from .runner import is_confined
from .settings import Format, Handler
from .transcript import Transcript

_MODES = {"ask": "default", "auto": "acceptEdits", "plan": "plan", "unattended": "dontAsk", "yolo": "bypassPermissions"}
"""The permission mode of other agents that comes nearest, by our approval mode."""


_Found = tuple[Format, set[str], list[Handler]]
"""The hooks of one format that a call concerns, with the names of the call that matchers see."""


class HookInput:
    """Makes the runs of an event: the hooks that it concerns, each with its fields."""

    def __init__(self, engine: HookEngine, workspace: Workspace, session: Session, profile: Profile) -> None:
        self._engine = engine
        self._workspace = workspace
        self._session = session
        self._transcript = Transcript(session, workspace)
        self._aliases: dict[str, frozenset[str]] = {}
        self._found: dict[tuple[str, str, str], list[_Found]] = {}
        self._profile = profile

    def make_runs(self, event: str, name: str = "", fields: Mapping[str, Any] = {}) -> list[Run]:
        """Make the runs of an event that is no tool call. Matchers see the `name`."""
        if not self._engine.has(event):
            return []
        runs: list[Run] = []
        for handler in self._engine.find(event, [name]):
            runs.append(Run(handler, {**self._make_common_fields(handler), **fields}))
        return runs

    def make_tool_runs(
        self,
        event: str,
        tool: str,
        arguments: Mapping[str, Any],
        fields: Mapping[str, Any],
        *,
        output: str | None = None,
        left_out: Collection[Handler] = (),
    ) -> list[Run]:
        """Make the runs about a tool call. Where several foreign calls stand for it, a hook runs for each."""
        root = self._workspace.root
        runs: list[Run] = []
        for form, names, handlers in self._find_handlers(event, tool, arguments):
            for part, call in enumerate(translate_call(form, tool, arguments, root)):
                own_fields: dict[str, Any] = {"tool_name": call.name, "tool_input": call.input}
                if output is not None:
                    own_fields["tool_response"] = make_response(form, call, output)
                for handler in handlers:
                    is_meant = not handler.condition or meets(handler.condition, names, call.input, root)
                    if handler not in left_out and is_meant:
                        every = {**self._make_common_fields(handler), **own_fields, **fields}
                        runs.append(Run(handler, every, part))
        return runs

    def _find_handlers(self, event: str, tool: str, arguments: Mapping[str, Any]) -> list[_Found]:
        """Find the hooks of a call by their formats. The answer is remembered: most calls concern no hook."""
        key = (event, tool, str(arguments.get("action", "")))  # the names of `process` depend on this argument
        known = self._found.get(key)
        if known is not None:
            return known
        found: list[_Found] = []
        for form in self._engine.list_formats(event):
            names = list_names(form, tool, arguments, self._workspace.root) | self._find_aliases(tool)
            matching = self._engine.find(event, names)
            handlers = [handler for handler in matching if handler.source.format == form]
            if handlers:
                found.append((form, names, handlers))
        self._found[key] = found
        return found

    def _make_common_fields(self, handler: Handler) -> dict[str, Any]:
        return {
            "session_id": self._session.folder.name,
            "transcript_path": self._find_transcript(handler),
            "cwd": str(self._workspace.root),
            "permission_mode": _MODES.get(self._workspace.approval, "default"),
            "hook_event_name": handler.event,
        }

    def _find_transcript(self, handler: Handler) -> str:
        """Return the conversation as a file: that of the session, or a copy in the format that the hook expects."""
        if handler.source.format == "ours":
            return str(self._session.file)
        path = self._transcript.write()
        if handler.command and is_confined(handler, self._workspace):
            return self._workspace.path_in_sandbox(path)
        return str(path)

    def _find_aliases(self, tool: str) -> frozenset[str]:
        """Return the names of a tool in other agents, without those under which it only reads."""
        if not self._aliases:
            self._aliases = _list_aliases(self._profile)
        return self._aliases.get(tool, frozenset())


def _list_aliases(profile: Profile) -> dict[str, frozenset[str]]:
    """List the names in other agents of all tools of a profile."""
    from goose_like.agent.goose09 import load_toolkit

    found: dict[str, frozenset[str]] = {}
    for choice in profile.toolkits:
        kind = load_toolkit(choice.name)
        for tool in kind.tool_names():
            options = getattr(kind, tool).__tool__
            reading: Sequence[str] = ()
            if not isinstance(options.read_only, bool):
                reading = options.read_only
            found[tool] = frozenset(options.aliases) - frozenset(reading)
    return found


def make_sample(event: str) -> tuple[str | None, dict[str, Any]]:
    """Make the name and the fields of an event for a trial. The name is None for events about a tool call."""
    match event:
        case "SessionStart":
            return "startup", {"source": "startup"}
        case "UserPromptSubmit":
            return "", {"prompt": "a message of yours"}
        case "Stop":
            return "", {"stop_hook_active": False, "last_assistant_message": "an answer"}
        case "SubagentStart" | "SubagentStop":
            return "delegate", {"agent_id": "call_1", "agent_type": "delegate"}
        case "PreCompact" | "PostCompact":
            return "manual", {"trigger": "manual"}
        case "Notification":
            return "permission_prompt", {"message": "a question", "notification_type": "permission_prompt"}
        case "SessionEnd":
            return "other", {"reason": "other"}
    return None, {"tool_use_id": "call_1"}
