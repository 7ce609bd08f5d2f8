"""Virtual environments: Python packages that a session installs apart from the person's own interpreter."""

import asyncio
import fcntl
import os
import re
import shlex
import shutil
import sys
from collections import deque
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import Distribution
from itertools import chain
from pathlib import Path

from pydantic import ValidationError

from goose_like.config.paths import home_folder
from goose_like.core.errors import GooseLikeError
from goose_like.core.message import FrozenModel
from goose_like.core.notifier import Notifier
from goose_like.core.threads import run_in_thread

from .permissions.policy import Access
from .processes.process import Process, describe_exit
from .sandbox.scope import SandboxScope
from .workspace import Workspace

_POLL_S = 0.05
_KEPT_LINES = 1_000
_SHOWN_LINES = 5
_PROGRESS = re.compile(r"(Collecting|Downloading|Obtaining|Building|Preparing|Installing|Processing|Using) ")
_BEFORE_PATH = re.compile(r"^(--?[\w-]+=|.* @ )?(file://(localhost)?)?")
_EXTRAS = re.compile(r"\[[^\]]*\]$")
_PIP_OPTIONS = ("--disable-pip-version-check", "--no-input", "--no-cache-dir", "--progress-bar", "off")
# pip ignores an empty value: these settings of the person lead to another place than the environment.
_ELSEWHERE = dict.fromkeys(("PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_USER", "PIP_PYTHON", "PIP_REQUIREMENT"), "")

# Unpacking pip's wheel is enough. `ensurepip` would also compile it, which takes ten times as long.
_MAKE = """
import glob, os, site, sys, sysconfig, venv, zipfile
folder, sees_packages = sys.argv[1:]
places = os.path.join(sysconfig.get_path("stdlib"), "ensurepip", "_bundled"), sysconfig.get_config_var("WHEEL_PKG_DIR")
wheels = [wheel for place in places if place for wheel in glob.glob(os.path.join(place, "pip-*.whl"))]
if not wheels:
    sys.exit("this Python has no ensurepip; install it (Debian: the package python3-venv)")
venv.create(folder, symlinks=True)
packages, = glob.glob(os.path.join(folder, "lib", "python*", "site-packages"))
zipfile.ZipFile(wheels[0]).extractall(packages)
if sees_packages:
    seen = site.getsitepackages() + ([site.getusersitepackages()] if site.ENABLE_USER_SITE else [])
    with open(os.path.join(packages, "_seen_packages.pth"), "w", encoding="utf-8") as file:
        file.writelines(f"import site; site.addsitedir({path!r})\\n" for path in seen)
"""


class _Record(FrozenModel):
    """The interpreter of a complete environment, and the words of each `pip install` in it."""

    python: str
    installed: tuple[tuple[str, ...], ...] = ()


