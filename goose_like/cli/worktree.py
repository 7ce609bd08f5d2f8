"""Git worktrees of sessions: create one on a new branch, and keep or remove it at the end.

They lie in `.goose-like/worktrees/` of the main working tree, where the sandbox can write and git looks away. Our own
git comes from outside the repository and starts no hooks.
"""

import fcntl
import os
import re
import shlex
import subprocess
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from goose_like.config.paths import WORKTREES_FOLDER, find_repository_root, find_worktree
from goose_like.core.errors import GooseLikeError, SessionError, UsageError
from goose_like.sessions.session import Session
from goose_like.workspace.files import write_file
from goose_like.workspace.programs import build_safe_path, find_program

_NAME = re.compile(r"(?!.*(\.\.|\.lock$))\w([\w.-]{0,62}[\w-])?", re.ASCII)  # the end of a valid branch
_OPTIONS = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false")


def create_worktree(name: str, here: Path) -> tuple[Path, list[str]]:
    """Create a worktree of the repository around a folder, on the new branch `worktree-NAME` from HEAD.

    Return the folder in it that stands for `here`, and notes for the person.

    Raises:
        UsageError: there is no repository or commit, or the name is invalid or taken.
        GooseLikeError: git or the file system refused it.
    """
    if not (find_repository_root(here) / ".git").exists():
        raise UsageError("a worktree needs a git repository, and this folder is in none; make one with: git init")
    branch = _get_branch(name)
    if not _NAME.fullmatch(name):
        raise UsageError(f"{name!r} is no name for a worktree; use up to 64 letters, digits, '-', '_' and '.'")
    top = Path(_run_git(here, "rev-parse", "--show-toplevel"))
    if not _has_commit(top, "HEAD"):
        raise UsageError("this repository has no commit that a worktree could start from; make one with: git commit")
    common = Path(os.path.realpath(top / _run_git(top, "rev-parse", "--git-common-dir")))
    folder = (common.parent if common.name == ".git" else top) / WORKTREES_FOLDER
    if os.path.lexists(folder / name):
        raise UsageError(
            f"there is a worktree {name!r} already; go on there: cd {shlex.quote(str(folder / name))} && goose-like -c"
        )
    if _has_commit(top, f"refs/heads/{branch}"):
        raise UsageError(f"there is a branch {branch!r} already; choose another name, or: git branch -d {branch}")
    try:
        write_file(folder / ".gitignore", b"*\n")  # follows no link
    except OSError as error:
        raise GooseLikeError(f"{folder} can't be written: {error.strerror}") from error
    _run_git(top, "worktree", "add", "-q", "-b", branch, str(folder / name), "HEAD")
    notes = [f"worktree {folder / name} on the new branch {branch}"]
    if _run_git(top, "status", "--porcelain"):
        notes.append(f"uncommitted changes stay in {top}")
    inside = folder / name / _run_git(here, "rev-parse", "--show-prefix")
    return (inside if inside.is_dir() else folder / name), notes


def find_session_folder(session: Session, here: Path) -> Path:
    """Return the folder in which a session continues: its worktree, else `here`.

    Raises:
        SessionError: the worktree is gone.
    """
    header = session.history.header
    top = find_worktree(Path(header.cwd)) if header else None
    if header is None or top is None:
        return here
    if not (top / ".git").is_file():
        again = f"git -C {shlex.quote(str(top.parents[2]))} worktree add {WORKTREES_FOLDER}/{top.name}"
        raise SessionError(f"the worktree of session {session.name!r} was removed; to go on, make it again: {again}")
    return folder if (folder := Path(header.cwd)).is_dir() else top


@contextmanager
def hold_worktree(folder: Path) -> Iterator[None]:
    """Keep other sessions from removing the worktree around a folder, if there is one, until the end of the block."""
    top = find_worktree(folder)
    descriptor = os.open(top or folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if top:
            fcntl.flock(descriptor, fcntl.LOCK_SH)
        yield
    finally:
        os.close(descriptor)


def _is_in_use(top: Path) -> bool:
    descriptor = os.open(top, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


async def leave_worktrees(
    folders: Iterable[Path], show: Callable[[str], object], ask: Callable[[str], Awaitable[str]] | None
) -> None:
    """Remove the worktrees of these folders in which nothing would be lost; ask about others, or keep them.

    Those in which another session works stay.
    """
    for top in dict.fromkeys(filter(None, map(find_worktree, folders))):
        if not top.is_dir() or _is_in_use(top):
            continue
        try:
            if work := _describe_work(top):
                show(f"worktree {top.name} has {work}")
            answer = await ask("  [K]eep it  [r]emove it with its branch: ") if work and ask else ""
            if work and answer.strip().lower() not in ("r", "remove"):
                removal = f"git worktree remove --force {WORKTREES_FOLDER}/{top.name}"
                show(f"kept {top}; to remove it, in {top.parents[2]}: {removal}; git branch -D {_get_branch(top.name)}")
                continue
            _remove_worktree(top, is_forced=bool(work))
            show(f"removed worktree {top.name}" + ("" if work else ", which had no changes"))
        except GooseLikeError as error:
            show(f"kept {top}: {error}")


def _describe_work(top: Path) -> str:
    """Describe what would be lost: changes, commits that no ordinary branch has, and files of delegates."""
    branch = _get_branch(top.name)
    heads = ["HEAD", *([f"refs/heads/{branch}"] if _has_commit(top, f"refs/heads/{branch}") else [])]
    others = ("--not", f"--exclude={_get_branch('*')}", "--branches", "--remotes", "--tags")
    commits = int(_run_git(top, "rev-list", "--count", *heads, *others))
    files = len(_run_git(top, "status", "--porcelain").splitlines())
    copies = sum(path.is_dir() for path in (top / WORKTREES_FOLDER).glob("*"))
    counts = ((commits, "commit"), (files, "changed file"), (copies, "unmerged delegate"))
    return " and ".join(f"{count} {noun}{'s' * (count > 1)}" for count, noun in counts if count)


def _remove_worktree(top: Path, *, is_forced: bool) -> None:
    main, branch = top.parents[2], _get_branch(top.name)
    os.chdir(main)  # the current folder must not vanish
    _run_git(main, "worktree", "remove", *(["--force"] if is_forced else []), str(top))
    if _has_commit(main, f"refs/heads/{branch}"):
        _run_git(main, "branch", "-q", "-D", branch)


def _get_branch(name: str) -> str:
    return f"worktree-{name}"


def _has_commit(folder: Path, name: str) -> bool:
    try:
        return bool(_run_git(folder, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}"))
    except GooseLikeError:
        return False


def _run_git(folder: Path, *words: str) -> str:
    """Run git with the person's rights and return its output. Raise GooseLikeError with the reason if it fails."""
    if (program := find_program("git", folder)) is None:
        raise UsageError("there is no git on the PATH outside the workspace; install it")
    process = subprocess.run(
        [program, *_OPTIONS, "-C", str(folder), *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env={**os.environ, "PATH": build_safe_path(folder)},  # for filters such as git-lfs
        check=False,
    )
    if process.returncode:
        reason = os.fsdecode(process.stderr).strip().splitlines()[-1:] or [f"exit code {process.returncode}"]
        raise GooseLikeError(f"git {words[0]}: {reason[0]}")
    return os.fsdecode(process.stdout).rstrip("\n")
