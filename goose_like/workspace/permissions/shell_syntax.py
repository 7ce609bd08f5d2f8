"""The simple commands of a shell line: the programs that it runs, with their arguments."""

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import pairwise
from typing import Any

from .inner_commands import MAX_DEPTH, InnerCommand, InnerLine, find_inner
from .simple_command import ARITHMETIC, UNKNOWN, SimpleCommand

_MAX_CHARS = 100_000
_MAX_PARSE_S = 0.5  # of processor time; a usual line of this size takes a tenth of it
_PIECE_BYTES = 4_096

_NO_NAME = re.compile(
    r".*[*?\[{].*|if|then|elif|else|fi|for|while|until|do|done|case|esac|select|function|!|\}", re.DOTALL
)
"""Names that the shell replaces, or reads as a part of its grammar."""

_MISREAD = re.compile(r"[\0\r\v\f]|[^\s\\]\\\n\S")
"""Text that tree-sitter reads in another way: a word that goes on in the next line, and blanks that are none."""

Node = Any
"""A `tree_sitter.Node`. The package is imported with the first line."""


def parse_line(line: str) -> list[SimpleCommand]:
    """Find all simple commands of a line for bash, in the order of the text.

    The result covers pipes, lists, loops, functions, substitutions, and lines within words (`sh -c`, `eval`, `trap`).
    A command that runs another one (`env`, `sudo`, `xargs`, `find -exec`) is followed by that other command.
    `UNKNOWN` is in the list for each part that cannot be read: invalid syntax, or a name such as `$name`.
    """
    return list(_parse(line, 0))


def _parse(line: str | None, depth: int) -> Iterator[SimpleCommand]:
    if line is None or depth > MAX_DEPTH:
        yield UNKNOWN
        return
    root = _read_tree(line)
    if root is None:
        yield UNKNOWN
        return
    reader = _Reader(line)
    redirects: dict[int, list[Node]] = {}  # of commands, by the id of their node
    stack = [root]  # instead of recursion, so that any nesting can be read
    while stack:
        node = stack.pop()
        match node.type:
            case "command" | "declaration_command" | "unset_command":
                parts = [*node.named_children, *redirects.get(node.id, [])]
                yield from _expand(reader.read_command(node, parts), depth)
            case "redirected_statement" | "function_definition":
                found = node.children_by_field_name("redirect")
                target = _find_redirected_command(node)
                if target is not None:
                    redirects[target.id] = found
                elif found:
                    yield reader.read_command(node, found)
            case "variable_assignment" | "for_statement" if node.parent.type != "command":
                yield SimpleCommand((":",), (reader.read_variable(node),))
        yield from reader.find_hazards(node)
        stack += reversed(node.named_children)
    if root.has_error:  # bash runs the lines before an error
        yield UNKNOWN


def _find_redirected_command(node: Node) -> Node | None:
    """Find the command that the redirects of a statement belong to, if it is a single one."""
    target = node.child_by_field_name("body")
    while target is not None and target.type in ("list", "pipeline", "negated_command"):
        target = target.named_children[-1]  # the grammar gives the redirects of the last command to all
    if target is not None and target.type in ("command", "declaration_command", "unset_command"):
        return target
    return None


def _expand(command: SimpleCommand, depth: int) -> Iterator[SimpleCommand]:
    """Yield a command and the commands that its arguments name."""
    if depth > MAX_DEPTH:
        yield UNKNOWN
        return
    first, *rest = command.words
    if first is None or (_NO_NAME.fullmatch(first) and first != "["):
        yield replace(command, words=(None, *rest))
        return
    yield command
    for inner in find_inner(command):
        match inner:
            case InnerCommand():
                yield from _expand(inner.command, depth + inner.depth)
            case InnerLine(is_extended=True):
                for found in _parse(inner.text, depth + 1):
                    yield replace(found, words=(*found.words, None))
            case InnerLine():
                yield from _parse(inner.text, depth + 1)


def _read_tree(line: str) -> Node | None:
    """Return the root of the tree of a line, or None if tree-sitter cannot read the line as bash does."""
    if len(line) > _MAX_CHARS or _MISREAD.search(line):
        return None
    # Some characters crash the parser. For bash, those outside ASCII are parts of words without a meaning, like a dot.
    text = re.sub(r"[^\x01-\x7f]", ".", line)
    return _build_tree(text.encode() + b"\n")


