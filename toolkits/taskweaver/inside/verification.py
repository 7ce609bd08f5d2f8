"""Verification: a cell that breaks the person's rules is refused before it runs, or at the step that would break them.

What it looks at is the syntax tree, as IPython is about to compile it, and at run time each attribute, import, builtin
and callee, by its value: a name or a path that leads somewhere by a detour comes to the same object. It lives in the
process that it watches, though. It promises nothing about what libraries and plugins do themselves, so that an allowed
library which runs text as code (a formula, a template), starts programs or reads files does that for a cell too; nor
about files that a cell writes and something else runs, packages that it installs, or a fault in an extension module.
What a cell may reach in the worst case is for the sandbox to say.
"""

import __future__

import ast
import os
import re
import shlex
import sys
from collections.abc import Iterator
from typing import Any

from IPython.core.inputtransformer2 import leading_empty_lines, leading_indent
from IPython.core.interactiveshell import InteractiveShell

from .guards import ATTRIBUTE, CALLEE, HELD, HINT, MAGIC, OWNER, Guards, check_hint
from .rules import FAMILY, Refused, Rules

# Each kind of node that needs nothing but that its parts are looked at. A kind that isn't named is refused.
_PLAIN = frozenset(
    """Module Expr Assign AugAssign For AsyncFor While If With AsyncWith withitem Raise Try TryStar Assert Delete Pass
    Break Continue Return Import ImportFrom alias Global Nonlocal BoolOp NamedExpr BinOp UnaryOp Lambda IfExp Dict Set
    ListComp SetComp DictComp GeneratorExp comprehension Await Yield YieldFrom Compare JoinedStr FormattedValue Constant
    Subscript Starred List Tuple Slice arguments keyword Load Store Del And Or Add Sub Mult MatMult Div Mod Pow LShift
    RShift BitOr BitXor BitAnd FloorDiv Invert Not UAdd USub Eq NotEq Lt LtE Gt GtE Is IsNot In NotIn match_case
    MatchValue MatchSingleton MatchSequence MatchMapping MatchStar MatchAs MatchOr""".split()
)
_READABLE = frozenset({"__name__", "__qualname__", "__doc__", "__version__", "__file__", "__members__"})
_KNOWN = frozenset({"__name__", "__doc__", "__file__", "__debug__"})  # variables
_BINDABLE = frozenset({"__all__", "__version__", "__author__"})
_INNER = frozenset(
    """ag_await ag_code ag_frame cr_await cr_code cr_frame cr_origin f_back f_builtins f_code f_globals f_locals
    func_closure func_code func_globals gi_code gi_frame gi_yieldfrom tb_frame tb_next""".split()
)
# What a class asks of the one that it derives from.
_INHERITED = frozenset(
    f"__{name}__"
    for name in """init new post_init init_subclass repr str bytes format hash bool len iter next reversed contains
    getitem setitem delitem missing enter exit aenter aexit aiter anext await eq ne lt le gt ge add radd iadd sub rsub
    isub mul rmul imul truediv rtruediv floordiv mod pow neg pos abs and or xor invert int float index round copy deepcopy
    prepare set_name get set delete""".split()
)
_SELF_MATCHING = frozenset("bool bytearray bytes dict float frozenset int list set str tuple".split())
_PACKAGE = re.compile(r"[A-Za-z0-9][\w.-]*(\[[\w,.-]+\])?(\s*(==|>=|<=|!=|~=|<|>)[\w.*]+(,(==|>=|<=|!=|~=|<|>)[\w.*]+)*)?")
_ARCHIVE = (".whl", ".zip", ".gz", ".tgz", ".bz2", ".xz", ".tar", ".tbz", ".txz")
_FLAGS = frozenset({"-q", "-qq", "--quiet", "-U", "--upgrade", "-y", "--yes"})


def install(shell: InteractiveShell, config: dict[str, Any] | None) -> None:
    """From now on each cell of this shell is verified; with None nothing is done, and nothing costs anything.

    Raises:
        ValueError: The rules contradict each other.
    """
    if config is not None:
        shell.ast_transformers.append(Verification(shell, Rules(config, shell.user_ns)))


class Verification:
    """What IPython gives the tree of each cell to."""

    def __init__(self, shell: InteractiveShell, rules: Rules) -> None:
        self._shell = shell
        self._rules = rules
        self._guards = Guards(shell, rules)
        self._lines: list[str] = []
        self._home = os.path.realpath(os.getcwd())
        for name in ("get_ipython", "exit", "quit", "open", "__builtin__"):
            shell.user_ns.pop(name, None)
        self._shut()
        # IPython takes blank lines at the top away, so that all lines that are told would be off by them.
        first = shell.input_transformer_manager.cleanup_transforms
        first[first.index(leading_empty_lines)] = self._read

    def _read(self, lines: list[str]) -> list[str]:
        self._lines = lines
        blank = next((index for index, line in enumerate(lines) if line.strip()), 0)
        return ["\n"] * blank + leading_indent(lines[blank:])

    def _shut(self) -> None:
        """Cells see the guards' builtins; nothing imports what they write into the workspace."""
        self._shell.user_ns["__builtins__"] = self._guards.builtins
        sys.path[:] = [path for path in sys.path if path and os.path.realpath(path) != self._home]

    def visit(self, tree: ast.Module) -> ast.Module:
        """The tree with its guards.

        Raises:
            Refused: Each line that can't be right, and why. IPython would go on without us after any other exception.
        """
        try:
            self._shut()
            self._guards.forget()
            check = _Cell(self._rules, tree, self._shell)
            guarded = check.visit(tree)
        except Exception as error:
            raise Refused(f"the code can't be verified ({type(error).__name__}: {error}): write it simpler") from None
        if check.faults:
            raise Refused("\n".join(self._told(line, why) for line, why in sorted(check.faults)))
        return ast.fix_missing_locations(guarded)

    def _told(self, line: int, why: str) -> str:
        text = self._lines[line - 1].strip() if line <= len(self._lines) else ""
        return f"Error on line {line}: {text} => {why}"


