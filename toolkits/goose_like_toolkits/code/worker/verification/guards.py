"""Guards: what the code of a cell calls in place of an attribute, an import or a builtin, while there are rules.

Their names have spaces, so that no code can say or bind them; they are found in the cells' own `__builtins__`, of which
the functions that a cell defines keep hold, whoever calls them. Libraries and plugins have the real ones.
"""

import builtins
import linecache
import os
import re
import sys
import typing
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType, SimpleNamespace
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from .annotations import check_hint
from .forbidden import FAMILY, words
from .rules import OWN, Refused, Rules

ATTRIBUTE, CALLEE, OWNER, HINT, HELD, MAGIC = GUARDS = (
    "verified attribute",
    "verified callee",
    "verified owner",
    "verified hint",
    "verified held",
    "verified magic",
)
_DATA = frozenset({bool, bytes, complex, dict, float, frozenset, int, list, set, str, tuple, type(None)})
_STREAM = frozenset({"write", "writelines", "flush", "isatty", "encoding"})
_TEMPLATES = frozenset({"format", "format_map"})
_QUOTED = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"|`[^`\n]*`")
# What an expression in text may do with a column.
_COLUMN = words(
    """abs astype between cat ceil clip contains count date day dayofweek dayofyear days dt endswith fillna floor hour
    index isin isna isnull len lower lstrip max mean median min minute month month_name day_name notna notnull quarter
    replace round rstrip second shift slice split startswith std str strip sum upper var weekday year"""
)
_REMEMBERED = 10_000


