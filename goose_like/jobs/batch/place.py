"""The folder in which one worker of a batch works: a worktree, a clone, or a copy with a repository of its own.

Git commands that run after the model's changes run in the sandbox.
"""

import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from goose_like.config.paths import WORKTREES_FOLDER, find_main_folder, find_repository_root
from goose_like.core.dataclass import dataclass
from goose_like.core.errors import GooseLikeError
from goose_like.core.threads import run_in_thread
from goose_like.launch.worktree import create_worktree, get_branch, run_git
from goose_like.workspace.programs import GIT_OPTIONS
from goose_like.workspace.workspace import Workspace

from .job import Job, Scripts
from .scripts import run_setup

_AUTHOR = ("-c", "user.name=goose-like", "-c", "user.email=goose-like@localhost", "-c", "commit.gpgsign=false")
_MAX_PATCH_BYTES = 100_000_000


@dataclass(slots=True)
class Place:
    """A folder in a git repository, its top folder, the commit at the start, and the branch of a worktree.

    A place that `is_kept` is not removed at the end: its changes could not be stored elsewhere.
    """

    folder: Path
    top: Path
    start: str
    branch: str = ""
    is_kept: bool = False

    async def make_patch(self, workspace: Workspace) -> bytes:
        """Return all changes as a patch, with commits and new files, but without files that git ignores.

        Raises:
            GooseLikeError: git failed, or the patch is too large.
        """
        await self._run(workspace, "add", "--all")
        return await self._run(workspace, "diff", "--cached", "--binary", self.start)

    async def commit(self, workspace: Workspace, message: str) -> bool:
        """Commit the changes on the branch. Return whether the branch has commits of its own.

        Raises:
            GooseLikeError: git failed.
        """
        await self._run(workspace, "add", "--all")
        if await self._run(workspace, "diff", "--cached", "--name-only"):
            await self._run(workspace, "commit", "--quiet", "--no-verify", "-m", message)
        # The model may have left another branch or none.
        await self._run(workspace, "update-ref", f"refs/heads/{self.branch}", "HEAD")
        commits = await self._run(workspace, "rev-list", "--max-count=1", f"{self.start}..HEAD")
        return bool(commits)

    async def _run(self, workspace: Workspace, *words: str) -> bytes:
        command = ["git", *GIT_OPTIONS, *_AUTHOR, "-C", str(self.top), *words]
        code, output = await workspace.run_internal(command, _MAX_PATCH_BYTES)
        if code:
            reason = output.decode(errors="replace").strip().splitlines()[-1:]
            raise GooseLikeError(f"the changes could not be kept: git {words[0]}: {''.join(reason)}")
        if len(output) > _MAX_PATCH_BYTES:
            raise GooseLikeError(f"the changes could not be kept: they have more than {_MAX_PATCH_BYTES:,} bytes")
        return output


@asynccontextmanager
async def open_place(job: Job) -> AsyncIterator[Place]:
    """Make the folder of a job, and remove it at the end. The branch of a worktree stays if it has commits.

    Raises:
        GooseLikeError: the source does not exist, or git refused it.
    """
    scripts = job.input.scripts
    try:
        if scripts and scripts.setup:
            place = await _prepare_copy(job, scripts)
        else:
            place = await run_in_thread(_make_place, job)
    except BaseException:  # also if the driver stops
        shutil.rmtree(_get_folder(job), ignore_errors=True)
        raise
    try:
        yield place
    finally:
        if not place.is_kept:
            _remove_place(Path(job.input.source), place)


async def _prepare_copy(job: Job, scripts: Scripts) -> Place:
    """Copy the files of a job, and run its setup there. What the setup leaves is the start, also as a repository."""
    folder = await run_in_thread(_make_copy, job)
    await run_setup(scripts, folder, job.options)
    return await run_in_thread(_start_repository, folder)


def _make_place(job: Job) -> Place:
    source = job.input.source
    if job.input.place == "worktree":
        _remove_left_worktrees(job, Path(source))
        return _add_worktree(job, Path(source))
    if job.input.place == "copy":
        return _start_repository(_make_copy(job))
    folder = _clear_folder(job)
    # A clone of a folder would share files with it, which the sandbox lets commands write.
    run_git(folder.parent, "clone", "--quiet", "--no-local", "--", source, str(folder))
    return Place(folder, folder, run_git(folder, "rev-parse", "HEAD"))


def _get_folder(job: Job) -> Path:
    return Path(job.folder) / "places" / f"{job.number:04d}"


def _clear_folder(job: Job) -> Path:
    """Return the path of the folder of a job, which does not exist yet."""
    folder = _get_folder(job)
    shutil.rmtree(folder, ignore_errors=True)  # a killed worker left it
    folder.parent.mkdir(parents=True, exist_ok=True)
    return folder


def _remove_place(source: Path, place: Place) -> None:
    """Remove the folder of a job. What cannot be removed goes into the log: the result of the job matters more."""
    if not place.branch:
        shutil.rmtree(place.top, ignore_errors=True)
        return
    try:
        _remove_worktree(source, place)
    except GooseLikeError as error:
        print(f"{place.top} stays: {error}", file=sys.stderr)


def _add_worktree(job: Job, source: Path) -> Place:
    folder, _ = create_worktree(job.name, source)
    top = Path(run_git(folder, "rev-parse", "--show-toplevel"))
    return Place(folder, top, run_git(top, "rev-parse", "HEAD"), get_branch(job.name))


def _remove_left_worktrees(job: Job, source: Path) -> None:
    """Remove what killed workers left of earlier attempts. Their work is done again."""
    for attempt in range(1, job.attempt):
        name = job.model_copy(update={"attempt": attempt}).name
        top = find_main_folder(find_repository_root(source)) / WORKTREES_FOLDER / name
        if top.exists():
            run_git(source, "worktree", "remove", "--force", str(top))
            run_git(source, "branch", "--quiet", "-D", get_branch(name))


def _make_copy(job: Job) -> Path:
    """Copy the folder of a job without its repository and without the folder of the batch."""
    source = job.input.source
    folder = _clear_folder(job)
    left_out = Path(job.folder)
    if not source:
        folder.mkdir()
        return folder

    def list_ignored(parent: str, names: list[str]) -> set[str]:
        return {name for name in names if name == ".git" or Path(parent, name) == left_out}

    try:
        shutil.copytree(source, folder, symlinks=True, ignore=list_ignored)
    except (OSError, shutil.Error) as error:
        raise GooseLikeError(f"{source} can't be copied: {error}") from error
    return folder


def _start_repository(folder: Path) -> Place:
    """Commit a copy in a new repository, so that changes can be found. One that a setup has made stays as it is."""
    if not (folder / ".git").exists():
        run_git(folder, "init", "--quiet", "--template=")
        run_git(folder, "add", "--all")
        run_git(folder, *_AUTHOR, "commit", "--quiet", "--allow-empty", "--no-verify", "-m", "The files at the start")
    return Place(folder, folder, run_git(folder, "rev-parse", "HEAD"))


def _remove_worktree(source: Path, place: Place) -> None:
    """Remove a worktree, and its branch if nothing was committed there."""
    run_git(source, "worktree", "remove", "--force", str(place.top))
    if run_git(source, "rev-parse", place.branch) == place.start:
        run_git(source, "branch", "--quiet", "-D", place.branch)
