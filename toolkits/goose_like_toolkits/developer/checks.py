"""Checks: what a language's own quick check says against a file, told only where a change brought it in."""

import ast
import asyncio
import json
import re
import shlex
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from goose_like.core.errors import GooseLikeError, ProfileError
from goose_like.toolkit import Notifier, Workspace

PATIENCE_S = 2.0
MAX_FILE_LETTERS = 200_000  # parsing takes half a second for these, and nothing else runs meanwhile
MAX_YAML_LETTERS = 20_000  # its parser is Python's own and takes 10 µs for each
MAX_OUTPUT_BYTES = 100_000
MAX_LINES = 10
MAX_LINE_LETTERS = 300

Place = tuple[int, str]
"""The line at which something does not parse, and why."""


@dataclass(frozen=True, slots=True)
class Check:
    """What is done for a kind of file: parsed by us, and if it parses, read by a program that says what is wrong.

    In `words` `{file}` stands for the path. What `counts` finds in the program's output is a fault, its groups joined.
    """

    parse: Callable[[str], object] | None = None
    words: tuple[str, ...] = ()
    counts: str = r"^.*\S.*$"

    def place(self, text: str) -> Place | None:
        """Where it does not parse."""
        try:
            if self.parse and len(text) <= MAX_FILE_LETTERS:
                self.parse(text)
        except SyntaxError as error:
            return error.lineno or 1, error.msg
        except json.JSONDecodeError as error:
            return error.lineno, error.msg
        except tomllib.TOMLDecodeError as error:  # its place is told in its words alone
            why, _, where = str(error).partition(" (at ")
            line = re.match(r"line (\d+)", where)
            return int(line[1]) if line else text.count("\n") + 1, why
        except MarkedYAMLError as error:
            return error.problem_mark.line + 1 if error.problem_mark else 1, str(error.problem)
        except (ValueError, YAMLError, RecursionError, MemoryError):
            pass  # beyond what the parser can take, which is no fault of the file
        return None


def _yaml(text: str) -> None:
    """Its form alone: what tags and keys mean is for those who read it."""
    for _ in YAML(typ="safe", pure=True).parse(text) if len(text) <= MAX_YAML_LETTERS else ():
        pass


_RULES = ("--isolated", "--select=E9,F63,F7,F82")  # what does not run, and names that nobody defined
_RUFF = ("ruff", "check", "--no-cache", "--no-fix", "--quiet", "--output-format=concise", *_RULES, "{file}")
_COLUMNS = r"^.+:\d+:\d+: .+$"
_NODE = r"^(\S.*:\d+)\n(?:.*\n)*?(\w*Error: (?!.*outside a module).*)$"  # older ones take every .js for CommonJS

_OURS: Mapping[str, Check] = {
    **dict.fromkeys((".py", ".pyi"), Check(ast.parse, _RUFF, _COLUMNS)),
    ".json": Check(json.loads),
    ".toml": Check(tomllib.loads),
    **dict.fromkeys((".yaml", ".yml"), Check(_yaml)),
    **dict.fromkeys((".js", ".mjs", ".cjs"), Check(None, ("node", "--check", "{file}"), _NODE)),
    **dict.fromkeys((".sh", ".bash"), Check(None, ("bash", "-n", "{file}"))),
    ".go": Check(None, ("gofmt", "-e", "-l", "{file}"), _COLUMNS),
    ".lua": Check(None, ("luac", "-p", "{file}")),
    ".php": Check(None, ("php", "-l", "{file}"), r"^.*\berror\b.*$"),
    ".rb": Check(None, ("ruby", "-c", "{file}")),
}
"""What is quick, runs nothing of the file, and needs no other file. Perl's runs BEGIN, Go's `vet` compiles."""


@dataclass(frozen=True, slots=True)
class Faults:
    """What is wrong with a file: where it does not parse, else what the program `by` said, line by line."""

    place: Place | None = None
    by: str = ""
    said: tuple[str, ...] = ()

    def since(self, before: "Faults") -> str:
        """What a model is told of a file that had other faults before: the end of a sentence, or lines of their own."""
        if self.place:
            at, why = self.place
            still = " still" if before.place and before.place[1] == why else ""
            return f", but line {at}{still} does not parse: {why}"
        known = Counter(map(_elsewhere, before.said))
        new: list[str] = []
        for line in self.said:
            known[_elsewhere(line)] -= 1
            if known[_elsewhere(line)] < 0:
                new.append(line[:MAX_LINE_LETTERS])
        more = [f"[... and {len(new) - MAX_LINES} more]"] if len(new) > MAX_LINES else []
        return "\n".join(["", f"[{self.by} finds what was not there before:]", *new[:MAX_LINES], *more]) if new else ""


