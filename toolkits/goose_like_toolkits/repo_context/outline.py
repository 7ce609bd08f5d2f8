"""Outline: what a file defines, by tree-sitter's grammar of its language and the tags that come with it."""

import importlib
import re
from pathlib import PurePath
from typing import Any

from goose_like.core.message import Value
from goose_like.toolkit import ToolError

_MOST_BRACKETS = 5_000
_SHOWN_CHARACTERS = 140
_FUNCTIONS = ("definition.function", "definition.method")

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
"""By endings: the package, its function, packages whose tags count as well, and what the tags lack."""

ENDINGS = tuple(" ".join(_GRAMMARS).split())


class Definition(Value):
    """`line` counts from 1, `text` is that line; `within` is the number of the definition around it, if any."""

    name: str
    line: int
    text: str
    within: int | None = None


class Outline(Value):
    """In the order of the file. What is defined within a function is left out."""

    definitions: tuple[Definition, ...] = ()


class Grammars:
    """Parsers by a file's ending, each loaded when it is first used. For one thread at a time."""

    def __init__(self) -> None:
        self._loaded: dict[str, tuple[Any, Any]] = {}

    def outline(self, path: str, data: bytes) -> Outline:
        """Of a file with one of the `ENDINGS`; where its syntax is broken, what can be made out.

        Raises:
            ToolError: tree-sitter or the grammar is not installed.
        """
        ending = PurePath(path).suffix
        if ending not in self._loaded:
            self._loaded[ending] = _load(ending)
        parser, cursor = self._loaded[ending]
        names: dict[int, tuple[Any, Any, bool]] = {}
        root = parser.parse(data).root_node
        if any(map(_is_rubble, (root, *root.children))):
            return Outline()
        for _, nodes in cursor.matches(root):
            kind = next((kind for kind in nodes if kind.startswith("definition.")), "")
            if kind and "name" in nodes:
                name = nodes["name"][0]
                names.setdefault(name.start_byte, (name, nodes[kind][0], kind in _FUNCTIONS))
        return Outline(definitions=_nested([names[start] for start in sorted(names)], data.split(b"\n")))


def _is_rubble(node: Any) -> bool:
    """Brackets that nothing closes, side by side in their thousands: a query takes the square of their number."""
    return int(node.child_count) - 2 * int(node.named_child_count) > _MOST_BRACKETS


def _nested(names: list[tuple[Any, Any, bool]], lines: list[bytes]) -> tuple[Definition, ...]:
    """Of the nodes of names, each with that of its definition, and whether that is a function."""
    found: list[Definition] = []
    around: list[tuple[int, int | None]] = []  # where each that is still open ends, and its number; None: left out
    for name, node, is_function in names:
        while around and around[-1][0] <= name.start_byte:
            around.pop()
        within = around[-1][1] if around else None
        is_local = bool(around) and within is None
        around.append((node.end_byte, None if is_local or is_function else len(found)))
        if not is_local:
            row = name.start_point[0]
            # A line may be all of a file, with definitions by the thousand.
            text = (
                lines[row][: 4 * (_SHOWN_CHARACTERS + 1)]
                .decode(errors="replace")
                .expandtabs(4)
                .rstrip()[:_SHOWN_CHARACTERS]
            )
            found.append(Definition(name=_bare(name.text), line=row + 1, text=text, within=within))
    return tuple(found)


def _bare(name: bytes) -> str:
    """Without the types and modules that belong to it: `Tree<T>`, `Net::Http`."""
    text = name.decode(errors="replace")
    parts: list[str] = re.findall(r"\w+", text.partition("<")[0])
    return parts[-1] if parts else text


def _load(ending: str) -> tuple[Any, Any]:
    """A parser, and a cursor that finds definitions."""
    package, function, others, more = next(row for endings, row in _GRAMMARS.items() if ending in endings.split())
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
