"""The components in this process: loaded with their resources, called, and given back in reverse order."""

import sys
import uuid
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

from concopilot.framework.asset import Asset, AssetRef
from concopilot.framework.context import Context
from concopilot.framework.resource import BasicResourceManager, Resource
from concopilot.util import ClassDict

from .compat import Concopilot
from .faults import told
from .lifetimes import after
from .plain import plain, unplain
from .shared_assets import SharedAssets
from .wire import call

_MANAGER = {"group_id": "goose_like", "artifact_id": "resources", "version": "1.0", "type": "resource_manager"}


class Components:
    """What was loaded, by the host's keys, in that order."""

    def __init__(self) -> None:
        self._loaded: dict[str, Any] = {}
        self._assets = SharedAssets()
        self._context = Context(assets=ClassDict())
        self._context["assets"] = self._assets

    def load(self, key: str, config: Mapping[str, Any], resources: Sequence[Mapping[str, str]] = ()) -> dict[str, Any]:
        """Makes a component, gives it its resources, and initialises it; gives its name and id.

        One that fails in that is finalised, and made anew by the next call.

        Args:
            config: all of its config.yaml, with its effective `config`.
            resources: `key` of each that it uses (loaded before), and `asked`: the type under which it asks for it.
        """
        if there := self._loaded.get(key):  # the host gave up that call when this was done already
            return {"name": there.name, "id": str(there.id)}
        component = constructed(config)
        if not isinstance(component, Resource):
            manager = BasicResourceManager(ClassDict.convert({**_MANAGER, "as_plugin": False, "config": {}}))
            used = [(self._loaded[each["key"]], each["asked"]) for each in resources]
            for resource, _ in used:
                manager.add_resource(resource)
            _call_as_asked(manager, used)
            component.config_resources(manager)
            _call_as_asked(component, used)
        component.config_context(self._context)
        try:
            component.initialize()
            self._loaded[key] = component
        except BaseException as error:
            self._loaded.pop(key, None)
            after(error, component.finalize)
            raise
        return {"name": component.name, "id": str(component.id)}

    def command(
        self, key: str, command: str, param: Any, live: Sequence[Any] = (), assets: Sequence[str] = ()
    ) -> dict[str, Any]:
        """What the command gives, and what became of the assets meanwhile.

        Args:
            live: path and reference of each place in `param` that stands for something that only we can hold.
            assets: the ids of all that there are.
        """
        self._assets.learn(assets)
        param = unplain(param)
        for path, reference in live:
            param = _replaced(param, path, AssetRef.convert(reference).retrieve(self._assets))
        if isinstance(param, dict):
            param = ClassDict.convert(param)
        response = plain(self._loaded[key].command(command, param), self._keep)
        return {"response": response, "assets": self._assets.changes()}

    def run(self, config: Mapping[str, Any], args: Sequence[str] = ()) -> None:
        """Runs a copilot, from its initialisation to its end."""
        copilot = constructed(config, *args)
        if not callable(getattr(copilot, "run", None)):
            raise TypeError(f"{type(copilot).__name__} is no copilot: it has no `run`; `type` is {config['type']!r}")
        try:
            copilot.run()
        except BaseException as error:
            if is_real():  # it leaves its resources open then
                after(error, copilot.finalize_copilot)
            raise

    def finish(self) -> list[str]:
        """Gives back all in reverse order; what goes wrong with one does not keep the others. Gives what went wrong."""
        faults = []
        while self._loaded:
            _, component = self._loaded.popitem()
            try:
                component.finalize()
            except BaseException as error:
                faults.append(f"{component.name or component.artifact_id}: {told(error)['message']}")
        return faults

    def _keep(self, value: Any) -> str:
        """A value that no JSON can hold stays here, as an asset, and its reference goes in its place."""
        key = str(uuid.uuid4())
        self._assets[key] = Asset(asset_type="object", asset_id=key, content_type=str(type(value)), content=value)
        return f"asset://{key}/content"


def constructed(config: Mapping[str, Any], *args: Any) -> Any:
    """The component of a configuration, made by its package's `constructor`."""
    return constructor_of(config)(ClassDict.convert(config), *args)


def constructor_of(config: Mapping[str, Any]) -> Callable[..., Any]:
    """Raises: ImportError: the package can't be imported, or has none."""
    package = (config.get("setup") or {}).get("package")
    if not package:
        raise ImportError("its config.yaml has no `setup.package`; name the package whose `constructor` makes it")
    try:
        module = import_module(package)
    except ModuleNotFoundError as error:
        if error.name and f"{package}.".startswith(f"{error.name}."):
            raise ImportError(_nowhere(package)) from None
        raise
    if not callable(getattr(module, "constructor", None)):
        raise ImportError(f"{package} ({module.__file__}) has no function `constructor`; add one that takes `config`")
    constructor: Callable[..., Any] = module.constructor
    return constructor


def _nowhere(package: str) -> str:
    return (
        f"its `setup.package` {package!r} is nowhere: pip brings it if `setup.pip` names what holds it; if it is a "
        "folder, `path` in the profile (conpack: --add-src-folder-to-path) names the one that it lies in"
    )


def construct(config: Mapping[str, Any], args: Sequence[str] = ()) -> None:
    """Makes a component and lets it go: whether it can be made is what is asked.

    An interactor is made by its copilot alone, so of it only the package is imported.
    """
    if config.get("type") == "interactor":
        constructor_of(config)
    else:
        constructed(config, *args)


def is_real() -> bool:
    """Whether what is imported as `concopilot` is the package of that name, and not what stands in for it here."""
    return not isinstance(getattr(sys.modules["concopilot"].__spec__, "loader", None), Concopilot)


def find_by_host() -> None:
    """Has the real package, too, ask the host for components that are named in others."""
    if is_real():
        component = import_module("concopilot.util.initializer.component")
        component.get_component_config = _resolved  # type: ignore[attr-defined]
        component.get_component_constructor = constructor_of  # type: ignore[attr-defined]


def _resolved(config: Mapping[str, Any]) -> Any:
    """All of a component's configuration, for the mapping that names it."""
    return ClassDict.convert(call("resolve", config=plain(config, str)))


def _call_as_asked(owner: Any, used: Sequence[tuple[Any, str]]) -> None:
    """Finds resources by the types under which they are asked for, too: LLM is a model."""
    for resource, asked in used:
        for kind in (asked, asked.lower()):
            owner.resource_type_map.setdefault(kind, [resource])


def _replaced(value: Any, path: Sequence[str | int], new: Any) -> Any:
    if not path:
        return new
    value[path[0]] = _replaced(value[path[0]], path[1:], new)
    return value
