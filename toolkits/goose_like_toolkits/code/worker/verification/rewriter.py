"""Rewriting of a cell's syntax tree: find forbidden code, and insert a guard at each step that needs one."""

import __future__

import ast
import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from .guards import ANNOTATION, ATTRIBUTE, CALLEE, GUARD_NAMES, MAGIC, OWNER, check_annotation
from .known_names import (
    FORBIDDEN_ATTRIBUTES,
    INHERITED_METHODS,
    READABLE_ATTRIBUTES,
    READABLE_VARIABLES,
    SETTABLE_VARIABLES,
    is_dunder,
    split_names,
)
from .rules import Rules

# Kinds of nodes whose children need checks but not the node itself. Kinds missing here and in the class are refused.
_PLAIN_NODES = split_names(
    """Module Expr Assign AugAssign For AsyncFor While If With AsyncWith withitem Raise Try TryStar Assert Delete Pass
    Break Continue Return Import ImportFrom alias Global Nonlocal BoolOp NamedExpr BinOp UnaryOp Lambda IfExp Dict Set
    ListComp SetComp DictComp GeneratorExp comprehension Await Yield YieldFrom Compare JoinedStr FormattedValue Constant
    Subscript Starred List Tuple Slice arguments keyword Load Store Del And Or Add Sub Mult MatMult Div Mod Pow LShift
    RShift BitOr BitXor BitAnd FloorDiv Invert Not UAdd USub Eq NotEq Lt LtE Gt GtE Is IsNot In NotIn"""
)
_VERSION = r"(==|>=|<=|!=|~=|<|>)[\w.*]+"
_PACKAGE = re.compile(rf"[A-Za-z0-9][\w.-]*(\[[\w,.-]+\])?({_VERSION}(,{_VERSION})*)?")
_ARCHIVES = (".whl", ".zip", ".gz", ".tgz", ".bz2", ".xz", ".tar", ".tbz", ".txz")
_FLAGS = split_names("-q -qq --quiet -U --upgrade -y --yes")
_SELF_MATCHING_TYPES = split_names("bool bytearray bytes dict float frozenset int list set str tuple")


