"""The simple commands of a shell line: the programs that it runs, with their arguments."""

import re
import shlex
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from getopt import GetoptError, getopt, gnu_getopt
from itertools import pairwise, takewhile
from typing import Any

_MAX_CHARS = 100_000
_MAX_PARSE_S = 0.5  # of processor time; a usual line of this size takes a tenth of it
_PIECE_BYTES = 4_096
_MAX_DEPTH = 20  # of lines and commands within others, such as sh -c "sudo sh -c ..."
_GIT_OPTIONS_WITH_VALUE = ("-C", "-c", "--git-dir", "--work-tree", "--namespace", "--config-env", "--attr-source")

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

    input: str | None = field(default=None, compare=False)
    """The text of a here-document or here-string, if the line tells it."""

    is_started: bool = False
    """A package runner such as `npx` starts the command, so a rule that allows the whole allows it too."""

    @property
    def name(self) -> str:
        """The program without its folder, such as `git` for `/usr/bin/git`; empty if it is not known."""
        return (self.words[0] or "").rpartition("/")[2]


UNKNOWN = SimpleCommand((None,))
"""Stands for a part of a line that cannot be read."""

ARITHMETIC = SimpleCommand(("((",))
"""Stands for an expression. The shell runs the commands in the values of its variables, such as `a[$(ls)]`."""


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


def split_git_options(words: Words) -> tuple[Words, Words]:
    """Split the arguments of git into the options before the subcommand, and the rest."""
    count = 0
    while count < len(words) and (words[count] or "").startswith("-"):
        count += 2 if words[count] in _GIT_OPTIONS_WITH_VALUE else 1
    return words[:count], words[count:]


def find_entered_folder(command: SimpleCommand) -> str | None:
    """Return the folder in which `env -C` or `sudo -D` starts another command; None without that option."""
    short = {"env": "-C", "sudo": "-D"}.get(command.name)
    if short is None:
        return None
    options, _ = _split_options(command.name, command.words[1:])
    return options.get(short, options.get("--chdir"))


# --- from text to commands


def _parse(line: str | None, depth: int) -> Iterator[SimpleCommand]:
    # tree-sitter reads a word that goes on in the next line as two words, and takes a carriage return for a blank.
    if line is None or len(line) > _MAX_CHARS or depth > _MAX_DEPTH or re.search(r"[\0\r\v\f]|[^\s\\]\\\n\S", line):
        yield UNKNOWN
        return
    # Some characters crash the parser. For bash, those outside ASCII are parts of words without a meaning, like a dot.
    root = _build_tree(re.sub(r"[^\x01-\x7f]", ".", line).encode() + b"\n")
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
                target = node.child_by_field_name("body")
                while target is not None and target.type in ("list", "pipeline", "negated_command"):
                    target = target.named_children[-1]  # the grammar gives the redirects of the last command to all
                found = node.children_by_field_name("redirect")
                if target is not None and target.type in ("command", "declaration_command", "unset_command"):
                    redirects[target.id] = found
                elif found:
                    yield reader.read_command(node, found)
            case "variable_assignment" | "for_statement" if node.parent.type != "command":
                yield SimpleCommand((":",), (reader.read_variable(node),))
        if not reader.is_sound(node):
            yield UNKNOWN
        yield from (found for text, found in _HAZARDS.get(node.type, ()) if re.search(text, reader.get_text(node)))
        stack += reversed(node.named_children)
    if root.has_error:  # bash runs the lines before an error
        yield UNKNOWN


def _build_tree(text: bytes) -> Node | None:
    """Return the root of the tree, or None if it takes too long: for strange texts the time grows with the square."""
    parser, end_s = _create_parser(), time.thread_time() + _MAX_PARSE_S
    try:
        tree = parser.parse(
            lambda start, _: text[start : start + _PIECE_BYTES],
            progress_callback=lambda *_: time.thread_time() > end_s,
        )
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


