"""The simple commands of a shell line: the programs that it runs, with their arguments."""

import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import PurePath
from typing import Any

_MAX_CHARS = 100_000
_MAX_DEPTH = 20  # of lines and commands within others, such as sh -c "sudo sh -c ..."

Node = Any
"""A `tree_sitter.Node`. The package is imported with the first line."""

Words = tuple[str | None, ...]
"""The words of a command. None stands for a word that is only known while the line runs, such as `$name`."""


@dataclass(frozen=True, slots=True)
class SimpleCommand:
    """One program that a line runs. `words` begins with its name, as written but without quotes.

    Patterns such as `*.pyc` are not expanded. If the name is None, nobody can tell before the start what runs there.
    """

    words: Words
    variables: tuple[str, ...] = ()
    """Names of the variables that are set for this command alone, or for the rest of the line."""

    overwrites: Words = ()
    """Targets of redirects that truncate a file."""

    appends: Words = ()
    """Targets of redirects that extend a file."""

    @property
    def name(self) -> str:
        """The program without its folder, such as `git` for `/usr/bin/git`; empty if it is not known."""
        return PurePath(self.words[0] or "").name


UNKNOWN = SimpleCommand((None,))
"""Stands for a part of a line that cannot be read."""


def parse_line(line: str) -> list[SimpleCommand]:
    """Find all simple commands of a line for bash, in the order of the text.

    The result covers pipes, lists, loops, functions, substitutions, and lines within words (`sh -c`, `eval`, `trap`).
    A command that runs another one (`env`, `sudo`, `xargs`, `find -exec`) is followed by that other command.
    `UNKNOWN` is in the list for each part that cannot be read: invalid syntax, or a name such as `$name`.
    """
    return list(_parse(line, 0))


def format_command(command: SimpleCommand) -> str:
    """Format a command as one line, with `$?` in place of unknown words."""
    return " ".join("$?" if word is None else shlex.quote(word) for word in command.words)


def _parse(line: str | None, depth: int) -> Iterator[SimpleCommand]:
    # tree-sitter reads a word that goes on in the next line as two words.
    if line is None or len(line) > _MAX_CHARS or depth > _MAX_DEPTH or re.search(r"\0|[^\s\\]\\\n\S", line):
        yield UNKNOWN
        return
    # Some characters crash the parser. For bash, those outside ASCII are parts of words without a meaning, like a dot.
    root = _create_parser().parse(re.sub(r"[^\x01-\x7f]", ".", line).encode() + b"\n").root_node
    reader = _Reader(line)
    stack = [root]  # instead of recursion, so that any nesting can be read
    while stack:
        node = stack.pop()
        match node.type:
            case "command" | "declaration_command" | "unset_command":
                yield from _expand(reader.read_command(node), depth)
            case "redirected_statement" if not _has_command(node):
                yield SimpleCommand((":",), (), *reader.list_targets(node))
            case "variable_assignment" if node.parent is None or node.parent.type != "command":
                yield SimpleCommand((":",), (reader.read_variable(node),))
        stack += reversed(node.named_children)
    if root.has_error:  # bash runs the lines before an error
        yield UNKNOWN


@cache
def _create_parser() -> Any:
    import tree_sitter_bash  # only sessions with rules, or with commands that may destroy files, need the parser
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_bash.language()))


def _has_command(node: Node) -> bool:
    body = node.child_by_field_name("body")
    return body is not None and body.type == "command"


