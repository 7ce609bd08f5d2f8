"""Suites: folders of tasks, each with a prompt, files and a check."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from pydantic import Field

from goose_like.config.yaml_source import read_yaml, validate
from goose_like.core.dataclass import dataclass
from goose_like.core.errors import UsageError
from goose_like.core.message import FrozenModel
from goose_like.core.spelling import did_you_mean
from goose_like.jobs.batch.job import Scripts

_TASK = "task.yaml"
_SCRIPTS = ("check", "check.sh")
_HEAD_BYTES = 512
"""Scripts have no NUL in their first bytes, and binaries have."""

GIT_VARIABLES = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_AUTHOR_NAME": "Kim Doe",
    "GIT_AUTHOR_EMAIL": "kim@example.com",
    "GIT_COMMITTER_NAME": "Kim Doe",
    "GIT_COMMITTER_EMAIL": "kim@example.com",
}
"""An author for git in place of the person's settings, which could sign commits or name other branches."""
GIT_DATES = {"GIT_AUTHOR_DATE": "2026-01-01T12:00:00Z", "GIT_COMMITTER_DATE": "2026-01-01T12:00:00Z"}


class TaskContent(FrozenModel):
    """The file `task.yaml`. `size` is a word of the author, and `setup` a bash script.

    A task that is `held_out` runs on request only.
    """

    prompt: str = Field(pattern=r"\S")
    setup: str = ""
    size: str = ""
    held_out: bool = False
    timeout: float | None = Field(default=None, gt=0)


@dataclass(frozen=True, slots=True)
class EvalTask:
    """A task and its folder. `check` is the command that checks the work."""

    folder: Path
    content: TaskContent
    check: tuple[str, ...]

    @property
    def name(self) -> str:
        """The name of the folder."""
        return self.folder.name

    @property
    def files(self) -> Path | None:
        """The folder with the files that the work begins with."""
        folder = self.folder / "files"
        return folder if folder.is_dir() else None

    def make_scripts(self) -> Scripts:
        """Return the setup and the check. The check may import modules of the suite, and git has an author."""
        setup: tuple[str, ...] = ()
        if self.content.setup:
            setup = ("bash", "-euc", self.content.setup)
        environment = {"PYTHONPATH": str(self.folder.parent), **GIT_VARIABLES, **GIT_DATES}
        return Scripts(folder=str(self.folder.parent), setup=setup, check=self.check, environment=environment)


def load_suite(folder: Path) -> list[EvalTask]:
    """Load all tasks of a suite, by name.

    Raises:
        UsageError: there is none, or one is wrong; the text names the file and the line.
    """
    if not folder.is_dir():
        raise UsageError(f"there is no folder {folder}")
    files = sorted(folder.glob(f"*/{_TASK}"))
    if not files:
        raise UsageError(f"{folder} has no tasks; a task is a folder in it with {_TASK} and check.py")
    return [_load_task(file) for file in files]


def choose_tasks(
    tasks: Sequence[EvalTask], names: Sequence[str], sizes: Sequence[str], *, is_held_out: bool
) -> list[EvalTask]:
    """Choose tasks by name and size, either those that are held out or the others.

    Raises:
        UsageError: a name or a size is unknown, or no task is left.
    """
    _check_known("task", names, [task.name for task in tasks])
    known_sizes = {task.content.size for task in tasks if task.content.size}
    if sizes and not known_sizes:
        raise UsageError("no task has a size; leave out --size")
    _check_known("size", sizes, sorted(known_sizes))
    chosen = []
    for task in tasks:
        is_wanted = not names or task.name in names
        has_size = not sizes or task.content.size in sizes
        if is_wanted and has_size and task.content.held_out == is_held_out:
            chosen.append(task)
    if not chosen:
        raise UsageError("no task is left; tasks that are held out run with --held-out, and no others do")
    return chosen


def _check_known(kind: str, names: Sequence[str], known: Sequence[str]) -> None:
    for name in names:
        if name not in known:
            raise UsageError(f"there is no {kind} {name!r}; {did_you_mean(name, known)}")


def _load_task(file: Path) -> EvalTask:
    source = read_yaml(file)
    content = validate(TaskContent, source.data, source, "the task")
    return EvalTask(file.parent, content, _find_check(file.parent))


def _find_check(folder: Path) -> tuple[str, ...]:
    script = folder / "check.py"
    if script.is_file():
        return (sys.executable, "-P", str(script))
    for name in _SCRIPTS:
        script = folder / name
        if not script.is_file():
            continue
        if not os.access(script, os.X_OK):
            raise UsageError(f"{script} is not executable; run: chmod +x {script}")
        start = script.read_bytes()[:_HEAD_BYTES]
        is_binary = b"\0" in start
        if not is_binary and not start.startswith(b"#!"):
            raise UsageError(f"{script} does not begin with #!; write #!/bin/sh into its first line")
        return (str(script),)
    raise UsageError(f"{folder} has no check; write check.py, or an executable check.sh")