def _build_tree(text: bytes) -> Node | None:
    """Return the root of the tree, or None if it takes too long: for strange texts the time grows with the square."""
    parser = _create_parser()
    end_s = time.thread_time() + _MAX_PARSE_S

    def read_piece(start: int, _: object) -> bytes:
        return text[start : start + _PIECE_BYTES]

    def is_late(*_: object) -> bool:
        return time.thread_time() > end_s

    try:
        tree = parser.parse(read_piece, progress_callback=is_late)
    except ValueError:
        parser.reset()  # else the next parse goes on with this one
        return None
    return tree.root_node


@cache
def _create_parser() -> Any:
    import tree_sitter_bash  # only sessions with rules, or with commands that may destroy files, need the parser
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_bash.language()))


_COMMAND_IN_INDEX = (r"\w\[[^\]]{0,200}(\\?\$\(|`)", UNKNOWN)  # runs where an expression uses the text
_PLAIN_EXPANSION = r"\$\{#?(\w+|[@*#?$!-])(\[[@*\d]+\])?(:?[-+?].*|[%#/^,].*)?\}"
_HAZARDS = {
    "command_substitution": [(r"(?s)^`.*\\", UNKNOWN)],  # backticks within backticks
    "heredoc_redirect": [(r"(?s)^<<-?\s*[^'\"\\\s].*(?<!\\)`", UNKNOWN)],
    "word": [(r"`|^\s", UNKNOWN)],  # the parser joins lines at a backslash
    "raw_string": [_COMMAND_IN_INDEX],
    "string_content": [_COMMAND_IN_INDEX],
    "expansion": [("@P", UNKNOWN), (rf"(?s)^(?!{_PLAIN_EXPANSION}\Z)", ARITHMETIC)],
    "arithmetic_expansion": [(r"[A-Za-z_]", ARITHMETIC)],
    "c_style_for_statement": [("", ARITHMETIC)],
    "compound_statement": [(r"^\(\(", ARITHMETIC)],
    "test_command": [(r"^\[\[.*\s-(eq|ne|[lg][te])\s|\s-v\s", ARITHMETIC)],
}
"""For each type of node, patterns of texts that run more than the tree shows."""

_HEREDOC_WORD = re.compile(r"[\w-]+|'[\w -]+'|\"[\w -]+\"|\\\w+")
_BLANKS = re.compile(r"(\\\n|[ \t])*")


@dataclass(slots=True)
class _Parts:
    """The parts of a command that were read so far."""

    words: list[str | None] = field(default_factory=list)
    variables: list[str] = field(default_factory=list)
    overwrites: list[str | None] = field(default_factory=list)
    appends: list[str | None] = field(default_factory=list)
    input: str | None = None
    _end: int = -1
    """The place where the last word ends."""

    def add_word(self, word: str | None, node: Node) -> None:
        """Add the word of a node."""
        if node.start_byte == self._end:  # tree-sitter reads 'a'\b as two words
            word = _join_parts([self.words.pop(), word])
        self.words.append(word)
        self._end = node.end_byte

    def build_command(self) -> SimpleCommand:
        """Build the command of these parts."""
        return SimpleCommand(
            words=tuple(self.words) or (":",),
            variables=tuple(self.variables),
            overwrites=tuple(self.overwrites),
            appends=tuple(self.appends),
            input=self.input,
        )


