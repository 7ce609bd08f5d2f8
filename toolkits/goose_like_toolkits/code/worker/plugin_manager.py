"""Desk: what the host sends comes in here; before a cell runs, the plugins that it names are put in their places."""

import ast
import re
import warnings
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from .plugin_context import PluginContext, Tell
from .plugin_loader import Implementation, Loader, Source, told
from .plugin_trial import try_out


class Off:
    """In the place of a plugin that could not be loaded: who calls it is told why."""

    _why = ""  # a copy is asked for attributes before it has any

    def __init__(self, name: str, error: str, is_lacking: bool) -> None:
        then = "when it is named again, so install what it lacks" if is_lacking else "when its file has changed"
        self._why = f"the plugin {name!r} is off, because loading it failed; it is loaded again {then}\n{error}"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise NameError(self._why)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(self._why)

    def __repr__(self) -> str:
        return f"<{self._why}>"


@dataclass(frozen=True)
class _Placed:
    """What stands in the namespace under a plugin's name by our hand, and what it was made of."""

    source: Source
    value: Any
    implementation: Implementation | None = None
    error: str | None = None
    is_lacking: bool = False  # what it lacks may be installed by now
    globals: dict[str, tuple[int, int]] | None = None  # its module's, as they were when it was made

    def has_state(self) -> bool:
        """Whether it may remember anything: attributes of its own, or what its module's names came to hold."""
        if self.implementation is None:
            return False
        own = getattr(self.value, "__dict__", {}).keys() - {"name", "ctx", "config"}
        return bool(own) or self.globals != _fingerprint(self.implementation)


def _fingerprint(implementation: Implementation) -> dict[str, tuple[int, int]]:
    """Which object each global of a plugin's module is, and how much is in it."""
    names = [(name, it) for name, it in list(vars(implementation.module).items()) if not name.startswith("__")]
    return {name: (id(it), len(it) if isinstance(it, (list, dict, set)) else 0) for name, it in names}


class Desk:
    """For one kernel: its namespace, its plugins and their context. `tell` takes messages for the host, in any thread.

    An interruption while a plugin is loaded comes through, and the plugin is loaded when it is next named. Nothing
    else that a plugin does while it is loaded is raised.
    """

    def __init__(self, namespace: dict[str, Any], tell: Tell) -> None:
        self._namespace = namespace
        self._tell = tell
        self._context = PluginContext(tell)
        self._loader = Loader(self._context)
        self._sources: dict[str, Source] = {}
        self._placed: dict[str, _Placed] = {}
        self._at_first = dict(namespace)
        self._names: list[str] = []

    def take(self, message: dict[str, Any]) -> None:
        """Does what a message of the host says."""
        match message["type"]:
            case "setup":
                self._context.begin_session(message["session"], message["artifacts"])
                self._context.set_variables(message["variables"])
                self._take_plugins(message["plugins"], [])
            case "plugins":
                self._take_plugins(message["plugins"], message["gone"])
            case "variables":
                self._context.set_variables(message["variables"])
            case "test":
                self._try_out(message["plugin"])

    def before_cell(self, code: str) -> None:
        """Loads the plugins that the code names and that are not loaded yet; and those that changed.

        These whether they are named or not: a function of an earlier cell may call them.
        """
        self._context.begin_execution()
        changed = {name for name, placed in self._placed.items() if placed.source is not self._sources[name]}
        for name in sorted(changed | named(code, self._sources.keys())):
            self._place(name)

    def after_cell(self) -> None:
        """Tells which variables the person has, when they are not the same as after the cell before."""
        names = sorted(name for name in list(self._namespace) if self._is_theirs(name))
        if names != self._names:
            self._names = names
            self._tell({"type": "names", "names": names})

    def _take_plugins(self, plugins: list[dict[str, Any]], gone: list[str]) -> None:
        for name in gone:
            if self._stands(name):
                del self._namespace[name]
                if name in self._at_first:
                    self._namespace[name] = self._at_first[name]
            self._placed.pop(name, None)
            self._sources.pop(name, None)
            self._loader.unload(name)
        for source in map(Source.of, plugins):
            self._sources[source.name] = source
        self._context.set_env(
            {name: value for source in self._sources.values() for name, value in source.variables().items()}
        )

    def _place(self, name: str) -> None:
        if not self._is_free(name) and not self._stands(name):
            return  # the person's code gave the name to something else
        former, source = self._placed.get(name), self._sources[name]
        if former is None or former.source is not source or former.is_lacking:
            self._placed[name] = self._loaded(source, former)
        self._namespace[name] = self._placed[name].value

    def _loaded(self, source: Source, former: _Placed | None) -> _Placed:
        lost_state = former is not None and former.has_state()
        try:
            implementation = self._loader.load(source)
            value = implementation.make(self._context)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # a stranger's code, which may call sys.exit
            why, is_lacking = told(error, source.file), isinstance(error, ImportError)
            if former is None or former.error != why:
                self._tell({"type": "failed", "plugin": source.name, "error": why})
            return _Placed(source, Off(source.name, why, is_lacking), error=why, is_lacking=is_lacking)
        if former:
            self._tell({"type": "reloaded", "plugin": source.name, "lost_state": lost_state})
        return _Placed(source, value, implementation, globals=_fingerprint(implementation))

    def _is_free(self, name: str) -> bool:
        at_first = self._at_first.get(name, self)  # IPython's own `open` is nobody's
        return self._namespace.get(name, at_first) is at_first

    def _stands(self, name: str) -> bool:
        placed = self._placed.get(name)
        return placed is not None and self._namespace.get(name) is placed.value

    def _is_theirs(self, name: str) -> bool:
        # `globals()[1] = 2` is possible
        is_name = isinstance(name, str) and name.isidentifier() and not name.startswith("_")
        return is_name and name not in self._at_first and not self._stands(name)

    def _try_out(self, name: str) -> None:
        source, placed = self._sources[name], self._placed.get(name)
        try:
            implementation = (placed and placed.implementation) or self._loader.load(source)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            self._tell({"type": "failed", "plugin": name, "error": told(error, source.file)})
        else:
            tests = try_out(implementation, self._context.variables)
            self._tell({"type": "tested", "plugin": name, "tests": tests})


def named(code: str, names: Collection[str]) -> set[str]:
    """Those of the names that the code reads; where it is no plain Python, those that it has as words."""
    words = set(re.findall(r"\w+", code)).intersection(names)
    if not words:
        return set()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the cell's own compilation says them
            tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return words
    return words & {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
