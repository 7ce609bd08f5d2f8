"""Install and deploy components with ConCopilot's own code, in a sandboxed process that runs no component."""

import asyncio
import base64
import os
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from goose_like.config.paths import cache_folder
from goose_like.core.errors import GooseLikeError, UsageError
from goose_like.core.threads import run_in_daemon_thread
from goose_like.sessions.session import Session
from goose_like.terminal.escape import escape_controls
from goose_like.workspace.processes.process import Process
from goose_like.workspace.sandbox.scope import SandboxScope
from goose_like.workspace.workspace import Workspace

from ..definition.check import check_file, provides_code
from ..definition.config_file import Definition
from ..definition.coordinates import Coordinates
from ..definition.reader import read_definition, read_definitions
from ..host.repository import Repositories, Settings, read_settings
from ..host.runtime import find_framework
from ..host.sources import CodePackage, find_code, list_config_files, parse_component, save_known_code
from ..host.worker_process import WORKER_FOLDER, WorkerProcess
from .cli import ComponentOptions
from .run import TerminalNotifier

_TIMEOUT_S = 600.0


@dataclass(frozen=True, slots=True)
class _Source:
    """A component in a folder, with its config file."""

    file: Path
    definition: Definition

    @property
    def coordinates(self) -> Coordinates:
        return self.definition.coordinates


def install(components: Sequence[str], options: ComponentOptions, roots: Sequence[Path] = ()) -> None:
    """Put components into the local repository: those of folders all or none, and downloads of those by coordinates."""
    sources, named = _sort(components)
    asyncio.run(_install(sources, named, options, roots))


def deploy(components: Sequence[str], options: ComponentOptions, roots: Sequence[Path] = ()) -> None:
    """Install components of folders, then upload them to the first repository of the settings."""
    sources, named = _sort(components)
    if named:
        raise UsageError(f"{named[0]} is no folder; only components of folders can be deployed")
    for source in sources:
        if not provides_code(source.definition):
            raise UsageError(
                f"{source.file}: nobody else could run {source.coordinates}, as `setup.pip` does not bring its package "
                f"{source.definition.setup.package!r}; publish that, and name it there"
            )
    if options.repo_user_name and options.repo_user_pwd is None:
        raise UsageError("a user name without a password; give --repo-user-pwd, or the variable CONPACK_REPO_USER_PWD")
    asyncio.run(_install(sources, [], options, roots, is_deployed=True))


async def _install(
    sources: Sequence[_Source],
    named: Sequence[Coordinates],
    options: ComponentOptions,
    roots: Sequence[Path],
    is_deployed: bool = False,
) -> None:
    settings = read_settings(options.settings)
    is_online = bool(named) or is_deployed
    with tempfile.TemporaryDirectory(dir=_make_cache(), prefix="staging-") as folder:
        staging = Path(folder)
        configs = [source.file.parent.absolute() for source in sources]
        async with _start_worker(staging, settings, options, configs, is_online) as worker:
            await worker.call("install", {"folders": list(map(str, configs))}, _TIMEOUT_S)
            for coordinates in named:
                await worker.call("download", {"coordinates": _list_parts(coordinates)}, _TIMEOUT_S)
            if is_deployed:
                await _upload(worker, sources, options)
        repository = Repositories.of(settings)
        installed = [*(source.coordinates for source in sources), *named]
        for coordinates in installed:
            _put_in_place(staging / coordinates.folder, repository.local / coordinates.folder)
    read_definitions([repository.find(coordinates) for coordinates in installed])
    _report(sources, named, repository, options, roots, is_deployed)


async def _upload(worker: WorkerProcess, sources: Sequence[_Source], options: ComponentOptions) -> None:
    for source in sources:
        params = {
            "coordinates": _list_parts(source.coordinates),
            "user": options.repo_user_name,
            "password": options.repo_user_pwd,
            "is_signed": options.gpg_passphrase is not None,
        }
        await worker.call("deploy", params, _TIMEOUT_S)


def _report(
    sources: Sequence[_Source],
    named: Sequence[Coordinates],
    repository: Repositories,
    options: ComponentOptions,
    roots: Sequence[Path],
    is_deployed: bool,
) -> None:
    """Remember where code is, and print what was done."""
    code: dict[Coordinates, CodePackage | None] = {}
    for source in sources:
        code[source.coordinates] = find_code(source.file, source.definition.setup.package, roots)
    save_known_code({str(coordinates): package for coordinates, package in code.items()})
    for coordinates in [*code, *named]:
        _print(f"{coordinates} installed in {repository.local / coordinates.folder}")
    for source in sources:
        package = source.definition.setup.package
        if code[source.coordinates] is None and not provides_code(source.definition):
            _print(
                f"  its package {package!r} is not where its configuration is: install it with "
                "pip, or name its folder by `path` in the profile"
            )
        if is_deployed:
            signed = "signed"
            if options.gpg_passphrase is None:
                signed = "not signed, as no passphrase was given"
            _print(f"{source.coordinates} deployed, {signed}")


