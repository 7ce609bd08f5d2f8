"""Environment: the Python environment that components run in, and what is installed there."""

import asyncio
import fcntl
import hashlib
import os
import re
import secrets
import shlex
import shutil
import sys
import sysconfig
import venv
from collections import deque
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from importlib.metadata import Distribution
from pathlib import Path

from packaging.markers import UndefinedEnvironmentName
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version
from pydantic import ValidationError

from goose_like.errors import GooseLikeError
from goose_like.message import Value
from goose_like.notifier import Notifier
from goose_like.places import state_folder
from goose_like.workspace import Access, Reach, Workspace

from .requirements import Wanted, local_path, read

_COMPAT = "concopilot"  # its names are served by inside/compat.py
_POLL_S = 0.05
_MAX_LINES = 1000
_MAX_RECORD_BYTES = 1 << 20
_TOLD = re.compile(r"(Collecting|Downloading|Obtaining|Building|Preparing|Installing|Processing|Using) ")
# An empty value is none for pip: what the person set for other uses of it.
_ELSEWHERE = dict.fromkeys(("PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_USER", "PIP_PYTHON", "PIP_REQUIREMENT"), "")


class _Record(Value):
    """What is known of a whole environment: of which Python it was made, and what was installed by which words.

    `root` is the running directory whose environment it is; with that it may go.
    """

    python: str
    root: str = ""
    installed: tuple[tuple[str, ...], ...] = ()


def default_folder(root: Path) -> Path:
    """Where the environment of a running directory lies: below our own state, by the directory's real path."""
    real = os.path.realpath(root)
    name = re.sub(r"[^\w-]+", "-", os.path.basename(real), flags=re.ASCII)[:40].strip("-")
    digest = hashlib.sha256(os.fsencode(real)).hexdigest()[:16]
    return state_folder() / "environments" / f"{name}-{digest}".lstrip("-")


