"""From a plugin's source text to its object."""

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

from .plugin_context import PluginContext
from .taskweaver import Taskweaver

_PACKAGE = "taskweaver_ext.plugin"
_FRAMES = 4
_LIMIT_CHARS = 4_000


@dataclass(frozen=True)
class Source:
    """A plugin as the host sends it."""

    name: str
    text: str
    file: str
    config: dict[str, Any]
    env: dict[str, str] = field(repr=False)

    @classmethod
    def of(cls, message: dict[str, Any]) -> "Source":
        """One that came as a message."""
        config, env = message.get("config") or {}, message.get("env") or {}
        text = message["source"].removeprefix("\ufeff")  # some editors begin a file so
        return cls(message["name"], text, message["file"], config, env)

    def variables(self) -> dict[str, str]:
        """Its environment, by the names under which a context looks."""
        return {f"{self.name}_{variable}": value for variable, value in self.env.items()}


@dataclass(frozen=True)
class Test:
    """A test of a plugin, to be called with its object."""

    name: str
    description: str
    run: Callable[[Any], Any]


@dataclass(frozen=True)
class Implementation:
    """What a plugin's source registered."""

    source: Source
    module: ModuleType
    kind: Callable[[str, Any, dict[str, Any]], Any]
    tests: tuple[Test, ...]

    def make(self, context: Any) -> Any:
        """The plugin's object. Whatever its constructor raises comes through."""
        return self.kind(self.source.name, context, self.source.config)


class Loader:
    """Runs plugins' sources, each in a module of its own, where pickles and dataclasses find it."""

    def __init__(self, context: PluginContext) -> None:
        top, package = ModuleType(_PACKAGE.partition(".")[0]), ModuleType(_PACKAGE)
        for module in (top, package):
            module.__path__ = []
            sys.modules[module.__name__] = module
        vars(top)["plugin"] = package
        vars(package)["__context__"] = context
        vars(context)["__module__"] = _PACKAGE  # see its `__reduce__`
        self._beside = _Beside()
        sys.meta_path += [Taskweaver(), self._beside]

    def load(self, source: Source) -> Implementation:
        """What the source registers. A plugin that is loaded again has the modules that lie beside it loaded again.

        Whatever the source raises comes through, `SystemExit` too.

        Raises:
            RuntimeError: when it registers nothing, or more than one plugin.
        """
        if source.name in self._beside.files:
            self._beside.forget()
        self._beside.files[source.name] = source.file
        spec = ModuleSpec(f"{_PACKAGE}.{source.name}", None, origin=source.file)
        spec.has_location = True  # it gets a `__file__`
        module = module_from_spec(spec)
        lines = source.text.splitlines(keepends=True)
        linecache.cache[source.file] = (len(source.text), None, lines, source.file)  # tracebacks show what ran
        sys.modules[module.__name__] = module
        try:
            kind, tests = _registered(source, module)
        except BaseException:
            _drop(module.__name__)
            raise
        setattr(sys.modules[_PACKAGE], source.name, module)
        return Implementation(source, module, kind, tests)

    def unload(self, name: str) -> None:
        """Forgets a plugin's module; objects of it live on where somebody has them."""
        self._beside.files.pop(name, None)
        _drop(f"{_PACKAGE}.{name}")


def _registered(source: Source, module: ModuleType) -> tuple[Callable[..., Any], tuple[Test, ...]]:
    kinds: list[Callable[..., Any]] = []
    tests: list[Test] = []

    def register(kind: Callable[..., Any]) -> None:
        if kinds:
            raise RuntimeError(f"duplicated plugin impl registration for {source.name!r}; a file registers one plugin")
        kinds.append(kind)

    def register_test(name: str, description: str, run: Callable[[Any], Any]) -> None:
        tests.append(Test(name, description, run))

    hooks = vars(import_module("taskweaver.plugin.register"))
    hooks.update(register_plugin_inner=register, register_plugin_test_inner=register_test)
    try:
        exec(compile(source.text, source.file, "exec", dont_inherit=True), vars(module))
    finally:
        hooks.update(register_plugin_inner=None, register_plugin_test_inner=None)
    if not kinds:
        raise RuntimeError("nothing is registered in it; put @register_plugin before its class or function")
    return kinds[0], tuple(tests)


def told(error: BaseException, file: str) -> str:
    """The error with its kind, after where it came up: from the plugin's file on, at most four frames."""
    frames = traceback.extract_tb(error.__traceback__)
    first = next((number for number, frame in enumerate(frames) if frame.filename == file), len(frames))
    own = frames[first : first + 1] + frames[first + 1 :][-_FRAMES + 1 :]
    text = "".join([*traceback.format_list(own), *traceback.format_exception_only(error)])
    return text[:_LIMIT_CHARS].rstrip()


class _Beside(MetaPathFinder):
    """Finds modules that lie beside plugins, as `.name` and as `name`; belongs at the end of `sys.meta_path`.

    Not the plugins themselves: `wikipedia.py` that imports `wikipedia` means the library.
    """

    def __init__(self) -> None:
        self.files: dict[str, str] = {}  # of the plugins, by their names
        self._found: set[str] = set()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.rpartition(".")[0] not in ("", _PACKAGE):
            return None
        folders = dict.fromkeys(os.path.dirname(file) for file in reversed(self.files.values()))
        spec = PathFinder.find_spec(fullname, [folder for folder in folders if os.path.isabs(folder)])
        if spec is None or spec.origin is None or self._is_plugin(spec.origin):
            return None
        if isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Uncached(spec.loader.name, spec.loader.path)
        self._found.add(fullname)
        return spec

    def forget(self) -> None:
        """Has modules that were found here found anew when they are next imported."""
        for name in list(sys.modules):
            if any(f"{name}.".startswith(f"{found}.") for found in self._found):
                _drop(name)
        self._found.clear()
        invalidate_caches()

    def _is_plugin(self, file: str) -> bool:
        stem = os.path.splitext(file)[0]
        return file in self.files.values() or any(os.path.exists(stem + ending) for ending in (".yaml", ".yml"))


def _drop(name: str) -> None:
    """Takes a module out of the import system, where `from . import` finds it as its package's attribute as well."""
    package, _, attribute = name.rpartition(".")
    sys.modules.pop(name, None)
    if package in sys.modules:
        vars(sys.modules[package]).pop(attribute, None)


class _Uncached(SourceFileLoader):
    """Leaves no `__pycache__` among the person's files, and sees a change within the same second."""

    def path_stats(self, path: Any) -> Any:
        raise OSError("no bytecode")