class _Reader:
    """Reads words of a line. Positions in the tree are those in the line, since the parser got one byte for each."""

    def __init__(self, line: str) -> None:
        self._line = line

    def get_text(self, node: Node) -> str:
        return self._line[node.start_byte : node.end_byte]

    def is_sound(self, node: Node) -> bool:
        """Check that bash ends a command or here-document where tree-sitter ends it."""
        match node.type:
            case "heredoc_start":
                return re.fullmatch(r"[\w-]+|'[\w -]+'|\"[\w -]+\"|\\\w+", self.get_text(node)) is not None
            case "heredoc_end":
                start = self._line.rfind("\n", 0, node.start_byte) + 1
                indent = r"\t*" if node.parent.children[0].type == "<<-" else ""
                return (
                    re.compile(rf"{indent}{re.escape(self.get_text(node))}(\n|\Z)").match(self._line, start) is not None
                )
            case "command" | "declaration_command" | "heredoc_redirect":
                parts = (part for part in node.children if part.type not in ("heredoc_body", "heredoc_end"))
                gaps = (self._line[before.end_byte : after.start_byte] for before, after in pairwise(parts))
                return all(re.fullmatch(r"(\\\n|[ \t])*", gap) for gap in gaps)
            case _:
                return True

    def read_variable(self, node: Node) -> str:
        """Read the name of an assigned variable, or of the variable of a loop."""
        name = node.child_by_field_name("name") or node.child_by_field_name("variable")
        return "" if name is None else self.get_text(name)

    def read_command(self, node: Node, parts: list[Node]) -> SimpleCommand:
        """Read a command of words, assignments and redirects. Without words it is `:`."""
        words: list[str | None] = (
            [node.children[0].type] if node.type in ("declaration_command", "unset_command") else []
        )
        variables: list[str] = []
        written: dict[bool, list[str | None]] = {False: [], True: []}
        given: str | None = None
        end = -1
        stack = parts[::-1]
        while stack:
            part = stack.pop()
            match part.type:
                case "variable_assignment":
                    variables.append(self.read_variable(part))
                case "file_redirect":
                    operators = {child.type for child in part.children}
                    destinations = part.children_by_field_name("destination")
                    is_descriptor = bool(operators & {">&", "<&"}) and part.named_children[-1].type == "number"
                    if destinations and not is_descriptor and not operators & {"<", "<&"}:
                        written[bool(operators & {">>", "&>>"})].append(self._read_word(destinations[0]))
                    stack += reversed(destinations[1:])  # words may follow a redirect
                case "heredoc_redirect":
                    given = next((self.get_text(one) for one in part.children if one.type == "heredoc_body"), None)
                    stack += [*part.children_by_field_name("argument")[::-1], *part.children_by_field_name("redirect")]
                case "herestring_redirect":
                    given = self._read_word(part.named_children[-1])
                case "comment":
                    pass
                case _:
                    word = self._read_word(part.named_children[0] if part.type == "command_name" else part)
                    if part.start_byte == end:  # tree-sitter reads 'a'\b as two words
                        before = words.pop()
                        word = None if word is None or before is None else before + word
                    words.append(word)
                    end = part.end_byte
        overwrites, appends = tuple(written[False]), tuple(written[True])
        return SimpleCommand(tuple(words) or (":",), tuple(variables), overwrites, appends, given)

    def _read_word(self, node: Node) -> str | None:
        """Return a word without quotes and escapes, or None if it holds an expansion."""
        text = self.get_text(node)
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

_SHELLS = dict.fromkeys(
    ("sh", "bash", "dash", "zsh", "ksh", "ash"),
    ("abcefhiklmnprstuvxBCDEHPTo:O:", "version help norc noprofile login posix rcfile= init-file=", 0),
)
_WRAPPERS = {
    "env": ("i0vu:C:S:", "ignore-environment null debug unset= chdir= split-string=", 0),
    "sudo": (
        "AbBEeHiKklnNPSsVvu:g:p:C:T:R:D:r:t:h:U:",
        "login shell preserve-env non-interactive user= group= chdir=",
        0,
    ),
    "doas": ("nLsu:C:", "", 0),
    "xargs": ("0oprtxia:E:I:d:L:n:P:s:", "null no-run-if-empty verbose replace arg-file= max-args= max-procs=", 0),
    "time": ("pv", "portability verbose", 0),
    "timeout": ("fpvk:s:", "foreground preserve-status verbose kill-after= signal=", 1),
    "nice": ("n:0123456789", "adjustment=", 0),
    "ionice": ("c:n:t", "class= classdata= ignore", 0),
    "stdbuf": ("i:o:e:", "input= output= error=", 0),
    "flock": ("sexunoFvw:E:", "shared exclusive unlock nonblock close wait= conflict-exit-code=", 1),
    "taskset": ("ac", "", 1),
    "strace": ("fqe:o:", "", 0),
    "exec": ("cla:", "", 0),
    "command": ("pvV", "", 0),
    "setsid": ("cfw", "ctty fork wait", 0),
    **dict.fromkeys(("nohup", "builtin", "unbuffer", "busybox", "chronic", "unshare"), ("", "", 0)),
}
"""Programs that run their arguments: short and long options as for `getopt`, and the number of operands before."""

