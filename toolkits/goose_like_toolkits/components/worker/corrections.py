"""Corrections of ConCopilot 0.0.5: each function replaces one thing that fails upstream or escapes goose_like's checks.

The framework is imported unchanged. `apply` is the only place that alters it.
"""

import json
import os
import pathlib
import re
import threading
import types
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from importlib import import_module
from typing import Any

from .connection import call
from .stored_values import decode, encode
from .values import from_json, to_json

_STORED = "$stored"
"""The only key of a stored value whose types are kept."""

_MODEL_TYPES = ("model", "llm")
_constructing = threading.local()


def apply(root: str, runtime_root: str, repositories: Sequence[str], can_download: bool) -> None:
    """Correct the framework for this process.

    Args:
        root: the running directory.
        runtime_root: the folder that holds `.runtime`; another one than `root` where that is read-only.
        repositories: local repositories in ConCopilot's layout; the first that has a component counts.
        can_download: whether components that are not in them are downloaded.
    """
    settings = import_module("concopilot.package.config").Settings()
    settings.working_directory = root
    settings.skip_setup = True
    _correct_components(runtime_root)
    _correct_repositories(repositories, settings, can_download)
    _correct_messages()
    _correct_assets()
    _correct_resources()
    _correct_disk()
    _correct_lifetimes()


def _correct_components(runtime_root: str) -> None:
    """Ask goose_like before pip; accept `instance_id: 0`; explain wrong constructors and circular inclusion."""
    component = import_module("concopilot.util.initializer.component")
    get_config_folder = component.get_config_folder

    def get_folder(_root: str, group: str, artifact: str, version: str, instance: Any = None) -> Any:
        instance = None if instance is None else str(instance)
        return get_config_folder(os.path.join(runtime_root, ".runtime"), group, artifact, version, instance)

    def construct(config: Any, *args: Any, **kwargs: Any) -> Any:
        stack = _constructing.__dict__.setdefault("stack", [])
        name = _name(config)
        info = config.get("_config_info") or {}
        place = (name, info.get("config_folder"), info.get("config_file"))
        if place in stack:
            start = stack.index(place)
            names = [entry[0] for entry in stack[start:]]
            way = " includes ".join([*names, name])
            raise ValueError(f"components include each other without end: {way}; remove one of them")
        stack.append(place)
        try:
            made = component.get_component_constructor(config)(config, *args, **kwargs)
        finally:
            stack.pop()
        if not isinstance(made, import_module("concopilot.framework.plugin").Plugin):
            raise TypeError(f"the constructor of {name} gives {made!r:.60}, which is no component; return a Plugin")
        return made

    component.get_config_folder = get_folder  # type: ignore[attr-defined]
    component.get_component_constructor = get_constructor  # type: ignore[attr-defined]
    component.construct_component = construct  # type: ignore[attr-defined]


def get_constructor(config: Mapping[str, Any]) -> Callable[..., Any]:
    """Return the `constructor` of a component's package, after goose_like has installed `setup.pip`."""
    setup = config.get("setup") or {}
    package = setup.get("package")
    if not package:
        raise ImportError(f"{_name(config)} has no `setup.package`; name the package that has its `constructor`")
    if setup.get("pip"):
        call("install", name=_name(config), pip=to_json(setup["pip"], str))
    try:
        module = import_module(package)
    except ModuleNotFoundError as error:
        if error.name and f"{package}.".startswith(f"{error.name}."):
            raise ImportError(
                f"the package {package!r} of {_name(config)} is nowhere: name what brings it in `setup.pip`, or the "
                "folder that holds it in `path` of the profile (conpack: --add-src-folder-to-path)"
            ) from None
        raise
    if not callable(getattr(module, "constructor", None)):
        raise ImportError(f"{package} ({module.__file__}) has no function `constructor`; add one that takes `config`")
    return module.constructor  # type: ignore[no-any-return]


def _name(config: Mapping[str, Any]) -> str:
    return ":".join(str(config.get(part)) for part in ("group_id", "artifact_id", "version"))


