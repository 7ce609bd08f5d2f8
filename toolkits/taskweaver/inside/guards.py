"""Guards: what the code of a cell calls in place of an attribute, an import or a builtin, while there are rules.

Their names have spaces, so that no code can say or bind them; they are found in the cells' own `__builtins__`, of which
the functions that a cell defines keep hold, whoever calls them. Libraries and plugins have the real ones.
"""

import ast
import builtins
import linecache
import re
import sys
import typing
from collections.abc import Callable
from types import MethodType, ModuleType, SimpleNamespace
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from .rules import FAMILY, OWN, Refused, Rules

ATTRIBUTE, CALLEE, OWNER, HINT, HELD, MAGIC = (f"verified {name}" for name in "attribute callee owner hint held magic".split())
_DATA = frozenset({bool, bytes, complex, dict, float, frozenset, int, list, set, str, tuple, type(None)})
_STREAM = frozenset({"write", "writelines", "flush", "isatty", "encoding"})
_HINTS = (ast.Expression, ast.Name, ast.Load, ast.Subscript, ast.Tuple, ast.List, ast.Constant, ast.BinOp, ast.BitOr)
_STARS = "* \t\r\n\f"  # which typing takes before a name
_QUOTED = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"|`[^`\n]*`")
_SERIES = frozenset(
    """abs astype between cat ceil clip contains count date day dayofweek dayofyear days dt endswith fillna floor hour
    index isin isna isnull len lower lstrip max mean median min minute month month_name day_name notna notnull quarter
    replace round rstrip second shift slice split startswith std str strip sum upper var weekday year""".split()
)