_RUNNERS = re.compile(
    r"npx|pnpx|bunx|uvx|(uv|poetry|pipenv|pdm|hatch|rye|conda|mamba|micromamba|pixi|yarn) run|uv tool run|pipx run"
    r"|(npm|pnpm|yarn|bundle|mise|rbenv|pyenv|asdf|opam|direnv|fnm) exec|(npm|bun|yarn|mise) x|(pnpm|yarn) dlx"
    r"|(dotenv|dotenvx|op|doppler|volta|devbox) run|xvfb-run|fakeroot"
)
"""Package runners and the like: programs and subcommands after which the name of another program follows."""

_MAX_STARTED = 8
"""Words of a runner's line that may be the program which it starts, at most."""

_RUNNER_FLAGS = re.compile(
    r"-[yqv]|--(yes|quiet|verbose|frozen|locked|offline|isolated|no-(sync|install|project|dev|capture-output|cache)"
    r"|all-extras|all-packages|refresh|exact|active|live-stream|if-present|silent)"
)
"""Options of package runners that have no value."""

_OPTIONS = {
    **_WRAPPERS,
    **_SHELLS,
    "su": ("c:s:g:G:mpl", "command= shell= login", 0),
    "script": ("c:aefqE:", "command= append return flush quiet force echo=", 0),
    "watch": ("n:dtegxc", "interval= differences errexit", 0),
}
_EXPANDED = re.compile(r"[*?\[]|\{.*(,|\.\.).*\}")
_INPUT = re.compile(r"[-+]|/dev/|/proc/")
_NO_NAME = re.compile(
    r".*[*?\[{].*|if|then|elif|else|fi|for|while|until|do|done|case|esac|select|function|!|\}", re.DOTALL
)
"""Names that the shell replaces, or reads as a part of its grammar."""

_GIT_CODE = re.compile(r"(?i)[ =](alias|include|includeif)\.| (foreach|bisect run|rebase .*(-x|--exec))\b")
"""Arguments by which git runs other commands."""


def _expand(command: SimpleCommand, depth: int) -> Iterator[SimpleCommand]:
    """Yield a command and the commands that its arguments name."""
    first, *rest = command.words
    if depth > _MAX_DEPTH:
        yield UNKNOWN
        return
    if first is None or (_NO_NAME.fullmatch(first) and first != "["):
        yield replace(command, words=(None, *rest))
        return
    yield command
    words = tuple(rest[1:] if rest[:1] == ["--"] else rest)
    match command.name:
        case name if name in _SHELLS:
            options, words = _split_options(name, words)
            if "-c" in options:
                yield from _parse(words[0] if words and words[0] != "{}" else None, depth + 1)
            elif "--version" not in options and ("-s" in options or _is_input(words[:1])):
                yield UNKNOWN
                yield from _parse(command.input or "", depth + 1)
        case "source" | "." if _is_input(words[:1]):
            yield UNKNOWN
            yield from _parse(command.input or "", depth + 1)
        case "su" | "script" as name:
            options, _ = _split_options(name, words)
            yield from _parse(options.get("-c", options.get("--command")), depth + 1)
        case "eval" | "watch" as name:
            words = words if name == "eval" else _split_options(name, words)[1]
            yield from _parse(None if None in words else " ".join(map(str, words)), depth + 1)
        case "trap" if len(words) > 1:
            yield from _parse(words[0] if words[0] != "-" else "", depth + 1)
        case "alias":
            for word in words:
                for inner in _parse(word and word.partition("=")[2], depth + 1):
                    yield replace(inner, words=(*inner.words, None))  # the words after the alias
        case "find" | "fd" | "fdfind":
            for inner_words in _split_exec(words):
                yield from _expand(SimpleCommand(inner_words), depth + 1)
        case "git" if _GIT_CODE.search(" ".join(["", *map(str, words)])):
            yield UNKNOWN
        case "mapfile" | "readarray" | "compgen" if any(word is None or word[:2] in ("-C", "-W") for word in words):
            yield UNKNOWN
        case "coproc":
            yield UNKNOWN
            if "{" in words[:2]:
                words = words[words.index("{") + 1 :]
            if words:
                yield from _expand(SimpleCommand(words), depth + 1)
        case "parallel":
            yield UNKNOWN
        case _ if started := list(_find_started(command)):
            # Runners within runners must not take exponential time.
            inner_depth = depth + 1 if len(started) == 1 else depth + _MAX_DEPTH // 4
            for inner_words in started[:_MAX_STARTED]:
                yield from _expand(SimpleCommand(inner_words, command.variables, is_started=True), inner_depth)
            if len(started) > _MAX_STARTED:
                yield UNKNOWN
        case name if name in _WRAPPERS:
            inner_words = _unwrap(name, words)
            assigned = tuple(takewhile(lambda word: word and re.match(r"\w+=", word), inner_words))
            if inner_words := inner_words[len(assigned) :]:
                variables = (str(word).partition("=")[0] for word in assigned)
                inner = SimpleCommand(inner_words, (*command.variables, *variables), input=command.input)
                yield from _expand(inner, depth + 1)


