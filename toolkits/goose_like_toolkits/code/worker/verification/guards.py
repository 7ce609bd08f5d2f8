"""Functions that run in place of attribute access, imports and calls in the code of verified cells.

Their names contain spaces, so that no code can name or bind them. They live in the `__builtins__` of the cells;
functions that a cell defines keep these `__builtins__`, whoever calls them. Libraries and plugins have the real ones.
"""

import ast
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

from .known_names import FORBIDDEN_BUILTINS, split_names
from .rules import WORKER_PACKAGE, Refused, Rules

ATTRIBUTE, CALLEE, OWNER, ANNOTATION, MAGIC = GUARD_NAMES = (
    "verified attribute",
    "verified callee",
    "verified owner",
    "verified annotation",
    "verified magic",
)
_DATA_TYPES = frozenset({bool, bytes, complex, dict, float, frozenset, int, list, set, str, tuple, type(None)})
_STREAM_NAMES = frozenset({"write", "writelines", "flush", "isatty", "encoding"})
_FORMAT_METHODS = frozenset({"format", "format_map"})
_QUOTED = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"|`[^`\n]*`")
# Attributes that an expression in text may use on a column.
_COLUMN_NAMES = split_names(
    """abs astype between cat ceil clip contains count date day dayofweek dayofyear days dt endswith fillna floor hour
    index isin isna isnull len lower lstrip max mean median min minute month month_name day_name notna notnull quarter
    replace round rstrip second shift slice split startswith std str strip sum upper var weekday year"""
)
_TYPE_NODES = (
    ast.Expression,
    ast.Name,
    ast.Load,
    ast.Subscript,
    ast.Tuple,
    ast.List,
    ast.Constant,
    ast.BinOp,
    ast.BitOr,
)
_STRIPPED = "* \t\r\n\f"  # typing strips these characters before it evaluates the text
_MAX_REMEMBERED = 10_000


