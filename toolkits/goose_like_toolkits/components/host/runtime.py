"""The components of a session at work in one worker process."""

import asyncio
import hashlib
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from goose_like.config.paths import state_folder
from goose_like.config.secrets import find_key
from goose_like.core.errors import DeniedError, GooseLikeError
from goose_like.toolkit import ToolError
from goose_like.workspace.processes.process import Process
from goose_like.workspace.sandbox.scope import SandboxScope
from goose_like.workspace.venv import VirtualEnvironment

from ..config import Config
from ..surroundings import Surroundings
from .assets import AssetStore, read_changes
from .dot_folders import find_own_dot_folders
from .registry import RUNTIME, Member, Registry
from .sources import CodePackage, find_code, list_requirements, load_known_code
from .worker_process import WORKER_FOLDER, Message, WorkerError, WorkerProcess, finish

_FINALIZE_S = 10.0
# Options of pip that a component may use; others read or write what a person does not see in the question.
_PIP_OPTIONS = {
    "pre",
    "upgrade",
    "U",
    "no-deps",
    "no-index",
    "prefer-binary",
    "no-build-isolation",
    "use-pep517",
    "index-url",
    "i",
    "extra-index-url",
    "find-links",
    "f",
    "trusted-host",
    "only-binary",
    "no-binary",
    "force-reinstall",
    "quiet",
    "q",
    "timeout",
    "retries",
    "upgrade-strategy",
}

_Words = tuple[str, ...]
"""A requirement as the words of a command line of pip."""


@dataclass(frozen=True, slots=True)
class _Requirements:
    """The requirements of a component, with its name."""

    name: str
    lines: Sequence[_Words]