def _split_options(name: str, words: Words) -> tuple[dict[str, str], Words]:
    """Split the words of a program into options, and the rest without operands: `(None,)` if nobody can tell."""
    short, long, operands = _OPTIONS[name]
    split = gnu_getopt if name in ("su", "script") else getopt
    try:
        options, rest = split(["\0" if word is None else word for word in words], short, long.split())
    except GetoptError:
        return {}, (None,)
    count = len(words) - len(rest) + operands
    if any(word is None or _EXPANDED.search(word) for word in words[:count]):
        return {}, (None,)
    return dict(options), words[count:]


def _is_input(words: Words) -> bool:
    """Check whether a shell reads its lines from elsewhere than from the file that these words name."""
    return not words or words[0] is None or _INPUT.match(words[0]) is not None


def _find_started(command: SimpleCommand) -> Iterator[Words]:
    """Yield what a package runner may start: a word behind an option can be its value, or the name of the program."""
    names = [command.name, *map(str, command.words[1:3])]
    known = [count for count in (1, 2, 3) if _RUNNERS.fullmatch(" ".join(names[:count]))]
    if not known:
        return
    words = command.words[known[-1] :]
    may_be_value = command.name == "direnv"  # a folder comes before the program
    for index, word in enumerate(words):
        if word is None:
            yield (None,)
            return
        if word == "--":
            may_be_value = False
        elif word.startswith("--call="):
            yield "sh", "-c", word.partition("=")[2]
        elif word.startswith("-"):
            may_be_value = "=" not in word and not _RUNNER_FLAGS.fullmatch(word)
        else:
            # A word with spaces names no program: some runners give it to a shell, as does `npx -c`.
            yield ("sh", "-c", word) if re.search(r"\s", word) else words[index:]
            if not may_be_value:
                return
            may_be_value = False


def _split_exec(words: Words) -> Iterator[Words]:
    """Yield the commands after `-exec` and its kin."""
    options = ("-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch")
    for start in [index for index, word in enumerate(words) if word in options]:
        rest = words[start + 1 :]
        ends = [index for index, word in enumerate(rest) if word == ";" or rest[index - 1 : index + 1] == ("{}", "+")]
        if inner := rest[: ends[0]] if ends else rest:
            yield inner


def _unwrap(name: str, words: Words) -> Words:
    """Return the command that a wrapper runs, after assignments if there are any. It may be empty."""
    options, words = _split_options(name, words)
    line = options.get("-S", options.get("--split-string"))
    match name:
        case "env" if line is not None:
            return (None,) if re.search(r"[\"'\\$#]", line) else ("env", *line.split(), *words)
        case "env" if words[:1] == ("-",):
            return words[1:]
        case "sudo" | "doas" if not words and options.keys() & {"-s", "-i", "--shell", "--login"}:
            return (None,)  # a shell that reads its input
        case "command" if options.keys() & {"-v", "-V"}:
            return ()
        case "flock" if words[:1] in (("-c",), ("--command",)):
            return ("sh", "-c", *words[1:])
        case "xargs" if words:
            place = options.get("-I", "{}")
            return (*(None if place in (word or place) else word for word in words), None)
    return words
