"""The tools of all servers: their names for the model, which of them are sent, and a search over the others."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cached_property

from goose_like.core.dataclass import dataclass
from goose_like.core.event_text import escape_controls
from goose_like.core.json_schema import sanitize_schema
from goose_like.core.message import ToolSpec
from goose_like.core.pattern import compile_later

from .definitions import Definitions, ToolDefinition
from .server import ServerConfig

MAX_NAME_CHARACTERS = 64
"""The longest name of a tool that all vendors take."""

MAX_DESCRIPTION_CHARACTERS = 4_000
_OTHER_CHARACTER = compile_later(r"[^A-Za-z0-9_-]")
_HASH_DIGITS = 6
_BYTES_PER_TOKEN = 4
_WORD = compile_later(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")


@dataclass(frozen=True)
class ListedTool:
    """A tool of a server with the name and the description that the model reads.

    Most tools of a large server are never sent: their descriptions are made when somebody reads them.
    """

    server: str
    definition: ToolDefinition

    @cached_property
    def spec(self) -> ToolSpec:
        """The definition for the model."""
        definition = self.definition
        description = escape_controls(definition.description or definition.title)[:MAX_DESCRIPTION_CHARACTERS]
        return ToolSpec(self.name, description, sanitize_schema(definition.input_schema))

    @cached_property
    def name(self) -> str:
        """The name that the model uses."""
        return name_tool(self.server, self.definition.name)

    @cached_property
    def tokens(self) -> int:
        """The estimated tokens of the whole definition."""
        return estimate_tokens(self.format())

    def format(self) -> str:
        """Format the definition for the model."""
        fields = {"name": self.name, "description": self.spec.description, "arguments": self.spec.schema}
        return json.dumps(fields, ensure_ascii=False)


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of a text: a quarter of its bytes."""
    return len(text.encode(errors="replace")) // _BYTES_PER_TOKEN


def name_tool(server: str, tool: str) -> str:
    """Return the name of a tool for the model: `mcp__SERVER__TOOL`.

    A name that had to be changed or cut ends with a hash of the original, so that no other tool ever has it, whatever
    the servers list later.
    """
    plain = f"mcp__{server}__{tool}"
    is_ambiguous = "__" in server or server.endswith("_")
    is_clean = plain.isascii() and plain.replace("-", "_").isidentifier()
    is_unchanged = is_clean and len(plain) <= MAX_NAME_CHARACTERS
    if is_unchanged and not is_ambiguous:
        return plain
    digest = hashlib.sha256(f"{server}\0{tool}".encode(errors="replace")).hexdigest()[:_HASH_DIGITS]
    clean = _OTHER_CHARACTER.sub("_", plain)
    return f"{clean[: MAX_NAME_CHARACTERS - _HASH_DIGITS - 1]}_{digest}"


def matches(name: str, patterns: Iterable[str]) -> bool:
    """Check a name against patterns such as `git_*`."""
    return any(pattern == "*" or fnmatchcase(name, pattern) for pattern in patterns)


def list_tools(server: ServerConfig, definitions: Definitions) -> tuple[ListedTool, ...]:
    """List the tools that the model may use, in the order of the server. The first of equal names counts."""
    tools: dict[str, ListedTool] = {}
    for definition in definitions.tools:
        is_picked = matches(definition.name, server.tools)
        if is_picked:
            tools.setdefault(definition.name, ListedTool(server.name, definition))
    return tuple(tools.values())


def choose_sent(tools: Mapping[str, Sequence[ListedTool]], budget: int) -> set[str]:
    """Choose the servers whose definitions are all sent, in their order, as far as the budget of tokens reaches."""
    sent: set[str] = set()
    left = budget
    for server, listed in tools.items():
        rest = left
        for tool in listed:
            rest -= tool.tokens
            if rest < 0:
                break
        if rest >= 0:
            sent.add(server)
            left = rest
    return sent


def split_words(text: str) -> list[str]:
    """Split a text or a name into lower-case words, also at capitals: `createIssue` has two."""
    return [word.lower() for word in _WORD.findall(text)]


def search_tools(tools: Sequence[ListedTool], query: str) -> list[ListedTool]:
    """Return the tools that fit a query, the best first. A name of a tool or a server fits exactly."""
    wanted = query.strip()
    named = [tool for tool in tools if wanted in (tool.name, tool.definition.name)]
    if named:
        return named
    words = list(dict.fromkeys(split_words(query)))
    scored: list[tuple[float, ListedTool]] = []
    for tool in tools:
        score = _rate(tool, words)
        if score > 0:
            scored.append((score, tool))
    scored.sort(key=lambda pair: -pair[0])
    return [tool for _, tool in scored]


def _rate(tool: ListedTool, words: Sequence[str]) -> float:
    """Rate how well a tool fits: each word counts once, in the name more than in the description."""
    names = split_words(tool.definition.name)
    texts = split_words(tool.spec.description)
    arguments = split_words(" ".join(tool.spec.schema["properties"]))
    score = 0.0
    for word in words:
        if _has_word(names, word):
            score += 3
        elif word in split_words(tool.server):
            score += 2
        elif _has_word(texts, word) or _has_word(arguments, word):
            score += 1
    return score


def _has_word(words: Iterable[str], wanted: str) -> bool:
    """Check for a word, also in another form: `issues` for `issue`, `creating` for `create`."""
    stem = wanted if len(wanted) < 4 else wanted[: max(4, len(wanted) - 3)]
    return any(word == wanted or (len(stem) > 3 and word.startswith(stem)) for word in words)