class VirtualEnvironment:
    """A virtual environment in a folder of goose_like, which sessions of any process may share.

    The folder lies below goose_like's state or cache, or in the outputs of the session. Commands of a sandbox cannot
    change it. All processes that fill it run in the sandbox and write nowhere else.
    """

    def __init__(
        self,
        workspace: Workspace,
        folder: Path,
        *,
        python: str = sys.executable,
        sees_packages: bool = False,
        notifier: Notifier | None = None,
    ) -> None:
        """Describe the environment, and create nothing.

        With `sees_packages`, code in the environment also imports the packages of the interpreter `python`.
        """
        self.folder = folder
        self._venv = folder / "venv"
        self._before = folder / "before"  # a copy from the start of an installation, left by one that was killed
        self._workspace = workspace
        self._base = shutil.which(python) or python
        self._sees_packages = sees_packages
        self._notifier = notifier or Notifier()

    @property
    def python(self) -> Path:
        """The interpreter of the environment; it exists once the environment is made."""
        return self._venv / "bin/python"

    @property
    def site_packages(self) -> Path | None:
        """The folder with the installed packages; None before the environment is made."""
        return next(self._venv.glob("lib/python*/site-packages"), None)

    @property
    def is_made(self) -> bool:
        """True if there is a complete environment of this interpreter."""
        record = self._read_record()
        return record is not None and self.python.exists() and not self._before.exists()

    async def make(self) -> Path:
        """Make the environment if it is missing or incomplete, and return its interpreter.

        Raises:
            GooseLikeError: it cannot be made.
        """
        if not self.is_made:
            async with self._lock():
                await self._make()
        return self.python

    def find_missing(self, requirements: Iterable[str]) -> list[str]:
        """Return the requirements that the environment does not satisfy. Start no process.

        A path, a URL or any other word of pip counts as satisfied if it was installed here before.
        """
        folders: list[str] = []
        done: frozenset[str] = frozenset()
        if self.is_made:
            packages = self.site_packages
            if packages:
                folders.append(str(packages))
            done = frozenset(chain.from_iterable(self._installed))
        if self._sees_packages:
            folders += filter(None, sys.path)
        return [text for text in requirements if not _is_satisfied(text, folders, done)]

    async def install(
        self, commands: Sequence[Sequence[str]], purpose: str, pip_params: Sequence[str] = ()
    ) -> list[str]:
        """Run `pip install` with the words of each command, after one question. Return pip's lines about its success.

        Either everything is installed or nothing. Local folders among the words are built in place.

        Args:
            commands: the words of each installation: requirements and options.
            purpose: who needs the packages, for the question, such as "the Python kernel".
            pip_params: the person's own words for each command.

        Raises:
            DeniedError: the person or the policy refused.
            GooseLikeError: pip failed; the error ends with pip's last lines.
        """
        lines = [(*words, *pip_params) for words in commands]
        subject = " && ".join(shlex.join(("pip", "install", *words)) for words in lines)
        text = f"install packages for {purpose}, with the network: {subject}"
        await self._workspace.require_permission("install", subject, text, self._describe_consequences)
        async with self._lock():
            await self._make()
            await run_in_thread(self._copy)
            said: list[str] = []
            try:
                for words in lines:
                    said += await self._run_pip(words)
                installed = (*self._installed, *map(tuple, commands))
                self._write_record(_Record(python=self._identity, installed=installed))
            except BaseException:
                await asyncio.shield(run_in_thread(self._restore))
                raise
            await run_in_thread(self._drop_copy)
        return [line for line in said if line.startswith("Successfully installed")]

    # --- the folder

    @property
    def _identity(self) -> str:
        """The interpreter with the file it leads to, whose path usually names the version."""
        return f"{self._base} {os.path.realpath(self._base)}"

    @property
    def _installed(self) -> tuple[tuple[str, ...], ...]:
        record = self._read_record()
        return record.installed if record else ()

    def _read_record(self) -> _Record | None:
        try:
            text = (self.folder / "record.json").read_bytes()
            record = _Record.model_validate_json(text)
        except (OSError, ValidationError):
            return None
        if record.python != self._identity:
            return None
        return record

    def _write_record(self, record: _Record) -> None:
        new = self.folder / "record.json.new"
        new.write_text(record.model_dump_json())
        new.replace(self.folder / "record.json")

    @asynccontextmanager
    async def _lock(self) -> AsyncIterator[None]:
        """Keep other sessions from changing the environment, and name errors of the file system."""
        try:
            self.folder.mkdir(0o700, parents=True, exist_ok=True)
            descriptor = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                is_locked = _try_lock(descriptor)
                if not is_locked:
                    self._notifier.status("waiting for another session that installs packages")
                while not is_locked:
                    await asyncio.sleep(_POLL_S)
                    is_locked = _try_lock(descriptor)
                yield
            finally:
                os.close(descriptor)
        except OSError as error:
            raise GooseLikeError(f"can't change {self.folder}: {error.strerror}; make room or remove it") from error

    async def _make(self) -> None:
        """Make the environment if it is missing or incomplete. The caller holds the lock."""
        if self._before.exists():
            await run_in_thread(self._restore)
        if self.is_made:
            return
        self._notifier.status("making a virtual environment")
        await run_in_thread(_empty_folder, self._venv)
        sees_packages = "yes" if self._sees_packages else ""
        line = [self._base, "-c", _MAKE, str(self._venv), sees_packages]
        code, output = await self._run(line, "workspace")
        if code:
            reason = output[-1] if output else describe_exit(code)
            raise GooseLikeError(f"can't make a virtual environment with {self._base}: {reason}")
        self._write_record(_Record(python=self._identity))

    def _copy(self) -> None:
        """Copy the environment with hard links. pip replaces files and never changes one in place."""
        new = self.folder / "before.new"
        shutil.rmtree(new, ignore_errors=True)
        shutil.copytree(self._venv, new, symlinks=True, copy_function=os.link)
        new.replace(self._before)

    def _restore(self) -> None:
        _empty_folder(self._venv)  # the folder itself stays: it is mounted in sandboxes
        shutil.copytree(self._before, self._venv, symlinks=True, copy_function=os.link, dirs_exist_ok=True)
        self._drop_copy()

    def _drop_copy(self) -> None:
        """Remove the copy, under another name at first: a part of it would count as the former state."""
        old = self.folder / "before.old"
        shutil.rmtree(old, ignore_errors=True)
        self._before.replace(old)
        shutil.rmtree(old, ignore_errors=True)

    # --- processes

    def _describe_consequences(self) -> str:
        where = "with all your rights: there is no sandbox"
        if self._workspace.mode != "full":
            where = "in the sandbox, and can write nowhere else"
        return f"They go to {self.folder}, not to your own Python. Code that builds a package runs {where}."

    async def _run_pip(self, words: Sequence[str]) -> list[str]:
        line = [str(self.python), "-I", "-m", "pip", "install", *_PIP_OPTIONS, *words]
        code, output = await self._run(line, "network", words)
        if code == 0:
            return output
        said = [text for text in output if text.strip() and not text.startswith("[notice]")]
        other = [text for text in said if "Retrying (" not in text]
        reason = "pip failed; check the names, or pip's settings"
        if other != said:
            reason = "there is no way to the package index; check the network, or pip's settings"
        last = "\n".join(other[-_SHOWN_LINES:]) or describe_exit(code)
        raise GooseLikeError(f"can't install {shlex.join(words)}: {reason}. pip's last lines:\n{last}")

    async def _run(self, line: list[str], access: Access, words: Sequence[str] = ()) -> tuple[int, list[str]]:
        """Run a command that may write into the environment. Return its exit code and its last lines."""
        named = list(_find_paths(words, self._workspace.root))
        built = [path for path in named if path.is_dir()]
        scope = SandboxScope(
            readable=(*named, *_list_settings(), *_list_prefixes(self._base)),
            writable=(self._venv, *built),
            is_read_only=True,
        )
        process = await self._workspace.spawn(
            line, env=_ELSEWHERE, access=access, scope=scope, writes=bool(built), is_own=True
        )
        try:
            lines = await self._read_lines(process)
            code = await process.wait()
        except BaseException:
            await asyncio.shield(process.stop(0))
            raise
        return code, lines

    async def _read_lines(self, process: Process) -> list[str]:
        """Read the last lines of a process, and show the progress that they name."""
        lines = deque[str](maxlen=_KEPT_LINES)
        rest = b""
        while chunk := await process.read():
            *whole, rest = (rest + chunk).split(b"\n")
            for line in whole:
                text = line.decode(errors="replace").rstrip()
                lines.append(text)
                if _PROGRESS.match(text):
                    self._notifier.status(text)
        if rest:
            return [*lines, rest.decode(errors="replace")]
        return list(lines)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _empty_folder(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    for entry in os.scandir(folder):
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path)
        else:
            os.unlink(entry.path)


