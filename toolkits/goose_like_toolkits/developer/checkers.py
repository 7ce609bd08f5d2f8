"""Checkers that a project has set up, such as mypy or eslint: new findings after a change, at once or later."""

import asyncio
import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from goose_like.core.dataclass import dataclass
from goose_like.core.errors import GooseLikeError
from goose_like.toolkit import Workspace
from goose_like.workspace.processes.process import Process

from .linters import Findings

BEFORE_S = 5.0
"""The longest wait for the findings before the first change. A slower checker reports from the second change on."""
AFTER_S = 2.0
"""The longest wait for the findings after a change. Those of slower checkers come with a later step."""
END_S = 5.0
"""The longest wait for slow checkers when the model wants to finish."""
LIMIT_S = 120.0
MAX_OUTPUT_BYTES = 1_000_000
MAX_CONFIG_BYTES = 200_000

_PYTHON = (".py", ".pyi")
_TYPESCRIPT = (".ts", ".tsx", ".mts", ".cts")
_JAVASCRIPT = (".js", ".jsx", ".mjs", ".cjs", *_TYPESCRIPT)
_PROGRAM_FOLDERS = ("node_modules/.bin", ".venv/bin", "venv/bin")


def _find_lines(pattern: str, text: str) -> Iterator[str]:
    for found in re.finditer(pattern, text, re.MULTILINE):
        yield found[0].strip()


def _read_eslint(text: str) -> Iterator[str]:
    """Read the JSON of eslint, which may print other lines before it."""
    start = text.find("[{")
    if start < 0:
        return
    with suppress(ValueError):
        for file in json.loads(text[start:]):
            path = file["filePath"]
            for message in file["messages"]:
                line = message.get("line", 1)
                column = message.get("column", 1)
                rule = message.get("ruleId")
                yield f"{path}:{line}:{column}: {message['message']} ({rule})"


@dataclass(frozen=True, slots=True)
class Checker:
    """A checker: how to see that a project uses it, its command, and how to read its output.

    A folder uses it if it holds one of the files in `marks` with the text behind it. In the command, `{file}` is the
    changed file, `{folder}` its folder, and `{tmp}` a private folder.
    """

    name: str
    suffixes: tuple[str, ...]
    marks: Mapping[str, str]
    command: tuple[str, ...]
    read_findings: Callable[[str], Iterator[str]]

    @property
    def is_for_one_file(self) -> bool:
        """True if it checks the changed file, and false if it checks its folder or the project."""
        return "{file}" in self.command


CHECKERS = (
    Checker(
        "mypy",
        _PYTHON,
        {"mypy.ini": "", ".mypy.ini": "", "pyproject.toml": "[tool.mypy", "setup.cfg": "[mypy"},
        ("mypy", "--no-pretty", "--no-color-output", "--no-error-summary", "--cache-dir={tmp}/mypy", "{file}"),
        partial(_find_lines, r"^.+:\d+: error: .+$"),
    ),
    Checker(
        "pyright",
        _PYTHON,
        {"pyrightconfig.json": "", "pyproject.toml": "[tool.pyright"},
        ("pyright", "{file}"),
        partial(_find_lines, r"^\s*.+:\d+:\d+ - error: .+$"),
    ),
    Checker(
        "eslint",
        _JAVASCRIPT,
        dict.fromkeys(
            [
                *(f"eslint.config.{suffix}" for suffix in ("js", "mjs", "cjs", "ts", "mts", "cts")),
                *(f".eslintrc{suffix}" for suffix in ("", ".json", ".js", ".cjs", ".yaml", ".yml")),
            ],
            "",
        ),
        ("eslint", "--format", "json", "{file}"),
        _read_eslint,
    ),
    Checker(
        "tsc",
        _TYPESCRIPT,
        {"tsconfig.json": ""},
        ("tsc", "--noEmit", "--pretty", "false", "-p", "."),
        partial(_find_lines, r"^.+\(\d+,\d+\): error .+$"),
    ),
    Checker(
        "go",
        (".go",),
        {"go.mod": ""},
        ("go", "vet", "{folder}"),
        partial(_find_lines, r"^.+\.go:\d+:\d+: .+$"),
    ),
    Checker(
        "cargo",
        (".rs",),
        {"Cargo.toml": ""},
        ("cargo", "check", "--quiet", "--message-format", "short"),
        partial(_find_lines, r"^.+\.rs:\d+:\d+: (error|warning).*$"),
    ),
)
"""The checkers. ruff is not one of them: it needs no set-up and is quick, so the linters run it."""


def split_checks(config: object) -> tuple[object, Collection[Checker]]:
    """Split `checks` in the profile into what the linters read, and the checkers: it may map their names to false."""
    if config is True:
        return True, CHECKERS
    if not isinstance(config, Mapping):
        return config, ()
    others = dict(config)
    chosen: list[Checker] = []
    for checker in CHECKERS:
        if others.get(checker.name) is False:
            del others[checker.name]
        else:
            chosen.append(checker)
    return others, chosen


