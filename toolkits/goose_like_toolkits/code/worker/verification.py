"""A static check of each cell by the user's rules, before the cell runs.

The check reads names, not values. It tells a model early what it may not use, and code that hides a name gets past
it: the boundary is the sandbox. Libraries, plugins and files that a cell writes are not checked.
"""

import ast
import builtins
import os
import re
import sys
from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import Any

from IPython.core.error import InputRejected
from IPython.core.inputtransformer2 import leading_empty_lines, leading_indent
from IPython.core.interactiveshell import InteractiveShell

from .code_names import list_bound_names, list_imports, list_parents
from .install import quote_install_line

# Builtins that reach objects by a name in text, run text or wait for a person, with what to write instead.
_REFUSED_BUILTINS = {
    "getattr": "write x.name, or x['name'] for a column",
    "setattr": "write x.name = value, or keep values in a dict",
    "delattr": "write del x.name",
    "vars": "keep values in a dict",
    "globals": "name the variable, or keep values in a dict",
    "locals": "name the variable, or keep values in a dict",
    "eval": "write the expression out; ast.literal_eval reads a literal",
    "exec": "write the code out",
    "compile": "write the code out",
    "__import__": "write an import statement",
    "breakpoint": "print the values you want to see",
    "input": "nobody can type here; set a variable",
    "help": "print(x.__doc__) shows the documentation",
    "exit": "a cell ends at its last line",
    "quit": "a cell ends at its last line",
    "get_ipython": "write it in Python",
}
# Modules that do the same.
_REFUSED_MODULES = frozenset(
    {"__main__", "IPython", "builtins", "ctypes", "importlib", "ipykernel", "runpy", __name__.partition(".")[0]}
)
_HARMLESS_MODULES = frozenset({"__future__", "IPython.display"})
_SHORT_NAMES = {"pd": "pandas", "np": "numpy", "plt": "matplotlib.pyplot", "sns": "seaborn"}
_READABLE_DUNDERS = frozenset(
    {"__name__", "__qualname__", "__doc__", "__file__", "__version__", "__members__", "__debug__", "__all__"}
)
_SETTABLE_DUNDERS = frozenset({"__all__", "__author__", "__version__"})
# Methods of a base class that a class may call.
_INHERITED_METHODS = re.compile(
    r"__(init|new|post_init|init_subclass|repr|str|format|hash|bool|len|iter|next|reversed|contains|getitem|setitem"
    r"|delitem|missing|a?enter|a?exit|aiter|anext|await|eq|ne|lt|le|gt|ge|i?add|radd|[ir]?sub|[ir]?mul|copy|set_name)__"
)


class Refused(InputRejected):
    """An error for a cell that breaks the rules. The user and the model see only its message."""

    __module__ = "builtins"  # Python shows the short name

    def _render_traceback_(self) -> list[str]:
        return [f"Refused: {self}"]


