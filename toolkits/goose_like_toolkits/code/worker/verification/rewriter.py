"""The syntax tree of one cell: what in it breaks the rules, and the tree with a guard at each step that needs one."""

import __future__

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from .annotations import check_hint
from .forbidden import BINDABLE, INHERITED, INNER, KNOWN, READABLE, is_dunder, words
from .guards import ATTRIBUTE, CALLEE, GUARDS, HELD, HINT, MAGIC, OWNER
from .pip_command import install_line
from .rules import Rules

# Each kind of node that needs nothing but that its parts are looked at. A kind that isn't named is refused.
_PLAIN = words(
    """Module Expr Assign AugAssign For AsyncFor While If With AsyncWith withitem Raise Try TryStar Assert Delete Pass
    Break Continue Return Import ImportFrom alias Global Nonlocal BoolOp NamedExpr BinOp UnaryOp Lambda IfExp Dict Set
    ListComp SetComp DictComp GeneratorExp comprehension Await Yield YieldFrom Compare JoinedStr FormattedValue Constant
    Subscript Starred List Tuple Slice arguments keyword Load Store Del And Or Add Sub Mult MatMult Div Mod Pow LShift
    RShift BitOr BitXor BitAnd FloorDiv Invert Not UAdd USub Eq NotEq Lt LtE Gt GtE Is IsNot In NotIn match_case
    MatchValue MatchSingleton MatchSequence MatchMapping MatchStar MatchAs MatchOr"""
)
_SELF_MATCHING = words("bool bytearray bytes dict float frozenset int list set str tuple")