class Guards:
    """The guards of one shell. `builtins` are the `__builtins__` of its cells."""

    def __init__(self, shell: InteractiveShell, rules: Rules) -> None:
        self._shell = shell
        self._rules = rules
        self._unresolved_wrappers: dict[str, Callable[[Any], Callable[..., Any]]] = {
            "numpy.load": self._forbid_pickle,
            "pandas.eval": self._restrict_expression,
            "pandas.DataFrame.eval": self._restrict_expression,
            "pandas.DataFrame.query": self._restrict_expression,
        }
        self._wrappers: dict[int, Callable[[Any], Callable[..., Any]]] = {}
        self.builtins: dict[str, Any] = dict(vars(builtins))
        for name in ("copyright", "credits", "license", "__IPYTHON__", "__loader__", "__spec__"):
            self.builtins.pop(name, None)
        for name in {*self.builtins, *FORBIDDEN_BUILTINS}:
            if reason := rules.check_builtin(name):
                self.builtins[name] = self._make_refusal(reason)
        self.builtins["__import__"] = self._import
        guards = (
            self._get_attribute,
            self._check_callee,
            self._check_owner,
            self._check_annotation,
            self._run_magic,
        )
        self.builtins.update(zip(GUARD_NAMES, guards, strict=True))
        self.forget()

    def forget(self) -> None:
        """Forget the objects that earlier cells found harmless, and resolve the names in the rules again."""
        self._readable_types: set[type] = set(_DATA_TYPES)  # attributes of their values need no check
        self._plain_types: set[type] = set(_DATA_TYPES)  # their values need no check
        self._module_attributes: dict[tuple[int, str], tuple[object, object]] = {}
        self._harmless_functions: dict[int, object] = {}
        self._resolve()

    def _resolve(self) -> None:
        self._rules.resolve()
        for dotted, wrapper in list(self._unresolved_wrappers.items()):
            if (value := self._rules.find(dotted)) is not None:
                self._wrappers[id(value)] = wrapper
                del self._unresolved_wrappers[dotted]

    def _get_attribute(self, holder: Any, name: str) -> Any:
        known = self._module_attributes.get((id(holder), name))
        if known is not None and known[0] is holder:
            result = getattr(holder, name)
            if result is known[1]:
                return result
        else:
            if type(holder) not in self._readable_types:
                self._check_holder(holder, name)
            result = getattr(holder, name)
        if type(result) in self._plain_types or (type(holder) in _DATA_TYPES and name not in _FORMAT_METHODS):
            return result
        function = result.__func__ if type(result) is MethodType else result
        if self._harmless_functions.get(id(function), self) is function and not isinstance(holder, ModuleType):
            return result
        return self._admit(result, holder, name)

    def _check_holder(self, holder: Any, name: str) -> None:
        """Refuse to read attributes of this value, or remember that its type is harmless."""
        kind = type(holder)
        if isinstance(holder, ModuleType):
            reason = self._rules.check_module_attribute(holder, name)
        elif _is_stream_access(holder, name):
            reason = None
        else:
            reason = self._rules.check_type(kind)
            if isinstance(holder, type):
                reason = reason or self._rules.check_value(holder) or self._rules.check_type(holder)
            elif _compares_by_identity(kind):
                self._readable_types.add(kind)
        if reason:
            self._refuse(reason)

    def _admit(self, result: Any, holder: Any, name: str) -> Any:
        """Check a value and return it, or a wrapper that checks the arguments of calls."""
        if (reason := self._rules.check_value(result, holder, name)) and not _is_stream_access(holder, name):
            self._refuse(reason)
        if isinstance(result, ModuleType):
            self._resolve()  # the attribute access may have imported the module
        function = result.__func__ if isinstance(result, MethodType) else result
        if wrapper := self._wrappers.get(id(function)):
            return wrapper(result)
        if name in _FORMAT_METHODS:
            self._check_template(holder, name)
        elif isinstance(result, ModuleType):
            pass
        elif isinstance(holder, ModuleType):
            self._module_attributes[id(holder), name] = holder, result
        elif not callable(result) and _compares_by_identity(type(result)):
            self._plain_types.add(type(result))
        else:
            self._remember(function)
        return result

    def _remember(self, function: object) -> None:
        is_permanent = type(function) in (FunctionType, type) or (
            type(function) is BuiltinFunctionType and isinstance(function.__self__, ModuleType)
        )
        if is_permanent and len(self._harmless_functions) < _MAX_REMEMBERED:
            self._harmless_functions[id(function)] = function

    def _check_callee(self, function: Any) -> Any:
        if self._harmless_functions.get(id(function), self) is function:
            return function
        if reason := self._rules.check_value(function):
            # Plugins belong to this package but exist to be called.
            if not str(getattr(function, "__module__", "")).startswith(f"{WORKER_PACKAGE}."):
                self._refuse(reason)
        elif id(function) not in self._wrappers:
            self._remember(function)
        return function

    def _check_owner(self, value: Any) -> Any:
        """Check an object before an attribute of it is set or deleted."""
        if isinstance(value, ModuleType):
            self._refuse(f"module {value.__name__!r} is read-only: keep the value in a variable")
        if type(value) not in self._readable_types:
            self._check_holder(value, "")
        return value

    def _import(self, name: str, _globals: Any = None, _locals: Any = None, names: Any = (), level: int = 0) -> Any:
        if type(names) is list:
            # An extension module imports something through the builtins of its caller. A statement passes a tuple.
            return builtins.__import__(name, None, None, [], level)
        if level or type(name) is not str:
            self._refuse("a relative import has no package here: write the full name of the module")
        if reason := self._rules.check_module(name):
            self._refuse(reason)
        try:
            module = builtins.__import__(name, None, None, names or (), 0)
        except ModuleNotFoundError:
            root = name.partition(".")[0]
            if os.path.exists(root) or os.path.exists(f"{root}.py"):
                self._refuse(f"{root!r} is in the workspace and is not verified: put its code into a cell")
            raise
        self._resolve()
        if not names:
            return module
        # The cell gets a namespace with the checked values, not the module, which has other values too.
        if "*" in names:
            names = getattr(module, "__all__", None) or [each for each in vars(module) if not each.startswith("_")]
        found = {"__name__": name, "__all__": [each for each in names if hasattr(module, each)]}
        for each in found["__all__"]:
            if reason := self._rules.check_module_attribute(module, each):
                self._refuse(reason)
            found[each] = self._admit(getattr(module, each), module, each)
        return SimpleNamespace(**found)

    def _check_annotation(self, value: Any) -> Any:
        """Check an annotation, which may contain text."""
        if isinstance(value, typing.ForwardRef):
            check_annotation(value.__forward_arg__, self._refuse)
        elif isinstance(value, str):
            check_annotation(str.__str__(value), self._refuse)
        elif typing.get_origin(value) is typing.Annotated:
            self._check_annotation(typing.get_args(value)[0])
        elif typing.get_origin(value) is not typing.Literal:
            for inner in typing.get_args(value):
                self._check_annotation(inner)
        return value

    def _run_magic(self, name: str, line: str) -> Any:
        return self._shell.run_line_magic(name, line)

    def _forbid_pickle(self, load: Callable[..., Any]) -> Callable[..., Any]:
        def load_without_pickle(file: Any, mmap_mode: Any = None, allow_pickle: Any = False, **others: Any) -> Any:
            if allow_pickle is not False:
                self._refuse("a pickle can run any code: save arrays that hold no objects")
            return load(file, mmap_mode, False, **others)

        return load_without_pickle

    def _restrict_expression(self, run: Callable[..., Any]) -> Callable[..., Any]:
        def run_plain(*arguments: Any, **named: Any) -> Any:
            # The expression is one of the first two: `DataFrame.query(df, "a > 1")` has the table first.
            for text in [*arguments[:2], named.get("expr")]:
                if isinstance(text, str):
                    plain = _QUOTED.sub("''", str.__str__(text))
                    unknown = set(re.findall(r"\.\s*([^\W\d]\w*)", plain)) - _COLUMN_NAMES
                    if unknown or "__" in plain or re.search(r"\\|'''|\"\"\"", str.__str__(text)):
                        self._refuse(
                            "an expression in text may only compare and compute columns: write the rest in Python"
                        )
            # pandas looks up `@name` in its caller, and this wrapper adds one level.
            return run(*arguments, **{**named, "level": named.get("level", 0) + 1})

        return run_plain

    def _check_template(self, holder: Any, name: str) -> None:
        if isinstance(holder, type) and issubclass(holder, str):
            self._refuse(f"'str.{name}' needs its text before the dot: write an f-string")
        if isinstance(holder, str) and re.search(r"\{[^{}]*\._", str.__str__(holder)):
            self._refuse("a template cannot read private attributes: write an f-string")

    def _make_refusal(self, reason: str) -> Callable[..., Any]:
        def refuse(*_args: Any, **_named: Any) -> Any:
            self._refuse(reason)

        return refuse

    def _refuse(self, reason: str) -> typing.NoReturn:
        """Raise `Refused` with the line of the cell that caused it."""
        frame = sys._getframe(1)
        while frame.f_back and frame.f_builtins is not self.builtins:
            frame = frame.f_back
        line = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
        raise Refused(f"Error on line {frame.f_lineno}: {line} => {reason}")