def _is_satisfied(text: str, folders: list[str], done: frozenset[str], extra: str = "") -> bool:
    """Check a requirement against the packages in folders. With `extra`, it is one that this extra may ask for.

    `done` holds the words that count as satisfied if they are no requirement by name.
    """
    from packaging.requirements import InvalidRequirement, Requirement  # only in extras that install packages

    try:
        requirement = Requirement(text)
    except InvalidRequirement:
        return text in done
    if requirement.url:
        return text in done
    if requirement.marker and not requirement.marker.evaluate({"extra": extra}):
        return True
    found = next(iter(Distribution.discover(name=requirement.name, path=folders)), None)
    if found is None or not requirement.specifier.contains(found.version, prereleases=True):
        return False
    wanted = []
    for line in found.requires or ():
        if "extra" in line and line not in done:
            wanted += [(line, name) for name in requirement.extras]
    done |= {line for line, _ in wanted}  # an extra may ask for itself
    return all(_is_satisfied(line, folders, done, name) for line, name in wanted)


def _find_paths(words: Iterable[str], root: Path) -> Iterator[Path]:
    """Yield the existing files and folders that pip's words name; relative ones start at `root`."""
    for word in words:
        text, _, _ = _BEFORE_PATH.sub("", word).partition("#")
        text = os.path.expanduser(_EXTRAS.sub("", text))
        path = root / text
        may_be_path = "/" in text or text.startswith(".")
        if may_be_path and os.path.exists(path):
            yield path.resolve()


def _list_settings() -> list[Path]:
    """List pip's settings, which name the person's package index."""
    home = home_folder()
    files = [home / ".config/pip", home / ".pip"]
    config_folder = os.environ.get("XDG_CONFIG_HOME")
    if config_folder:
        files.append(Path(config_folder, "pip"))
    config_file = os.environ.get("PIP_CONFIG_FILE", "")
    if config_file not in ("", os.devnull):
        files.append(Path(config_file))
    return [path.resolve() for path in files if path.exists()]


def _list_prefixes(python: str) -> list[Path]:
    """List the folders of an interpreter: its virtual environment, if it is in one, and its installation."""
    prefixes: set[Path] = set()
    for path in (os.path.abspath(python), os.path.realpath(python)):
        if path.count("/") > 2:
            prefixes.add(Path(path).parents[1])
    return [prefix for prefix in prefixes if _is_prefix(prefix)]


def _is_prefix(folder: Path) -> bool:
    """Check for a virtual environment, or an installation of Python."""
    return (folder / "pyvenv.cfg").exists() or any(folder.glob("lib/python3*/os.py"))
