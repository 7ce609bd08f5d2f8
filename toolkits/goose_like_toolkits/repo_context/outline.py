"""The definitions of a source file, found with tree-sitter grammars and the tag queries that come with them."""

import importlib
import re
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from goose_like.core.message import FrozenModel
from goose_like.toolkit import ToolError

_MAX_OPEN_BRACKETS = 5_000
_MAX_LINE_CHARACTERS = 140
_FUNCTION_KINDS = ("definition.function", "definition.method")

_JAVASCRIPT = ("tree_sitter_javascript",)
_MORE_JAVA = """
(constructor_declaration name: (identifier) @name) @definition.method
(enum_declaration name: (identifier) @name) @definition.class
(record_declaration name: (identifier) @name) @definition.class
"""
_MORE_RUST = "(impl_item type: (_) @name) @definition.class"
_MORE_TYPESCRIPT = """
(enum_declaration name: (identifier) @name) @definition.class
(type_alias_declaration name: (type_identifier) @name) @definition.type
"""

_GRAMMARS: dict[str, tuple[str, str, tuple[str, ...], str]] = {
    ".py .pyi": ("tree_sitter_python", "language", (), ""),
    ".js .jsx .mjs .cjs": (*_JAVASCRIPT, "language", (), ""),
    ".ts .mts .cts": ("tree_sitter_typescript", "language_typescript", _JAVASCRIPT, _MORE_TYPESCRIPT),
    ".tsx": ("tree_sitter_typescript", "language_tsx", _JAVASCRIPT, _MORE_TYPESCRIPT),
    ".go": ("tree_sitter_go", "language", (), ""),
    ".rs": ("tree_sitter_rust", "language", (), _MORE_RUST),
    ".java": ("tree_sitter_java", "language", (), _MORE_JAVA),
    ".c": ("tree_sitter_c", "language", (), ""),
    ".h .hh .hpp .hxx .cc .cpp .cxx": ("tree_sitter_cpp", "language", (), ""),
    ".rb": ("tree_sitter_ruby", "language", (), ""),
}
"""Grammars by file suffixes: the package, its function, packages with more tags, and tags that are missing."""

SUFFIXES = tuple(" ".join(_GRAMMARS).split())


class Definition(FrozenModel):
    """A definition. `line` counts from 1, `text` is that line, `parent` is the index of the definition around it."""

    name: str
    line: int
    text: str
    parent: int | None = None


class Outline(FrozenModel):
    """The definitions of a file in their order, without those inside functions."""

    definitions: tuple[Definition, ...] = ()


@dataclass(frozen=True, slots=True)
class _Match:
    """A definition that a grammar found: the nodes of its name and of the whole."""

    name: Any
    node: Any
    is_function: bool


@dataclass(frozen=True, slots=True)
class _Scope:
    """A definition that may contain others: its end, and its index, which is None for a function and what is in it."""

    end: int
    index: int | None


class Grammars:
    """Parsers by file suffix, which are loaded on first use. Not thread-safe."""

    def __init__(self) -> None:
        self._loaded: dict[str, tuple[Any, Any]] = {}

    def parse(self, path: str, data: bytes) -> Outline:
        """Parse a file with one of the `SUFFIXES`; from broken syntax, return the definitions that are recognizable.

        Raises:
            ToolError: tree-sitter or the grammar is not installed.
        """
        suffix = PurePath(path).suffix
        if suffix not in self._loaded:
            self._loaded[suffix] = _load_grammar(suffix)
        parser, cursor = self._loaded[suffix]
        root = parser.parse(data).root_node
        if any(map(_has_too_many_brackets, (root, *root.children))):
            return Outline()
        found: dict[int, _Match] = {}  # by the place of the name
        for _, nodes in cursor.matches(root):
            match = _read_match(nodes)
            if match:
                found.setdefault(match.name.start_byte, match)
        matches = [found[start] for start in sorted(found)]
        return Outline(definitions=_build_definitions(matches, data.split(b"\n")))


def _has_too_many_brackets(node: Any) -> bool:
    """Detect thousands of unclosed brackets side by side: the time of a query grows with the square of their number."""
    return int(node.child_count) - 2 * int(node.named_child_count) > _MAX_OPEN_BRACKETS


def _read_match(nodes: dict[str, list[Any]]) -> _Match | None:
    """Return the match of a query, from its nodes by their tags; None if it is no definition with a name."""
    if "name" not in nodes:
        return None
    for tag, tagged in nodes.items():
        if tag.startswith("definition."):
            return _Match(nodes["name"][0], tagged[0], tag in _FUNCTION_KINDS)
    return None


def _build_definitions(matches: list[_Match], lines: list[bytes]) -> tuple[Definition, ...]:
    """Build definitions from matches in their order, without those inside functions."""
    definitions: list[Definition] = []
    scopes: list[_Scope] = []
    for match in matches:
        while scopes and scopes[-1].end <= match.name.start_byte:
            scopes.pop()
        parent = scopes[-1].index if scopes else None
        is_local = bool(scopes) and parent is None
        index = None
        if not is_local and not match.is_function:
            index = len(definitions)
        scopes.append(_Scope(match.node.end_byte, index))
        if not is_local:
            definitions.append(_build_definition(match.name, lines, parent))
    return tuple(definitions)


def _build_definition(name: Any, lines: list[bytes], parent: int | None) -> Definition:
    row = name.start_point[0]
    # A single line may be a whole file, so it is cut before it is decoded.
    start = lines[row][: 4 * (_MAX_LINE_CHARACTERS + 1)]
    text = start.decode(errors="replace").expandtabs(4).rstrip()
    return Definition(
        name=_simplify_name(name.text),
        line=row + 1,
        text=text[:_MAX_LINE_CHARACTERS],
        parent=parent,
    )


def _simplify_name(name: bytes) -> str:
    """Remove type parameters and modules from a name such as `Tree<T>` or `Net::Http`."""
    text = name.decode(errors="replace")
    path, _, _ = text.partition("<")
    parts: list[str] = re.findall(r"\w+", path)
    return parts[-1] if parts else text


def _find_grammar(suffix: str) -> tuple[str, str, tuple[str, ...], str]:
    for suffixes, row in _GRAMMARS.items():
        if suffix in suffixes.split():
            return row
    raise AssertionError(suffix)  # `parse` gets the `SUFFIXES` only


def _load_grammar(suffix: str) -> tuple[Any, Any]:
    """Load a parser, and a query cursor that finds definitions."""
    package, function, others, more = _find_grammar(suffix)
    try:
        sitter, *grammars = map(importlib.import_module, ("tree_sitter", package, *others))
    except ImportError as error:
        raise ToolError(
            f"maps need {error.name!r}, which is not installed; tell the person to install the extra `map` "
            "(pip install 'goose-like[map]'), and look with rg in the shell until then"
        ) from error
    queries = [grammar.TAGS_QUERY for grammar in grammars]
    tags = "\n".join([*queries, more])
    load_language = getattr(grammars[0], function)
    language = sitter.Language(load_language())
    query = sitter.Query(language, tags)
    for number in range(query.pattern_count):
        start = query.start_byte_for_pattern(number)
        end = query.end_byte_for_pattern(number)
        pattern = tags.encode()[start:end]
        if b"@definition." not in pattern:
            query.disable_pattern(number)
    return sitter.Parser(language), sitter.QueryCursor(query)
