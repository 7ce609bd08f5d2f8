"""Claims in an answer that a check succeeded, and the commands that such a claim can rest on."""

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from goose_like.config.paths import expand_home
from goose_like.core.dataclass import dataclass
from goose_like.core.events import CommandFinished
from goose_like.core.pattern import compile_later
from goose_like.workspace.evidence.tree_hash import get_files_hash

CheckKind = Literal["tests", "lint", "types", "build"]
Outcome = Literal["passed", "failed", "unknown"]

_PASSES = "(pass|passes|passed|passing|succeed|succeeds|succeeded|clean|green|no errors)"
_SIGNS = ("pass", "succe", "clean", "green", "errors")
"""Parts of words. An answer with a claim has one of them."""

_CLAIMS: dict[CheckKind, re.Pattern[str]] = {
    "tests": compile_later(
        rf"\b(tests?|test suite|test run|specs|pytest)\b[^,:]{{0,40}}?\b{_PASSES}\b"
        rf"|\b\d+ passed\b|\b{_PASSES} (all|every|the) [^,:]{{0,30}}\b(tests?|specs)\b"
    ),
    "lint": compile_later(rf"\b(lint|linter|linting|ruff|eslint|flake8|clippy)\b[^,:]{{0,30}}?\b{_PASSES}\b"),
    "types": compile_later(rf"\b(mypy|pyright|tsc|type[- ]?check(s|ing|er)?)\b[^,:]{{0,30}}?\b{_PASSES}\b"),
    "build": compile_later(
        rf"\b(build|compilation)\b[^,:]{{0,20}}?\b{_PASSES}\b"
        r"|\b(builds|compiles) (cleanly|successfully|without errors)\b"
    ),
}
_DOUBT = compile_later(
    r"n['\u2019]t\b|\?|\b("
    "not|no tests|never|cannot|unable|should|would|could|may|might|will|can|must|need|needs|want|expect|likely|probably"
    "|presumably|if|once|until|when|whenever|unless|whether|before|previously|earlier|so that|such that|that passes"
    "|to make|to get|to let|make sure|ensure|ensures|verify that|check that|confirm that|let me|please"
    r"|fail|fails|failed|failing|failures?|except|only|which|requires?|assert|asserts)\b"
)
"""Words with which a sentence claims less, or something else."""

_TESTS = compile_later(
    r"pytest|py\.test|unittest|nose2|tox|nox|jest|vitest|mocha|ava|phpunit|rspec|ctest|bats|ginkgo|gotestsum"
)
_LINT = compile_later("ruff|eslint|flake8|pylint|golangci-lint|shellcheck|rubocop|biome")
_TYPES = compile_later("mypy|pyright|basedpyright|tsc|pyre|ty")
_COMPILERS = compile_later(r"gcc|g\+\+|clang|clang\+\+|javac|rustc|cmake")
_BUILDERS = compile_later("make|npm|yarn|pnpm|bun|cargo|go|mvn|gradlew?|dotnet|just|rake|mix|deno|swift|zig")
_WRAPPERS = compile_later("uv|poetry|pipenv|hatch|pdm|rye|npx|bunx|run|exec|time|nice|env|command|sudo")
_NO_RUN = compile_later("--version|-V|--help|-h|--collect-only|--co|--list|--list-tests|--dry-run|--setup-plan")
_PROJECT_FILES = ("pyproject.toml", "package.json", "Cargo.toml", "go.mod", "pom.xml", "setup.py")
_SIGPIPE = 141


def find_claims(text: str) -> list[CheckKind]:
    """Find the kinds of checks that an answer says have succeeded. A sentence with a doubt claims nothing."""
    lowered = text.lower()
    if not any(sign in lowered for sign in _SIGNS):
        return []
    text = re.sub(r"```.*?(```|$)", "\n", lowered, flags=re.DOTALL)
    text = re.sub(r"^\s*>.*$", "", text, flags=re.MULTILINE).replace("`", "").replace("*", "")
    kinds: dict[CheckKind, None] = {}
    for sentence in re.split(r"(?<=[.!?;])\s+|\n+", text):
        claimed = [kind for kind, pattern in _CLAIMS.items() if pattern.search(sentence)]
        if claimed and not _DOUBT.search(sentence):
            kinds |= dict.fromkeys(claimed)
    return list(kinds)


