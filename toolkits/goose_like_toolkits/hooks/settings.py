"""Hooks as files describe them: events, the names that they match, and handlers."""

from collections.abc import Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, Literal

from goose_like.core.dataclass import dataclass
from goose_like.core.spelling import did_you_mean

Format = Literal["ours", "claude", "codex"]
"""Whose names of tools and arguments a hook expects."""

EVENTS = (
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PermissionRequest",
    "PermissionDenied",
    "PostToolUse",
    "PostToolUseFailure",
    "Stop",
    "SubagentStart",
    "SubagentStop",
    "PreCompact",
    "PostCompact",
    "Notification",
    "SessionEnd",
)
GATES = ("PreToolUse", "PermissionRequest")
"""The events at which a failing hook must not let an action pass."""

_LIMITS_S = {"UserPromptSubmit": 30.0, "PostToolUse": 600.0, "PostToolUseFailure": 600.0, "Stop": 600.0}
_DEFAULT_LIMIT_S = 60.0
_MAX_LIMIT_S = {"SessionEnd": 8.0}
"""A session waits no longer than 10 seconds for its last hooks."""

_GROUP_KEYS = ("matcher", "hooks")
_KEYS: dict[str, type | tuple[type, ...]] = {
    "type": str,
    "command": str,
    "args": list,
    "url": str,
    "headers": dict,
    "allowedEnvVars": list,
    "if": str,
    "timeout": (int, float),
    "async": bool,
    "statusMessage": str,
    "onFailure": str,
    "sandbox": bool,
}
"""The keys of a handler with the types of their values. All but `sandbox` are those of other agents."""


Place = tuple[str | int, ...]
"""The path of keys to a part of a file."""


@dataclass(frozen=True, slots=True)
class Source:
    """A place of hooks. `is_own`: the person wrote them or took them over, so they may have the person's rights.

    The hooks of a bundle have its variables, and may write in its folder of data.
    """

    name: str
    format: Format
    is_own: bool
    variables: tuple[tuple[str, str], ...] = ()
    data: Path | None = None


@dataclass(frozen=True, slots=True)
class Handler:
    """A command or an address that is told of an event. Without `arguments`, the command is a line for bash."""

    event: str
    source: Source
    matcher: str = ""
    condition: str = ""
    command: str = ""
    arguments: tuple[str, ...] | None = None
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict, hash=False)
    variables: tuple[str, ...] = ()
    limit_s: float = _DEFAULT_LIMIT_S
    is_async: bool = False
    status: str = ""
    blocks_on_failure: bool = False
    is_confined: bool = True

    @property
    def place(self) -> str:
        """The hook and its source, for people."""
        return f"the hook `{self.label}` of {self.source.name}"

    @property
    def line(self) -> str:
        """The whole command or address in one line, for people."""
        words = [self.command or self.url, *(self.arguments or ())]
        return " ".join(" ".join(words).split())

    @property
    def label(self) -> str:
        """The start of the command or address, for people."""
        text = self.line
        return text if len(text) <= 80 else f"{text[:79]}…"


@dataclass(frozen=True, slots=True)
class Problem:
    """A part of a file that is not used, and why."""

    text: str
    place: Place = ()


class HookReader:
    """Reads the hooks of one source. The parts that cannot be used become `problems`."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.problems: list[Problem] = []

    def read(self, data: object) -> list[Handler]:
        """Read a mapping of events to groups of handlers."""
        if not isinstance(data, Mapping):
            self._note("hooks are a mapping of events, such as `PreToolUse: [...]`")
            return []
        handlers: list[Handler] = []
        for event, groups in data.items():
            if event in EVENTS:
                handlers += self._read_groups(str(event), groups)
            else:
                self._note_unknown_event(str(event))
        return handlers

    def _note(self, text: str, *place: str | int) -> None:
        self.problems.append(Problem(text, place))

    def _note_unknown_event(self, event: str) -> None:
        if self._source.format == "codex" and event == "state":  # what Codex trusts
            return
        text = f"there is no event {event!r} here"
        if self._source.format == "ours":
            text += f"; {did_you_mean(event, EVENTS)}"
        self._note(text, event)

    def _read_groups(self, event: str, groups: object) -> Iterator[Handler]:
        if not isinstance(groups, list):
            self._note(f"{event} has no list", event)
            return
        for index, group in enumerate(groups):
            place = (event, index)
            if not isinstance(group, Mapping) or not isinstance(group.get("hooks"), list):
                self._note(f"a group of {event} has no list `hooks`", *place)
                continue
            matcher = group.get("matcher") or ""
            if not isinstance(matcher, str):
                self._note(f"the matcher {matcher!r} of {event} is no text", *place, "matcher")
                continue
            self._check_keys(group, _GROUP_KEYS, *place)
            for number, entry in enumerate(group["hooks"]):
                handler = self._read_handler(event, matcher, entry, (*place, "hooks", number))
                if handler:
                    yield handler

    def _check_keys(self, entry: Mapping[str, Any], known: Any, *place: str | int) -> None:
        """Note unknown keys, which are likely misspelt. Other agents have more keys than we know."""
        if self._source.format != "ours":
            return
        for key in entry:
            if key not in known:
                hint = did_you_mean(str(key), known)
                self._note(f"hooks have no {key!r}; {hint}", *place, key)

    def _read_handler(self, event: str, matcher: str, entry: object, place: Place) -> Handler | None:
        if not isinstance(entry, Mapping):
            self._note(f"a hook of {event} is no mapping", *place)
            return None
        self._check_keys(entry, _KEYS, *place)
        for key, value in entry.items():
            if key in _KEYS and not isinstance(value, _KEYS[key]):
                shown = repr(value)[:60]
                self._note(f"`{key}` of a hook of {event} can't be {shown}", *place, key)
                return None
        kind = entry.get("type", "command")
        needed = {"command": "command", "http": "url"}.get(kind)
        if needed is None:
            self._note(f"hooks of the type {kind!r} do not run here ({event})", *place, "type")
            return None
        if not entry.get(needed):
            self._note(f"a hook of {event} has no `{needed}`", *place)
            return None
        return self._make_handler(event, matcher, entry, needed)

    def _make_handler(self, event: str, matcher: str, entry: Mapping[str, Any], needed: str) -> Handler:
        limit_s = entry.get("timeout") or _LIMITS_S.get(event, _DEFAULT_LIMIT_S)
        limit_s = min(abs(float(limit_s)), _MAX_LIMIT_S.get(event, 3600.0))
        arguments = None
        if "args" in entry:
            arguments = tuple(map(str, entry["args"]))
        headers: dict[str, str] = {}
        for name, value in entry.get("headers", {}).items():
            headers[str(name)] = str(value)
        return Handler(
            event,
            self._source,
            matcher=matcher,
            condition=entry.get("if", ""),
            command=entry["command"] if needed == "command" else "",
            arguments=arguments,
            url=entry["url"] if needed == "url" else "",
            headers=headers,
            variables=tuple(map(str, entry.get("allowedEnvVars", ()))),
            limit_s=limit_s,
            is_async=entry.get("async", False),
            status=entry.get("statusMessage", ""),
            blocks_on_failure=entry.get("onFailure") == "block",
            is_confined=not self._source.is_own or entry.get("sandbox", False),
        )