def _correct_repositories(repositories: Sequence[str], settings: Any, can_download: bool) -> None:
    """Look into several local repositories, and use the remote address that the settings name."""
    repo = import_module("concopilot.package.repo")
    config = import_module("concopilot.package.config")
    retrieve = repo.retrieve_config
    own_folder = settings.local_repo_path

    def retrieve_config(group_id: str, artifact_id: str, version: str, **kwargs: Any) -> Any:
        for folder in repositories:
            place = repo.get_config_folder(folder, group_id, artifact_id, version)
            if repo.check_config_file_existence(place, None, artifact_id, version, True)[0]:
                settings.local_repo_path = folder
                break
        try:
            return retrieve(group_id=group_id, artifact_id=artifact_id, version=version, **kwargs)
        finally:
            settings.local_repo_path = own_folder

    def refuse(group_id: str, artifact_id: str, version: str, **_: Any) -> None:
        name = f"{group_id}:{artifact_id}:{version}"
        raise repo.PackageException(f"there is no component {name} here; run: goose-like component install {name}")

    def repo_url(
        self: Any,
        repo_name: str,
        group_id: Any = None,
        artifact_id: Any = None,
        version: Any = None,
    ) -> str:
        parts = [(group_id or "").replace(".", "/"), artifact_id, version]
        return "/".join([self.url.rstrip("/"), "repository", repo_name, *filter(None, parts)])

    repo.retrieve_config = retrieve_config  # type: ignore[attr-defined]
    if not can_download:
        repo.from_remote_repo_to_folder = refuse  # type: ignore[attr-defined]
    config.Settings.Repo._repo_url = repo_url


def _correct_messages() -> None:
    """Keep responses that are no mappings, accept `plugin_call` for `plugin_calls`, and encode sets as JSON."""
    message = import_module("concopilot.framework.message").Message
    response = import_module("concopilot.framework.cerebrum").InteractResponse
    encoder = import_module("concopilot.util.jsons").JsonEncoder
    context = import_module("concopilot.framework.context").Context
    command_init = message.Command.__init__
    response_init = response.__init__
    encode = encoder.default
    context_init = context.__init__

    def init_command(self: Any, *, response: Any = None, **kwargs: Any) -> None:
        if response is None or isinstance(response, Mapping):
            command_init(self, response=response, **kwargs)
            return
        command_init(self, response=None, **kwargs)
        self.response = response

    def init_response(self: Any, *, plugin_calls: Any = None, plugin_call: Any = None, **kwargs: Any) -> None:
        calls = plugin_calls or ([plugin_call] if plugin_call else None)
        response_init(self, plugin_calls=calls, **kwargs)
        if plugin_call:
            self.plugin_call = self.plugin_calls[0]

    def init_context(self: Any, *, assets: Any = None, **kwargs: Any) -> None:
        if assets is None:
            assets = {}
        context_init(self, assets=assets, **kwargs)

    def encode_value(self: Any, value: Any) -> Any:
        if isinstance(value, set):
            return list(value)
        return encode(self, value)

    message.Command.__init__ = init_command
    response.__init__ = init_response
    encoder.default = encode_value
    context.__init__ = init_context


def _correct_assets() -> None:
    """Let `asset://ID` mean the whole asset."""
    reference = import_module("concopilot.framework.asset").AssetRef
    module = import_module("concopilot.framework.asset.asset")
    convert = reference.convert_url

    def convert_url(url: str) -> Any:
        made = convert(url)
        made.field_path = [part for part in made.field_path if part]
        return made

    reference.convert_url = staticmethod(convert_url)
    module.asset_ref_url_pattern = re.compile(  # type: ignore[attr-defined]
        r"^\s*(?:<\|)?\s*(asset://[^/\s]\S*?/?)\s*(?:\|>)?\s*$", re.IGNORECASE
    )


