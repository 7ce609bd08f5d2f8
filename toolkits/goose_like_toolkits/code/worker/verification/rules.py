"""The rules of the user: lists of modules, functions and variables that cells may use or not."""

import builtins
import sys
from collections.abc import Iterable
from types import BuiltinFunctionType, CodeType, FrameType, FunctionType, MethodType, ModuleType, TracebackType
from typing import Any

from IPython.core.error import InputRejected

from . import known_names

WORKER_PACKAGE = __name__.partition(".")[0]
_WITH_MODULE = (FunctionType, BuiltinFunctionType, type)  # objects with a reliable `__module__`


class Refused(InputRejected):
    """An error for a step that verification refuses. The user and the model see only its message."""

    __module__ = "builtins"  # Python shows the short name

    def _render_traceback_(self) -> list[str]:
        return [f"Refused: {self}"]


class Rules:
    """The rules of one kernel. Each check returns the reason for a refusal, or None if the use is allowed.

    `blocked_names` are blocked functions without a module, which are refused as attributes of any object too.
    """

    def __init__(self, config: dict[str, Any]) -> None:
        """Read the lists of the config, which the host has checked."""
        blocked = _to_set(config.get("blocked_functions")) or frozenset()
        self._modules = _to_set(config.get("allowed_modules"))
        self._blocked_modules = _to_set(config.get("blocked_modules")) or frozenset()
        self._functions = _to_set(config.get("allowed_functions"))
        self.variables = _to_set(config.get("allowed_variables"))
        self.blocked_names = frozenset(name for name in blocked if "." not in name)
        self._refused: dict[int, tuple[object, str]] = {}  # keeps the object so that no other object gets its id
        self._unresolved = dict(self._list_refused(blocked))
        self.resolve()

    def _list_refused(self, blocked: frozenset[str]) -> Iterable[tuple[str, str]]:
        """Yield the dotted name of each refused object with the reason."""
        allowed = self._functions or frozenset()
        for name, instead in known_names.FORBIDDEN_BUILTINS.items():
            if name not in allowed:
                yield f"builtins.{name}", f"{name!r} bypasses the rules: {instead}"
        for name in sorted(known_names.FORBIDDEN_CALLABLES - allowed):
            yield name, f"{name!r} bypasses the rules: use values and formats that hold no code"
        for name in sorted(blocked):
            for dotted in [name if "." in name else f"builtins.{name}", *sorted(known_names.EQUIVALENTS.get(name, ()))]:
                yield dotted, f"function {name!r} is blocked: avoid it"
        for name in self._blocked_modules:
            for dotted in sorted(known_names.EQUIVALENTS.get(name, ())):
                yield dotted, f"module {name!r} is blocked: avoid it"

    def resolve(self) -> None:
        """Find the refused objects in the modules that were imported since the last call."""
        for name, reason in list(self._unresolved.items()):
            if (value := self.find(name)) is not None:
                self._refused[id(value)] = value, reason
                del self._unresolved[name]

    def find(self, dotted: str) -> object:
        """Return the object with this dotted name, or None if its module is not imported yet."""
        root, dot, rest = dotted.partition(".")
        parts = (known_names.SHORT_NAMES.get(root, root) + dot + rest).split(".")
        for cut in range(len(parts) - 1, 0, -1):
            value: object = sys.modules.get(".".join(parts[:cut]))
            if value is not None:
                for part in parts[cut:]:  # `getattr` on a module could trigger an import
                    value = vars(value).get(part) if isinstance(value, ModuleType) else getattr(value, part, None)
                return value
        return None

    def check_builtin(self, name: str) -> str | None:
        """Check the use of a builtin."""
        value = vars(builtins).get(name)
        if name in known_names.FORBIDDEN_BUILTINS and name not in (self._functions or ()):
            return f"{name!r} bypasses the rules: {known_names.FORBIDDEN_BUILTINS[name]}"
        if name in self.blocked_names:
            return f"function {name!r} is blocked: avoid it"
        if self._functions is None or name in self._functions or not callable(value) or name.startswith("__"):
            return None
        is_exception = isinstance(value, type) and issubclass(value, BaseException)
        return None if is_exception else f"function {name!r} is not allowed: {_format_choice(self._functions)}"

    def check_module(self, name: str, is_origin: bool = False) -> str | None:
        """Check the use of a module. With `is_origin` it only defines a function or class, so it may be private."""
        if (reason := self._check_forbidden(name, is_origin)) or self._modules is None or self._is_listed(name):
            return reason
        return f"module {name!r} is not allowed: {_format_choice(self._modules)}"

    def _check_forbidden(self, name: str, is_origin: bool) -> str | None:
        names = _with_parents(name, is_origin)
        if self._is_listed(name) and not (self._modules is None and names & self._blocked_modules):
            return None
        if names & self._blocked_modules:
            return f"module {name!r} is blocked: avoid it"
        is_private = not is_origin and any(part.startswith("_") for part in name.split("."))
        if names & known_names.FORBIDDEN_MODULES or WORKER_PACKAGE in names or is_private:
            return f"module {name!r} bypasses the rules: avoid it"
        return None

    def _is_listed(self, name: str) -> bool:
        listed = (self._modules or frozenset()) | known_names.DISPLAY_MODULES
        return name == "__future__" or bool(_with_parents(name, True) & listed)

    def has_allowed_submodule(self, name: str) -> bool:
        """Return whether a module contains an allowed module, even if the module itself is not allowed."""
        listed = (self._modules or frozenset()) | known_names.DISPLAY_MODULES
        return any(submodule.startswith(f"{name}.") for submodule in listed)

    def check_module_attribute(self, module: ModuleType, name: str) -> str | None:
        """Check the use of a name in a module, whatever value it has."""
        home = module.__name__
        dotted = f"{home}.{name}"
        if (reason := self.check_module(home)) and self.check_module(dotted) and not self.has_allowed_submodule(dotted):
            return reason
        if module is sys and name not in known_names.SYS_NAMES:
            return f"'sys.{name}' bypasses the rules: avoid it"
        if name.startswith("_") and name not in known_names.READABLE_ATTRIBUTES:
            return f"'{dotted}' is private to the module: use documented names"
        return None

    def check_type(self, kind: type) -> str | None:
        """Check reading attributes from values of a type."""
        if kind in (FrameType, CodeType, TracebackType):
            return f"a {kind.__name__} bypasses the rules: avoid it"
        for base in kind.__mro__:
            home = base.__module__
            if not isinstance(home, str) or home in known_names.DISPLAY_MODULES:
                continue
            if _with_parents(home, True) & (known_names.OPAQUE_PACKAGES | {WORKER_PACKAGE}):
                return f"attributes of a {kind.__name__} are not readable: only call plugins and kernel objects"
        return None

    def check_value(self, value: object, holder: object = None, name: str = "") -> str | None:
        """Check the use of a value, which comes from a holder as its attribute `name`."""
        function = value.__func__ if isinstance(value, MethodType) else value
        if refused := self._refused.get(id(function)):
            return refused[1]
        if isinstance(value, ModuleType):
            return None if self.has_allowed_submodule(value.__name__) else self.check_module(value.__name__)
        home = getattr(function, "__module__", None) if isinstance(function, _WITH_MODULE) else None
        if not isinstance(home, str) or home in ("builtins", "__main__"):
            home = None
        if home and (reason := self._check_forbidden(home, is_origin=True)):
            return reason
        if not isinstance(holder, ModuleType):
            return None  # objects of unlisted libraries are everywhere
        if reason := self.check_module_attribute(holder, name):
            return reason
        if self._functions is not None and callable(value) and not self._is_function_listed(holder, name, home):
            return f"function {name!r} is not allowed: {_format_choice(self._functions)}"
        root = (home or "").partition(".")[0].lstrip("_")
        if (
            home
            and self._modules is not None
            and root in sys.stdlib_module_names
            and root not in known_names.HARMLESS_MODULES
        ):
            return self.check_module(home, is_origin=True)
        return None

    def _is_function_listed(self, holder: ModuleType, name: str, home: str | None) -> bool:
        short = [key for key, module in known_names.SHORT_NAMES.items() if module == holder.__name__]
        modules = [holder.__name__, *([home] if home else []), *short]
        names = {name, *(f"{module}.{name}" for module in modules)}
        return bool(names & (self._functions or frozenset()))


def _to_set(names: Iterable[str] | None) -> frozenset[str] | None:
    return None if names is None else frozenset(names)


def _with_parents(name: str, is_origin: bool) -> set[str]:
    root, dot, rest = name.partition(".")
    public = known_names.MODULE_ALIASES.get(root) or (root.lstrip("_") or root if is_origin else root)
    dotted = public + dot + rest
    return {dotted, *(dotted[:end] for end, letter in enumerate(dotted) if letter == ".")}


def _format_choice(names: frozenset[str]) -> str:
    return f"use one of {', '.join(sorted(names))}" if names else "none is allowed"
