"""Linters: quick checks of changed files. Only findings that a change introduced are reported."""

import ast
import asyncio
import json
import re
import shlex
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from goose_like.core.dataclass import dataclass
from goose_like.core.errors import GooseLikeError, ProfileError
from goose_like.toolkit import Notifier, Workspace
from goose_like.workspace.processes.process import Process

TIMEOUT_S = 2.0
MAX_FILE_CHARS = 200_000  # parsing these blocks the event loop for half a second
MAX_OUTPUT_BYTES = 100_000
MAX_LINES = 10
MAX_LINE_CHARS = 300

ParseError = tuple[int, str]
"""The line where a file does not parse, and the reason."""


@dataclass(frozen=True, slots=True)
class Linter:
    """The checks of one file type: a parser in this process, then a program if the file parses.

    `{file}` in `command` is replaced by the path. Each match of `finding_pattern` in the program's output is a finding.
    """

    parse: Callable[[str], object] | None = None
    command: tuple[str, ...] = ()
    finding_pattern: str = r"^.*\S.*$"

    def find_parse_error(self, text: str) -> ParseError | None:
        """Parse the text, and return the first error."""
        try:
            if self.parse and len(text) <= MAX_FILE_CHARS:
                self.parse(text)
        except SyntaxError as error:
            return error.lineno or 1, error.msg
        except json.JSONDecodeError as error:
            return error.lineno, error.msg
        except (ValueError, RecursionError, MemoryError):
            pass  # a limit of the parser, not an error in the file
        return None

    def find_in_output(self, text: str) -> tuple[str, ...]:
        """Find the findings in what the program printed."""
        findings: list[str] = []
        for found in re.finditer(self.finding_pattern, text, re.MULTILINE):
            findings.append(": ".join(found.groups() or [found[0]]))
        return tuple(findings)


def _parse_toml(text: str) -> None:
    import tomllib

    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:  # only the message has the line
        why, _, where = str(error).partition(" (at ")
        found = re.match(r"line (\d+)", where)
        line = text.count("\n") + 1
        if found:
            line = int(found[1])
        raise SyntaxError(why, (None, line, None, None)) from error


def _parse_yaml(text: str) -> None:
    """Parse the syntax only, without the meaning of tags and keys."""
    import yaml

    from goose_like.config.yaml_reader import StandardLoader  # slow to import

    try:
        for _ in yaml.parse(text, Loader=StandardLoader):
            pass
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise SyntaxError(str(error.problem), (None, line, None, None)) from error
    except yaml.YAMLError as error:  # a limit of the parser
        raise ValueError(str(error)) from error


_RULES = ("--isolated", "--select=E9,F63,F7,F82")  # errors that prevent running, and undefined names
_RUFF_CHECK = ("ruff", "check", "--no-cache", "--no-fix", "--quiet", "--output-format=concise")
_RUFF = (*_RUFF_CHECK, *_RULES, "{file}")
_RUFF_WITH_RULES_OF_PROJECT = (*_RUFF_CHECK, "{file}", "--force-exclude")
_WITH_COLUMN = r"^.+:\d+:\d+: .+$"
_NODE = (
    r"^(\S.*:\d+)\n(?:.*\n)*?(\w*Error: (?!.*outside a module).*)$"  # older versions read every .js file as CommonJS
)

_BUILTIN: Mapping[str, Linter] = {
    **dict.fromkeys((".py", ".pyi"), Linter(ast.parse, _RUFF, _WITH_COLUMN)),
    ".json": Linter(json.loads),
    ".toml": Linter(_parse_toml),
    **dict.fromkeys((".yaml", ".yml"), Linter(_parse_yaml)),
    **dict.fromkeys((".js", ".mjs", ".cjs"), Linter(None, ("node", "--check", "{file}"), _NODE)),
    **dict.fromkeys((".sh", ".bash"), Linter(None, ("bash", "-n", "{file}"))),
    ".go": Linter(None, ("gofmt", "-e", "-l", "{file}"), _WITH_COLUMN),
    ".lua": Linter(None, ("luac", "-p", "{file}")),
    ".php": Linter(None, ("php", "-l", "{file}"), r"^.*\berror\b.*$"),
    ".rb": Linter(None, ("ruby", "-c", "{file}")),
}
"""Fast checks that do not run the file and need no other file. Perl is missing, as `perl -c` runs BEGIN blocks."""


@dataclass(frozen=True, slots=True)
class Findings:
    """The findings in one file: a parse error, or else the lines that a program printed."""

    parse_error: ParseError | None = None
    program: str = ""
    lines: tuple[str, ...] = ()

    def describe_new(self, before: "Findings") -> str:
        """Describe the findings that are not in `before`: the end of a sentence, or extra lines for the model."""
        if self.parse_error:
            line, why = self.parse_error
            still = ""
            if before.parse_error and before.parse_error[1] == why:
                still = " still"
            return f", but line {line}{still} does not parse: {why}"
        new = self._list_new(before)
        if not new:
            return ""
        lines = [f"\n[new findings of {self.program}:]", *new[:MAX_LINES]]
        if len(new) > MAX_LINES:
            lines.append(f"[... and {len(new) - MAX_LINES} more]")
        return "\n".join(lines)

    def _list_new(self, before: "Findings") -> list[str]:
        known = Counter(map(_strip_position, before.lines))
        new: list[str] = []
        for line in self.lines:
            finding = _strip_position(line)
            known[finding] -= 1
            if known[finding] < 0:
                new.append(line[:MAX_LINE_CHARS])
        return new