class _Part(NamedTuple):
    """A simple command of a line, with its folder, and the operator behind it."""

    words: list[str]
    folder: Path
    operator: str


@dataclass(frozen=True, slots=True)
class Check:
    """A check that a command of the ledger ran: its kinds, its folder and how it ended.

    `is_last`: the rest of the line has changed nothing after it.
    """

    kinds: frozenset[CheckKind]
    folder: Path
    outcome: Outcome
    is_last: bool


def find_check(entry: CommandFinished) -> Check | None:
    """Find the check in a command. The outcome is unknown if the rest of the line hides it."""
    if entry.ran_no_test:
        return None
    if entry.is_verification:
        return Check(frozenset(_CLAIMS), Path(entry.folder), _judge_line(entry.exit_code), is_last=True)
    parts = list(_split(entry.command, Path(entry.folder)))
    for place, part in enumerate(parts):
        kinds = _find_kinds(part.words)
        if kinds:
            return Check(kinds, _find_folder(part), _judge(entry, parts, place), _is_last(entry, parts, place))
    return None


def _is_last(entry: CommandFinished, parts: Sequence[_Part], place: int) -> bool:
    """Return whether the rest of the line surely changed nothing: as in `pytest | tail`, or if no file changed."""
    if get_files_hash(entry.before) == get_files_hash(entry.after):
        return True
    return all(part.operator == "|" for part in parts[place:-1])


def _judge_line(exit_code: int | None) -> Outcome:
    """Judge a line that is a check as a whole."""
    if exit_code is None:
        return "unknown"
    return "passed" if exit_code == 0 else "failed"


def _judge(entry: CommandFinished, parts: Sequence[_Part], place: int) -> Outcome:
    if entry.exit_code is None:
        return "unknown"
    operators = [part.operator for part in parts[place:-1]]
    if not set(operators) <= {"&&", "|"}:
        return "unknown"  # `pytest; true`
    is_in_last_pipe = "&&" not in operators
    if "|" in operators and not is_in_last_pipe:
        return "unknown"  # `pytest | tail && echo done`
    has_failed_part = any(code not in (0, _SIGPIPE) for code in entry.pipe_codes)
    if entry.exit_code == 0 and not has_failed_part:
        return "passed"
    if "|" in operators:
        # The codes stand for the last parts. Only that of the check counts: `grep` fails without a match.
        codes = entry.pipe_codes[place - len(parts) :]
        if len(codes) != len(parts) - place:
            return "unknown"
        return "passed" if codes[0] in (0, _SIGPIPE) else "failed"
    # Another command of the chain may have failed.
    first_words = {part.words[0] for part in parts[:place]}
    is_alone = first_words <= {"cd", "export", "source", "."} and place == len(parts) - 1
    return "failed" if is_alone else "unknown"


