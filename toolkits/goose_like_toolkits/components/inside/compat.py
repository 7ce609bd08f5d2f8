"""The import names of ConCopilot, for components: the real package is what is imported wherever it is installed."""

import dis
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, module_from_spec
from types import FunctionType, ModuleType
from typing import Any

_ROOT = "concopilot"
_REAL = "the real package, `pip install concopilot`, can be put into the components' environment"

# What each module has. A source with a dot in front is a module beside this one, and the names' home is the module
# served; any other source is a module served. `a=b` serves b as a; a `constructor` is a function that makes one.
_SERVED: dict[str, dict[str, str]] = {
    "": {"package.config": "Settings", ".initializer": "conpack"},
    "util": {"util.class_dict": "ClassDict"},
    "util.class_dict": {".class_dict": "ClassDict"},
    "util.config": {},
    "util.config.tool": {".config_file": "get_config_folder read_config_file"},
    "util.config.versions": {".config_file": "sort_versions version_info"},
    "util.dicts": {".class_dict": "flatten_dict"},
    "util.error": {".errors": "ConCopilotError"},
    "util.initializer": {},
    "util.initializer.component": {
        ".initializer": "config_component_config_meta construct_component create create_component get_component_config"
        " get_component_config_file_path get_component_constructor"
    },
    "util.interruptable_queue": {".duplex": "InterruptableQueue"},
    "util.jsons": {".jsons": "JsonEncoder"},
    "util.singleton": {".settings": "Singleton SingletonMeta"},
    "util.yamls": {".yamls": "YamlDumper"},
    "package": {},
    "package.check": {".config_file": "md5 sha512"},
    "package.config": {
        ".settings": "Env Settings check_local_repo_path check_repos component_completion_flag curr_time"
        " default_config_files default_config_folder default_repo env load_settings"
    },
    "package.error": {".errors": "PackageException PackageHttpException PackageServiceException"},
    "package.validator": {".config_file": "validate_component_config_file"},
    "framework": {"framework.copilot": "Agent BasicAgent BasicCopilot Copilot"},
    "framework.asset": {"framework.asset.asset": "Asset AssetRef"},
    "framework.asset.asset": {".asset": "Asset AssetRef"},
    "framework.asset.asset_regex": {
        ".asset": "asset_ref_common_embedding_pattern asset_ref_img_markdown_embedding_pattern asset_ref_url_pattern"
    },
    "framework.cerebrum": {
        "framework.cerebrum.cerebrum": "AbstractCerebrum Cerebrum InteractParameter InteractResponse"
    },
    "framework.cerebrum.cerebrum": {".cerebrum": "AbstractCerebrum Cerebrum InteractParameter InteractResponse"},
    "framework.context": {"framework.context.context": "Context"},
    "framework.context.context": {".context": "Context"},
    "framework.copilot": {".copilot": "Agent BasicAgent BasicCopilot Copilot"},
    "framework.identity": {"framework.identity.identity": "Identity"},
    "framework.identity.identity": {".message": "Identity"},
    "framework.interactor": {"framework.interactor.interactor": "BasicInteractor Interactor"},
    "framework.interactor.interactor": {".interactor": "BasicInteractor Interactor"},
    "framework.interface": {
        "framework.interface.interface": "UserInterface",
        "framework.interface.simplex": "AgentDrivenSimplexUserInterface UserDrivenSimplexUserInterface",
        "framework.interface.duplex": "BasicDuplexUserInterface",
    },
    "framework.interface.duplex": {".duplex": "BasicDuplexUserInterface"},
    "framework.interface.interface": {".interface": "UserInterface"},
    "framework.interface.simplex": {".interface": "AgentDrivenSimplexUserInterface UserDrivenSimplexUserInterface"},
    "framework.message": {"framework.message.message": "Message"},
    "framework.message.manager": {".message_manager": "MessageManager"},
    "framework.message.message": {".message": "Message"},
    "framework.plugin": {
        "framework.plugin.plugin": "AbstractPlugin Plugin",
        "framework.plugin.promptgenerator": "PluginPromptGenerator",
        "framework.plugin.manager": "PluginManager",
    },
    "framework.plugin.manager": {".plugin_manager": "BasicPluginManager PluginManager"},
    "framework.plugin.plugin": {".plugin": "AbstractPlugin Plugin"},
    "framework.plugin.promptgenerator": {".plugin_manager": "PluginPromptGenerator"},
    "framework.resource": {
        "framework.resource.resource": "Resource",
        "framework.resource.manager": "BasicResourceManager ResourceManager",
        "framework.resource.category": "",
    },
    "framework.resource.category": {
        "framework.resource.category.model": "LLM Model",
        "framework.resource.category.disk": "Disk",
    },
    "framework.resource.category.disk": {".disk": "Disk"},
    "framework.resource.category.model": {".resource": "LLM Model"},
    "framework.resource.manager": {".resource": "BasicResourceManager ResourceManager"},
    "framework.resource.resource": {".resource": "Resource"},
    "framework.run": {".copilot": "build get_args run"},
    "framework.storage": {"framework.storage.storage": "Storage"},
    "framework.storage.storage": {".storage": "Storage"},
    "basic": {},
    "basic.copilot": {"framework.copilot": "BasicCopilot constructor=BasicCopilot"},
    "basic.interface": {},
    "basic.interface.cmd": {"basic.interface.cmd.interface": "CmdUserInterface constructor=CmdUserInterface"},
    "basic.interface.cmd.interface": {".interface": "CmdUserInterface"},
    "basic.interface.duplex": {
        "framework.interface.duplex": "BasicDuplexUserInterface constructor=BasicDuplexUserInterface"
    },
    "basic.message": {},
    "basic.message.manager": {},
    "basic.message.manager.jsonmanager": {
        "basic.message.manager.jsonmanager.manager": "BasicJsonMessageManager constructor=BasicJsonMessageManager"
    },
    "basic.message.manager.jsonmanager.manager": {
        ".message_manager": "BasicJsonMessageManager",
        ".repair": "fix_json_using_multiple_techniques=repaired",
    },
    "basic.message.manager.strmanager": {
        "basic.message.manager.strmanager.manager": "BasicStrMessageManager constructor=BasicStrMessageManager"
    },
    "basic.message.manager.strmanager.manager": {".message_manager": "BasicStrMessageManager"},
    "basic.plugin": {},
    "basic.plugin.manager": {"framework.plugin.manager": "BasicPluginManager constructor=BasicPluginManager"},
    "basic.resource": {},
    "basic.resource.category": {},
    "basic.resource.category.disk": {"framework.resource.category.disk": "Disk constructor=Disk"},
    "basic.resource.manager": {"framework.resource.manager": "BasicResourceManager constructor=BasicResourceManager"},
    "basic.storage": {},
    "basic.storage.disk": {"basic.storage.disk.storage": "DiskStorage constructor=DiskStorage"},
    "basic.storage.disk.storage": {".storage": "DiskStorage"},
    # What follows packs, signs and uploads, which is the host's affair: the modules are there and say so.
    "package.captcha": {},
    "package.conpack": {".initializer": "execute=conpack"},
    "package.encrypt": {},
    "package.repo": {},
    "package.request": {},
    "package.transfer": {},
}