class _Reader:
    """Reads words of a line. Positions in the tree are those in the line, since the parser got one byte for each."""

    def __init__(self, line: str) -> None:
        self._line = line

    def get_text(self, node: Node) -> str:
        return self._line[node.start_byte : node.end_byte]

    def find_hazards(self, node: Node) -> Iterator[SimpleCommand]:
        """Find parts of a node that may run more than the tree shows."""
        if not self._is_sound(node):
            yield UNKNOWN
        for pattern, hazard in _HAZARDS.get(node.type, ()):
            if re.search(pattern, self.get_text(node)):
                yield hazard

    def _is_sound(self, node: Node) -> bool:
        """Check that bash ends a command or here-document where tree-sitter ends it."""
        match node.type:
            case "heredoc_start":
                return _HEREDOC_WORD.fullmatch(self.get_text(node)) is not None
            case "heredoc_end":
                return self._is_whole_line(node)
            case "command" | "declaration_command" | "heredoc_redirect":
                return self._has_only_blanks_between(node.children)
            case _:
                return True

    def _is_whole_line(self, heredoc_end: Node) -> bool:
        """Check that the line which ends a here-document holds nothing else."""
        start = self._line.rfind("\n", 0, heredoc_end.start_byte) + 1
        is_indented = heredoc_end.parent.children[0].type == "<<-"
        indent = r"\t*" if is_indented else ""
        word = re.escape(self.get_text(heredoc_end))
        line_end = re.compile(rf"{indent}{word}(\n|\Z)")
        return line_end.match(self._line, start) is not None

    def _has_only_blanks_between(self, nodes: list[Node]) -> bool:
        parts = [node for node in nodes if node.type not in ("heredoc_body", "heredoc_end")]
        for before, after in pairwise(parts):
            gap = self._line[before.end_byte : after.start_byte]
            if not _BLANKS.fullmatch(gap):
                return False
        return True

    def read_variable(self, node: Node) -> str:
        """Read the name of an assigned variable, or of the variable of a loop."""
        name = node.child_by_field_name("name") or node.child_by_field_name("variable")
        return "" if name is None else self.get_text(name)

    def read_command(self, node: Node, parts: list[Node]) -> SimpleCommand:
        """Read a command of words, assignments and redirects. Without words it is `:`."""
        found = _Parts()
        if node.type in ("declaration_command", "unset_command"):
            found.words.append(node.children[0].type)
        stack = parts[::-1]
        while stack:
            part = stack.pop()
            match part.type:
                case "variable_assignment":
                    found.variables.append(self.read_variable(part))
                case "file_redirect":
                    destinations = part.children_by_field_name("destination")
                    targets = found.appends if _extends_file(part) else found.overwrites
                    if _writes_file(part):
                        targets.append(self._read_word(destinations[0]))
                    stack += reversed(destinations[1:])  # words may follow a redirect
                case "heredoc_redirect":
                    found.input = self._read_heredoc(part)
                    stack += reversed(part.children_by_field_name("argument"))
                    stack += part.children_by_field_name("redirect")
                case "herestring_redirect":
                    found.input = self._read_word(part.named_children[-1])
                case "comment":
                    pass
                case _:
                    found.add_word(self._read_word(part), part)
        return found.build_command()

    def _read_heredoc(self, redirect: Node) -> str | None:
        for child in redirect.children:
            if child.type == "heredoc_body":
                return self.get_text(child)
        return None

    def _read_word(self, node: Node) -> str | None:
        """Return a word without quotes and escapes, or None if it holds an expansion."""
        text = self.get_text(node)
        match node.type:
            case "command_name":
                return self._read_word(node.named_children[0])
            case "word" | "number" | "variable_name" | "file_descriptor" | "extglob_pattern" | "regex":
                return re.sub(r"(?s)\\(.)", _unescape, text)
            case "raw_string":
                return text[1:-1]
            case "string" if all(child.type == "string_content" for child in node.named_children):
                return re.sub(r"\\([$`\"\\\n])", _unescape, text[1:-1])
            case "concatenation" if len(node.children) == len(node.named_children):
                return _join_parts([self._read_word(child) for child in node.named_children])
            case _:
                return None


def _writes_file(redirect: Node) -> bool:
    """Check that a redirect writes a file: it reads none, and copies or closes no descriptor."""
    operators = {child.type for child in redirect.children}
    if operators & {"<", "<&"} or redirect.child_by_field_name("destination") is None:
        return False
    copies_descriptor = ">&" in operators and redirect.named_children[-1].type == "number"
    return not copies_descriptor


def _extends_file(redirect: Node) -> bool:
    return any(child.type in (">>", "&>>") for child in redirect.children)


def _join_parts(parts: list[str | None]) -> str | None:
    """Join the parts of a word; None if one is not known."""
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    return "".join(known)


def _unescape(found: re.Match[str]) -> str:
    return "" if found[1] == "\n" else found[1]