def _split(line: str, folder: Path) -> Iterator[_Part]:
    """Split a line into simple commands, each in the folder to which `cd` has gone."""
    lexer = shlex.shlex(line.replace("\\\n", " ").replace("\n", " ; "), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    words: list[str] = []
    try:
        for token in [*lexer, ";"]:
            if not set(token) <= set("();<>|&"):
                words.append(token)
                continue
            if token in (">&", "<", ">", ">>", "&>", "<<", "<<<", ">|"):
                words.append(token)
                continue
            if words:
                yield _Part(words, folder, token)
            if words[:1] == ["cd"] and len(words) > 1:
                folder = folder / words[1]
            words = []
    except ValueError:  # an unclosed quote
        return


def _find_kinds(words: list[str]) -> frozenset[CheckKind]:
    """Find what a simple command checks."""
    words = _strip_wrappers(words)
    if not words or any(map(_NO_RUN.fullmatch, words)):
        return frozenset()
    program = words[0].rpartition("/")[2]
    rest = [word for word in words[1:] if not word.startswith("-")]
    first = rest[0] if rest else ""
    if _BUILDERS.fullmatch(program):
        return _find_target_kinds(program, rest)
    kinds: set[CheckKind] = set()
    if _TESTS.fullmatch(program) or (program == "manage.py" and first == "test"):
        kinds.add("tests")
    if _LINT.fullmatch(program) and first != "format":
        kinds.add("lint")
    if _TYPES.fullmatch(program):
        kinds |= {"types", "build"} if program == "tsc" else {"types"}
    is_script = "/" in words[0] or program.endswith((".py", ".sh", ".js", ".rb"))
    if is_script and re.search(r"tests?\b|test_|specs?\b|check", program):
        kinds.add("tests")
    if _COMPILERS.fullmatch(program):
        kinds.add("build")
    return frozenset(kinds)


def _find_target_kinds(program: str, rest: Sequence[str]) -> frozenset[CheckKind]:
    """Find what a task of a build tool checks, by its name: `npm run test:unit`, `make check`, `cargo build`."""
    kinds: set[CheckKind] = set()
    for target in rest:
        if re.search(r"test|check|verify|spec|^t$|^ci$", target):
            kinds.add("tests")
        if re.search(r"lint|clippy|check|vet|^ci$", target):
            kinds.add("lint")
        if re.search(r"type|check|vet|tsc|^ci$", target):
            kinds.add("types")
        if re.search(r"build|compile|check|package|install|test|^ci$", target):
            kinds.add("build")
    if program == "make" and not rest:
        kinds.add("build")
    return frozenset(kinds)


def _strip_wrappers(words: list[str]) -> list[str]:
    """Remove what stands before the program: variables, `uv run`, `python -m`, `timeout 60`."""
    while words:
        program = words[0].rpartition("/")[2]
        if re.match(r"\w+=", words[0]) or _WRAPPERS.fullmatch(program):
            words = words[1:]
        elif program == "timeout":
            words = [word for word in words[1:] if not word.startswith("-")][1:]
        elif re.fullmatch(r"python[\d.]*|pypy3?|node|bash|sh|ruby|php|xvfb-run|coverage", program):
            words = [word for word in words[1:] if word not in ("-m", "run", "-B", "-u", "-x", "-e")]
        elif words[0].startswith("-"):
            words = words[1:]
        else:
            break
    return words


def _find_folder(part: _Part) -> Path:
    """Find the folder of a check: where it runs, or where its options or paths lead."""
    words = part.words
    for option in ("-C", "--prefix", "--rootdir", "--manifest-path"):
        if option in words[:-1]:
            return part.folder / words[words.index(option) + 1]
    for word in words[1:]:
        if word.startswith(("/", "../", "~")) and not word.startswith("/dev/"):
            return part.folder / expand_home(word)
    return part.folder


def is_about_other_files(check: Check, roots: Sequence[Path], changed: Iterable[Path]) -> bool:
    """Return whether a check is one of another folder: outside the workspace, or of a project without the changes.

    `roots` are the folders of the workspace.
    """
    folder = Path(re.sub(r"/\./", "/", str(check.folder)))
    parts: list[str] = []
    for name in folder.parts:
        if name == "..":
            parts = parts[:-1]
        else:
            parts.append(name)
    folder = Path(*parts)
    root = next((root for root in roots if folder.is_relative_to(root)), None)
    if root is None:
        return True
    while folder != root and not any((folder / name).exists() for name in _PROJECT_FILES):
        folder = folder.parent
    changed = list(changed)
    return folder != root and bool(changed) and not any(path.is_relative_to(folder) for path in changed)


def find_doubt(
    kind: CheckKind, entries: Sequence[CommandFinished], tree: str, roots: Sequence[Path], changed: Sequence[Path]
) -> str:
    """Return why the ledger does not support a claim about the tree as it is now; empty if it does."""
    doubt = ""
    for entry in reversed(entries):
        if entry.ran_no_test and kind == "tests":
            doubt = doubt or f"`{entry.command}` ran no test"
        check = find_check(entry)
        if check is None or kind not in check.kinds:
            continue
        if is_about_other_files(check, roots, changed):
            doubt = doubt or "the check ran in another folder"
            continue
        if tree and entry.after and get_files_hash(entry.after) != get_files_hash(tree):
            doubt = doubt or "the check ran before the last change"
            continue
        if check.outcome == "failed":
            return f"`{entry.command}` failed with exit code {entry.exit_code or max(entry.pipe_codes)}"
        return ""
    return doubt or "no such check ran"
