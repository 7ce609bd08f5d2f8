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

from goose_like.config.paths import WORKTREES_FOLDER, find_main_folder, find_repository_root, find_worktree
from goose_like.core.errors import GooseLikeError, SessionError, UsageError
from goose_like.core.spelling import format_count
from goose_like.sessions.session import Session
from goose_like.workspace.files import write_file
from goose_like.workspace.programs import GIT_OPTIONS, build_git_environment, find_program
from goose_like.workspace.repositories.git_references import find_git_programs

_NAME = re.compile(r"(?!.*(\.\.|\.lock$))\w([\w.-]{0,62}[\w-])?", re.ASCII)  # the end of a valid branch
Show = Callable[[str], object]
Ask = Callable[[str], Awaitable[str]]


def create_worktree(name: str, here: Path) -> tuple[Path, list[str]]:
    """Create a worktree of the repository around a folder, on the new branch `worktree-NAME` from HEAD.

    Return the folder in it that stands for `here`, and notes for the person.

    Raises:
        UsageError: there is no repository or commit, or the name is invalid or taken.
        GooseLikeError: git or the file system refused it.
    """
    if not (find_repository_root(here) / ".git").exists():
        raise UsageError("a worktree needs a git repository, and this folder is in none; make one with: git init")
    branch = get_branch(name)
    if not _NAME.fullmatch(name):
        raise UsageError(f"{name!r} is no name for a worktree; use up to 64 letters, digits, '-', '_' and '.'")
    top = Path(run_git(here, "rev-parse", "--show-toplevel"))
    if not _has_commit(top, "HEAD"):
        raise UsageError("this repository has no commit that a worktree could start from; make one with: git commit")
    common = Path(os.path.realpath(top / run_git(top, "rev-parse", "--git-common-dir")))
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
    run_git(top, "worktree", "add", "-q", "-b", branch, str(folder / name), "HEAD")
    notes = [f"worktree {folder / name} on the new branch {branch}"]
    if run_git(top, "status", "--porcelain"):
        notes.append(f"uncommitted changes stay in {top}")
    inside = folder / name / run_git(here, "rev-parse", "--show-prefix")
    return (inside if inside.is_dir() else folder / name), notes


def find_session_folder(session: Session, here: Path) -> Path:
    """Return the folder in which a session continues: its worktree, else `here`.

    Raises:
        SessionError: the worktree is gone.
    """
    header = session.history.header
    if header is None:
        return here
    folder = Path(header.cwd)
    top = find_worktree(folder)
    if top is None:
        return here
    if not (top / ".git").is_file():
        main = shlex.quote(str(top.parents[2]))
        again = f"git -C {main} worktree add {WORKTREES_FOLDER}/{top.name}"
        raise SessionError(f"the worktree of session {session.name!r} was removed; to go on, make it again: {again}")
    return folder if folder.is_dir() else top


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


async def leave_worktrees(folders: Iterable[Path], show: Show, ask: Ask | None) -> None:
    """Remove the worktrees of these folders in which nothing would be lost; ask about others, or keep them.

    Those in which another session works stay.
    """
    tops = [find_worktree(folder) for folder in folders]
    for top in dict.fromkeys(tops):
        if top is None or not top.is_dir() or _is_in_use(top):
            continue
        try:
            await _leave_worktree(top, show, ask)
        except GooseLikeError as error:
            show(f"kept {top}: {error}")


async def _leave_worktree(top: Path, show: Show, ask: Ask | None) -> None:
    work = _describe_work(top)
    if not work:
        _remove_worktree(top, is_forced=False)
        show(f"removed worktree {top.name}, which had no changes")
        return
    show(f"worktree {top.name} has {work}")
    answer = ""
    if ask:
        answer = await ask("  [K]eep it  [r]emove it with its branch: ")
    if answer.strip().lower() in ("r", "remove"):
        _remove_worktree(top, is_forced=True)
        show(f"removed worktree {top.name}")
        return
    removal = f"git worktree remove --force {WORKTREES_FOLDER}/{top.name}"
    branch = get_branch(top.name)
    show(f"kept {top}; to remove it, in {top.parents[2]}: {removal}; git branch -D {branch}")


def _describe_work(top: Path) -> str:
    """Describe what would be lost: changes, commits that no ordinary branch has, and files of delegates."""
    branch = get_branch(top.name)
    heads = ["HEAD"]
    reference = f"refs/heads/{branch}"
    if _has_commit(top, reference):
        heads.append(reference)
    others = ("--not", f"--exclude={get_branch('*')}", "--branches", "--remotes", "--tags")
    commits = int(run_git(top, "rev-list", "--count", *heads, *others))
    files = len(run_git(top, "status", "--porcelain").splitlines())
    delegates = [path for path in (top / WORKTREES_FOLDER).glob("*") if path.is_dir()]
    counts = {"commit": commits, "changed file": files, "unmerged delegate": len(delegates)}
    parts = [format_count(count, noun) for noun, count in counts.items() if count]
    return " and ".join(parts)


def _remove_worktree(top: Path, *, is_forced: bool) -> None:
    main = top.parents[2]
    branch = get_branch(top.name)
    options = ["--force"] if is_forced else []
    run_git(main, "worktree", "remove", *options, str(top))
    if _has_commit(main, f"refs/heads/{branch}"):
        run_git(main, "branch", "-q", "-D", branch)


def get_branch(name: str) -> str:
    """Return the branch of a worktree."""
    return f"worktree-{name}"


def _has_commit(folder: Path, name: str) -> bool:
    try:
        return bool(run_git(folder, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}"))
    except GooseLikeError:
        return False


def _disable_own_filters(program: str, folder: Path) -> list[str]:
    """Return options that turn off the filters which run a program of the repository: here no sandbox confines them."""
    listed = subprocess.run(
        [program, "-C", str(folder), "config", "--null", "--get-regexp", r"^filter\."],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    main = find_main_folder(folder)
    tops = {Path(os.path.realpath(top)) for top in (main, find_repository_root(folder))}
    options: list[str] = []
    for entry in os.fsdecode(listed.stdout).split("\0"):
        key, _, value = entry.partition("\n")
        name = key.rpartition(".")[0]
        setting = f"[x]\ny = {value.replace(chr(10), ';')}\n"
        if value and find_git_programs(setting, tops, tops):
            if "=" in name:  # git takes what follows for the value
                raise UsageError(f"the git setting {name!r} runs a script of this repository; give it a name without =")
            for part in ("clean=", "smudge=", "process=", "required=false"):
                options += ["-c", f"{name}.{part}"]
    return options


def run_git(folder: Path, *words: str) -> str:
    """Run git with the person's rights and return its output. Raise GooseLikeError with the reason if it fails."""
    program = find_program("git", folder)
    if program is None:
        raise UsageError("there is no git on the PATH outside the workspace; install it")
    process = subprocess.run(
        [program, *GIT_OPTIONS, *_disable_own_filters(program, folder), "-C", str(folder), *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=build_git_environment(folder),
        check=False,
    )
    if process.returncode:
        errors = os.fsdecode(process.stderr).strip()
        reason = errors.splitlines()[-1] if errors else f"exit code {process.returncode}"
        raise GooseLikeError(f"git {words[0]}: {reason}")
    return os.fsdecode(process.stdout).rstrip("\n")