class Concopilot(MetaPathFinder, Loader):
    """Finds `concopilot` and what lies in it. Belongs at the end of `sys.meta_path`: nobody else had it."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """
        Raises:
            ModuleNotFoundError: when it is below our `concopilot`, and there is no such module.
        """
        root, _, inner = fullname.partition(".")
        if root != _ROOT or (inner and not _is_ours(sys.modules.get(_ROOT))):
            return None
        if inner in _SERVED:
            return ModuleSpec(fullname, self, is_package=not inner or any(_children(inner)))
        parent = fullname.rpartition(".")[0]
        there = ", ".join(_children(parent.partition(".")[2])) or "none"
        raise ModuleNotFoundError(
            f"there is no module {fullname!r} here; {parent} has {there}. If a component needs it, {_REAL}",
            name=fullname,
        )

    def exec_module(self, module: ModuleType) -> None:
        names: list[str] = []
        for source, listed in _SERVED[module.__name__.partition(".")[2]].items():
            is_home = source.startswith(".")
            found = import_module(source, __package__) if is_home else import_module(f"{_ROOT}.{source}")
            if not listed:  # the module itself, which its parent has by now
                names.append(source.rpartition(".")[2])
            for entry in listed.split():
                name, _, original = entry.partition("=")
                value = getattr(found, original or name)
                if name == "constructor":
                    value = _constructor(value)
                setattr(module, name, value)
                names.append(name)
                if is_home:
                    _settle(value, found.__name__, module.__name__)
        vars(module).update(__all__=names, __getattr__=_absent(module.__name__, names))


def install() -> None:
    """Serves the names from now on, unless they are served already."""
    if any(isinstance(finder, Concopilot) for finder in sys.meta_path):
        return
    finder = Concopilot()
    sys.meta_path.append(finder)
    found = find_spec(_ROOT)
    if found is not None and found.origin is None and found.loader is not finder:
        # A folder of that name, without Python in it, would be imported as a package in its place.
        spec = ModuleSpec(_ROOT, finder, is_package=True)
        sys.modules[_ROOT] = module_from_spec(spec)
        finder.exec_module(sys.modules[_ROOT])


def _is_ours(module: ModuleType | None) -> bool:
    return module is not None and isinstance(getattr(module.__spec__, "loader", None), Concopilot)


def _children(inner: str) -> Iterator[str]:
    """The modules right below a served one."""
    for path in _SERVED:
        parent, _, name = path.rpartition(".")
        if path and parent == inner:
            yield name


def _constructor(kind: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def constructor(config: Any) -> Any:
        return kind(config)

    return constructor


def _settle(value: Any, here: str, home: str) -> None:
    """A class or function is of the module that serves it: components tell types by their names."""
    if isinstance(value, type | FunctionType) and value.__module__ == here:
        value.__module__ = home
        for inner in vars(value).values():
            if isinstance(inner, type) and inner is not value:
                _settle(inner, here, home)


def _absent(module: str, names: list[str]) -> Callable[[str], Any]:
    """What is asked for a name that the module has not: its submodules, and in words that there is none."""

    def find(name: str) -> Any:
        inner = module.partition(".")[2]
        if name in _children(inner):
            return import_module(f"{module}.{name}")
        there = ", ".join([*names, *_children(inner)]) or "none"
        text = f"{module} has no name {name!r} here; it has {there}. If a component needs it, {_REAL}"
        if name.startswith("__") or not _is_from_import():
            raise AttributeError(text)
        raise ImportError(text, name=module)

    return find


def _is_from_import() -> bool:
    """Whether an import statement asks: it would replace the text of an AttributeError by its own."""
    asking = sys._getframe(2)
    return dis.opname[asking.f_code.co_code[asking.f_lasti]] == "IMPORT_FROM"
