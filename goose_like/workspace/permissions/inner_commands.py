"""Inner commands: what a program runs because its arguments name it, as with `env`, `sh -c` and `find -exec`."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from getopt import GetoptError, getopt, gnu_getopt

from .simple_command import UNKNOWN, SimpleCommand, Words

MAX_DEPTH = 20
"""The number of lines and commands within others that are read, such as sh -c "sudo sh -c ..."."""


@dataclass(frozen=True, slots=True)
class InnerLine:
    """A line that a command runs. Without a text, nobody can tell the line before the start."""

    text: str | None
    is_extended: bool = False
    """Unknown words follow each command of the line, as after an alias."""


@dataclass(frozen=True, slots=True)
class InnerCommand:
    """A command that another one runs."""

    command: SimpleCommand
    depth: int = 1
    """The number of levels that it counts for."""


Inner = InnerLine | InnerCommand

_UNKNOWN = InnerCommand(UNKNOWN)


# --- the options of programs


@dataclass(frozen=True, slots=True)
class _Options:
    """The options of a program as for `getopt`, and the number of operands before the command that it runs."""

    short: str = ""
    long: str = ""
    operand_count: int = 0


_SHELLS = dict.fromkeys(
    ("sh", "bash", "dash", "zsh", "ksh", "ash"),
    _Options("abcefhiklmnprstuvxBCDEHPTo:O:", "version help norc noprofile login posix rcfile= init-file="),
)
_WRAPPERS = {
    "env": _Options("i0vu:C:S:", "ignore-environment null debug unset= chdir= split-string="),
    "sudo": _Options(
        "AbBEeHiKklnNPSsVvu:g:p:C:T:R:D:r:t:h:U:",
        "login shell preserve-env non-interactive user= group= chdir=",
    ),
    "doas": _Options("nLsu:C:"),
    "xargs": _Options(
        "0oprtxia:E:I:d:L:n:P:s:",
        "null no-run-if-empty verbose replace arg-file= max-args= max-procs=",
    ),
    "time": _Options("pv", "portability verbose"),
    "timeout": _Options("fpvk:s:", "foreground preserve-status verbose kill-after= signal=", 1),
    "nice": _Options("n:0123456789", "adjustment="),
    "ionice": _Options("c:n:t", "class= classdata= ignore"),
    "stdbuf": _Options("i:o:e:", "input= output= error="),
    "flock": _Options("sexunoFvw:E:", "shared exclusive unlock nonblock close wait= conflict-exit-code=", 1),
    "taskset": _Options("ac", "", 1),
    "strace": _Options("fqe:o:"),
    "exec": _Options("cla:"),
    "command": _Options("pvV"),
    "setsid": _Options("cfw", "ctty fork wait"),
    **dict.fromkeys(("nohup", "builtin", "unbuffer", "busybox", "chronic", "unshare"), _Options()),
}
"""Programs that run their arguments."""

_OPTIONS = {
    **_WRAPPERS,
    **_SHELLS,
    "su": _Options("c:s:g:G:mpl", "command= shell= login"),
    "script": _Options("c:aefqE:", "command= append return flush quiet force echo="),
    "watch": _Options("n:dtegxc", "interval= differences errexit"),
}

_EXPANDED = re.compile(r"[*?\[]|\{.*(,|\.\.).*\}")


def find_entered_folder(command: SimpleCommand) -> str | None:
    """Return the folder in which `env -C` or `sudo -D` starts another command; None without that option."""
    short = {"env": "-C", "sudo": "-D"}.get(command.name)
    if short is None:
        return None
    options, _ = _split_options(command.name, command.words[1:])
    return options.get(short, options.get("--chdir"))


def _split_options(name: str, words: Words) -> tuple[dict[str, str], Words]:
    """Split the words of a program into options, and the rest without operands: `(None,)` if nobody can tell."""
    known = _OPTIONS[name]
    split = gnu_getopt if name in ("su", "script") else getopt
    given = ["\0" if word is None else word for word in words]
    try:
        options, rest = split(given, known.short, known.long.split())
    except GetoptError:
        return {}, (None,)
    count = len(words) - len(rest) + known.operand_count
    if any(word is None or _EXPANDED.search(word) for word in words[:count]):
        return {}, (None,)
    return dict(options), words[count:]


# --- shells, and other programs that run a line

_INPUT = re.compile(r"[-+]|/dev/|/proc/")
_GIT_CODE = re.compile(r"(?i)[ =](alias|include|includeif)\.| (foreach|bisect run|rebase .*(-x|--exec))\b")
"""Arguments by which git runs other commands."""


def _get_arguments(command: SimpleCommand) -> Words:
    if command.words[1:2] == ("--",):
        return command.words[2:]
    return command.words[1:]


def _read_shell(command: SimpleCommand) -> Iterator[Inner]:
    options, words = _split_options(command.name, _get_arguments(command))
    if "-c" in options:
        is_replaced = words[:1] == ("{}",)  # by `find` or `xargs`, with a line that nobody knows yet
        yield InnerLine(None if is_replaced or not words else words[0])
    elif "--version" not in options and ("-s" in options or _is_input(words)):
        yield from _read_standard_input(command)


def _read_source(command: SimpleCommand) -> Iterator[Inner]:
    if _is_input(_get_arguments(command)):
        yield from _read_standard_input(command)


def _is_input(words: Words) -> bool:
    """Check whether a shell reads its lines from elsewhere than from the file that the first word names."""
    return not words or words[0] is None or _INPUT.match(words[0]) is not None


def _read_standard_input(command: SimpleCommand) -> Iterator[Inner]:
    yield _UNKNOWN
    yield InnerLine(command.input or "")


def _read_su(command: SimpleCommand) -> Iterator[Inner]:
    options, _ = _split_options(command.name, _get_arguments(command))
    yield InnerLine(options.get("-c", options.get("--command")))


def _read_eval(command: SimpleCommand) -> Iterator[Inner]:
    yield _join_line(_get_arguments(command))


def _read_watch(command: SimpleCommand) -> Iterator[Inner]:
    _, words = _split_options(command.name, _get_arguments(command))
    yield _join_line(words)


def _join_line(words: Words) -> InnerLine:
    known = [word for word in words if word is not None]
    if len(known) < len(words):
        return InnerLine(None)
    return InnerLine(" ".join(known))


def _read_trap(command: SimpleCommand) -> Iterator[Inner]:
    words = _get_arguments(command)
    if len(words) > 1:
        yield InnerLine("" if words[0] == "-" else words[0])


def _read_alias(command: SimpleCommand) -> Iterator[Inner]:
    for word in _get_arguments(command):
        line = word
        if word is not None:
            _, _, line = word.partition("=")
        yield InnerLine(line, is_extended=True)


def _read_git(command: SimpleCommand) -> Iterator[Inner]:
    words = map(str, _get_arguments(command))
    if _GIT_CODE.search(" ".join(["", *words])):
        yield _UNKNOWN


def _read_mapfile(command: SimpleCommand) -> Iterator[Inner]:
    """Find the options of `mapfile` and `compgen` that hold a command."""
    for word in _get_arguments(command):
        if word is None or word.startswith(("-C", "-W")):
            yield _UNKNOWN
            return


# --- programs that run a command

_EXEC_OPTIONS = ("-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch")
_ASSIGNMENT = re.compile(r"\w+=")
_SPLIT_CHARACTER = re.compile(r"[\"'\\$#]")
"""Characters with a meaning for `env -S`."""


def _read_find(command: SimpleCommand) -> Iterator[Inner]:
    """Find the commands after `-exec` and its kin."""
    words = _get_arguments(command)
    for index, word in enumerate(words):
        if word not in _EXEC_OPTIONS:
            continue
        rest = words[index + 1 :]
        inner = rest[: _find_exec_end(rest)]
        if inner:
            yield InnerCommand(SimpleCommand(inner))


def _find_exec_end(words: Words) -> int:
    for index, word in enumerate(words):
        is_batch_end = word == "+" and words[index - 1 : index] == ("{}",)
        if word == ";" or is_batch_end:
            return index
    return len(words)


def _read_coproc(command: SimpleCommand) -> Iterator[Inner]:
    yield _UNKNOWN
    words = _get_arguments(command)
    if "{" in words[:2]:
        start = words.index("{") + 1
        words = words[start:]
    if words:
        yield InnerCommand(SimpleCommand(words))


def _read_parallel(_: SimpleCommand) -> Iterator[Inner]:
    yield _UNKNOWN


def _read_wrapper(command: SimpleCommand) -> Iterator[Inner]:
    words = _unwrap(command.name, _get_arguments(command))
    variables = list(command.variables)
    start = 0
    for word in words:
        if word is None or not _ASSIGNMENT.match(word):
            break
        variables.append(word.partition("=")[0])
        start += 1
    inner = words[start:]
    if inner:
        yield InnerCommand(SimpleCommand(inner, tuple(variables), input=command.input))


def _unwrap(name: str, words: Words) -> Words:
    """Return the command that a wrapper runs, after assignments if there are any. It may be empty."""
    options, words = _split_options(name, words)
    match name:
        case "env":
            return _unwrap_env(options, words)
        case "sudo" | "doas" if not words and options.keys() & {"-s", "-i", "--shell", "--login"}:
            return (None,)  # a shell that reads its input
        case "command" if options.keys() & {"-v", "-V"}:
            return ()
        case "flock" if words[:1] in (("-c",), ("--command",)):
            return ("sh", "-c", *words[1:])
        case "xargs" if words:
            return _unwrap_xargs(options, words)
    return words


def _unwrap_env(options: dict[str, str], words: Words) -> Words:
    line = options.get("-S", options.get("--split-string"))
    if line is not None:
        if _SPLIT_CHARACTER.search(line):
            return (None,)
        return ("env", *line.split(), *words)
    if words[:1] == ("-",):
        return words[1:]
    return words


def _unwrap_xargs(options: dict[str, str], words: Words) -> Words:
    place = options.get("-I", "{}")
    filled: list[str | None] = []
    for word in words:
        if not word or place in word:
            word = None
        filled.append(word)
    return (*filled, None)


# --- package runners

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


def _read_runner(command: SimpleCommand) -> Iterator[Inner]:
    started = list(_find_started(command))
    # Runners within runners must not take exponential time.
    depth = 1 if len(started) == 1 else MAX_DEPTH // 4
    for words in started[:_MAX_STARTED]:
        inner = SimpleCommand(words, command.variables, is_started=True)
        yield InnerCommand(inner, depth)
    if len(started) > _MAX_STARTED:
        yield _UNKNOWN


def _find_started(command: SimpleCommand) -> Iterator[Words]:
    """Yield what a package runner may start: a word behind an option can be its value, or the name of the program."""
    count = _count_runner_words(command)
    if count == 0:
        return
    words = command.words[count:]
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
            if re.search(r"\s", word):
                yield "sh", "-c", word
            else:
                yield words[index:]
            if not may_be_value:
                return
            may_be_value = False


def _count_runner_words(command: SimpleCommand) -> int:
    """Count the words that name a package runner and its subcommand; 0 for other programs."""
    names = [command.name, *map(str, command.words[1:3])]
    for count in range(len(names), 0, -1):
        if _RUNNERS.fullmatch(" ".join(names[:count])):
            return count
    return 0


# --- all programs


_READERS: dict[str, Callable[[SimpleCommand], Iterator[Inner]]] = {
    **dict.fromkeys(_SHELLS, _read_shell),
    **dict.fromkeys(_WRAPPERS, _read_wrapper),
    **dict.fromkeys(("source", "."), _read_source),
    **dict.fromkeys(("su", "script"), _read_su),
    **dict.fromkeys(("find", "fd", "fdfind"), _read_find),
    **dict.fromkeys(("mapfile", "readarray", "compgen"), _read_mapfile),
    "alias": _read_alias,
    "coproc": _read_coproc,
    "eval": _read_eval,
    "git": _read_git,
    "parallel": _read_parallel,
    "trap": _read_trap,
    "watch": _read_watch,
}


def find_inner(command: SimpleCommand) -> Iterator[Inner]:
    """Find the lines and commands that a command runs because its arguments name them."""
    read = _READERS.get(command.name, _read_runner)
    return read(command)