class Guards:
    """The guards of one shell's cells, and the `__builtins__` that hold them."""

    def __init__(self, shell: InteractiveShell, rules: Rules) -> None:
        self._shell = shell
        self._rules = rules
        self._seen: set[type] = set(_DATA)
        self._wrapped: dict[int, Callable[[Any], Callable[..., Any]]] = {}
        self._unwrapped = {
            "numpy.load": self._without_pickle,
            "pandas.eval": self._plain_expression,
            "pandas.DataFrame.eval": self._plain_expression,
            "pandas.DataFrame.query": self._plain_expression,
        }
        self.builtins: dict[str, Any] = dict(vars(builtins))
        for name in ("copyright", "credits", "license", "__IPYTHON__", "__loader__", "__spec__"):
            self.builtins.pop(name, None)
        for name in {*self.builtins, *FAMILY}:
            if why := rules.builtin(name):
                self.builtins[name] = self._refusal(why)
        self.builtins["__import__"] = self._import
        guards = (self._attribute, self._callee, self._owner, self._hint, self._held, self._magic)
        self.builtins.update(zip((ATTRIBUTE, CALLEE, OWNER, HINT, HELD, MAGIC), guards, strict=True))

    def forget(self) -> None:
        """Before a cell: types that were looked at may go, and functions may have come."""
        self._seen = set(_DATA)
        self._resolve()

    def _attribute(self, value: Any, name: str) -> Any:
        if type(value) not in self._seen and not (name in _STREAM and (value is sys.stdout or value is sys.stderr)):
            self._look_at(value, name)
        try:
            result = getattr(value, name)
        except BaseException:
            __tracebackhide__ = True
            raise
        if type(result) in _DATA:
            return result
        return self._admit(result, value, name)

    def _look_at(self, value: Any, name: str) -> None:
        """Refuse the value itself, or remember that values of its type are of no harm."""
        kind = type(value)
        if isinstance(value, ModuleType):
            home = value.__name__
            if (why := self._rules.module(home)) and not self._may_pass(home, name):
                self._refuse(why)
            if name.startswith("_") and name not in ("__name__", "__doc__", "__version__", "__file__"):
                self._refuse(f"'{home}.{name}' is private to the module: use what it documents")
            return
        if why := self._rules.kind(kind):
            self._refuse(why)
        if isinstance(value, type):
            if why := self._rules.value(value):
                self._refuse(why)
            return
        # A metaclass of the cell's could make its class be taken for another one in the set.
        if type(kind).__hash__ is type.__hash__ and type(kind).__eq__ is type.__eq__:
            self._seen.add(kind)

    def _may_pass(self, home: str, name: str) -> bool:
        inner = f"{home}.{name}"
        return self._rules.module(inner) is None or self._rules.leads_to_allowed(inner)

    def _admit(self, result: Any, holder: Any = None, name: str = "") -> Any:
        """The value itself, or in its place a function that looks at what it is given."""
        if why := self._rules.value(result, holder, name):
            if not (name in _STREAM and (holder is sys.stdout or holder is sys.stderr)):
                self._refuse(why)
        function = result.__func__ if isinstance(result, MethodType) else result
        if wrap := self._wrapped.get(id(function)):
            return wrap(result)
        if name in ("format", "format_map"):
            if isinstance(holder, str):
                self._check_template(holder)
            elif isinstance(holder, type) and issubclass(holder, str):
                self._refuse(f"'str.{name}' without its text is refused: write an f-string")
        return result

    def _callee(self, function: Any) -> Any:
        if (why := self._rules.value(function)) and not str(getattr(function, "__module__", "")).startswith(f"{OWN}."):
            self._refuse(why)
        return function

    def _owner(self, value: Any) -> Any:
        if isinstance(value, ModuleType):
            self._refuse(f"module {value.__name__!r} is not changed: keep the value in a variable")
        if type(value) not in self._seen:
            self._look_at(value, "")
        return value

    def _import(self, name: str, _globals: Any = None, _locals: Any = None, names: Any = (), level: int = 0) -> Any:
        if level or type(name) is not str:
            self._refuse("a relative import has nothing to start from: name the module in full")
        if why := self._rules.module(name):
            self._refuse(why)
        module = builtins.__import__(name, None, None, names or (), 0)
        self._resolve()
        if not names:
            return module
        # The cell gets the values that were looked at, and not the module to take others out of.
        wanted = names
        if "*" in names:
            wanted = getattr(module, "__all__", None) or [each for each in vars(module) if not each.startswith("_")]
        found = {}
        for each in wanted:
            value = getattr(module, each, None)
            if value is not None or hasattr(module, each):
                if each.startswith("_") and not each.startswith("__"):
                    self._refuse(f"'{name}.{each}' is private to the module: use what it documents")
                found[each] = self._admit(value, module, each)
        return SimpleNamespace(**found, **{"__name__": name, "__all__": list(found)})

    def _hint(self, value: Any) -> Any:
        """An annotation, which libraries run as code where it is text."""
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
            self._refuse(f"{name!r} is not the builtin here: take the pattern apart with `if` and isinstance")
        return SimpleNamespace(value=value)

    def _magic(self, name: str, line: str) -> Any:
        return self._shell.run_line_magic(name, line)

    def _resolve(self) -> None:
        self._rules.resolve()
        for dotted, wrap in list(self._unwrapped.items()):
            if (value := self._rules.find(dotted)) is not None:
                self._wrapped[id(value)] = wrap
                del self._unwrapped[dotted]

    def _without_pickle(self, load: Callable[..., Any]) -> Callable[..., Any]:
        def load_without_pickle(file: Any, mmap_mode: Any = None, allow_pickle: Any = False, **others: Any) -> Any:
            if allow_pickle is not False:
                self._refuse("a pickle can run anything: save arrays without objects in them")
            return load(file, mmap_mode, False, **others)

        return load_without_pickle

    def _plain_expression(self, run: Callable[..., Any]) -> Callable[..., Any]:
        def run_plain(expr: Any, *args: Any, **named: Any) -> Any:
            text = _QUOTED.sub("''", str.__str__(expr)) if isinstance(expr, str) else ""
            attributes = re.findall(r"\.\s*([^\W\d]\w*)", text)
            if "__" in text or "\\" in str(expr) or "'''" in str(expr) or set(attributes) - _SERIES:
                self._refuse("an expression in text may only compare and compute columns: write the rest in Python")
            # It looks for `@name` among the variables of its caller, which is one further away now.
            return run(str(expr), *args, **{**named, "level": named.get("level", 0) + 1})

        return run_plain

    def _check_template(self, template: str) -> None:
        if re.search(r"\{[^{}]*\._", str.__str__(template)):
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


def check_hint(text: str | ast.expr, refuse: Callable[[str], object]) -> None:
    """An annotation as text, or one that becomes text, may name types only: nothing looks on when a library runs it."""
    try:
        tree: ast.AST = ast.parse(f"({text.strip(_STARS)}\n)", mode="eval") if isinstance(text, str) else text
    except (SyntaxError, ValueError, RecursionError):
        return  # it can't run
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            is_shallow = isinstance(node.value, ast.Name) or ast.unparse(node.value) == "collections.abc"
            is_plain = is_shallow and not node.attr.startswith("_")
        else:
            is_plain = isinstance(node, _HINTS)
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            check_hint(node.value, refuse)
        if not is_plain:
            refuse("an annotation names types, one dot deep: compute nothing in it")
            return