class SessionRuntime:
    """Runs commands of components. The worker starts with the first one, and again after its end."""

    def __init__(
        self,
        config: Config,
        around: Surroundings,
        registry: Registry,
        assets: AssetStore,
        answer: Callable[[str, Mapping[str, Any]], Awaitable[Any]],
    ) -> None:
        """Start nothing; `answer` answers requests of the worker besides `install`."""
        self.registry = registry
        self._config = config
        self._around = around
        self._assets = assets
        self._answer = answer
        identity = f"{os.path.realpath(around.workspace.root)} {config.pip_params}"
        digest = hashlib.sha256(os.fsencode(identity)).hexdigest()
        folder = state_folder() / "environments" / digest[:16]
        self._dot_folder_record = folder.with_name(f"{folder.name}-dot-folders")
        self._environment = VirtualEnvironment(around.workspace, folder, sees_packages=True, notifier=around.notifier)
        self._worker: WorkerProcess | None = None
        self._visible: set[str] = set()
        self._prepared: set[str] = set()
        self._loaded: list[str] = []
        self._lost: list[str] | None = None
        self._denied: dict[tuple[_Words, ...], DeniedError] = {}
        self._is_closed = False
        self._one_at_a_time = asyncio.Lock()

    async def run_command(
        self, member: Member, command: str, resolve: Callable[[], tuple[Any, list[Any]]]
    ) -> tuple[Any, list[str]]:
        """Run a command; return its response and notes for the model.

        Args:
            member: the component.
            command: the command's name.
            resolve: returns the parameter and the places of values that only the worker has. It is called when the
                commands before this one have ended, as those change assets.

        Raises:
            ToolError: the command failed, or took too long, or the worker ended.
        """
        async with self._one_at_a_time:
            await self._load(member)
            param, live = resolve()
            asked = {
                "key": member.key,
                "command": command,
                "param": param,
                "live": live,
                "assets": self._assets.take_unsent(),
            }
            answer = await self._call("command", asked, self._config.timeout_s)
            if not isinstance(answer, dict) or not {"assets", "response"} <= answer.keys():
                raise ToolError(f"{member.name} {command}: the components' process gave no answer that can be read")
            problems = self._assets.apply(read_changes(answer["assets"]))
            return answer["response"], [*self._take_loss(), *problems]

    async def perform(self, method: Literal["build", "run"], member: Member, args: Sequence[str]) -> Any:
        """Construct a component, or run a copilot to its end without a time limit. Raise ToolError if it fails."""
        async with self._one_at_a_time:
            await self._prepare([member])
            return await self._call(method, {"named": dict(member.named), "args": list(args)}, None)

    async def close(self) -> list[str]:
        """Stop the running call, finalize all components, and end the worker. Return what went wrong."""
        self._is_closed = True
        if self._worker:
            await self._worker.interrupt()
        async with self._one_at_a_time:
            problems = await self._finalize()
            worker = self._worker
            self._worker = None
            if worker:
                await worker.close()
            return problems

    async def _finalize(self) -> list[str]:
        """Finalize all components in reverse order, each with its own time limit; return a line for each failure."""
        problems: list[str] = []
        limit_s = min(self._config.timeout_s, _FINALIZE_S)
        while self._loaded and self._worker:
            key = self._loaded.pop()
            name = self.registry.members[key].name
            if self._worker.end:
                problems.append(f"{name}: not finalized, as its process has ended")
                continue
            try:
                await self._worker.call("finalize", {"key": key}, limit_s)
            except ToolError as error:
                problems.append(f"{name}: finalize failed: {error}")
        return problems

    # --- what a command needs

    async def _load(self, member: Member) -> None:
        """Load a component and its resources."""
        wanted = [*(self.registry.members[need.key] for need in member.needs), member]
        await self._prepare(wanted)
        for each in wanted:
            if each.key in self._loaded:
                continue
            needs = [{"key": need.key, "asked": need.asked} for need in each.needs]
            params: Message = {"key": each.key, "named": dict(each.named), "resources": needs}
            try:
                await self._call("load", params, self._config.timeout_s)
            except WorkerError as error:
                raise WorkerError(f"{each.name} can't be constructed: {error}") from error
            except GooseLikeError as error:
                raise ToolError(f"{each.name} can't be constructed: {error}") from error
            self._loaded.append(each.key)

    async def _prepare(self, members: Sequence[Member]) -> None:
        """Install the requirements of components and of all that they include, and have a worker that sees them."""
        if self._is_closed:
            raise ToolError("the session is at its end; no component is called any more")
        known = load_known_code()
        included = self._list_included(members)
        wanted: list[_Requirements] = []
        seen: set[str] = set()
        for member in included:
            package = _find_code(member, known)
            wanted.append(_Requirements(member.name, list_requirements(member.definition, package)))
            if package:
                seen.add(str(package.folder))
        await self._install(wanted)
        self._prepared |= {str(member.definition.coordinates) for member in included}
        site = self._environment.site_packages
        if site:
            seen.add(str(site))
        if self._worker and not self._worker.end and not seen <= self._visible:
            for problem in await self._finalize():
                self._around.notifier.log(f"components: {problem}")
            await self._drop()
        if self._worker and self._worker.end:
            await self._drop()
        if self._worker is None:
            self._visible = seen
            self._worker = await self._start(known)

    def _list_included(self, members: Iterable[Member]) -> list[Member]:
        """List components and all that their configurations include, each once."""
        included: dict[str, Member] = {}
        for member in members:
            for each in self.registry.list_included(member):
                included[each.key] = each
        return list(included.values())

    async def _install(self, wanted: Iterable[_Requirements]) -> None:
        """Install requirements with one question. A refusal holds for the rest of the session."""
        if not self._config.setup:
            return
        names = self._find_missing(wanted)
        missing = tuple(names)
        if not missing:
            return
        if missing in self._denied:
            raise self._denied[missing]
        about = ", ".join(dict.fromkeys(names.values()))
        try:
            notes = await self._environment.install(missing, f"the components {about}", self._config.pip_params)
        except DeniedError as error:
            self._denied[missing] = error
            raise
        for text in notes:
            self._around.notifier.log(f"components: {text[0].lower()}{text[1:]}")

    def _find_missing(self, wanted: Iterable[_Requirements]) -> dict[_Words, str]:
        """Find the requirements that are not installed, each with the first component that has it."""
        missing: dict[_Words, str] = {}
        for requirements in wanted:
            for words in requirements.lines:
                _check_options(requirements.name, words)
                packages = [word for word in words if not word.startswith("-")]
                if self._environment.find_missing(packages):
                    missing.setdefault(words, requirements.name)
        return missing

    def _take_loss(self) -> list[str]:
        """Return a note about what was lost with a worker since the last note."""
        lost = self._lost
        self._lost = None
        if lost is None:
            return []
        note = "the components' process is a new one"
        if lost:
            note += f"; what these held is gone: {', '.join(dict.fromkeys(lost))}"
        return [note]

    # --- the worker

    async def _start(self, known: Mapping[str, CodePackage]) -> WorkerProcess:
        workspace = self._around.workspace
        has_network = self._config.network or workspace.has_network
        scope, settings = self._describe_worker(known, has_network)

        async def spawn(argv: Sequence[str], stdin: int) -> Process:
            return await workspace.spawn(
                argv,
                access="network" if self._config.network else "workspace",
                writes=False,
                descriptors={0: stdin},
                subject="the process of the components",
                env=self._read_variables(),
                scope=scope,
            )

        return await WorkerProcess.start(spawn, settings, self._answer_request, self._around.show)

    def _read_variables(self) -> dict[str, str]:
        """Return the variables that the profile gives to components: of the environment, or keys that setup stored."""
        found = {}
        for name in self._config.variables:
            value = find_key(name)
            if value:
                found[name] = value
            else:
                self._around.notifier.log(f"components: {name} is not set; export it, or store it: goose-like setup")
        return found

    def _describe_worker(self, known: Mapping[str, CodePackage], has_network: bool) -> tuple[SandboxScope, Message]:
        """Return what the worker sees, and its settings."""
        workspace = self._around.workspace
        members: list[Member] = []
        for member in self.registry.members.values():
            members += self.registry.list_included(member)
        packages = _list_packages(members, known)
        self._visible |= {str(package.folder) for package in packages}
        package_roots: dict[str, list[str]] = {}
        listed: list[Path] = []
        for package in packages:
            package_roots.setdefault(package.name, []).append(str(package.root))
            listed += package.parents
        package_roots["concopilot"] = [str(find_framework())]
        more = self._list_more_folders()
        repositories = [folder for folder in self.registry.repositories.folders if folder.is_dir()]
        site = self._environment.site_packages
        sites = [site] if site else []
        readable = [*more, *repositories]
        readable += [member.file.parent for member in members if "file" in member.named]
        readable += [package.folder for package in packages]
        readable += sites
        dot_folders = self._list_dot_folders(members)
        tmp = workspace.tmp / "components"
        tmp.mkdir(exist_ok=True)
        tmp_in_sandbox = workspace.path_in_sandbox(tmp)
        runtime_root = str(workspace.root)
        if workspace.mode == "read-only":
            runtime_root = tmp_in_sandbox
        settings: Message = {
            "root": str(workspace.root),
            "runtime_root": runtime_root,
            "folders": package_roots,
            "site_folders": _to_texts(sites),
            "more_folders": _to_texts(more),
            "repositories": _to_texts(repositories),
            "readable": _to_texts(readable),
            "listed": _to_texts(listed),
            "dot_folders": dot_folders,
            "tmp": tmp_in_sandbox,
            "has_network": has_network,
        }
        return SandboxScope(readable=(WORKER_FOLDER, *readable), dot_folders=tuple(dot_folders)), settings

    def _list_more_folders(self) -> list[Path]:
        """List the folders of `path` in the profile that are there."""
        root = self._around.workspace.root
        folders = [root / os.path.expanduser(each) for each in self._config.path]
        return [folder.resolve() for folder in folders if folder.is_dir()]

    def _list_dot_folders(self, members: Iterable[Member]) -> list[str]:
        configs = [member.config for member in members]
        own = find_own_dot_folders(self._around.workspace.root, configs, self._dot_folder_record)
        return [RUNTIME, *self._config.dot_folders, *own]

    async def _answer_request(self, method: str, params: Mapping[str, Any]) -> Any:
        """Answer a request; `install` comes for each component that the framework constructs."""
        if method != "install":
            return await self._answer(method, params)
        name = str(params["name"])
        pip = params["pip"]
        if name in self._prepared:
            return None
        # It was made by code, and no config.yaml names it.
        before = self._environment.site_packages
        await self._install([_Requirements(name, _read_pip_lines(pip))])
        if before != self._environment.site_packages:
            raise ToolError(f"{name} was installed, and the process must start again for it; call this again")
        return None

    async def _call(self, method: str, params: Message, limit_s: float | None) -> Any:
        worker = self._worker
        assert worker is not None
        try:
            return await worker.call(method, params, limit_s)
        except WorkerError:
            await self._drop()
            raise
        except asyncio.CancelledError:
            if worker.end:
                await finish(self._drop())
            raise

    async def _drop(self) -> None:
        """Forget a worker that has ended, and note what is lost with it."""
        worker = self._worker
        self._worker = None
        lost = self._lost or []
        self._lost = lost + [self.registry.members[key].name for key in self._loaded]
        self._loaded = []
        self._assets.lose_worker()
        if worker:
            await worker.close()


