"""The definitions of a source file, found with tree-sitter grammars and the tag queries that come with them."""

import importlib
import re
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

_GRAMMARS = {
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
        names: dict[int, tuple[Any, Any, bool]] = {}
        root = parser.parse(data).root_node
        if any(map(_has_too_many_brackets, (root, *root.children))):
            return Outline()
        for _, nodes in cursor.matches(root):
            kind = next((kind for kind in nodes if kind.startswith("definition.")), "")
            if kind and "name" in nodes:
                name = nodes["name"][0]
                names.setdefault(name.start_byte, (name, nodes[kind][0], kind in _FUNCTION_KINDS))
        return Outline(definitions=_build_definitions([names[start] for start in sorted(names)], data.split(b"\n")))


def _has_too_many_brackets(node: Any) -> bool:
    """Detect thousands of unclosed brackets side by side: the time of a query grows with the square of their number."""
    return int(node.child_count) - 2 * int(node.named_child_count) > _MAX_OPEN_BRACKETS


def _build_definitions(names: list[tuple[Any, Any, bool]], lines: list[bytes]) -> tuple[Definition, ...]:
    """Build definitions from triples: the node of a name, the node of its definition, and whether it is a function."""
    definitions: list[Definition] = []
    open_parents: list[tuple[int, int | None]] = []  # the end and index of each; no index for those left out
    for name, node, is_function in names:
        while open_parents and open_parents[-1][0] <= name.start_byte:
            open_parents.pop()
        parent = open_parents[-1][1] if open_parents else None
        is_local = bool(open_parents) and parent is None
        open_parents.append((node.end_byte, None if is_local or is_function else len(definitions)))
        if not is_local:
            row = name.start_point[0]
            # A single line may be a whole file, so it is cut before it is decoded.
            start = lines[row][: 4 * (_MAX_LINE_CHARACTERS + 1)].decode(errors="replace")
            text = start.expandtabs(4).rstrip()[:_MAX_LINE_CHARACTERS]
            definitions.append(Definition(name=_simplify_name(name.text), line=row + 1, text=text, parent=parent))
    return tuple(definitions)


def _simplify_name(name: bytes) -> str:
    """Remove type parameters and modules from a name such as `Tree<T>` or `Net::Http`."""
    text = name.decode(errors="replace")
    parts: list[str] = re.findall(r"\w+", text.partition("<")[0])
    return parts[-1] if parts else text


def _load_grammar(suffix: str) -> tuple[Any, Any]:
    """Load a parser, and a query cursor that finds definitions."""
    package, function, others, more = next(row for suffixes, row in _GRAMMARS.items() if suffix in suffixes.split())
    try:
        sitter, *grammars = map(importlib.import_module, ("tree_sitter", package, *others))
    except ImportError as error:
        raise ToolError(
            f"maps need {error.name!r}, which is not installed; tell the person to install the extra `map` "
            "(pip install 'goose-like[map]'), and look with rg in the shell until then"
        ) from error
    tags = "\n".join([*(grammar.TAGS_QUERY for grammar in grammars), more])
    language = sitter.Language(getattr(grammars[0], function)())
    query = sitter.Query(language, tags)
    for number in range(query.pattern_count):
        pattern = tags.encode()[query.start_byte_for_pattern(number) : query.end_byte_for_pattern(number)]
        if b"@definition." not in pattern:
            query.disable_pattern(number)
    return sitter.Parser(language), sitter.QueryCursor(query)