def _correct_resources() -> None:
    """Find resources by type in any case, and a model by the type `LLM`, too."""
    plugin = import_module("concopilot.framework.plugin").AbstractPlugin
    find = plugin.get_resource

    def get_resource(
        self: Any, *, resource_id: Any = None, resource_name: Any = None, resource_type: Any = None
    ) -> Any:
        for kind in _list_same_types(resource_type):
            found = find(self, resource_id=resource_id, resource_name=resource_name, resource_type=kind)
            if found is not None:
                return found
        return None

    plugin.get_resource = get_resource


def _list_same_types(kind: Any) -> list[Any]:
    """Return the names under which a type of resource may be known, the given one first."""
    if not isinstance(kind, str):
        return [kind]
    if kind.lower() in _MODEL_TYPES:
        return [kind, *_MODEL_TYPES, "LLM"]
    return [kind, kind.lower()]


def _correct_disk() -> None:
    """Resolve paths of a disk below its root, links too, and store values as JSON in place of pickles."""
    disk = import_module("concopilot.framework.resource.category.disk").Disk
    storage = import_module("concopilot.basic.storage.disk.storage")
    convert = import_module("concopilot.util").ClassDict.convert

    def check_in_root(self: Any, path: Any) -> pathlib.Path:
        root = self.root.resolve()
        folder = (self.root / path).parent.resolve()
        whole: pathlib.Path = folder / pathlib.Path(path).name
        target = whole.resolve()
        if path and target != root and target.is_relative_to(root):
            return whole
        raise ValueError(f"Input path ({path}) does not represent a position under the root path ({self.root})")

    def dump(value: Any) -> bytes:
        return json.dumps({_STORED: encode(value)}).encode()

    def load(data: bytes) -> Any:
        try:
            stored = json.loads(data)
        except ValueError:
            raise ValueError("this value was stored as a pickle, which could run code; store it again") from None
        if isinstance(stored, dict) and stored.keys() == {_STORED}:
            return decode(stored[_STORED])
        return convert(from_json(stored))  # stored before types were kept

    disk._check_in_root = check_in_root
    storage.pickle = types.SimpleNamespace(dumps=dump, loads=load)  # type: ignore[attr-defined]


def _correct_lifetimes() -> None:
    """Finalize all parts that were initialized, in reverse order, also when one of them fails.

    A plugin manager needs no prompt generator: plugins without a prompt have an empty one.
    """
    resources = import_module("concopilot.framework.resource.manager").BasicResourceManager
    plugins = import_module("concopilot.framework.plugin.manager").PluginManager
    copilot = import_module("concopilot.framework.copilot").BasicCopilot

    def run(self: Any) -> None:
        with ExitStack() as stack:
            if self.resource_manager:
                stack.callback(lambda: self.resource_manager.finalize())
            if self.plugin_manager:
                stack.callback(lambda: self.plugin_manager.finalize())
            self.initialize_copilot()
            self.run_interaction()

    for manager, parts in ((resources, "resources"), (plugins, "plugins")):
        initialize, finalize = _lifetime_methods(parts)
        manager.initialize = initialize
        manager.finalize = finalize
    copilot.run = run
    nothing = types.SimpleNamespace(generate_prompt=lambda _: "", config_resources=id, config_context=id)
    import_module("concopilot.framework.plugin.manager").BasicPluginManager._plugin_prompt_generator = nothing


def _lifetime_methods(parts: str) -> tuple[Callable[[Any], None], Callable[[Any], None]]:
    def initialize(self: Any) -> None:
        stack = ExitStack()
        self.__dict__["_begun"] = stack
        try:
            for part in getattr(self, parts):
                stack.callback(part.finalize)
                part.initialize()
        except BaseException as error:
            finalize_after(error, stack)
            raise

    def finalize(self: Any) -> None:
        stack = self.__dict__.pop("_begun", ExitStack())
        stack.close()

    return initialize, finalize


def finalize_after(error: BaseException, stack: ExitStack) -> None:
    """Finalize after an error; add what fails then to the notes of the error."""
    try:
        stack.close()
    except BaseException as second:  # foreign code
        if second is not error:
            error.add_note(f"and then: {type(second).__name__}: {second}")
