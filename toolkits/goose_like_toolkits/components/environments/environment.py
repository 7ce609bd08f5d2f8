"""Environment: the Python environment that components run in, and what is installed there."""

import asyncio
import hashlib
import os
import re
import shlex
import sysconfig
from collections import deque
from collections.abc import Iterable, Sequence
from pathlib import Path

from goose_like.config.paths import state_folder
from goose_like.core.errors import GooseLikeError
from goose_like.core.notifier import Notifier
from goose_like.workspace.permissions.policy import Access
from goose_like.workspace.sandbox.scope import SandboxScope
from goose_like.workspace.workspace import Workspace

from .installed import Installed, site_of
from .requirements import Wanted, local_path, read
from .upkeep import Upkeep

_COMPAT = "concopilot"  # its names are served by inside/compat.py
_MAX_LINES = 1000
_TOLD = re.compile(r"(Collecting|Downloading|Obtaining|Building|Preparing|Installing|Processing|Using) ")
# An empty value is none for pip: what the person set for other uses of it.
_ELSEWHERE = dict.fromkeys(("PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_USER", "PIP_PYTHON", "PIP_REQUIREMENT"), "")


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
        self._workspace = workspace
        self._notifier = notifier or Notifier()
        root = "" if folder else os.path.realpath(workspace.root)
        self._upkeep = Upkeep(self.folder, root, self._notifier.status)
        self._pip_params = tuple(pip_params)
        self._served = () if is_real else (_COMPAT,)

    async def python(self) -> Path:
        """The environment's Python, which is made if it isn't there, or is one of another Python than ours.

        It stays there until `close`, also where the running directory does not.

        Raises:
            GooseLikeError: it can't be made.
        """
        await self._upkeep.held()
        return self.folder / "bin" / "python"

    def close(self) -> None:
        """Says that its Python is used no more."""
        self._upkeep.release()

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
        wanted = self._done
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
        await self._workspace.require_permission("install", subject, text, self._consequences)
        python = await self.python()
        async with self._upkeep.alone():
            await self._ensure_pip(python)
            for each in self._missing(every):  # another session may have been here
                await self._install(python, each, for_)

    @property
    def _done(self) -> tuple[tuple[str, ...], ...]:
        """The words of what was installed."""
        record = self._upkeep.record
        return record.installed if record else ()

    def _missing(self, wanted: list[Wanted]) -> list[Wanted]:
        installed = Installed(self.folder if self._upkeep.record else None, self._served)
        done = self._done
        return [
            each
            for each in wanted
            if (each.places and each.words not in done) or not all(map(installed.satisfies, each.named))
        ]

    # --- pip

    def _consequences(self) -> str:
        where = "with all your rights: there is no sandbox"
        if self._workspace.mode != "full":
            where = "in the sandbox, with network; it writes nowhere but there"
        return f"Into the components' own environment. What packages run while they are built runs {where}."

    async def _ensure_pip(self, python: Path) -> None:
        if "pip" in Installed(self.folder):
            return
        if (wheel := _pips_wheel()) is None:
            raise GooseLikeError("this Python has no ensurepip; install it (Debian: the package python3-venv)")
        # Unpacked, which makes it whole: ensurepip would compile all of it, which takes ten times as long.
        line = [str(python), "-I", "-m", "zipfile", "-e", str(wheel), str(site_of(self.folder))]
        code, lines = await self._run(line, SandboxScope(writable=(self.folder,), is_read_only=True), "workspace")
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
        self._upkeep.note(wanted.words)
        for text in lines:
            if text.startswith("Successfully installed"):
                self._notifier.log(f"{for_}: {text[0].lower()}{text[1:]}")

    def _reach(self, wanted: Wanted) -> SandboxScope:
        """The environment, what the words name on this machine, and what tells pip where the person's index is."""
        home = Path.home()
        settings = [home / ".config/pip", home / ".pip", Path(os.environ.get("PIP_CONFIG_FILE") or os.devnull)]
        if base := os.environ.get("XDG_CONFIG_HOME"):
            settings.append(Path(base, "pip"))
        named = (local_path(word, self._workspace.root) for word in (*wanted.words, *self._pip_params))
        readable = [path for path in (*settings, *named) if path is not None and path.exists()]
        readable = [path for path in readable if path != Path(os.devnull)]
        return SandboxScope(
            readable=tuple(path.resolve() for path in readable),
            writable=(self.folder, *self._built(wanted)),
            is_read_only=True,
        )

    def _built(self, wanted: Wanted) -> list[Path]:
        """Local folders that are built in their place."""
        paths = (local_path(place, self._workspace.root) for place in wanted.places)
        return [path.resolve() for path in paths if path is not None and path.is_dir()]

    async def _run(
        self, line: list[str], reach: SandboxScope, access: Access, *, writes: bool = False
    ) -> tuple[int, list[str]]:
        """The exit code and the last lines that it said. The person was asked before."""
        process = await self._workspace.spawn(
            line, env=_ELSEWHERE, access=access, scope=reach, writes=writes, is_own=True
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


def _last(lines: list[str]) -> str:
    """What pip said of why it failed: its last line of an error, else its last line."""
    said = [text.strip() for text in lines if text.strip() and not text.startswith("[notice]")]
    errors = [text for text in said if text.startswith("ERROR:")]
    text = (errors or said or ["it said nothing"])[-1].removeprefix("ERROR:").strip()
    unreached = any("Retrying (" in line for line in said)
    return f"{text} (the package index was not reached)" if unreached else text