def _sort(components: Sequence[str]) -> tuple[list[_Source], list[Coordinates]]:
    """Read and check components. Raise GooseLikeError with all problems of their config files."""
    parsed = [parse_component(each) for each in components]
    named = [each for each in parsed if isinstance(each, Coordinates)]
    files: dict[Path, None] = {}
    for each in parsed:
        if isinstance(each, Path):
            files |= dict.fromkeys(list_config_files(each))
    problems: list[str] = []
    sources: dict[Coordinates, _Source] = {}
    for file in files:
        problems += [str(each) for each in check_file(file) if not each.is_warning]
        definition = read_definition(file).value
        if definition is None:
            continue
        source = sources.setdefault(definition.coordinates, _Source(file, definition))
        if source.file != file:
            problems.append(f"{file}: {source.coordinates} is {source.file}, too; give one of them another version")
    if problems:
        lines = ["nothing is done, correct these first:", *problems]
        raise GooseLikeError(escape_controls("\n".join(lines)))
    return list(sources.values()), named


@asynccontextmanager
async def _start_worker(
    staging: Path, settings: Settings, options: ComponentOptions, configs: Sequence[Path], is_online: bool
) -> AsyncIterator[WorkerProcess]:
    notifier = TerminalNotifier()
    session = Session.temporary()
    readable = [WORKER_FOLDER, *configs]
    settings_file = ""
    if settings.file:
        file = settings.file.resolve()
        readable.append(file)
        settings_file = str(file)
    async with Workspace(
        options.working_directory,
        mode=options.sandbox or "workspace",
        approval=options.approval or "auto",
        notifier=notifier,
        session_folder=session.folder,
    ) as workspace:
        scope = SandboxScope(readable=tuple(readable), writable=(staging,), is_read_only=True)

        async def spawn(argv: Sequence[str], stdin: int) -> Process:
            return await workspace.spawn(
                argv,
                access="network" if is_online else "workspace",
                writes=False,
                descriptors={0: stdin},
                subject="ConCopilot's conpack",
                scope=scope,
            )

        params: dict[str, Any] = {
            "root": str(workspace.root),
            "runtime_root": str(workspace.root),
            "tmp": workspace.path_in_sandbox(workspace.tmp),
            "folders": {"concopilot": [str(find_framework())]},
            "packaging": {"staging": str(staging), "settings_file": settings_file},
            "has_network": is_online,
        }
        try:
            answer = partial(_answer, options, notifier, session.folder)
            worker = await WorkerProcess.start(spawn, params, answer, lambda text: _print(text.rstrip("\n")))
            try:
                yield worker
            finally:
                await worker.close()
        finally:
            notifier.pause()
            session.close()


async def _answer(
    options: ComponentOptions, notifier: TerminalNotifier, folder: Path, method: str, params: Mapping[str, Any]
) -> Any:
    """Answer a request of the worker: sign a file with the person's key, or show a captcha."""
    encoded = params.get("data") or params.get("picture") or ""
    data = base64.b64decode(str(encoded))
    if method == "sign":
        return await run_in_daemon_thread(partial(_sign, data, options))
    if method == "captcha":
        picture = folder / "captcha.png"
        picture.write_bytes(data)
        return await notifier.ask_line(f"Type the letters of the picture {picture}")
    raise GooseLikeError(f"nothing is known of {method!r}")


def _sign(data: bytes, options: ComponentOptions) -> str:
    from concopilot.package import check

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "data")
        signature = Path(folder, "data.asc")
        file.write_bytes(data)
        home = str(options.gnupg_home) if options.gnupg_home else None
        try:
            result = check.gpg(options.gpg_passphrase, str(file), str(signature), home)
        except (OSError, ValueError) as error:
            raise GooseLikeError(f"GPG can't sign: {error}; install gpg, or deploy without a passphrase") from error
        if not signature.is_file():
            reason = result.status or result.stderr[-300:]
            raise GooseLikeError(f"GPG does not sign: {reason}; check the passphrase")
        return base64.b64encode(signature.read_bytes()).decode()


def _put_in_place(source: Path, target: Path) -> None:
    """Replace a component in the local repository as a whole."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".") as folder:
            shutil.copytree(source, Path(folder, "new"))
            if target.exists():
                os.rename(target, Path(folder, "old"))
            os.rename(Path(folder, "new"), target)
    except OSError as error:
        raise GooseLikeError(f"{target} can't be written: {error.strerror}; is the folder yours?") from error


def _make_cache() -> Path:
    folder = cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _list_parts(coordinates: Coordinates) -> list[str]:
    return [coordinates.group_id, coordinates.artifact_id, coordinates.version]


def _print(text: str) -> None:
    print(escape_controls(text), file=sys.stdout, flush=True)