class _Check:
    """A checker in a folder: the findings that are known, and those that the model has not read yet.

    Until the first run ends, nothing is known, and nothing is new.
    """

    def __init__(self) -> None:
        self.known: Findings | None = None
        self.news = ""
        self.is_slow = False
        self.task: asyncio.Task[None] | None = None

    def take(self, findings: Findings) -> None:
        """Take over the findings of a run."""
        if self.known is not None:
            self.news += findings.describe_new(self.known)
        self.known = findings

    def cancel(self) -> None:
        """Stop a run: the files have changed, or are about to."""
        if self.task:
            self.task.cancel()
            self.task = None


class Checkers:
    """The checkers of a session. One whose program is missing is not tried again."""

    def __init__(self, workspace: Workspace, checkers: Collection[Checker]) -> None:
        self._workspace = workspace
        self._checkers = checkers
        self._checks: dict[tuple[Path, tuple[str, ...]], _Check] = {}
        self._missing: set[str] = set()

    async def prepare(self, real: Path) -> None:
        """Find the findings before the first change of a file, within a time limit."""
        unknown = list(self._start(real, only_unknown=True))
        await _wait(unknown, BEFORE_S)
        for check in unknown:
            check.cancel()

    async def check(self, real: Path) -> str:
        """Check after a change. Return the new findings of the checkers that are quick."""
        checks = list(self._start(real))
        quick = [check for check in checks if not check.is_slow]
        await _wait(quick, AFTER_S)
        for check in quick:
            check.is_slow = check.task is not None and not check.task.done()
        return _take_news(checks)

    def take_news(self) -> str:
        """Return the new findings that the model has not read yet."""
        return _take_news(self._checks.values())

    async def finish(self) -> str:
        """Wait for slow checkers, within a time limit, and return what the model has not read yet."""
        await _wait(self._checks.values(), END_S)
        return self.take_news()

    async def close(self) -> None:
        """Stop all runs."""
        tasks = [check.task for check in self._checks.values() if check.task]
        for check in self._checks.values():
            check.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _start(self, real: Path, *, only_unknown: bool = False) -> Iterator[_Check]:
        """Start the checkers that are set up for a file."""
        if not real.is_relative_to(self._workspace.root):
            return
        for checker in self._checkers:
            if real.suffix.lower() not in checker.suffixes or checker.name in self._missing:
                continue
            folder = self._find_folder(checker, real)
            if folder is None:
                continue
            argv = self._build_command(checker, folder, real)
            check = self._checks.setdefault((folder, argv), _Check())
            if only_unknown and check.known is None and checker.is_for_one_file and not real.exists():
                check.known = Findings()  # all findings in a new file are new
            if only_unknown and check.known is not None:
                continue
            check.cancel()
            check.task = asyncio.create_task(self._run(checker, argv, folder, real, check))
            yield check

    def _find_folder(self, checker: Checker, real: Path) -> Path | None:
        """Find the nearest folder above a file that uses a checker."""
        for folder in real.parents:
            for name, text in checker.marks.items():
                with suppress(GooseLikeError, OSError):
                    if text.encode() in self._workspace.read_bytes(folder / name, MAX_CONFIG_BYTES):
                        return folder
            if folder == self._workspace.root:
                break
        return None

    def _build_command(self, checker: Checker, folder: Path, real: Path) -> tuple[str, ...]:
        program, *arguments = checker.command
        for place in _PROGRAM_FOLDERS:
            local = folder / place / program
            if local.exists():
                program = str(local)
                break
        # Both begin with a dot, so that no file name is read as an option.
        values = {
            "{file}": f"./{real.relative_to(folder)}",
            "{folder}": f"./{real.parent.relative_to(folder)}",
            "{tmp}": self._workspace.path_in_sandbox(self._workspace.tmp),
        }
        return (program, *(_fill(word, values) for word in arguments))

    async def _run(self, checker: Checker, argv: Sequence[str], folder: Path, real: Path, check: _Check) -> None:
        try:
            process = await self._workspace.spawn(argv, cwd=folder, writes=False)
        except GooseLikeError:
            self._missing.add(checker.name)
            return
        try:
            async with asyncio.timeout(LIMIT_S):
                code, text = await _read_output(process)
        except (TimeoutError, GooseLikeError):  # too slow, or the sandbox was killed
            return
        finally:
            await asyncio.shield(process.stop(0))
        found = list(checker.read_findings(text.replace(f"{self._workspace.root}/", "")))
        if code != 0 and not found:  # the checker itself failed, for example for a wrong setting
            return
        if checker.is_for_one_file:  # some add what is wrong in files that this one imports
            found = [line for line in found if real.name in line.partition(":")[0]]
        check.take(Findings(program=checker.name, lines=tuple(found)))


def _fill(word: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        word = word.replace(name, value)
    return word


def _take_news(checks: Collection[_Check]) -> str:
    news = "".join(check.news for check in checks)
    for check in checks:
        check.news = ""
    return news


async def _wait(checks: Collection[_Check], limit_s: float) -> None:
    tasks = [check.task for check in checks if check.task]
    if tasks:
        await asyncio.wait(tasks, timeout=limit_s)


async def _read_output(process: Process) -> tuple[int, str]:
    """Read all that a program prints, and its exit code.

    Raises:
        TimeoutError: the output is too long.
    """
    output = bytearray()
    if not await process.read_all(output.extend, MAX_OUTPUT_BYTES):
        raise TimeoutError
    return await process.wait(), output.decode(errors="replace")
