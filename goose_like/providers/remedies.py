"""Remedies: the change of a request that the text of a server's refusal asks for."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from .known_models import WEB_FETCH, WEB_SEARCH
from .wire import read_list, read_object

RemedyKind = Literal[
    "leave_out",
    "leave_out_blanks",
    "rename_limit",
    "strict_roles",
    "system_as_user",
    "constrained",
    "responses",
    "drop_thinking",
    "no_changes",
    "no_system_messages",
    "no_native_tool",
]


@dataclass(frozen=True, slots=True)
class Remedy:
    """A change of all later requests to a server.

    `leave_out` sends no `key` of the body; a dot leads inside. `leave_out_blanks` sends no empty text blocks.
    `rename_limit` sends `max_completion_tokens` in place of `max_tokens`. `strict_roles` joins messages so that the
    roles alternate, `system_as_user` sends the system prompt with the first message, `constrained` describes the tools
    in the prompt, and `responses` changes the API. `drop_thinking` sends no earlier thinking, `no_changes` no items
    that change tools or effort, `no_system_messages` sends reminders as messages of the user, and `no_native_tool`
    gives the model our tool by its schema in place of the vendor's own `key`. `text` says this to the person.
    """

    kind: RemedyKind
    text: str
    key: str = ""


_OPTIONAL_KEYS = (
    *("stream_options", "temperature", "prompt_cache_key", "reasoning_effort", "reasoning.summary", "reasoning.effort"),
    *("tool_choice", "reasoning", "include", "store", "response_format", "output_config", "thinking", "session_id"),
    *("cache_control", "fallbacks", "prompt_cache_options", "service_tier", "speed"),
)
"""Keys of a body that a request can do without, the inner ones first."""

_UNKNOWN_KEY = re.compile(
    r"unrecogni[sz]ed|unsupported|unknown|unexpected|extra (inputs|fields)|not (permitted|allowed|supported)|"
    r"does not (support|accept)|invalid (parameter|argument|field)|additional propert|must be verified",
    re.I,
)
_THINKING = re.compile(r"\breasoning_(content|details)\b|\bmessages?\b[^,;]{0,80}\breasoning\b", re.I)
_ROLES = re.compile(
    r"roles? must|must alternate|conversation roles|consecutive (user|messages)|after the optional", re.I
)
_SYSTEM = re.compile(r"system (role|message|prompt)s? (is|are )?not (supported|allowed)|no system (role|message)", re.I)
_TOOLS = re.compile(
    r"(does|do) not support (tool|function)|(tool|function)[ _-]?(use|call\w*|s)? (is|are) not supported|"
    r"tool choice requires|requires? --jinja",
    re.I,
)

_REMEDIES = (
    (
        re.compile("/v1/responses"),
        Remedy("responses", "the model wants the Responses API for tools (`wire: responses`)"),
    ),
    (
        re.compile(r"text content blocks must (be non-empty|contain non-whitespace)", re.I),
        Remedy("leave_out_blanks", "the server refuses empty text in answers; it is left out"),
    ),
    (
        _ROLES,
        Remedy("strict_roles", "the server wants alternating roles; messages are joined (`strict_roles: true`)"),
    ),
    (
        re.compile(r"\brole '?\"?system'?\"? is not supported", re.I),
        Remedy("no_system_messages", "the model takes no system messages later on; they are sent as the user's"),
    ),
    (
        _SYSTEM,
        Remedy("system_as_user", "the model takes no system prompt; it is sent with the first message"),
    ),
    (
        re.compile("max_completion_tokens.*max_tokens|max_tokens.*max_completion_tokens", re.S),
        Remedy("rename_limit", "the server wants max_completion_tokens (`output_limit: max_completion_tokens`)"),
    ),
    (
        re.compile("apply_patch"),
        Remedy("no_native_tool", "the server has no `apply_patch` for this model; it gets our tool", "apply_patch"),
    ),
    (
        re.compile("tool_search|defer_loading|tool_reference|Missing namespace"),
        Remedy("no_native_tool", "the server searches no tools for this model; it gets our search", "tool_search"),
    ),
    (
        re.compile(r"web[_ ]search(?!_tool_result)", re.I),
        Remedy("no_native_tool", "the server refuses its own `web_search`; the model gets ours", WEB_SEARCH),
    ),
    (
        re.compile(r"web[_ ]fetch(?!_tool_result)", re.I),
        Remedy("no_native_tool", "the server refuses its own `web_fetch`; the model gets ours", WEB_FETCH),
    ),
    (
        _TOOLS,
        Remedy("constrained", "the model has no tool calls; it answers in JSON (`tools: constrained`)"),
    ),
    (
        re.compile("additional_tools|configuration_update"),
        Remedy("no_changes", "the server takes no changes of tools or effort as items; they are sent anew"),
    ),
)
"""Patterns of refusals and their remedies. The first one counts, for a vendor's tool only if the request has it."""


def find_remedy(refusal: str, tried: Sequence[Remedy], body: bytes) -> Remedy | None:
    """Find the remedy that a refusal of a body names and that was not tried yet."""
    remedy = _read_refusal(refusal, _find_tool_types(body))
    return None if remedy in tried else remedy


def _find_tool_types(body: bytes) -> str:
    """Find the types of the tools in a body, each on a line of its own. Tools of ours are functions or have none."""
    request = read_object(json.loads(body))
    tools = read_list(request.get("tools"))
    for item in read_list(request.get("input")):
        tools = [*tools, *read_list(read_object(item).get("tools"))]
    types = [str(read_object(tool).get("type")) for tool in tools]
    return "\n".join(types)


def _read_refusal(refusal: str, tool_types: str) -> Remedy | None:
    for pattern, remedy in _REMEDIES:
        if not pattern.search(refusal):
            continue
        # A tool of ours, or of an MCP server, may have the name of the vendor's.
        if remedy.kind != "no_native_tool" or re.search(rf"^{remedy.key}", tool_types, re.M):
            return remedy
    if not _UNKNOWN_KEY.search(refusal):
        return None
    if _THINKING.search(refusal):
        return Remedy("drop_thinking", "the server refuses earlier thinking; it is left out from now on")
    for key in _OPTIONAL_KEYS:
        if re.search(rf"(?<![\w.]){re.escape(key)}(?!\w|\.\w)", refusal):
            return Remedy("leave_out", f"the server refuses `{key}`; it is left out", key)
    return None
