"""The components of a session at work in one worker process."""

import asyncio
import hashlib
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
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
    *("pre", "upgrade", "U", "no-deps", "no-index", "prefer-binary", "no-build-isolation", "use-pep517"),
    *("index-url", "i", "extra-index-url", "find-links", "f", "trusted-host", "only-binary", "no-binary"),
    *("force-reinstall", "quiet", "q", "timeout", "retries", "upgrade-strategy"),
}


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
        folder = state_folder() / "environments" / hashlib.sha256(os.fsencode(identity)).hexdigest()[:16]
        self._dot_folder_record = folder.with_name(f"{folder.name}-dot-folders")
        self._environment = VirtualEnvironment(around.workspace, folder, sees_packages=True, notifier=around.notifier)
        self._worker: WorkerProcess | None = None
        self._visible: set[str] = set()
        self._prepared: set[str] = set()
        self._loaded: list[str] = []
        self._lost: list[str] | None = None
        self._denied: dict[tuple[tuple[str, ...], ...], DeniedError] = {}
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
            asked = {"key": member.key, "command": command, "param": param, "live": live}
            assets = self._assets.take_unsent()
            answer = await self._call("command", {**asked, "assets": assets}, self._config.timeout_s)
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
            if worker := self._worker:
                self._worker = None
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
            if each.key not in self._loaded:
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
        every = {each.key: each for member in members for each in self.registry.list_included(member)}
        code = {key: _find_code(each, known) for key, each in every.items()}
        await self._install([(each.name, list_requirements(each.definition, code[key])) for key, each in every.items()])
        self._prepared |= {str(each.definition.coordinates) for each in every.values()}
        site = self._environment.site_packages
        seen = {str(package.folder) for package in code.values() if package} | ({str(site)} if site else set())
        if self._worker and not self._worker.end and not seen <= self._visible:
            for problem in await self._finalize():
                self._around.notifier.log(f"components: {problem}")
            await self._drop()
        if self._worker and self._worker.end:
            await self._drop()
        if self._worker is None:
            self._visible = seen
            self._worker = await self._start(known)

    async def _install(self, wanted: Sequence[tuple[str, Sequence[tuple[str, ...]]]]) -> None:
        """Install requirements with one question. A refusal holds for the rest of the session."""
        if not self._config.setup:
            return
        lines: dict[tuple[str, ...], str] = {}
        for name, requirements in wanted:
            for words in requirements:
                for word in words:
                    if word.startswith("-") and word.partition("=")[0].lstrip("-") not in _PIP_OPTIONS:
                        raise ToolError(f"{name}: setup.pip: {word} is not taken from a component; leave it out")
                if self._environment.find_missing([word for word in words if not word.startswith("-")]):
                    lines.setdefault(words, name)
        missing = tuple(lines)
        if not missing:
            return
        if missing in self._denied:
            raise self._denied[missing]
        try:
            names = ", ".join(dict.fromkeys(lines.values()))
            for text in await self._environment.install(missing, f"the components {names}", self._config.pip_params):
                self._around.notifier.log(f"components: {text[0].lower()}{text[1:]}")
        except DeniedError as error:
            self._denied[missing] = error
            raise

    def _take_loss(self) -> list[str]:
        """Return a note about what was lost with a worker since the last note."""
        lost, self._lost = self._lost, None
        if lost is None:
            return []
        held = f"; what these held is gone: {', '.join(dict.fromkeys(lost))}" if lost else ""
        return [f"the components' process is a new one{held}"]

    # --- the worker

    async def _start(self, known: Mapping[str, CodePackage]) -> WorkerProcess:
        workspace, has_network = self._around.workspace, self._config.network or self._around.workspace.has_network
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
            if value := find_key(name):
                found[name] = value
            else:
                self._around.notifier.log(f"components: {name} is not set; export it, or store it: goose-like setup")
        return found

    def _describe_worker(self, known: Mapping[str, CodePackage], has_network: bool) -> tuple[SandboxScope, Message]:
        """Return what the worker sees, and its settings."""
        workspace = self._around.workspace
        more = [workspace.root / os.path.expanduser(each) for each in self._config.path]
        more = [folder.resolve() for folder in more if folder.is_dir()]
        members = [each for member in self.registry.members.values() for each in self.registry.list_included(member)]
        dot_folders = [RUNTIME, *self._config.dot_folders]
        dot_folders += find_own_dot_folders(
            workspace.root, [member.config for member in members], self._dot_folder_record
        )
        packages = list(dict.fromkeys(filter(None, (_find_code(each, known) for each in members))))
        self._visible |= {str(package.folder) for package in packages}
        folders: dict[str, list[str]] = {}
        for package in packages:
            folders.setdefault(package.name, []).append(str(package.root))
        framework, site = find_framework(), self._environment.site_packages
        tmp = workspace.tmp / "components"
        tmp.mkdir(exist_ok=True)
        repositories = [each for each in self.registry.repositories.folders if each.is_dir()]
        configs = [each.file.parent for each in members if "file" in each.named]
        own = [*more, *repositories, *configs, *(package.folder for package in packages), *([site] if site else ())]
        is_read_only = workspace.mode == "read-only"
        settings: Message = {
            "root": str(workspace.root),
            "runtime_root": workspace.path_in_sandbox(tmp) if is_read_only else str(workspace.root),
            "folders": {**folders, "concopilot": [str(framework)]},
            "site_folders": [str(site)] if site else [],
            "more_folders": [str(folder) for folder in more],
            "repositories": [str(folder) for folder in repositories],
            "readable": [str(folder) for folder in own],
            "listed": [str(parent) for package in packages for parent in package.parents],
            "dot_folders": dot_folders,
            "tmp": workspace.path_in_sandbox(tmp),
            "has_network": has_network,
        }
        return SandboxScope(readable=(WORKER_FOLDER, *own), dot_folders=tuple(dot_folders)), settings

    async def _answer_request(self, method: str, params: Mapping[str, Any]) -> Any:
        """Answer a request; `install` comes for each component that the framework constructs."""
        if method != "install":
            return await self._answer(method, params)
        name, lines = str(params["name"]), params["pip"] if isinstance(params["pip"], list) else []
        if name not in self._prepared:  # made by code, not named in a config.yaml
            before = self._environment.site_packages
            wanted = [(line,) if isinstance(line, str) else tuple(map(str, line)) for line in lines]
            await self._install([(name, [line for line in wanted if not line[0].startswith("concopilot")])])
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
        worker, self._worker = self._worker, None
        gone, self._loaded = self._loaded, []
        self._assets.lose_worker()
        self._lost = [*(self._lost or ()), *(self.registry.members[key].name for key in gone)]
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
    own = find_code(member.file, member.definition.setup.package) if "file" in member.named else None
    package = own or known.get(str(member.definition.coordinates))
    return package if package and package.folder.is_dir() and package.name != "concopilot" else None