class Guards:
    """The guards of one shell's cells, and the `__builtins__` that hold them."""

    def __init__(self, shell: InteractiveShell, rules: Rules) -> None:
        self._shell = shell
        self._rules = rules
        self._wraps: dict[str, Callable[[Any], Callable[..., Any]]] = {
            "numpy.load": self._without_pickle,
            "pandas.eval": self._plain_expression,
            "pandas.DataFrame.eval": self._plain_expression,
            "pandas.DataFrame.query": self._plain_expression,
        }
        self._wrapped: dict[int, Callable[[Any], Callable[..., Any]]] = {}
        self.builtins: dict[str, Any] = dict(vars(builtins))
        for name in ("copyright", "credits", "license", "__IPYTHON__", "__loader__", "__spec__"):
            self.builtins.pop(name, None)
        for name in {*self.builtins, *FAMILY}:
            if why := rules.builtin(name):
                self.builtins[name] = self._refusal(why)
        self.builtins["__import__"] = self._import
        guards = (self._attribute, self._callee, self._owner, self._hint, self._held, self._magic)
        self.builtins.update(zip(GUARDS, guards, strict=True))
        self.forget()

    def forget(self) -> None:
        """Before a cell: what was found harmless is let go, and functions that the rules name are looked for."""
        self._holders: set[type] = set(_DATA)  # attributes of their values may be asked for
        self._results: set[type] = set(_DATA)  # and nothing is asked of values of these
        self._of_modules: dict[tuple[int, str], tuple[object, object]] = {}
        self._functions: dict[int, object] = {}
        self._resolve()

    def _resolve(self) -> None:
        self._rules.resolve()
        for dotted, wrap in list(self._wraps.items()):
            if (value := self._rules.find(dotted)) is not None:
                self._wrapped[id(value)] = wrap
                del self._wraps[dotted]

    def _attribute(self, holder: Any, name: str) -> Any:
        known = self._of_modules.get((id(holder), name))
        if known is not None and known[0] is holder:
            result = getattr(holder, name)
            if result is known[1]:
                return result
        else:
            if type(holder) not in self._holders:
                self._look_at(holder, name)
            result = getattr(holder, name)
        if type(result) in self._results or (type(holder) in _DATA and name not in _TEMPLATES):
            return result
        function = result.__func__ if type(result) is MethodType else result
        if self._functions.get(id(function), self) is function and not isinstance(holder, ModuleType):
            return result
        return self._admit(result, holder, name)

    def _look_at(self, holder: Any, name: str) -> None:
        """Refuse to look into this value, or remember that values of its type are of no harm."""
        kind = type(holder)
        if isinstance(holder, ModuleType):
            why = self._rules.place(holder, name)
        elif _is_stream(holder, name):
            why = None
        else:
            why = self._rules.kind(kind)
            if isinstance(holder, type):
                why = why or self._rules.value(holder) or self._rules.kind(holder)
            elif _is_itself(kind):
                self._holders.add(kind)
        if why:
            self._refuse(why)

    def _admit(self, result: Any, holder: Any, name: str) -> Any:
        """The value itself, or in its place a function that looks at what it is given."""
        if (why := self._rules.value(result, holder, name)) and not _is_stream(holder, name):
            self._refuse(why)
        if isinstance(result, ModuleType):
            self._resolve()  # it may have been imported just now
        function = result.__func__ if isinstance(result, MethodType) else result
        if wrap := self._wrapped.get(id(function)):
            return wrap(result)
        if name in _TEMPLATES:
            self._check_template(holder, name)
        elif isinstance(result, ModuleType):
            pass
        elif isinstance(holder, ModuleType):
            self._of_modules[id(holder), name] = holder, result
        elif not callable(result) and _is_itself(type(result)):
            self._results.add(type(result))
        else:
            self._remember(function)
        return result

    def _remember(self, function: object) -> None:
        is_lasting = type(function) in (FunctionType, type) or (
            type(function) is BuiltinFunctionType and isinstance(function.__self__, ModuleType)
        )
        if is_lasting and len(self._functions) < _REMEMBERED:
            self._functions[id(function)] = function

    def _callee(self, function: Any) -> Any:
        if self._functions.get(id(function), self) is function:
            return function
        if why := self._rules.value(function):
            # A plugin's function may be ours by its module: the desk has put it there to be called.
            if not str(getattr(function, "__module__", "")).startswith(f"{OWN}."):
                self._refuse(why)
        elif id(function) not in self._wrapped:
            self._remember(function)
        return function

    def _owner(self, value: Any) -> Any:
        if isinstance(value, ModuleType):
            self._refuse(f"module {value.__name__!r} is not changed: keep the value in a variable")
        if type(value) not in self._holders:
            self._look_at(value, "")
        return value

    def _import(self, name: str, _globals: Any = None, _locals: Any = None, names: Any = (), level: int = 0) -> Any:
        if type(names) is list:
            # An extension module that was called imports something for itself, by the builtins of its caller; what a
            # statement asks for is in a tuple.
            return builtins.__import__(name, None, None, [], level)
        if level or type(name) is not str:
            self._refuse("a relative import has nothing to start from: name the module in full")
        if why := self._rules.module(name):
            self._refuse(why)
        try:
            module = builtins.__import__(name, None, None, names or (), 0)
        except ModuleNotFoundError:
            root = name.partition(".")[0]
            if os.path.exists(root) or os.path.exists(f"{root}.py"):
                self._refuse(f"{root!r} is in the workspace, where nothing verifies it: put its code into a cell")
            raise
        self._resolve()
        if not names:
            return module
        # The cell gets the values that were looked at, and not the module to take others out of.
        if "*" in names:
            names = getattr(module, "__all__", None) or [each for each in vars(module) if not each.startswith("_")]
        found = {"__name__": name, "__all__": [each for each in names if hasattr(module, each)]}
        for each in found["__all__"]:
            if why := self._rules.place(module, each):
                self._refuse(why)
            found[each] = self._admit(getattr(module, each), module, each)
        return SimpleNamespace(**found)

    def _hint(self, value: Any) -> Any:
        """An annotation, in which there may be text."""
        if isinstance(value, typing.ForwardRef):
            check_hint(value.__forward_arg__, self._refuse)
        elif isinstance(value, str):
            check_hint(str.__str__(value), self._refuse)
        elif typing.get_origin(value) is typing.Annotated:
            self._hint(typing.get_args(value)[0])
        elif typing.get_origin(value) is not typing.Literal:
            for inner in typing.get_args(value):
                self._hint(inner)
        return value

    def _held(self, value: Any, name: str = "") -> SimpleNamespace:
        """A value for a pattern, which can't call a guard.

        Args:
            name: It must be the builtin of this name, as its pattern looks into what it matches.
        """
        if name and value is not getattr(builtins, name, None):
            self._refuse(f"{name!r} is not the builtin here: take the value apart with `if` and isinstance")
        return SimpleNamespace(value=value)

    def _magic(self, name: str, line: str) -> Any:
        return self._shell.run_line_magic(name, line)

    def _without_pickle(self, load: Callable[..., Any]) -> Callable[..., Any]:
        def load_without_pickle(file: Any, mmap_mode: Any = None, allow_pickle: Any = False, **others: Any) -> Any:
            if allow_pickle is not False:
                self._refuse("a pickle can run anything: save arrays that hold no objects")
            return load(file, mmap_mode, False, **others)

        return load_without_pickle

    def _plain_expression(self, run: Callable[..., Any]) -> Callable[..., Any]:
        def run_plain(*given: Any, **named: Any) -> Any:
            # The expression is the last of the first two: `DataFrame.query(df, "a > 1")` has its table before it.
            for text in [*given[:2], named.get("expr")]:
                if isinstance(text, str):
                    plain = _QUOTED.sub("''", str.__str__(text))
                    strange = set(re.findall(r"\.\s*([^\W\d]\w*)", plain)) - _COLUMN
                    if strange or "__" in plain or re.search(r"\\|'''|\"\"\"", str.__str__(text)):
                        self._refuse(
                            "an expression in text may only compare and compute columns: write the rest in Python"
                        )
            # It looks for `@name` among the variables of its caller, which is one further away now.
            return run(*given, **{**named, "level": named.get("level", 0) + 1})

        return run_plain

    def _check_template(self, holder: Any, name: str) -> None:
        if isinstance(holder, type) and issubclass(holder, str):
            self._refuse(f"'str.{name}' needs its text before the dot: write an f-string")
        if isinstance(holder, str) and re.search(r"\{[^{}]*\._", str.__str__(holder)):
            self._refuse("a template may not reach for private attributes: write an f-string")

    def _refusal(self, why: str) -> Callable[..., Any]:
        def refusal(*_args: Any, **_named: Any) -> Any:
            self._refuse(why)

        return refusal

    def _refuse(self, why: str) -> typing.NoReturn:
        """Tell it with the line of the cell that it came from."""
        frame = sys._getframe(1)
        while frame.f_back and frame.f_builtins is not self.builtins:
            frame = frame.f_back
        line = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
        raise Refused(f"Error on line {frame.f_lineno}: {line} => {why}")


def _is_stream(value: object, name: str) -> bool:
    """Whether it is what a cell prints to, which is a part of the kernel."""
    return name in _STREAM and (value is sys.stdout or value is sys.stderr)


def _is_itself(kind: type) -> bool:
    """Whether a set knows this type from others: a class of a cell's could claim to be equal to one."""
    return type(kind).__hash__ is type.__hash__ and type(kind).__eq__ is type.__eq__