class Cell(ast.NodeTransformer):
    """One cell: `faults` are lines and reasons; the tree that comes back calls a guard at each step that needs one."""

    def __init__(self, rules: Rules, tree: ast.AST, shell: InteractiveShell) -> None:
        self.faults: set[tuple[int, str]] = set()
        self._rules = rules
        self._namespace = shell.user_ns
        self._bound = set(_bound(tree))
        self._classes: list[str] = []
        self._is_in_class = False  # directly, not in a function of it
        self._is_inner = False  # in a function or a class, whose names are not the cell's
        self._held: list[ast.stmt] = []
        self._count = 0
        has_future = shell.compile.flags & __future__.annotations.compiler_flag
        self._is_text = bool(has_future) or any(
            isinstance(node, ast.ImportFrom) and node.module == "__future__" and node.names[0].name == "annotations"
            for node in ast.walk(tree)
        )

    def _fault(self, node: ast.AST, why: str) -> None:
        self.faults.add((getattr(node, "lineno", 1), why))

    def visit(self, node: ast.AST) -> Any:
        kind = type(node).__name__
        if kind not in _PLAIN and not hasattr(self, f"visit_{kind}"):
            self._fault(node, f"`{kind}` is syntax that is not known here: write it in another way")
            return node
        return super().visit(node)

    # names

    def _bind(self, node: ast.AST, name: str | None) -> None:
        if name and is_dunder(name) and not (self._is_in_class and name != "__builtins__") and name not in BINDABLE:
            self._fault(node, f"{name!r} is Python's own name: take another one")

    def _set(self, node: ast.AST, name: str) -> None:
        self._bind(node, name)
        if self._rules.variables is not None and not self._is_inner and name not in self._rules.variables:
            allowed = ", ".join(sorted(self._rules.variables)) or "none"
            self._fault(node, f"variable {name!r} is not allowed: there are {allowed}")

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if not isinstance(node.ctx, ast.Load):
            self._set(node, node.id)
        elif is_dunder(node.id) and node.id not in KNOWN:
            self._fault(node, self._rules.builtin(node.id) or f"{node.id!r} leads past the rules: do without it")
        elif node.id not in self._bound and node.id not in self._namespace and (why := self._rules.builtin(node.id)):
            self._fault(node, why)
        return node

    def visit_Global(self, node: ast.Global | ast.Nonlocal) -> ast.AST:
        for name in node.names:
            if is_dunder(name):
                self._fault(node, f"{name!r} is Python's own name: take another one")
        return node

    visit_Nonlocal = visit_Global

    def visit_Import(self, node: ast.Import) -> ast.AST:
        for alias in node.names:
            if why := self._rules.module(alias.name):
                self._fault(node, why)
            self._bind(node, alias.asname or alias.name.partition(".")[0])
        return node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST:
        if node.level or node.module is None:
            self._fault(node, "a relative import has nothing to start from: name the module in full")
        elif why := self._rules.module(node.module):
            self._fault(node, why)
        for alias in node.names:
            if alias.name in self._rules.names:
                self._fault(node, f"function {alias.name!r} is blocked: do without it")
            if is_dunder(alias.name) and alias.name not in READABLE:
                self._fault(node, f"{alias.name!r} leads past the rules: do without it")
            if alias.name != "*" and node.module != "__future__":
                self._bind(node, alias.asname or alias.name)
        return node

    # values

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        name = node.attr
        is_inherited = bool(self._classes) and name in INHERITED and _is_base(node.value)
        if (is_dunder(name) and name not in READABLE and not is_inherited) or name in INNER:
            instead = "type(x) is its class" if name == "__class__" else "do without it"
            self._fault(node, f"attribute {name!r} leads past the rules: {instead}")
        if name in self._rules.names:
            self._fault(node, f"function {name!r} is blocked: do without it")
        value = self.visit(node.value)
        if not isinstance(node.ctx, ast.Load):
            node.value = _call(OWNER, value)
            return node
        if name.startswith("__") and not name.endswith("__") and self._classes and self._classes[-1].strip("_"):
            name = f"_{self._classes[-1].lstrip('_')}{name}"  # as the compiler would, for a private attribute
        return _call(ATTRIBUTE, value, ast.Constant(name), at=node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if (magic := self._magic(node)) is not None:
            return magic
        for keyword in node.keywords:
            if keyword.arg and is_dunder(keyword.arg):
                self._fault(node, f"{keyword.arg!r} is Python's own name: take another one")
        is_attribute = isinstance(node.func, ast.Attribute)  # then its guard has looked at the callee
        function = self.visit(node.func)
        node.func = function if is_attribute else _call(CALLEE, function, at=node.func)
        node.args = [self.visit(each) for each in node.args]
        node.keywords = [self.visit(each) for each in node.keywords]
        return node

    def _magic(self, node: ast.Call) -> ast.AST | None:
        """What stands in the place of a magic or a shell command, which IPython has made a call; None for others."""
        function = node.func
        if not (isinstance(function, ast.Attribute) and _is_call_of(function.value, "get_ipython")):
            return None
        given = [each.value for each in node.args if isinstance(each, ast.Constant) and isinstance(each.value, str)]
        if function.attr == "run_line_magic" and len(given) == 2 and (line := install_line(*given)) is not None:
            return _call(MAGIC, ast.Constant(given[0]), ast.Constant(line), at=node)
        told = "magics and shell commands are refused but for `%pip install NAME` and `%conda install NAME`: use Python"
        self._fault(node, told)
        return node

    # functions and classes

    @contextmanager
    def _within(self, is_class: bool) -> Iterator[None]:
        before = self._is_in_class, self._is_inner
        self._is_in_class, self._is_inner = is_class, True
        yield
        self._is_in_class, self._is_inner = before

    def _parameters(self, node: ast.AST) -> None:
        if getattr(node, "type_params", None):  # from Python 3.12 on
            self._fault(node, "type parameters in brackets are not known here: write a TypeVar")

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        self._bind(node, node.name)
        self._parameters(node)
        node.decorator_list = [_call(CALLEE, self.visit(each), at=each) for each in node.decorator_list]
        node.args = self.visit(node.args)
        node.returns = self._hint(node.returns)
        with self._within(is_class=False):
            node.body = self._body(node.body)
        return node

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        with self._within(is_class=False):
            return self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        with self._within(is_class=self._is_in_class):
            return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        if is_dunder(node.arg):
            self._fault(node, f"{node.arg!r} is Python's own name: take another one")
        node.annotation = self._hint(node.annotation)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.target = self.visit(node.target)
        node.annotation = self._hint(node.annotation) or node.annotation
        node.value = self.visit(node.value) if node.value else None
        return node

    def _hint(self, node: ast.expr | None) -> ast.expr | None:
        if node is None:
            return None
        if self._is_text:
            check_hint(node, lambda why: self._fault(node, why))
            return node
        return _call(HINT, self.visit(node), at=node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        self._bind(node, node.name)
        self._parameters(node)
        node.decorator_list = [_call(CALLEE, self.visit(each), at=each) for each in node.decorator_list]
        node.bases = [self.visit(each) for each in node.bases]
        node.keywords = [self.visit(each) for each in node.keywords]
        self._classes.append(node.name)
        with self._within(is_class=True):
            body = self._body(node.body)
        self._classes.pop()
        # The names in a class's body are looked up in what its metaclass made, but for those that are global.
        names = ast.Global(list(GUARDS))
        has_text = ast.get_docstring(node, clean=False) is not None
        node.body = [*body[:has_text], ast.copy_location(names, node.body[0]), *body[has_text:]]
        return node

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.AST:
        self._bind(node, node.name)
        return self.generic_visit(node)

    def _body(self, nodes: list[ast.stmt]) -> list[ast.stmt]:
        body: list[ast.stmt] = []
        for node in nodes:
            new = self.visit(node)
            body.extend(new if isinstance(new, list) else [new])
        return body

    # patterns: what stands in them can't be a call, and so is looked at before

    def visit_Match(self, node: ast.Match) -> list[ast.stmt]:
        before, self._held = self._held, []
        # the patterns first: a body may have a match of its own
        for case in node.cases:
            case.pattern = self.visit(case.pattern)
        held, self._held = self._held, before
        node.subject = self.visit(node.subject)
        for case in node.cases:
            case.guard = self.visit(case.guard) if case.guard else None
            case.body = self._body(case.body)
        return [*held, node]

    def _hold(self, node: ast.expr, name: str = "") -> ast.Attribute:
        self._count += 1
        place = f"_ verified {self._count}"
        value = _call(HELD, self.visit(node), ast.Constant(name), at=node)
        self._held.append(ast.copy_location(ast.Assign([ast.Name(place, ast.Store())], value), node))
        return ast.copy_location(ast.Attribute(ast.Name(place, ast.Load()), "value", ast.Load()), node)

    def visit_MatchValue(self, node: ast.MatchValue) -> ast.AST:
        if any(isinstance(part, ast.Attribute) for part in ast.walk(node)):
            node.value = self._hold(node.value)
        return node

    def visit_MatchMapping(self, node: ast.MatchMapping) -> ast.AST:
        node.keys = [self._hold(key) if isinstance(key, ast.Attribute) else key for key in node.keys]
        node.patterns = [self.visit(each) for each in node.patterns]
        self._bind(node, node.rest)
        return node

    def visit_MatchStar(self, node: ast.MatchStar | ast.MatchAs) -> ast.AST:
        self._bind(node, node.name)
        return self.generic_visit(node)

    visit_MatchAs = visit_MatchStar

    def visit_MatchClass(self, node: ast.MatchClass) -> ast.AST:
        takes_itself = isinstance(node.cls, ast.Name) and node.cls.id in _SELF_MATCHING and len(node.patterns) == 1
        if node.kwd_attrs or (node.patterns and not takes_itself):
            self._fault(node, "a pattern doesn't look into objects: match `C()`, then use x.name in an `if`")
        node.cls = self._hold(node.cls, node.cls.id if node.patterns and isinstance(node.cls, ast.Name) else "")
        node.patterns = [self.visit(each) for each in node.patterns]
        return node


def _is_call_of(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name


def _is_base(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) or _is_call_of(node, "super")


def _call(guard: str, *values: ast.expr, at: ast.expr | None = None) -> ast.expr:
    call = ast.Call(ast.Name(guard, ast.Load()), list(values), [])
    for node in (call.func, *values[1:], call):
        ast.copy_location(node, at or values[0])
    return call


def _bound(tree: ast.AST) -> Iterator[str]:
    """The names that a cell gives something to, anywhere in it: they need not be builtins."""
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