class Rules:
    """The lists of the user. Each check returns the reason for a refusal, or None if the use is allowed."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        """Read the lists of the config, which the host has checked."""
        self._allowed_modules = _read_names(config.get("allowed_modules"))
        self._blocked_modules = _read_names(config.get("blocked_modules")) or frozenset()
        self._allowed_functions = _read_names(config.get("allowed_functions"))
        self._blocked_functions = _read_names(config.get("blocked_functions")) or frozenset()
        self.variables = _read_names(config.get("allowed_variables"))

    @property
    def names_functions(self) -> bool:
        """Return whether a list of functions is given."""
        return self._allowed_functions is not None or bool(self._blocked_functions)

    def check_module(self, dotted: str) -> str | None:
        """Check a module, or something in a module, by its full name."""
        module = _find_module_name(dotted)
        names = list_parents(dotted)
        if names & self._blocked_modules:
            return f"module {module!r} is blocked: avoid it"
        if names & (_HARMLESS_MODULES | (self._allowed_modules or frozenset())):
            return None
        if names & _REFUSED_MODULES:
            return f"module {module!r} bypasses the rules: avoid it"
        if self._allowed_modules is None:
            return None
        return f"module {module!r} is not allowed: {_format_choice(self._allowed_modules)}"

    def check_use(self, dotted: str, is_called: bool) -> str | None:
        """Check the use of something in a module: `os.path.join`, or `shutil.os.path.join`, which is the same."""
        dotted = _resolve(dotted)
        listed = _HARMLESS_MODULES | (self._allowed_modules or frozenset())
        leads_to_listed = any(name.startswith(f"{dotted}.") for name in listed)
        reason = None if leads_to_listed else self.check_module(dotted)
        return reason or self.check_function(dotted, is_called)

    def check_function(self, dotted: str, is_called: bool) -> str | None:
        """Check a function of a module by its full name."""
        name = dotted.rpartition(".")[2]
        if self.is_blocked(name) or self.is_blocked(dotted):
            return f"function {name!r} is blocked: avoid it"
        allowed = self._allowed_functions
        names = list_parents(dotted).union(dotted.split("."))  # an allowed class allows its methods
        if allowed is None or names & allowed:
            return None
        home, _, _ = dotted.rpartition(".")
        if _find_module_name(dotted) not in (dotted, home):
            return None  # a method of a value
        if is_called or callable(_find_value(dotted)):
            return f"function {name!r} is not allowed: {_format_choice(allowed)}"
        return None

    def is_blocked(self, function: str) -> bool:
        """Return whether the list of blocked functions has this name."""
        return function in self._blocked_functions

    def check_builtin(self, name: str) -> str | None:
        """Check a builtin, called or not."""
        allowed = self._allowed_functions
        if self.is_blocked(name):
            return f"function {name!r} is blocked: avoid it"
        if allowed is not None and name in allowed:
            return None
        if name in _REFUSED_BUILTINS:
            return f"{name!r} bypasses the rules: {_REFUSED_BUILTINS[name]}"
        value = vars(builtins).get(name)
        is_exception = isinstance(value, type) and issubclass(value, BaseException)
        if allowed is None or is_exception or not callable(value):
            return None
        return f"function {name!r} is not allowed: {_format_choice(allowed)}"


class _CellChecker(ast.NodeVisitor):
    """The check of one cell. `faults` are line numbers with reasons; the visit quotes the lines of `%pip install`."""

    def __init__(self, rules: Rules, tree: ast.AST, namespace: Mapping[str, Any]) -> None:
        self.faults: set[tuple[int, str]] = set()
        self._rules = rules
        self._namespace = namespace
        self._bound = set(list_bound_names(tree))
        self._modules: dict[str, str] = {}  # full names by the names that the cell can use
        for name, value in namespace.items():
            if isinstance(value, ModuleType) and name not in self._bound:
                self._modules[name] = value.__name__
        self._modules.update(list_imports(tree))
        self._called: set[ast.expr] = set()
        self._class_depth = 0
        self._is_nested = False  # in a function or class, where names are local

    def _refuse(self, node: ast.AST, reason: str | None) -> None:
        if reason:
            self.faults.add((getattr(node, "lineno", 1), reason))

    def visit_Name(self, node: ast.Name) -> None:
        """Check a builtin that is read, and a variable that is set."""
        name = node.id
        if not isinstance(node.ctx, ast.Load):
            self._check_binding(node, name)
            variables = self._rules.variables
            if variables is not None and not self._is_nested and name not in variables:
                allowed = ", ".join(sorted(variables)) or "none"
                self._refuse(node, f"variable {name!r} is not allowed; allowed: {allowed}")
        elif _is_hidden_name(name):
            reason = self._rules.check_builtin(name) or f"{name!r} bypasses the rules: avoid it"
            self._refuse(node, reason)
        elif name not in self._bound and name not in self._namespace:
            self._refuse(node, self._rules.check_builtin(name))

    def _check_binding(self, node: ast.AST, name: str) -> None:
        is_of_class = self._class_depth > 0 and name != "__builtins__"
        if _is_dunder(name) and name not in _SETTABLE_DUNDERS and not is_of_class:
            self._refuse(node, f"{name!r} belongs to Python: choose another name")

    def visit_Import(self, node: ast.Import) -> None:
        """Check the modules of `import a, b`."""
        for alias in node.names:
            self._check_import(node, alias.name)
            self._check_binding(node, alias.asname or alias.name)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        """Check the module and the names of `from a import b, c`."""
        if node.level or node.module is None:
            self._refuse(node, "a relative import has no package here: write the full name of the module")
            return
        self._check_import(node, node.module)
        if node.module == "__future__":
            return
        for alias in node.names:
            dotted = _resolve(f"{node.module}.{alias.name}")
            if alias.name == "*":
                if self._rules.names_functions:
                    self._refuse(node, f"`*` hides what is imported: name it, as in `from {node.module} import x`")
                continue
            if _is_hidden_name(alias.name):
                self._refuse(node, f"{alias.name!r} bypasses the rules: avoid it")
            self._check_binding(node, alias.asname or alias.name)
            self._refuse(node, self._rules.check_module(dotted))
            self._refuse(node, self._rules.check_function(dotted, is_called=False))

    def _check_import(self, node: ast.AST, name: str) -> None:
        self._refuse(node, self._rules.check_module(name))
        root, _, _ = name.partition(".")
        package = os.path.join(root, "__init__.py")
        if os.path.isfile(f"{root}.py") or os.path.isfile(package):
            self._refuse(node, f"{root!r} is in the current folder and is not checked: put its code into a cell")

    def visit_Attribute(self, node: ast.Attribute) -> None:
        """Check an attribute by its name, and by its full name if a module has it."""
        name = node.attr
        if _is_hidden_name(name) and not self._is_inherited(node):
            instead = "type(x) is its class" if name == "__class__" else "avoid it"
            self._refuse(node, f"attribute {name!r} bypasses the rules: {instead}")
        dotted = self._find_full_name(node)
        if dotted:
            self._refuse(node, self._rules.check_use(dotted, node in self._called))
        elif self._rules.is_blocked(name):
            self._refuse(node, f"function {name!r} is blocked: avoid it")
        self.generic_visit(node)

    def _is_inherited(self, node: ast.Attribute) -> bool:
        is_base = isinstance(node.value, ast.Name) or _is_call_of(node.value, "super")
        return self._class_depth > 0 and is_base and _INHERITED_METHODS.fullmatch(node.attr) is not None

    def _find_full_name(self, node: ast.expr) -> str | None:
        """Return the full name of `pd.io.sql`, or None if it does not begin with a module."""
        if isinstance(node, ast.Name):
            return self._modules.get(node.id)
        if isinstance(node, ast.Attribute) and (home := self._find_full_name(node.value)):
            return f"{home}.{node.attr}"
        return None

    def visit_Call(self, node: ast.Call) -> None:
        """Check a call. A magic or a shell line is a call too: IPython has turned it into one."""
        function = node.func
        self._called.add(function)
        if isinstance(function, ast.Attribute) and _is_call_of(function.value, "get_ipython"):
            self._check_magic(node)
        else:
            self.generic_visit(node)

    def _check_magic(self, node: ast.Call) -> None:
        line = None
        match node:
            # Only what IPython makes of `%pip install NAME`: any other argument may hold code.
            case ast.Call(
                func=ast.Attribute(value=ast.Call(args=[], keywords=[]), attr="run_line_magic"),
                args=[ast.Constant(str(magic)), ast.Constant(str(text))],
                keywords=[],
            ):
                line = quote_install_line(magic, text)
        if line is None:
            self._refuse(node, "magics and shell commands are refused, except `%pip install NAME`: use Python")
        else:
            node.args[1] = ast.copy_location(ast.Constant(line), node)

    def _visit_scope(self, node: ast.AST) -> None:
        """Visit a node whose names are local."""
        was_nested = self._is_nested
        self._is_nested = True
        self.generic_visit(node)
        self._is_nested = was_nested

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = visit_comprehension = _visit_scope

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """Visit a class, which may have and call methods with names such as `__init__`."""
        self._class_depth += 1
        self._visit_scope(node)
        self._class_depth -= 1


class Verifier(ast.NodeTransformer):
    """A transformer to which IPython passes the tree of each cell."""

    def __init__(self, shell: InteractiveShell, rules: Rules) -> None:
        self._shell = shell
        self._rules = rules
        self._lines: list[str] = []
        for name in ("get_ipython", "exit", "quit", "open"):
            shell.user_ns.pop(name, None)  # IPython's own; a builtin has the same name
        # IPython removes blank lines at the top, which would shift the reported line numbers.
        cleanup = shell.input_transformer_manager.cleanup_transforms
        cleanup[cleanup.index(leading_empty_lines)] = self._keep_empty_lines

    def _keep_empty_lines(self, lines: list[str]) -> list[str]:
        self._lines = lines
        blank_count = 0
        for index, line in enumerate(lines):
            if line.strip():
                blank_count = index
                break
        rest: list[str] = leading_indent(lines[blank_count:])
        return ["\n"] * blank_count + rest

    def visit(self, tree: ast.AST) -> ast.AST:
        """Return the tree, or raise Refused. After any other exception IPython would drop this transformer."""
        try:
            faults = list_faults(tree, self._rules, self._shell.user_ns)
        except Exception as error:
            raise Refused(f"the code can't be checked ({type(error).__name__}: {error}): write it simpler") from None
        if faults:
            texts = [self._format_fault(line, reason) for line, reason in faults]
            raise Refused("\n".join(texts))
        return tree

    def _format_fault(self, line: int, reason: str) -> str:
        text = ""
        if line <= len(self._lines):
            text = self._lines[line - 1].strip()
        return f"Error on line {line}: {text} => {reason}"


def install_verification(shell: InteractiveShell, config: Mapping[str, Any] | None) -> None:
    """Check each cell of this shell from now on; with None as config, do nothing."""
    if config is not None:
        shell.ast_transformers.append(Verifier(shell, Rules(config)))


def list_faults(tree: ast.AST, rules: Rules, namespace: Mapping[str, Any]) -> list[tuple[int, str]]:
    """Return the faults of a cell in their order: line numbers, from 1 on, with reasons."""
    checker = _CellChecker(rules, tree, namespace)
    checker.visit(tree)
    return sorted(checker.faults)


def _read_names(names: Iterable[str] | None) -> frozenset[str] | None:
    """Read a list of dotted names. A short name such as `pd` becomes the name of its module."""
    if names is None:
        return None
    full_names = set()
    for name in names:
        root, dot, rest = name.partition(".")
        full_names.add(_SHORT_NAMES.get(root, root) + dot + rest)
    return frozenset(full_names)


def _find_module_name(dotted: str) -> str:
    """Return the longest beginning that is the name of an imported module, else the whole name."""
    imported = [name for name in list_parents(dotted) if name in sys.modules]
    return max(imported, key=len, default=dotted)


def _resolve(dotted: str) -> str:
    """Return the full name without modules that only import another one: `os.path` for `shutil.os.path`."""
    module = _find_module_name(dotted)
    if module == dotted:
        return dotted
    name, _, rest = dotted.removeprefix(f"{module}.").partition(".")
    value = vars(sys.modules[module]).get(name)
    if not isinstance(value, ModuleType) or value.__name__ not in sys.modules:
        return dotted
    return _resolve(f"{value.__name__}.{rest}".rstrip("."))


def _find_value(dotted: str) -> object:
    """Return the value with a full name, without importing anything; None if there is none yet."""
    module = _find_module_name(dotted)
    if module not in sys.modules:
        return None
    name = dotted.removeprefix(f"{module}.")
    return vars(sys.modules[module]).get(name)


def _format_choice(names: frozenset[str]) -> str:
    if not names:
        return "none is allowed"
    return f"use one of {', '.join(sorted(names))}"


def _is_call_of(node: ast.AST, name: str) -> bool:
    match node:
        case ast.Call(func=ast.Name(called)):
            return called == name
    return False


def _is_hidden_name(name: str) -> bool:
    """Check whether a name belongs to Python and may not be read."""
    return _is_dunder(name) and name not in _READABLE_DUNDERS


def _is_dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__") and len(name) > 4
