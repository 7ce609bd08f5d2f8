"""Facts about a git repository: what is staged, changed and untracked, and the last commits.

Git runs outside the sandbox here, which would take longer to start. So only commands run that execute nothing: no
filters, hooks or signature programs. Changed files are found without git, since git would run filters for them.
"""

import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from shutil import which

from goose_like.config.paths import find_repository_root
from goose_like.core.pattern import compile_later
from goose_like.toolkit import Workspace
from goose_like.workspace.programs import GIT_OPTIONS, build_safe_path
from goose_like.workspace.undo.repository import find_git_folder

from .git_index import list_changed_files
from .seen_files import show_name

_TIMEOUT_S = 2.0
_MAX_NAMES = 10
_MAX_COMMITS = 3
_MAX_SUBJECT_CHARS = 72
_EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
_CACHES = compile_later(r"(.*/)?(__pycache__|\.\w+_cache|\.coverage|node_modules|\.?venv|\.goose-like)(/.*)?")
# A partial clone would fetch missing objects with programs that its settings name.
_VARIABLES = {"LC_ALL": "C", "GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "none"}
_STAGED = ("diff-index", "--cached", "--name-status", "--no-renames", "--relative", "--ignore-submodules", "-z")
_UNTRACKED = ("ls-files", "--others", "--exclude-standard", "--directory", "--no-empty-directory", "-z")
_LOG = ("log", f"-{_MAX_COMMITS}", "--format=%s", "--no-show-signature", "--no-color")


def collect_git_facts(workspace: Workspace) -> dict[str, str]:
    """Collect the facts by subject. They are missing outside a repository, and where git fails or is slow."""
    folder = find_git_folder(workspace.root)
    git = which("git", path=build_safe_path(*workspace.folders))
    if folder is None or git is None:
        return {}
    # Explicit folders, since the repository's own settings may name any others.
    tree = find_repository_root(workspace.root)
    line = [git, "--no-optional-locks", *GIT_OPTIONS, f"--git-dir={folder}", f"--work-tree={tree}"]
    with suppress(OSError, subprocess.SubprocessError):
        return dict(_iterate_facts(workspace, line))
    return {}


def is_cache(path: str) -> bool:
    """Check for a path that programs make again, or a file of ours, which tells the model nothing."""
    return bool(_CACHES.fullmatch(path.rstrip("/")))


def join_names(names: Sequence[str], limit: int) -> str:
    """Join the first names as file tools take them, and say how many others there are."""
    readable = map(show_name, names[:limit])
    shown = [name if name.isprintable() else ascii(name) for name in readable]
    if len(names) > limit:
        shown.append(f"and {len(names) - limit} more")
    return ", ".join(shown)


def _iterate_facts(workspace: Workspace, git: Sequence[str]) -> Iterator[tuple[str, str]]:
    subjects = _run(workspace.root, [*git, *_LOG], can_fail=True).splitlines()
    base = "HEAD" if subjects else _EMPTY_TREE
    words = _run(workspace.root, [*git, *_STAGED, base]).split("\0")
    staged: list[str] = []
    conflicts: list[str] = []
    for status, path in zip(words[::2], words[1::2], strict=False):
        if status == "U":
            conflicts.append(path)
        else:
            staged.append(path)
    changed = list_changed_files(workspace)
    if changed is None:
        return
    groups = {
        "in conflict": conflicts,
        "staged": staged,
        "changed": [path for path in changed if path not in conflicts],
        "untracked": _run(workspace.root, [*git, *_UNTRACKED]).split("\0"),
    }
    yield "git", _describe_changes(workspace, groups)
    if subjects:
        yield "last commits", "; ".join(map(_clip_subject, subjects))


def _describe_changes(workspace: Workspace, groups: Mapping[str, Sequence[str]]) -> str:
    """Describe changed files: how many each group has, and their names."""
    counts: list[str] = []
    names: dict[str, None] = {}
    for group, paths in groups.items():
        selected = [path for path in paths if _is_shown(workspace, path)]
        if selected:
            counts.append(f"{len(selected)} {group}")
            names.update(dict.fromkeys(selected))
    if not counts:
        return "nothing changed"
    text = ", ".join(counts)
    shown = join_names(list(names), _MAX_NAMES)
    return f"{text} ({shown})"


def _is_shown(workspace: Workspace, path: str) -> bool:
    return path != "" and not is_cache(path) and not workspace.is_ignored(path)


def _clip_subject(subject: str) -> str:
    shown = subject if subject.isprintable() else ascii(subject)
    if len(shown) <= _MAX_SUBJECT_CHARS:
        return shown
    return f"{shown[:_MAX_SUBJECT_CHARS]}..."


def _run(folder: Path, words: Sequence[str], *, can_fail: bool = False) -> str:
    environment = {**_VARIABLES, "PATH": build_safe_path(folder)}
    # Nothing else of our environment: GIT_DIR and the like would lead elsewhere.
    for name in ("HOME", "XDG_CONFIG_HOME"):
        if name in os.environ:
            environment[name] = os.environ[name]
    process = subprocess.run(
        words,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=_TIMEOUT_S,
        check=not can_fail,
    )
    return os.fsdecode(process.stdout)