class Environment:
    """The environment of one running directory, which sessions share; made when it is first asked for.

    It lies below our state and not in the running directory: there the model's commands could change what components
    run, and the components themselves what they run next time. Nobody's commands see it, and it survives sessions.
    What is installed may write into it while it is, so what we note of it lies beside it.
    """

    def __init__(
        self,
        workspace: Workspace,
        folder: Path | None = None,
        *,
        notifier: Notifier | None = None,
        pip_params: Sequence[str] = (),
        is_real: bool = False,
    ) -> None:
        """`pip_params` are the person's own words for pip; with `is_real` the package concopilot itself is installed.

        `folder` lies below our state or cache folder; in a sandbox nothing could be installed anywhere else.
        """
        self.folder = folder or default_folder(workspace.root)
        self._root = "" if folder else os.path.realpath(workspace.root)
        self._held: int | None = None
        self._workspace = workspace
        self._notifier = notifier or Notifier()
        self._pip_params = tuple(pip_params)
        self._is_real = is_real

    async def python(self) -> Path:
        """The environment's Python, which is made if it isn't there, or is one of another Python than ours.

        It stays there until `close`, also where the running directory does not.

        Raises:
            GooseLikeError: it can't be made.
        """
        while not self._hold():
            async with self._alone():
                if not self._is_made():
                    await asyncio.to_thread(self._make)
        if (record := self._record()) and self._root and not record.root:
            async with self._alone():
                _write(self._record_file, record.model_copy(update={"root": self._root}))
        return self.folder / "bin" / "python"

    def close(self) -> None:
        """Says that its Python is used no more."""
        if self._held is not None:
            os.close(self._held)
            self._held = None

    def missing(self, requirements: Iterable[str | Sequence[str]]) -> list[str]:
        """What is not satisfied there of the entries of a `setup.pip`, each in pip's words. Starts no process.

        A name is satisfied by a version that is installed; for a URL or a path it counts that the same words were
        installed once. `concopilot` itself is served by us.

        Raises:
            GooseLikeError: one is no requirement, or an option that is not taken from components.
        """
        return list(map(str, self._missing(list(map(read, requirements)))))

    def sources(self, requirements: Iterable[str | Sequence[str]] | None = None) -> list[Path]:
        """The folders of this machine that were installed with `-e`, of a `setup.pip` or all: their code stays there.

        A person saw each in the words that they allowed. What is in the environment could name any others.
        """
        record = self._record()
        wanted = record.installed if record else ()
        if requirements is not None:
            asked = [(each,) if isinstance(each, str) else tuple(each) for each in requirements]
            wanted = tuple(words for words in wanted if words in asked)
        paths = (local_path(place, self._workspace.root) for words in wanted for place in read(words).editable)
        return [path.resolve() for path in dict.fromkeys(paths) if path is not None and path.is_dir()]

    async def install(self, requirements: Iterable[str | Sequence[str]], for_: str) -> None:
        """Installs what is missing for a component of this name, once a person has seen its words and allowed it.

        pip runs in the sandbox with network, and may write into the environment and local folders that it builds.

        Raises:
            DeniedError: nobody allowed it; the words are for the model.
            GooseLikeError: a requirement is wrong, or pip failed: with its last words.
        """
        every = list(map(read, requirements))
        wanted = self._missing(every)
        if not wanted:
            return
        subject = " && ".join(shlex.join(("pip", "install", *each.words, *self._pip_params)) for each in wanted)
        text = f"install packages for the component {for_}: {subject}"
        await self._workspace.permit("install", subject, text, self._consequences)
        python = await self.python()
        async with self._alone():
            await self._ensure_pip(python)
            for each in self._missing(every):  # another session may have been here
                await self._install(python, each, for_)

    # --- what is there

    def _missing(self, wanted: list[Wanted]) -> list[Wanted]:
        record = self._record()
        there = dict(self._found()) if record else {}
        done = record.installed if record else ()
        return [
            each
            for each in wanted
            if (each.places and each.words not in done)
            or not all(self._is_there(requirement, there, set()) for requirement in each.named)
        ]

    def _is_there(self, requirement: Requirement, there: dict[str, tuple[str, Path]], seen: set[str]) -> bool:
        name = canonicalize_name(requirement.name)
        if not _applies(requirement, "") or (name == _COMPAT and not self._is_real) or str(requirement) in seen:
            return True
        if name not in there:
            return False
        version, folder = there[name]
        with suppress(InvalidVersion):
            if requirement.specifier.contains(Version(version), prereleases=True):
                inner = (each for extra in requirement.extras for each in _of_extra(folder, extra))
                return all(self._is_there(each, there, seen | {str(requirement)}) for each in inner)
        return False

    def _found(self) -> Iterator[tuple[str, tuple[str, Path]]]:
        """The packages by their name: version and folder. What an installation that was killed left counts for none."""
        for site in self._sites:
            for folder in site.glob("*.dist-info"):
                name, _, version = folder.name.removesuffix(".dist-info").rpartition("-")
                if name and (folder / "RECORD").is_file() and (folder / "METADATA").is_file():
                    yield canonicalize_name(name), (version, folder)

    @property
    def _sites(self) -> set[Path]:
        return {Path(sysconfig.get_path(name, "venv", self._base)) for name in ("purelib", "platlib")}

    @property
    def _base(self) -> dict[str, str]:
        return {"base": str(self.folder), "platbase": str(self.folder)}

    # --- making it

    @property
    def _record_file(self) -> Path:
        return self.folder.with_name(f"{self.folder.name}.json")

    def _record(self) -> _Record | None:
        """None where there is no whole environment of our Python."""
        with suppress(OSError, ValidationError), open(self._record_file, "rb") as file:
            record = _Record.model_validate_json(file.read(_MAX_RECORD_BYTES))
            if record.python == _our_python():
                return record
        return None

    def _is_made(self) -> bool:
        return self._record() is not None and (self.folder / "bin" / "python").exists()

    def _hold(self) -> bool:
        """Keeps others from removing the environment; whether there is a whole one."""
        self.close()
        try:
            folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            why = f"{error.strerror}: {error.filename}"
            raise GooseLikeError(f"the components' environment can't be used: {why}; mend it") from error
        if not (_is_locked(folder, fcntl.LOCK_SH) and self._is_made()):
            os.close(folder)
            return False
        self._held = folder
        return True

    def _make(self) -> None:
        if self._root:
            remove_abandoned(self.folder.parent)
        try:
            record = _Record(python="", root=self._root)
            _write(self._record_file, record)  # by which one that is never done can be removed, too
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            venv.create(self.folder, symlinks=True)
            _write(self._record_file, record.model_copy(update={"python": _our_python()}))
        except OSError as error:
            raise GooseLikeError(
                f"the components' environment can't be made: {error.strerror}: {error.filename}; make room or mend it"
            ) from error

    @asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        """Within the block no other session makes or changes it."""
        try:
            self.folder.parent.mkdir(parents=True, exist_ok=True)
            lock = _opened_lock(self.folder)
        except OSError as error:
            why = f"{error.strerror}: {error.filename}"
            raise GooseLikeError(f"the components' environment can't be used: {why}; make room or mend it") from error
        try:
            if not (is_ours := _is_locked(lock) and _is_current(lock, self.folder)):
                self._notifier.status("another session changes the components' environment")
            while not is_ours:
                await asyncio.sleep(_POLL_S)
                if not _is_current(lock, self.folder):  # it was removed meanwhile, with the environment
                    os.close(lock)
                    lock = _opened_lock(self.folder)
                is_ours = _is_locked(lock) and _is_current(lock, self.folder)
            yield
        finally:
            os.close(lock)

    # --- pip

    def _consequences(self) -> str:
        where = "with all your rights: there is no sandbox"
        if self._workspace.mode != "full":
            where = "in the sandbox, with network; it writes nowhere but there"
        return f"Into the components' own environment. What packages run while they are built runs {where}."

    async def _ensure_pip(self, python: Path) -> None:
        if "pip" in dict(self._found()):
            return
        if (wheel := _pips_wheel()) is None:
            raise GooseLikeError("this Python has no ensurepip; install it (Debian: the package python3-venv)")
        # Unpacked, which makes it whole: ensurepip would compile all of it, which takes ten times as long.
        line = [str(python), "-I", "-m", "zipfile", "-e", str(wheel), sysconfig.get_path("purelib", "venv", self._base)]
        code, lines = await self._run(line, Reach(writable=(self.folder,), is_read_only=True), "workspace")
        if code:
            raise GooseLikeError(f"pip can't be put into the components' environment: {_last(lines)}; make room for it")

    async def _install(self, python: Path, wanted: Wanted, for_: str) -> None:
        self._notifier.status(f"installing {wanted} for {for_}")
        options = ["--disable-pip-version-check", "--no-input", "--no-cache-dir", "--progress-bar", "off"]
        line = [str(python), "-I", "-m", "pip", "install", *options, *wanted.words, *self._pip_params]
        code, lines = await self._run(line, self._reach(wanted), "network", writes=bool(self._built(wanted)))
        if code:
            raise GooseLikeError(
                f"pip could not install {wanted} for {for_}: {_last(lines)}; "
                "tell the person to look at setup.pip of its config.yaml, or at what pip can reach"
            )
        if record := self._record():
            _write(self._record_file, record.model_copy(update={"installed": (*record.installed, wanted.words)}))
        for text in lines:
            if text.startswith("Successfully installed"):
                self._notifier.log(f"{for_}: {text[0].lower()}{text[1:]}")

    def _reach(self, wanted: Wanted) -> Reach:
        """The environment, what the words name on this machine, and what tells pip where the person's index is."""
        home = Path.home()
        settings = [home / ".config/pip", home / ".pip", Path(os.environ.get("PIP_CONFIG_FILE") or os.devnull)]
        if base := os.environ.get("XDG_CONFIG_HOME"):
            settings.append(Path(base, "pip"))
        named = (local_path(word, self._workspace.root) for word in (*wanted.words, *self._pip_params))
        readable = [path for path in (*settings, *named) if path is not None and path.exists()]
        readable = [path for path in readable if path != Path(os.devnull)]
        return Reach(
            readable=tuple(path.resolve() for path in readable),
            writable=(self.folder, *self._built(wanted)),
            is_read_only=True,
        )

    def _built(self, wanted: Wanted) -> list[Path]:
        """Local folders that are built in their place."""
        paths = (local_path(place, self._workspace.root) for place in wanted.places)
        return [path.resolve() for path in paths if path is not None and path.is_dir()]

    async def _run(
        self, line: list[str], reach: Reach, access: Access, *, writes: bool = False
    ) -> tuple[int, list[str]]:
        """The exit code and the last lines that it said. The person was asked before."""
        process = await self._workspace.spawn(
            line, env=_ELSEWHERE, access=access, reach=reach, writes=writes, is_own=True
        )
        lines: deque[str] = deque(maxlen=_MAX_LINES)
        rest = b""
        try:
            while chunk := await process.read():
                *whole, rest = (rest + chunk).split(b"\n")
                for text in (each.decode(errors="replace").rstrip() for each in whole):
                    lines.append(text)
                    if _TOLD.match(text):
                        self._notifier.status(text)
            return await process.wait(), [*lines, rest.decode(errors="replace").rstrip()]
        except BaseException:
            await asyncio.shield(process.stop(0))
            raise