class Checks:
    """The checks of a session, by suffix. A program that is not there is not looked for again, nor is a file checked
    again for which one took longer than 2 s or had no end of things to say."""

    def __init__(self, workspace: Workspace, notifier: Notifier, table: Mapping[str, Check]) -> None:
        self._workspace = workspace
        self._notifier = notifier
        self._table = table
        self._given_up: set[Path | str] = set()
        self._last: dict[Path, tuple[int, Faults]] = {}  # by the hash of what the file held

    async def faults(self, real: Path, text: str | None) -> Faults:
        """What is wrong with a file that holds this text; nothing where it is None and there is no file."""
        check = self._table.get(real.suffix.lower())
        if check is None or text is None:
            return Faults()
        former, known = self._last.get(real, (None, Faults()))
        if former != hash(text):
            if place := check.place(text):
                known = replace(known, place=place)  # what was said when it last parsed is not new when it does again
            else:
                is_read = check.words and len(text) <= MAX_FILE_LETTERS
                known = Faults(None, check.words[0], await self._said(check, real)) if is_read else Faults()
            self._last[real] = hash(text), known
        return known

    async def _said(self, check: Check, real: Path) -> tuple[str, ...]:
        """The faults that the program tells of a file of the workspace; nothing where it can't be run."""
        words = check.words
        if words is _RUFF and self._sets_up_ruff(real):
            words = *(word for word in _RUFF if word not in _RULES), "--force-exclude"
        if {real, words[0]} & self._given_up or not real.is_relative_to(root := self._workspace.root):
            return ()
        # Begins with a dot, so that no name is an option.
        argv = [word.replace("{file}", f"./{real.relative_to(root)}") for word in words]
        try:
            process = await self._workspace.spawn(argv, writes=False)
        except GooseLikeError as error:
            self._given_up.add(words[0])
            if check not in _OURS.values():
                self._notifier.log(f"{words[0]} checks nothing: {error}; install it, or change `checks` in the profile")
            return ()
        output = bytearray()
        try:
            async with asyncio.timeout(PATIENCE_S):
                while chunk := await process.read():
                    output += chunk
                    if len(output) > MAX_OUTPUT_BYTES:
                        raise TimeoutError
                code = await process.wait()
        except TimeoutError:
            self._given_up.add(real)
            return ()
        except GooseLikeError:  # the sandbox was killed
            return ()
        finally:
            await asyncio.shield(process.stop(0))
        text = output.decode(errors="replace").replace(f"{root}/", "") if code > 0 else ""
        return tuple(": ".join(found.groups() or [found[0]]) for found in re.finditer(check.counts, text, re.MULTILINE))

    def _sets_up_ruff(self, real: Path) -> bool:
        """Whether the project that a file belongs to has rules of its own for ruff."""
        for folder in real.parents:
            if (folder / "ruff.toml").is_file() or (folder / ".ruff.toml").is_file():
                return True
            with suppress(GooseLikeError, OSError):
                if b"[tool.ruff" in self._workspace.read_bytes(folder / "pyproject.toml", MAX_FILE_LETTERS):
                    return True
        return False


def table(config: object = True) -> Mapping[str, Check]:
    """What is checked, by suffix: ours, with what a profile's `checks` says in its place.

    Raises:
        ProfileError: it says what makes no sense.
    """
    if config is True:
        return _OURS
    if config is False:
        return {}
    if config == "parse":
        return {suffix: Check(check.parse) for suffix, check in _OURS.items()}
    if not isinstance(config, Mapping):
        text = f"`checks` is false, parse, or maps suffixes to commands, e.g. {{.py: mypy {{file}}}}, not {config!r}"
        raise ProfileError(text, ("config", "checks"))
    return {**_OURS, **{str(suffix).lower(): _chosen(suffix, wanted) for suffix, wanted in config.items()}}


def _chosen(suffix: object, wanted: object) -> Check:
    place = ("config", "checks", str(suffix))
    if not re.fullmatch(r"\.[^./]+", str(suffix)):
        raise ProfileError(f"`checks` maps suffixes such as .py, not {suffix!r}", place)
    ours = _OURS.get(str(suffix).lower(), Check())
    if wanted is True and ours != Check():
        return ours
    if wanted is False:
        return Check()
    if wanted == "parse" and ours.parse:
        return Check(ours.parse)
    with suppress(ValueError):  # quotes that do not close
        if isinstance(wanted, str) and wanted != "parse" and (words := tuple(shlex.split(wanted))):
            return Check(ours.parse, words)
    raise ProfileError(f"a check of {suffix} is a command, e.g. `mypy {{file}}`, or false, not {wanted!r}", place)


def _elsewhere(line: str) -> str:
    """What a line says without its place: the same fault further down is the same fault."""
    return re.sub(r"(?<=:)\d+|(?<=line )\d+", "", line)
