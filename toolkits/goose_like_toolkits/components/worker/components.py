"""The components of a worker: loaded with their resources, called, and finalized one by one."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from importlib import import_module
from typing import Any

from concopilot.framework.asset import Asset, AssetRef
from concopilot.framework.context import Context
from concopilot.framework.resource import BasicResourceManager, Resource
from concopilot.util import ClassDict
from concopilot.util.initializer import component as framework

from .assets import SharedAssets
from .corrections import finalize_after, get_constructor
from .values import from_json, to_json

_MANAGER = {"group_id": "goose_like", "artifact_id": "resources", "version": "1.0", "type": "resource_manager"}


class Components:
    """Loaded components by the keys that goose_like gives them."""

    def __init__(self) -> None:
        self._loaded: dict[str, Any] = {}
        self._assets = SharedAssets()
        self._context = Context(assets=self._assets.mapping)

    def load(self, key: str, named: Mapping[str, Any], resources: Sequence[Mapping[str, str]] = ()) -> None:
        """Construct a component, give it its resources, and initialize it. After an error it is finalized.

        Args:
            key: the component's key.
            named: as a config.yaml names a component, or `file` and `config`.
            resources: the `key` of each loaded resource that it uses, and the type under which it was `asked` for.
        """
        if key in self._loaded:  # goose_like gave up a call that had come this far
            return
        component = construct(named)
        if not isinstance(component, Resource):
            manager = BasicResourceManager(ClassDict.convert({**_MANAGER, "as_plugin": False, "config": {}}))
            used = [(self._loaded[each["key"]], each["asked"]) for each in resources]
            for resource, _ in used:
                manager.add_resource(resource)
            _add_asked_types(manager, used)
            component.config_resources(manager)
            _add_asked_types(component, used)
        component.config_context(self._context)
        with ExitStack() as stack:
            stack.callback(component.finalize)
            try:
                component.initialize()
                self._loaded[key] = component
            except BaseException as error:
                finalize_after(error, stack.pop_all())
                self._loaded.pop(key, None)
                raise
            stack.pop_all()

    def command(
        self, key: str, command: str, param: Any, live: Sequence[Any], assets: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Run a command; return its response and the changes of assets.

        Args:
            key: the component's key.
            command: the command's name.
            param: its parameter.
            live: path and reference of each place in `param` for a value that only this process holds.
            assets: assets that this process does not have.
        """
        self._assets.update(assets)
        param = from_json(param)
        for path, reference in live:
            value = AssetRef.convert(reference).retrieve(self._assets.mapping)
            param = _replace(param, path, value)
        if isinstance(param, dict):
            param = ClassDict.convert(param)
        response = to_json(self._loaded[key].command(command, param), self._keep)
        return {"response": response, "assets": self._assets.take_changes()}

    def finalize(self, key: str) -> None:
        """Finalize a component and forget it."""
        if component := self._loaded.pop(key, None):
            component.finalize()

    def _keep(self, value: Any) -> str:
        """Keep a value that JSON cannot hold as an asset, and return a reference to it."""
        asset = Asset(asset_type="object", content_type=str(type(value)), content=value)
        key = str(asset.asset_id)
        asset.asset_id = key
        self._assets.mapping[key] = asset
        return f"asset://{key}/content"


def construct(named: Mapping[str, Any], args: Sequence[str] = ()) -> Any:
    """Construct a component as the framework does: by its coordinates, or by the file of its config.yaml."""
    return framework.construct_component(read_config(named), *args)


def read_config(named: Mapping[str, Any]) -> Any:
    """Read the effective configuration of a component as the framework does."""
    outer = ClassDict.convert(dict(named))
    if "file" not in named:
        return framework.get_component_config(outer)
    folder, _, name = str(named["file"]).rpartition("/")
    config = framework.read_config_file(named["file"])
    return framework.config_component_config_meta(config, folder, name, outer)


def build(named: Mapping[str, Any], args: Sequence[str] = ()) -> str:
    """Construct a component and let it go; return the path of its configuration. Of an interactor, import the code."""
    config = read_config(named)
    if config.type == "interactor":
        get_constructor(config)
    else:
        framework.construct_component(config, *args)
    info = config["_config_info"]
    return f"{info.config_folder}/{info.config_file}"


def run(named: Mapping[str, Any], args: Sequence[str] = ()) -> None:
    """Run a copilot from its initialization to its end."""
    copilot = construct(named, args)
    if not isinstance(copilot, import_module("concopilot.framework.copilot").Copilot):
        raise TypeError(f"{type(copilot).__name__} is no copilot; only copilots can be run")
    copilot.run()


def _add_asked_types(owner: Any, used: Sequence[tuple[Any, str]]) -> None:
    """Let resources be found by the types under which they were asked for: `LLM` is a `model`."""
    for resource, asked in used:
        for kind in (asked, asked.lower()):
            owner.resource_type_map.setdefault(kind, [resource])


def _replace(value: Any, path: Sequence[str | int], new: Any) -> Any:
    if not path:
        return new
    value[path[0]] = _replace(value[path[0]], path[1:], new)
    return value