def find_framework() -> Path:
    """Return the folder that holds the package `concopilot` of goose_like's own environment."""
    from importlib.util import find_spec

    spec = find_spec("concopilot")
    if spec is None or spec.origin is None:
        raise ToolError("components need the package concopilot: pip install 'goose-like[components]'")
    return Path(spec.origin).parents[1]


def _find_code(member: Member, known: Mapping[str, CodePackage]) -> CodePackage | None:
    """Return the package with a component's code, if it is in a folder and not in an environment."""
    definition = member.definition
    package = None
    if "file" in member.named:
        package = find_code(member.file, definition.setup.package)
    package = package or known.get(str(definition.coordinates))
    if package is None or package.name == "concopilot":
        return None
    return package if package.folder.is_dir() else None


def _list_packages(members: Iterable[Member], known: Mapping[str, CodePackage]) -> list[CodePackage]:
    """List the packages with the code of components, each once."""
    packages = []
    for member in members:
        package = _find_code(member, known)
        if package and package not in packages:
            packages.append(package)
    return packages


def _check_options(name: str, words: _Words) -> None:
    for word in words:
        option = word.partition("=")[0].lstrip("-")
        if word.startswith("-") and option not in _PIP_OPTIONS:
            raise ToolError(f"{name}: setup.pip: {word} is not taken from a component; leave it out")


def _read_pip_lines(value: Any) -> list[_Words]:
    """Read a `setup.pip` that the worker sends, without ConCopilot itself, which is always there."""
    lines: list[_Words] = []
    for line in value if isinstance(value, list) else ():
        words = (line,) if isinstance(line, str) else tuple(map(str, line))
        if not words[0].startswith("concopilot"):
            lines.append(words)
    return lines


def _to_texts(paths: Iterable[Path]) -> list[str]:
    return list(map(str, paths))