class _Cell(ast.NodeTransformer):
    """One cell: `faults` are lines and reasons; the tree that comes back calls a guard at each step that needs one."""

    def __init__(self, rules: Rules, tree: ast.Module, shell: InteractiveShell) -> None:
        self.faults: set[tuple[int, str]] = set()
        self._rules = rules
        self._namespace = shell.user_ns
        self._bound = set(_bound(tree))
        self._classes: list[str] = []
        self._is_in_class = False  # directly, not in a function of it
        self._depth = 0
        self._held: list[ast.stmt] = []
        self._count = 0
        has_future = shell.compile.flags & __future__.annotations.compiler_flag
        self._is_text = bool(has_future) or any(
            isinstance(node, ast.ImportFrom) and node.module == "__future__" and node.names[0].name == "annotations"
            for node in tree.body
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
        if name is None:
            return
        if _is_dunder(name) and not (self._is_in_class and name != "__builtins__") and name not in _BINDABLE:
            self._fault(node, f"{name!r} is Python's own name: take another one")
        is_variable = self._rules.variables is not None and not self._depth and not self._is_in_class
        if is_variable and name not in (self._rules.variables or ()):
            allowed = ", ".join(sorted(self._rules.variables or ())) or "none"
            self._fault(node, f"variable {name!r} is not allowed: there are {allowed}")

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if not isinstance(node.ctx, ast.Load):
            self._bind(node, node.id)
        elif _is_dunder(node.id) and node.id not in _KNOWN | _BINDABLE:
            why = self._rules.builtin(node.id) or f"{node.id!r} leads past the rules: do without it"
            self._fault(node, why)
        elif node.id not in self._bound and node.id not in self._namespace and (why := self._rules.builtin(node.id)):
            self._fault(node, why)
        return node

    def visit_Global(self, node: ast.Global | ast.Nonlocal) -> ast.AST:
        for name in node.names:
            if _is_dunder(name):
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
            if _is_dunder(alias.name) and alias.name not in _READABLE:
                self._fault(node, f"{alias.name!r} leads past the rules: do without it")
            if alias.name != "*" and node.module != "__future__":
                self._bind(node, alias.asname or alias.name)
        return node

    # values

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        name = node.attr
        is_inherited = bool(self._classes) and name in _INHERITED and _is_base(node.value)
        if (_is_dunder(name) and name not in _READABLE and not is_inherited) or name in _INNER:
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
            if keyword.arg and _is_dunder(keyword.arg):
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
        if function.attr == "run_line_magic" and len(given) == 2 and given[0] in ("pip", "conda"):
            try:
                verb, *words = shlex.split(given[1], comments=True)
            except ValueError:
                verb, words = "", []
            if verb == "install" and words and all(_is_package(word) or word in _FLAGS for word in words):
                line = ast.Constant(shlex.join([verb, *words]))
                return _call(MAGIC, ast.Constant(given[0]), line, at=node)
        self._fault(
            node, "magics and shell commands are refused but for `%pip install NAME` and `%conda install NAME`: use Python"
        )
        return node

    # functions and classes

    def _decorators(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        node.decorator_list = [_call(CALLEE, self.visit(each), at=each) for each in node.decorator_list]

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        self._bind(node, node.name)
        self._decorators(node)
        node.args = self.visit(node.args)
        node.returns = self._hint(node.returns)
        is_in_class, self._is_in_class = self._is_in_class, False
        self._depth += 1
        node.body = self._body(node.body)
        self._depth -= 1
        self._is_in_class = is_in_class
        return node

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        is_in_class, self._is_in_class = self._is_in_class, False
        self._depth += 1
        self.generic_visit(node)
        self._depth -= 1
        self._is_in_class = is_in_class
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        if _is_dunder(node.arg):
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
        self._decorators(node)
        node.bases = [self.visit(each) for each in node.bases]
        node.keywords = [self.visit(each) for each in node.keywords]
        is_in_class, self._is_in_class = self._is_in_class, True
        self._classes.append(node.name)
        body = self._body(node.body)
        self._classes.pop()
        self._is_in_class = is_in_class
        # The names in a class's body are looked up in what its metaclass made, but for those that are global.
        names = ast.Global([ATTRIBUTE, CALLEE, OWNER, HINT, HELD, MAGIC])
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


def _is_dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__") and len(name) > 4


def _is_call_of(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name


def _is_base(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) or _is_call_of(node, "super")


def _is_package(word: str) -> bool:
    return _PACKAGE.fullmatch(word) is not None and not word.lower().endswith(_ARCHIVE)


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
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.ExceptHandler | ast.MatchAs):
            yield node.name or ""
        elif isinstance(node, ast.MatchStar):
            yield node.name or ""
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.alias):
            yield node.asname or node.name