class Linters:
    """The linters of a session by file suffix.

    A missing program is not tried again. Neither is a file that took longer than 2 s or caused too much output.
    """

    def __init__(self, workspace: Workspace, notifier: Notifier, linters: Mapping[str, Linter]) -> None:
        self._workspace = workspace
        self._notifier = notifier
        self._linters = linters
        self._skipped: set[Path | str] = set()
        self._last: dict[Path, tuple[int, Findings]] = {}  # by the hash of the content

    async def check_file(self, real: Path, text: str | None) -> Findings:
        """Check a file with this text. There are no findings if the text is None, for a missing file."""
        linter = self._linters.get(real.suffix.lower())
        if linter is None or text is None:
            return Findings()
        former, known = self._last.get(real, (None, Findings()))
        if former == hash(text):
            return known
        parse_error = linter.find_parse_error(text)
        if parse_error:
            findings = replace(known, parse_error=parse_error)  # older ones are not new once the file parses again
        elif linter.command and len(text) <= MAX_FILE_CHARS:
            lines = await self._run_linter(linter, real)
            findings = Findings(program=linter.command[0], lines=lines)
        else:
            findings = Findings()
        self._last[real] = (hash(text), findings)
        return findings

    def find_parse_error(self, real: Path, text: str) -> ParseError | None:
        """Parse a file with this text, and return the first error."""
        former, known = self._last.get(real, (None, Findings()))
        if former == hash(text):
            return known.parse_error
        linter = self._linters.get(real.suffix.lower())
        return linter.find_parse_error(text) if linter else None

    async def _run_linter(self, linter: Linter, real: Path) -> tuple[str, ...]:
        """Run the program on a file of the workspace. Return its findings, or nothing if it cannot run."""
        command = linter.command
        if command is _RUFF and self._has_ruff_rules(real):
            command = _RUFF_WITH_RULES_OF_PROJECT
        root = self._workspace.root
        is_skipped = real in self._skipped or command[0] in self._skipped
        if is_skipped or not real.is_relative_to(root):
            return ()
        # The path begins with a dot, so that no file name is read as an option.
        argv = [word.replace("{file}", f"./{real.relative_to(root)}") for word in command]
        try:
            process = await self._workspace.spawn(argv, writes=False)
        except GooseLikeError as error:
            self._skipped.add(command[0])
            if linter not in _BUILTIN.values():
                text = f"{command[0]} checks nothing: {error}; install it, or change `checks` in the profile"
                self._notifier.log(text)
            return ()
        try:
            async with asyncio.timeout(TIMEOUT_S):
                text = await _read_failure(process)
        except TimeoutError:
            self._skipped.add(real)
            return ()
        except GooseLikeError:  # the sandbox was killed
            return ()
        finally:
            await asyncio.shield(process.stop(0))
        return linter.find_in_output(text.replace(f"{root}/", ""))

    def _has_ruff_rules(self, real: Path) -> bool:
        for folder in real.parents:
            if (folder / "ruff.toml").is_file() or (folder / ".ruff.toml").is_file():
                return True
            with suppress(GooseLikeError, OSError):
                project = self._workspace.read_bytes(folder / "pyproject.toml", MAX_FILE_CHARS)
                if b"[tool.ruff" in project:
                    return True
        return False


async def _read_failure(process: Process) -> str:
    """Read the output of a program to its end, and return it if the program failed.

    Raises:
        TimeoutError: the output is too long.
    """
    output = bytearray()
    if not await process.read_all(output.extend, MAX_OUTPUT_BYTES):
        raise TimeoutError
    code = await process.wait()
    if code <= 0:
        return ""
    return output.decode(errors="replace")


def choose_linters(config: object = True) -> Mapping[str, Linter]:
    """Choose the linters by file suffix: the built-in ones, changed by `checks` in the profile.

    Raises:
        ProfileError: `checks` is invalid.
    """
    if config is True:
        return _BUILTIN
    if config is False:
        return {}
    if config == "parse":
        return {suffix: Linter(linter.parse) for suffix, linter in _BUILTIN.items()}
    if not isinstance(config, Mapping):
        text = f"`checks` is false, parse, or maps suffixes to commands, e.g. {{.py: mypy {{file}}}}, not {config!r}"
        raise ProfileError(text, ("config", "checks"))
    linters = dict(_BUILTIN)
    for suffix, wanted in config.items():
        linters[str(suffix).lower()] = _choose_linter(suffix, wanted)
    return linters


def _choose_linter(suffix: object, wanted: object) -> Linter:
    place = ("config", "checks", str(suffix))
    if not re.fullmatch(r"\.[^./]+", str(suffix)):
        raise ProfileError(f"`checks` maps suffixes such as .py, not {suffix!r}", place)
    builtin = _BUILTIN.get(str(suffix).lower(), Linter())
    if wanted is True and builtin != Linter():
        return builtin
    if wanted is False:
        return Linter()
    if wanted == "parse" and builtin.parse:
        return Linter(builtin.parse)
    if isinstance(wanted, str) and wanted != "parse":
        with suppress(ValueError):  # unbalanced quotes
            command = tuple(shlex.split(wanted))
            if command:
                return Linter(builtin.parse, command)
    raise ProfileError(f"a check of {suffix} is a command, e.g. `mypy {{file}}`, or false, not {wanted!r}", place)


def _strip_position(line: str) -> str:
    """Remove the line number, so that a finding that moved is not new."""
    return re.sub(r"(?<=:)\d+|(?<=line )\d+|(?<=\()\d+,\d+(?=\))", "", line)
