"""Loading of plugins from their source text."""

import linecache
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import import_module, invalidate_caches
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import module_from_spec
from types import ModuleType
from typing import Any

from .code_names import list_parents
from .plugin_context import PluginContext
from .taskweaver import TaskWeaverFinder

_PACKAGE = "taskweaver_ext.plugin"
_FRAMES = 4
_ERROR_CHARS = 4_000


@dataclass(frozen=True)
class PluginSource:
    """A plugin as the host sends it."""

    name: str
    text: str
    file: str
    config: dict[str, Any]
    env: dict[str, str] = field(repr=False)

    @classmethod
    def from_message(cls, message: dict[str, Any]) -> "PluginSource":
        """Read a plugin from a message of the host."""
        text = message["source"].removeprefix("\ufeff")  # a byte order mark of some editors
        config = message.get("config") or {}
        env = message.get("env") or {}
        return cls(message["name"], text, message["file"], config, env)

    def list_variables(self) -> dict[str, str]:
        """Return the environment variables with keys `<plugin>_<variable>`."""
        return {f"{self.name}_{variable}": value for variable, value in self.env.items()}


@dataclass(frozen=True)
class PluginTest:
    """A test of a plugin; `run` takes the plugin's object."""

    name: str
    description: str
    run: Callable[[Any], Any]


@dataclass(frozen=True)
class LoadedPlugin:
    """The class and the tests that the source of a plugin registered."""

    source: PluginSource
    module: ModuleType
    factory: Callable[[str, Any, dict[str, Any]], Any]
    tests: tuple[PluginTest, ...]

    def create(self, context: Any) -> Any:
        """Create the plugin's object. Errors of its constructor propagate."""
        return self.factory(self.source.name, context, self.source.config)


class PluginLoader:
    """A loader that runs each source in its own module, so that pickles and dataclasses find their classes."""

    def __init__(self, context: PluginContext) -> None:
        top_name, _, _ = _PACKAGE.partition(".")
        top = ModuleType(top_name)
        package = ModuleType(_PACKAGE)
        for module in (top, package):
            module.__path__ = []
            sys.modules[module.__name__] = module
        vars(top)["plugin"] = package
        vars(package)["__context__"] = context
        vars(context)["__module__"] = _PACKAGE  # used by `PluginContext.__reduce__`
        self._siblings = _SiblingFinder()
        sys.meta_path += [TaskWeaverFinder(), self._siblings]

    def load(self, source: PluginSource) -> LoadedPlugin:
        """Run a source and return what it registers. All its errors propagate, also `SystemExit`.

        Loading a plugin again also reloads the modules beside it.

        Raises:
            RuntimeError: The source registers no plugin, or more than one.
        """
        if source.name in self._siblings.plugin_files:
            self._siblings.forget()
        self._siblings.plugin_files[source.name] = source.file
        spec = ModuleSpec(f"{_PACKAGE}.{source.name}", None, origin=source.file)
        spec.has_location = True  # sets `__file__`
        module = module_from_spec(spec)
        lines = source.text.splitlines(keepends=True)
        linecache.cache[source.file] = (len(source.text), None, lines, source.file)  # for tracebacks
        sys.modules[module.__name__] = module
        try:
            factory, tests = _run_source(source, module)
        except BaseException:
            _remove_module(module.__name__)
            raise
        setattr(sys.modules[_PACKAGE], source.name, module)
        return LoadedPlugin(source, module, factory, tests)

    def unload(self, name: str) -> None:
        """Remove the module of a plugin; existing objects keep working."""
        self._siblings.plugin_files.pop(name, None)
        _remove_module(f"{_PACKAGE}.{name}")


def _run_source(source: PluginSource, module: ModuleType) -> tuple[Callable[..., Any], tuple[PluginTest, ...]]:
    factories: list[Callable[..., Any]] = []
    tests: list[PluginTest] = []

    def register(factory: Callable[..., Any]) -> None:
        if factories:
            raise RuntimeError(f"duplicated plugin impl registration for {source.name!r}; a file registers one plugin")
        factories.append(factory)

    def register_test(name: str, description: str, run: Callable[[Any], Any]) -> None:
        tests.append(PluginTest(name, description, run))

    hooks = vars(import_module("taskweaver.plugin.register"))
    hooks.update(register_plugin_inner=register, register_plugin_test_inner=register_test)
    try:
        code = compile(source.text, source.file, "exec", dont_inherit=True)
        exec(code, vars(module))
    finally:
        hooks.update(register_plugin_inner=None, register_plugin_test_inner=None)
    if not factories:
        raise RuntimeError("nothing is registered; put @register_plugin before the class or function")
    return factories[0], tuple(tests)


def format_plugin_error(error: BaseException, file: str) -> str:
    """Format an error with at most four frames, from the plugin's file on."""
    frames: list[traceback.FrameSummary] = []
    for frame in traceback.extract_tb(error.__traceback__):
        if frames or frame.filename == file:
            frames.append(frame)
    del frames[1 : 1 - _FRAMES]  # the middle
    lines = [*traceback.format_list(frames), *traceback.format_exception_only(error)]
    text = "".join(lines)
    return text[:_ERROR_CHARS].rstrip()


class _SiblingFinder(MetaPathFinder):
    """A finder for modules beside plugins, imported as `.name` or `name`. Append it to `sys.meta_path`.

    The finder skips plugins: in `wikipedia.py`, `import wikipedia` means the library.
    """

    def __init__(self) -> None:
        self.plugin_files: dict[str, str] = {}  # by name of the plugin
        self._found: set[str] = set()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find a module in the folders of the plugins."""
        parent, _, _ = fullname.rpartition(".")
        if parent not in ("", _PACKAGE):
            return None
        spec = PathFinder.find_spec(fullname, self._list_folders())
        if spec is None or spec.origin is None or self._is_plugin(spec.origin):
            return None
        if isinstance(spec.loader, SourceFileLoader):
            spec.loader = _UncachedLoader(spec.loader.name, spec.loader.path)
        self._found.add(fullname)
        return spec

    def forget(self) -> None:
        """Remove the modules that this finder found, so that their next import reads the files again."""
        for name in list(sys.modules):
            if not self._found.isdisjoint(list_parents(name)):
                _remove_module(name)
        self._found.clear()
        invalidate_caches()

    def _list_folders(self) -> list[str]:
        """List the folders of the plugins, that of the newest one first."""
        folders = map(os.path.dirname, reversed(self.plugin_files.values()))
        return [folder for folder in dict.fromkeys(folders) if os.path.isabs(folder)]

    def _is_plugin(self, file: str) -> bool:
        if file in self.plugin_files.values():
            return True
        stem, _ = os.path.splitext(file)
        return os.path.exists(f"{stem}.yaml") or os.path.exists(f"{stem}.yml")


class _UncachedLoader(SourceFileLoader):
    """A loader that writes no `__pycache__` into the user's folders, and sees a change within the same second."""

    def path_stats(self, path: Any) -> Any:
        """Report that no bytecode can be used."""
        raise OSError("no bytecode")


def _remove_module(name: str) -> None:
    """Remove a module from `sys.modules` and from its package, where `from . import` looks too."""
    package, _, attribute = name.rpartition(".")
    sys.modules.pop(name, None)
    if package in sys.modules:
        vars(sys.modules[package]).pop(attribute, None)