class CellRewriter(ast.NodeTransformer):
    """The rewriting of one cell. `faults` are line numbers with reasons; `visit` returns the guarded tree."""

    def __init__(self, rules: Rules, tree: ast.AST, shell: InteractiveShell) -> None:
        self.faults: set[tuple[int, str]] = set()
        self._rules = rules
        self._namespace = shell.user_ns
        self._bound = set(_list_bound_names(tree))
        self._classes: list[str] = []
        self._is_in_class = False  # directly, not in a method
        self._is_nested = False  # in a function or class, where names are local
        has_future = shell.compile.flags & __future__.annotations.compiler_flag
        self._has_text_annotations = bool(has_future) or any(
            isinstance(node, ast.ImportFrom) and node.module == "__future__" and node.names[0].name == "annotations"
            for node in ast.walk(tree)
        )

    def _add_fault(self, node: ast.AST, reason: str) -> None:
        self.faults.add((getattr(node, "lineno", 1), reason))

    def visit(self, node: ast.AST) -> Any:
        """Check a node and return its guarded form."""
        kind = type(node).__name__
        if method := getattr(self, f"_visit_{kind}", None):
            return method(node)
        if kind not in _PLAIN_NODES:
            self._add_fault(node, f"`{kind}` is unknown syntax here: write it in another way")
            return node
        return self.generic_visit(node)

    # names

    def _check_binding(self, node: ast.AST, name: str | None) -> None:
        if not name or not is_dunder(name) or name in SETTABLE_VARIABLES:
            return
        if not self._is_in_class or name == "__builtins__":
            self._add_fault(node, f"{name!r} belongs to Python: choose another name")

    def _visit_Name(self, node: ast.Name) -> ast.AST:
        name = node.id
        if not isinstance(node.ctx, ast.Load):
            self._check_binding(node, name)
            if self._rules.variables is not None and not self._is_nested and name not in self._rules.variables:
                allowed = ", ".join(sorted(self._rules.variables)) or "none"
                self._add_fault(node, f"variable {name!r} is not allowed; allowed: {allowed}")
        elif is_dunder(name) and name not in READABLE_VARIABLES:
            self._add_fault(node, self._rules.check_builtin(name) or f"{name!r} bypasses the rules: avoid it")
        elif name not in self._bound and name not in self._namespace and (reason := self._rules.check_builtin(name)):
            self._add_fault(node, reason)
        return node

    def _visit_Global(self, node: ast.Global | ast.Nonlocal) -> ast.AST:
        for name in node.names:
            if is_dunder(name):
                self._add_fault(node, f"{name!r} belongs to Python: choose another name")
        return node

    _visit_Nonlocal = _visit_Global

    def _visit_Import(self, node: ast.Import) -> ast.AST:
        for alias in node.names:
            if reason := self._rules.check_module(alias.name):
                self._add_fault(node, reason)
            self._check_binding(node, alias.asname or alias.name.partition(".")[0])
        return node

    def _visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST:
        if node.level or node.module is None:
            self._add_fault(node, "a relative import has no package here: write the full name of the module")
        elif reason := self._rules.check_module(node.module):
            self._add_fault(node, reason)
        for alias in node.names:
            if alias.name in self._rules.blocked_names:
                self._add_fault(node, f"function {alias.name!r} is blocked: avoid it")
            if is_dunder(alias.name) and alias.name not in READABLE_ATTRIBUTES:
                self._add_fault(node, f"{alias.name!r} bypasses the rules: avoid it")
            if alias.name != "*" and node.module != "__future__":
                self._check_binding(node, alias.asname or alias.name)
        return node

    # values

    def _visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        name = node.attr
        is_inherited = bool(self._classes) and name in INHERITED_METHODS and _may_be_base(node.value)
        if (is_dunder(name) and name not in READABLE_ATTRIBUTES and not is_inherited) or name in FORBIDDEN_ATTRIBUTES:
            instead = "type(x) is its class" if name == "__class__" else "avoid it"
            self._add_fault(node, f"attribute {name!r} bypasses the rules: {instead}")
        if name in self._rules.blocked_names:
            self._add_fault(node, f"function {name!r} is blocked: avoid it")
        value = self.visit(node.value)
        if not isinstance(node.ctx, ast.Load):
            node.value = _call_guard(OWNER, value)
            return node
        if name.startswith("__") and not name.endswith("__") and self._classes and self._classes[-1].strip("_"):
            name = f"_{self._classes[-1].lstrip('_')}{name}"  # the compiler mangles private attributes in this way
        return _call_guard(ATTRIBUTE, value, ast.Constant(name), at=node)

    def _visit_Call(self, node: ast.Call) -> ast.AST:
        if (magic := self._rewrite_magic(node)) is not None:
            return magic
        for keyword in node.keywords:
            if keyword.arg and is_dunder(keyword.arg):
                self._add_fault(node, f"{keyword.arg!r} belongs to Python: choose another name")
        is_attribute = isinstance(node.func, ast.Attribute)  # the attribute guard checks the callee
        function = self.visit(node.func)
        node.func = function if is_attribute else _call_guard(CALLEE, function, at=node.func)
        node.args = [self.visit(each) for each in node.args]
        node.keywords = [self.visit(each) for each in node.keywords]
        return node

    def _rewrite_magic(self, node: ast.Call) -> ast.AST | None:
        """Return the replacement of a magic or shell command, which IPython turned into a call; None for others."""
        function = node.func
        if not (isinstance(function, ast.Attribute) and _is_call_of(function.value, "get_ipython")):
            return None
        texts = [each.value for each in node.args if isinstance(each, ast.Constant) and isinstance(each.value, str)]
        if function.attr == "run_line_magic" and len(texts) == 2 and (line := quote_install_line(*texts)) is not None:
            return _call_guard(MAGIC, ast.Constant(texts[0]), ast.Constant(line), at=node)
        self._add_fault(node, "magics and shell commands are refused, except `%pip install NAME`: use Python")
        return node

    # functions and classes

    @contextmanager
    def _enter_scope(self, is_class: bool) -> Iterator[None]:
        before = self._is_in_class, self._is_nested
        self._is_in_class, self._is_nested = is_class, True
        yield
        self._is_in_class, self._is_nested = before

    def _check_type_parameters(self, node: ast.AST) -> None:
        if getattr(node, "type_params", None):  # from Python 3.12 on
            self._add_fault(node, "type parameters in brackets are unknown here: write a TypeVar")

    def _visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        self._check_binding(node, node.name)
        self._check_type_parameters(node)
        node.decorator_list = [_call_guard(CALLEE, self.visit(each), at=each) for each in node.decorator_list]
        node.args = self.visit(node.args)
        node.returns = self._guard_annotation(node.returns)
        with self._enter_scope(is_class=False):
            node.body = [self.visit(each) for each in node.body]
        return node

    _visit_AsyncFunctionDef = _visit_FunctionDef

    def _visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        with self._enter_scope(is_class=False):
            return self.generic_visit(node)

    def _visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        with self._enter_scope(is_class=self._is_in_class):
            return self.generic_visit(node)

    def _visit_arg(self, node: ast.arg) -> ast.AST:
        if is_dunder(node.arg):
            self._add_fault(node, f"{node.arg!r} belongs to Python: choose another name")
        node.annotation = self._guard_annotation(node.annotation)
        return node

    def _visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.target = self.visit(node.target)
        node.annotation = self._guard_annotation(node.annotation) or node.annotation
        node.value = self.visit(node.value) if node.value else None
        return node

    def _guard_annotation(self, node: ast.expr | None) -> ast.expr | None:
        if node is None:
            return None
        if self._has_text_annotations:
            check_annotation(node, lambda reason: self._add_fault(node, reason))
            return node
        return _call_guard(ANNOTATION, self.visit(node), at=node)

    def _visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        self._check_binding(node, node.name)
        self._check_type_parameters(node)
        node.decorator_list = [_call_guard(CALLEE, self.visit(each), at=each) for each in node.decorator_list]
        node.bases = [self.visit(each) for each in node.bases]
        node.keywords = [self.visit(each) for each in node.keywords]
        self._classes.append(node.name)
        with self._enter_scope(is_class=True):
            body = [self.visit(each) for each in node.body]
        self._classes.pop()
        # A metaclass decides how names in the class body are looked up, except for global names.
        names = ast.Global(list(GUARD_NAMES))
        has_docstring = ast.get_docstring(node, clean=False) is not None
        node.body = [*body[:has_docstring], ast.copy_location(names, node.body[0]), *body[has_docstring:]]
        return node

    def _visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.AST:
        self._check_binding(node, node.name)
        return self.generic_visit(node)

    def _visit_Match(self, node: ast.Match) -> ast.AST:
        for part in (part for case in node.cases for part in ast.walk(case.pattern)):
            self._check_binding(part, getattr(part, "name", None) or getattr(part, "rest", None))
            if isinstance(part, ast.Attribute) or (isinstance(part, ast.MatchClass) and not self._is_builtin(part)):
                reason = "a pattern may contain plain values and builtin types: use `if` and isinstance"
                self._add_fault(part, reason)
        node.subject = self.visit(node.subject)
        for case in node.cases:
            case.guard = self.visit(case.guard) if case.guard else None
            case.body = [self.visit(each) for each in case.body]
        return node

    def _is_builtin(self, node: ast.MatchClass) -> bool:
        """Return whether a class pattern captures a value of a builtin type and reads no attributes."""
        name = node.cls.id if isinstance(node.cls, ast.Name) else ""
        is_rebound = name in self._bound or name in self._namespace
        return name in _SELF_MATCHING_TYPES and not is_rebound and not node.kwd_attrs and len(node.patterns) <= 1


def _is_call_of(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name


def _may_be_base(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) or _is_call_of(node, "super")


def _call_guard(guard: str, *values: ast.expr, at: ast.expr | None = None) -> ast.expr:
    call = ast.Call(ast.Name(guard, ast.Load()), list(values), [])
    for node in (call.func, *values[1:], call):
        ast.copy_location(node, at or values[0])
    return call


def _list_bound_names(tree: ast.AST) -> Iterator[str]:
    """Yield the names that a cell binds anywhere; a bound name need not be a builtin."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar):
            yield node.name or ""
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.alias):
            yield node.asname or node.name


def quote_install_line(magic: str, line: str) -> str | None:
    """Return the quoted line for `%pip`, or None if the line does more than install packages by name."""
    try:
        arguments = shlex.split(line, comments=True)
    except ValueError:
        return None
    if magic != "pip" or arguments[:1] != ["install"]:
        return None
    if not all(word in _FLAGS or _is_package(word) for word in arguments[1:]):
        return None
    return shlex.join(arguments)


def _is_package(word: str) -> bool:
    return _PACKAGE.fullmatch(word) is not None and not word.lower().endswith(_ARCHIVES)