class _Reader:
    """Reads words of a line. Positions in the tree are those in the line, since the parser got one byte for each."""

    def __init__(self, line: str) -> None:
        self._line = line

    def _get_text(self, node: Node) -> str:
        return self._line[node.start_byte : node.end_byte]

    def read_command(self, node: Node) -> SimpleCommand:
        words: list[str | None] = []
        variables = []
        end = -1
        if node.type != "command":  # export A=b, declare, local, unset
            words.append(node.children[0].type)
        for child in node.named_children:
            if child.type == "variable_assignment":
                variables.append(self.read_variable(child))
            elif child.type not in ("file_redirect", "herestring_redirect", "heredoc_redirect", "comment"):
                word = self._read_word(child.named_children[0] if child.type == "command_name" else child)
                if child.start_byte == end:  # tree-sitter reads 'a'\b as two words
                    before = words.pop()
                    word = None if word is None or before is None else before + word
                words.append(word)
                end = child.end_byte
        overwrites, appends = self.list_targets(node)
        parent = node.parent
        if parent is not None and parent.type == "redirected_statement":
            outer = self.list_targets(parent)
            overwrites, appends = (*overwrites, *outer[0]), (*appends, *outer[1])
        return SimpleCommand(tuple(words) or (":",), tuple(variables), overwrites, appends)

    def list_targets(self, node: Node) -> tuple[Words, Words]:
        """List the files that the redirects of a command truncate or extend, also beside a here-document."""
        overwrites: list[str | None] = []
        appends: list[str | None] = []
        for redirect in node.named_children:
            if redirect.type == "heredoc_redirect":
                inner = self.list_targets(redirect)
                overwrites += inner[0]
                appends += inner[1]
            target = redirect.child_by_field_name("destination") if redirect.type == "file_redirect" else None
            if target is None or target.type == "number":  # such as 2>&1
                continue
            operators = {child.type for child in redirect.children}
            if operators & {">", ">|", "&>", ">&"}:
                overwrites.append(self._read_word(target))
            elif operators & {">>", "&>>"}:
                appends.append(self._read_word(target))
        return tuple(overwrites), tuple(appends)

    def read_variable(self, node: Node) -> str:
        name = node.child_by_field_name("name")
        return "" if name is None else self._get_text(name)

    def _read_word(self, node: Node) -> str | None:
        """Return a word without quotes and escapes, or None if it holds an expansion."""
        text = self._get_text(node)
        match node.type:
            case "word" | "number" | "variable_name" | "file_descriptor" | "extglob_pattern" | "regex":
                return re.sub(r"(?s)\\(.)", _unescape, text)
            case "raw_string":
                return text[1:-1]
            case "string" if all(child.type == "string_content" for child in node.named_children):
                return re.sub(r"\\([$`\"\\\n])", _unescape, text[1:-1])
            case "concatenation" if len(node.children) == len(node.named_children):
                parts = [self._read_word(child) for child in node.named_children]
                return None if None in parts else "".join(map(str, parts))
            case _:
                return None


def _unescape(found: re.Match[str]) -> str:
    return "" if found[1] == "\n" else found[1]


# --- commands that run other commands


def _expand(command: SimpleCommand, depth: int) -> Iterator[SimpleCommand]:
    """Yield a command and the commands that its arguments name."""
    first, *rest = command.words
    if depth > _MAX_DEPTH:
        yield UNKNOWN
        return
    if first is None or (re.search(r"[*?\[{]", first) and first not in ("[", "{")):
        yield replace(command, words=(None, *rest))
        return
    yield command
    words = tuple(rest)
    match command.name:
        case "sh" | "bash" | "dash" | "zsh" | "ksh" | "ash" | "su" | "script" as name:
            scripts = list(_list_scripts(words))
            for script in scripts:
                yield from _parse(script, depth + 1)
            has_file = any(word is None or not word.startswith(("-", "+")) for word in words)
            if not scripts and not has_file and "--version" not in words and name != "script":
                yield UNKNOWN  # lines from its input
        case "eval" | "watch":
            words = words if command.name == "eval" else _skip_options(words, "n q interval equexit")
            yield from _parse(None if None in words else " ".join(map(str, words)), depth + 1)
        case "source" | "." if None in words[:1]:
            yield UNKNOWN  # such as a substitution
        case "trap" if len(words) > 1:
            yield from _parse(words[0] if words[0] != "-" else "", depth + 1)
        case "alias":
            for word in words:
                yield from _parse(word and word.partition("=")[2], depth + 1)
        case "find" | "fd" | "fdfind":
            for inner in _split_exec(words):
                yield from _expand(SimpleCommand(inner), depth + 1)
        case "git" if any(word is not None and word.startswith("alias.") for word in words):
            yield UNKNOWN  # git -c alias.x='!...' x
        case name if name in _WRAPPERS and not (name == "command" and {"-v", "-V"} & set(words)):
            inner, variables = _WRAPPERS[name](words)
            if inner:
                inner = (*inner, None) if name in ("xargs", "parallel") else inner  # words from its input
                yield from _expand(SimpleCommand(inner, (*command.variables, *variables)), depth + 1)