def _is_stream_access(value: object, name: str) -> bool:
    """Return whether this reads a method of an output stream, which belongs to the kernel but serves cells."""
    return name in _STREAM_NAMES and (value is sys.stdout or value is sys.stderr)


def _compares_by_identity(kind: type) -> bool:
    """Return whether a set can tell this type from others: a class of a cell could claim to equal another one."""
    return type(kind).__hash__ is type.__hash__ and type(kind).__eq__ is type.__eq__


def check_annotation(annotation: str | ast.expr, refuse: Callable[[str], object]) -> None:
    """Refuse an annotation that does more than name types, because no guard runs when a library evaluates it."""
    try:
        tree: ast.AST
        if isinstance(annotation, str):
            tree = ast.parse(f"({annotation.strip(_STRIPPED)}\n)", mode="eval")
        else:
            tree = annotation
    except (SyntaxError, ValueError, RecursionError):
        return  # no library can evaluate the text
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            is_shallow = isinstance(node.value, ast.Name) or ast.unparse(node.value) == "collections.abc"
            is_plain = is_shallow and not node.attr.startswith("_")
        else:
            is_plain = isinstance(node, _TYPE_NODES)
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            check_annotation(node.value, refuse)
        if not is_plain:
            refuse("an annotation names types, one dot deep: compute nothing in it")
            return