def _pips_wheel() -> Path | None:
    """The one that comes with Python, or with a distribution's."""
    folders = [Path(sysconfig.get_path("stdlib"), "ensurepip/_bundled")]
    if elsewhere := sysconfig.get_config_var("WHEEL_PKG_DIR"):
        folders.append(Path(elsewhere))
    return next((wheel for folder in folders for wheel in folder.glob("pip-*.whl")), None)


def _our_python() -> str:
    return f"{sys.base_prefix} {sys.version}"


def remove_abandoned(folder: Path) -> None:
    """Removes the environments in a folder whose running directories are gone; those in use, or being changed, stay.

    What can't be removed now stays for the next time.
    """
    for file in folder.glob("*.json"):
        with suppress(OSError, ValidationError):
            record = _Record.model_validate_json(file.read_bytes()[:_MAX_RECORD_BYTES])
            if record.root and _is_gone(record.root):
                _remove(file, record)


def _remove(record_file: Path, record: _Record) -> None:
    """Removes one as a whole, unless somebody has it."""
    environment = record_file.with_suffix("")
    with ExitStack() as stack:
        held = [_opened_lock(environment)]
        stack.callback(os.close, held[0])
        if environment.is_dir():
            held.append(os.open(environment, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
            stack.callback(os.close, held[1])
        if all(map(_is_locked, held)) and _is_current(held[0], environment):
            _write(record_file, record.model_copy(update={"python": ""}))  # it is none, should this be the last we do
            if environment.is_dir():
                shutil.rmtree(environment)
            record_file.unlink()
            _lock_file(environment).unlink()


def _write(record_file: Path, record: _Record) -> None:
    new = record_file.with_name(f".{record_file.stem}.{secrets.token_hex(6)}")
    new.write_text(record.model_dump_json())
    new.replace(record_file)


def _is_gone(root: str) -> bool:
    """Whether it is known not to be there: what can't be looked at may be."""
    try:
        os.lstat(root)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


def _lock_file(environment: Path) -> Path:
    return environment.with_name(f"{environment.name}.lock")


def _opened_lock(environment: Path) -> int:
    return os.open(_lock_file(environment), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _is_current(lock: int, environment: Path) -> bool:
    """Whether the file that is locked is the one that others would lock."""
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(lock), os.stat(_lock_file(environment)))
    return False


def _is_locked(descriptor: int, how: int = fcntl.LOCK_EX) -> bool:
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _applies(requirement: Requirement, extra: str) -> bool:
    try:
        return requirement.marker is None or requirement.marker.evaluate({"extra": extra})
    except UndefinedEnvironmentName:
        return True


def _of_extra(folder: Path, extra: str) -> Iterator[Requirement]:
    """What a package asks for because of an extra alone."""
    for line in Distribution.at(folder).requires or ():
        with suppress(InvalidRequirement):
            requirement = Requirement(line)
            if _applies(requirement, extra) and not _applies(requirement, ""):
                requirement.marker = None
                yield requirement


def _last(lines: list[str]) -> str:
    """What pip said of why it failed: its last line of an error, else its last line."""
    said = [text.strip() for text in lines if text.strip() and not text.startswith("[notice]")]
    errors = [text for text in said if text.startswith("ERROR:")]
    text = (errors or said or ["it said nothing"])[-1].removeprefix("ERROR:").strip()
    unreached = any("Retrying (" in line for line in said)
    return f"{text} (the package index was not reached)" if unreached else text