def _list_scripts(words: Words) -> Iterator[str | None]:
    """Yield the argument of `-c`, also among joined letters such as `-lc`."""
    for index, word in enumerate(words):
        if word is not None and re.fullmatch(r"-[a-zA-Z]*c[a-zA-Z]*|--command", word):
            yield from [other for other in words[index + 1 :] if other is None or not other.startswith("-")][:1]
            return
        if word is not None and word.startswith("--command="):
            yield word.partition("=")[2]


def _split_exec(words: Words) -> Iterator[Words]:
    """Yield the commands after `-exec` and its kin."""
    options = ("-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch")
    for start in [index for index, word in enumerate(words) if word in options]:
        rest = words[start + 1 :]
        ends = [index for index, word in enumerate(rest) if word in (";", "+")]
        if inner := rest[: ends[0]] if ends else rest:
            yield inner


def _skip_options(words: Words, with_value: str, operands: int = 0) -> Words:
    """Skip the options of a wrapper, with the values of the named ones, and a number of operands."""
    names = with_value.split()
    index = 0
    while index < len(words):
        word = words[index]
        if word is None or not word.startswith("-"):
            break
        index += 1
        if word == "--":
            break
        letters = "" if word.startswith("--") else word[1:]
        with_next = letters and next((at for at, one in enumerate(letters) if one in names), None) == len(letters) - 1
        if word[2:] in names or with_next:
            index += 1
    return words[index + operands :]


def _skip_assignments(words: Words) -> tuple[Words, tuple[str, ...]]:
    names = []
    while words and words[0] is not None and re.match(r"\w+=", words[0]):
        names.append(words[0].partition("=")[0])
        words = words[1:]
    return words, tuple(names)


def _unwrap_env(words: Words) -> tuple[Words, tuple[str, ...]]:
    for index, word in enumerate(words):
        if word is not None and (found := re.match(r"-\w*S(.*)|--split-string(?:=(.*))?$", word, re.DOTALL)):
            joined, rest = found[1] or found[2], words[index + 1 :]
            if not joined and rest:
                joined, rest = rest[0], rest[1:]
            inner = () if joined is None else re.split(r"\s+", joined.strip())
            is_plain = joined is not None and not re.search(r"[\"'\\$#]", joined)
            return _skip_assignments((*inner, *rest)) if is_plain else ((None,), ())
    return _skip_assignments(_skip_options(words, "u C unset chdir"))


def _wrapper(with_value: str = "", operands: int = 0) -> Callable[[Words], tuple[Words, tuple[str, ...]]]:
    return lambda words: _skip_assignments(_skip_options(words, with_value, operands))


_WRAPPERS: dict[str, Callable[[Words], tuple[Words, tuple[str, ...]]]] = {
    "env": _unwrap_env,
    "sudo": _wrapper("u g p C T R D r t h user group prompt chroot chdir role type host close-from command-timeout"),
    "doas": _wrapper("u C"),
    "xargs": _wrapper("a E I d L n P s arg-file delimiter max-args max-procs max-chars max-lines"),
    "parallel": _wrapper("j P N n I a jobs arg-file"),
    "time": _wrapper("f o format output"),
    "timeout": _wrapper("k s kill-after signal", operands=1),
    "nice": _wrapper("n adjustment"),
    "ionice": _wrapper("c n p class classdata"),
    "chrt": _wrapper("T P D", operands=1),
    "taskset": _wrapper(operands=1),
    "stdbuf": _wrapper("i o e input output error"),
    "flock": _wrapper("w E wait conflict-exit-code", operands=1),
    "strace": _wrapper("e o E p s u"),
    "unshare": _wrapper("S G R w"),
    "exec": _wrapper("a"),
    **dict.fromkeys(("nohup", "setsid", "command", "builtin", "coproc", "unbuffer", "busybox", "chronic"), _wrapper()),
    "caffeinate": _wrapper("t w"),
}
"""Programs that run their arguments, with functions that return the inner command and its variables."""
