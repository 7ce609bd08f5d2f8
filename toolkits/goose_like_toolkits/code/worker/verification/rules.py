"""Rules: which modules and functions the code of cells may use, and what it never may while there are any."""

import builtins
import sys
from collections.abc import Iterable
from types import BuiltinFunctionType, CodeType, FrameType, FunctionType, MethodType, ModuleType, TracebackType
from typing import Any

from IPython.core.error import InputRejected

from .forbidden import ALIKE, CLOSED, FAMILY, HARMLESS, POWERS, READABLE, SAME, SHORT, SHOWING, SHUT, SYS

OWN = __name__.rpartition(".")[0]
NAMED = (FunctionType, BuiltinFunctionType, type)  # what says which module it is of


class Refused(InputRejected):
    """What verification doesn't let a cell do, and what to do instead. A person and a model see this line only."""

    __module__ = "builtins"  # so that Python shows it by its short name

    def _render_traceback_(self) -> list[str]:
        return [f"Refused: {self}"]


class Rules:
    """The person's lists, as questions: may this module, this function, this value be used?"""

    def __init__(self, config: dict[str, Any]) -> None:
        """Read {"allowed_modules"|"blocked_modules", "allowed_functions"|"blocked_functions", "allowed_variables"}.

        Raises:
            ValueError: There are both lists of a kind, or a name that is none of these.
        """
        kinds = ("modules", "functions")
        if (
            unknown := set(config)
            - {f"{mode}_{kind}" for mode in ("allowed", "blocked") for kind in kinds}
            - {"allowed_variables"}
        ):
            raise ValueError(f"verify has no {sorted(unknown)}: give allowed_ or blocked_modules and _functions")
        for kind in kinds:
            if config.get(f"allowed_{kind}") is not None and config.get(f"blocked_{kind}") is not None:
                raise ValueError(f"verify has allowed_{kind} and blocked_{kind}: give one of both")
        self._modules = _names(config.get("allowed_modules"))
        self._blocked_modules = _names(config.get("blocked_modules")) or frozenset()
        self._functions = _names(config.get("allowed_functions"))
        blocked = _names(config.get("blocked_functions")) or frozenset()
        self.variables = _names(config.get("allowed_variables"))
        self.names = frozenset(name for name in blocked if "." not in name)  # refused as an attribute of anything too
        self._refused: dict[int, tuple[object, str]] = {}  # the object is kept, so that its id stays its own
        self._pending: dict[str, str] = {}
        for name, instead in FAMILY.items():
            if name not in (self._functions or ()):
                self._pending[f"builtins.{name}"] = f"{name!r} leads past the rules: {instead}"
        for name in sorted(POWERS):
            if name not in (self._functions or ()):
                self._pending[name] = f"{name!r} leads past the rules: use values and formats that hold no code"
        for name in sorted(blocked):
            for alike in [name if "." in name else f"builtins.{name}", *sorted(ALIKE.get(name, ()))]:
                self._pending[alike] = f"function {name!r} is blocked: do without it"
        for name in self._blocked_modules:
            for alike in sorted(ALIKE.get(name, ())):
                self._pending[alike] = f"module {name!r} is blocked: do without it"
        self.resolve()

    def resolve(self) -> None:
        """Find the functions that the rules name, in modules that somebody has imported since."""
        for name, why in list(self._pending.items()):
            if (value := self.find(name)) is not None:
                self._refused[id(value)] = value, why
                del self._pending[name]

    def find(self, dotted: str) -> object:
        """The value of this name in a module that was imported; None when there is none yet."""
        root, dot, rest = dotted.partition(".")
        parts = (SHORT.get(root, root) + dot + rest).split(".")
        for cut in range(len(parts) - 1, 0, -1):
            value: object = sys.modules.get(".".join(parts[:cut]))
            if value is not None:
                for part in parts[cut:]:  # a module's getattr could begin to import something
                    value = vars(value).get(part) if isinstance(value, ModuleType) else getattr(value, part, None)
                return value
        return None

    def builtin(self, name: str) -> str | None:
        """Why a cell may not use the builtin of this name; None when it may."""
        value = vars(builtins).get(name)
        if name in FAMILY and name not in (self._functions or ()):
            return f"{name!r} leads past the rules: {FAMILY[name]}"
        if name in self.names:
            return f"function {name!r} is blocked: do without it"
        if self._functions is None or name in self._functions or not callable(value) or name.startswith("__"):
            return None
        is_error = isinstance(value, type) and issubclass(value, BaseException)
        return None if is_error else f"function {name!r} is not allowed: {_choice(self._functions)}"

    def module(self, name: str, is_home: bool = False) -> str | None:
        """Why a module may not be used; None when it may.

        Args:
            is_home: It is only where a function or a class was written; libraries keep theirs in private modules.
        """
        if (why := self._out_of_bounds(name, is_home)) or self._modules is None or self._is_listed(name):
            return why
        return f"module {name!r} is not allowed: {_choice(self._modules)}"

    def _out_of_bounds(self, name: str, is_home: bool) -> str | None:
        names = _with_parents(name, is_home)
        if self._is_listed(name) and not (self._modules is None and names & self._blocked_modules):
            return None
        if names & self._blocked_modules:
            return f"module {name!r} is blocked: do without it"
        if names & SHUT or OWN in names or (not is_home and any(part.startswith("_") for part in name.split("."))):
            return f"module {name!r} leads past the rules: do without it"
        return None

    def _is_listed(self, name: str) -> bool:
        return name == "__future__" or bool(_with_parents(name, True) & ((self._modules or frozenset()) | SHOWING))

    def leads_to_allowed(self, name: str) -> bool:
        """Whether a module that is not allowed itself has an allowed one below it."""
        return any(inner.startswith(f"{name}.") for inner in (self._modules or frozenset()) | SHOWING)

    def place(self, module: ModuleType, name: str) -> str | None:
        """Why this name of a module may not be asked for, whatever it holds; None when it may."""
        home = module.__name__
        inner = f"{home}.{name}"
        if (why := self.module(home)) and self.module(inner) and not self.leads_to_allowed(inner):
            return why
        if module is sys and name not in SYS:
            return f"'sys.{name}' leads past the rules: do without it"
        if name.startswith("_") and name not in READABLE:
            return f"'{home}.{name}' is private to the module: use what it documents"
        return None

    def kind(self, kind: type) -> str | None:
        """Why no attribute of values of this type may be used; None when they may."""
        if kind in (FrameType, CodeType, TracebackType):
            return f"a {kind.__name__} leads past the rules: do without it"
        for base in kind.__mro__:
            home = base.__module__
            if isinstance(home, str) and home not in SHOWING and _with_parents(home, True) & (CLOSED | {OWN}):
                return f"a {kind.__name__} is not looked into: plugins and the kernel's own things are only called"
        return None

    def value(self, value: object, holder: object = None, name: str = "") -> str | None:
        """Why a value that a cell came by may not be used; None when it may.

        Args:
            holder: What it was taken out of, where it is called `name`.
        """
        function = value.__func__ if isinstance(value, MethodType) else value
        if known := self._refused.get(id(function)):
            return known[1]
        if isinstance(value, ModuleType):
            return None if self.leads_to_allowed(value.__name__) else self.module(value.__name__)
        home = getattr(function, "__module__", None) if isinstance(function, NAMED) else None
        if not isinstance(home, str) or home in ("builtins", "__main__"):
            home = None
        if home and (why := self._out_of_bounds(home, is_home=True)):
            return why
        if not isinstance(holder, ModuleType):
            return None  # objects of libraries that are not listed come by all the time
        if why := self.place(holder, name):
            return why
        if self._functions is not None and callable(value) and not self._is_named(holder, name, home):
            return f"function {name!r} is not allowed: {_choice(self._functions)}"
        root = (home or "").partition(".")[0].lstrip("_")
        if home and self._modules is not None and root in sys.stdlib_module_names and root not in HARMLESS:
            return self.module(home, is_home=True)
        return None

    def _is_named(self, holder: ModuleType, name: str, home: str | None) -> bool:
        places = [holder.__name__, *([home] if home else [])]
        short = [key for key, module in SHORT.items() if module == holder.__name__]
        wanted = {name, *(f"{place}.{name}" for place in [*places, *short])}
        return bool(wanted & (self._functions or frozenset()))


def _names(given: Iterable[str] | None) -> frozenset[str] | None:
    return None if given is None else frozenset(given)


def _with_parents(name: str, is_home: bool) -> set[str]:
    root, dot, rest = name.partition(".")
    parts = (SAME.get(root) or (root.lstrip("_") or root if is_home else root)) + dot + rest
    ends = [index for index, letter in enumerate(parts) if letter == "."]
    return {parts, *(parts[:end] for end in ends)}


def _choice(names: frozenset[str]) -> str:
    return f"there are {', '.join(sorted(names))}" if names else "there is none"
