"""The template of a recipe. Its author may be hostile: it reads no file but those given, runs no code and ends soon.

Values never become part of the YAML around them: the text that is filled in has a mark for each value, and the marks
are replaced after the YAML is read. So a value can add neither a line nor a command to a recipe.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from jinja2 import (
    ChainableUndefined,
    DictLoader,
    Environment,
    TemplateError,
    TemplateRuntimeError,
    TemplateSyntaxError,
    nodes,
    pass_context,
)
from jinja2.meta import find_undeclared_variables
from jinja2.sandbox import ImmutableSandboxedEnvironment
from markupsafe import Markup

from goose_like.core.errors import UsageError

MAX_CHARACTERS = 1_000_000
"""The longest recipe after its template is filled in."""

_MAX_VALUE_CHARACTERS = 20 * MAX_CHARACTERS
_MAX_NESTING = 50
_MAX_EXPRESSIONS = 2_000
_MAX_RENDERS = 300
_EXPRESSION = re.compile(r"\{\{(.{0,300}?)\}\}")
_NAME = re.compile(r"\s*[A-Za-z_]\w*\s*")
_MARK = re.compile("\ue000([0-9]{1,7})\ue001")
_MARK_CHARACTERS = re.compile("[\ue000\ue001]")
_MARK_PROBLEM = "it has the characters U+E000 or U+E001, which goose-like needs; remove them"

# Loops in loops, macros, joined texts and widths are missing: a short template could run for hours with them.
_ALLOWED = frozenset(
    (
        *("Template", "Output", "TemplateData", "Const", "Name", "NSRef", "Getattr", "Getitem", "Slice", "Call"),
        *("If", "For", "CondExpr", "Assign", "Block", "Extends", "Include", "Filter", "Test", "Keyword"),
        *("Compare", "Operand", "And", "Or", "Not", "List", "Tuple", "Add", "Sub", "Neg"),
    )
)
"""The parts of a template, by their classes in Jinja."""

_FILTERS = frozenset(
    (
        *("abs", "capitalize", "count", "d", "default", "e", "escape", "first", "float", "indent", "int", "items"),
        *("join", "last", "length", "list", "lower", "replace", "reverse", "safe", "sort", "string", "title"),
        *("tojson", "trim", "truncate", "unique", "upper", "urlencode", "wordcount"),
    )
)


def _return_text(value: Any, *_: Any, **__: Any) -> str:
    """Return a value as a text without change: there is no HTML here, and a value keeps no layout."""
    return _write_value(value)


def _write_value(value: Any) -> str:
    if isinstance(value, str | ChainableUndefined):
        return str(value)
    return _write_json(value)


def _join(values: Any, separator: str = "") -> str:
    parts = list(map(_write_value, values))
    _check_length(sum(map(len, parts)) + len(parts) * len(separator))
    return separator.join(parts)


def _replace(value: Any, old: str, new: str) -> str:
    text = _write_value(value)
    _check_length(text.count(old) * len(new))
    return text.replace(old, new)


def _check_length(length: int) -> None:
    if length > MAX_CHARACTERS:
        raise TemplateRuntimeError(f"a text of more than {MAX_CHARACTERS:,} characters")


def _write_json(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    _check_length(len(text))
    return text


_OWN_FILTERS: dict[str, Any] = {
    **dict.fromkeys(("e", "escape", "indent", "safe", "string"), _return_text),
    "join": _join,
    "replace": _replace,
    "tojson": _write_json,
}


_Undefined: Any = ChainableUndefined


class _Literal(_Undefined):  # type: ignore[misc]  # whose operators all raise, to other types
    """A variable without a value. It stays in the text as the author wrote it, and no comparison with it holds."""

    def __str__(self) -> str:
        return f"{{{{ {self._undefined_name} }}}}"

    def _refuse(self, _: object) -> bool:
        return False

    def _stay(self, *_: object) -> Any:
        return self

    def __int__(self) -> int:
        return 0

    def __float__(self) -> float:
        return 0.0

    __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __neg__ = _stay


class Filling:
    """A template that is filled in: its text with marks, and the values of the marks."""

    def __init__(self, name: str) -> None:
        self.text = ""
        self._name = name
        self._values: dict[str, str] = {}
        self._count = 0

    def add(self, value: str) -> str:
        """Keep a value, in which no text looks like a mark, and return its mark.

        Raises:
            TemplateRuntimeError: the values are too long together.
        """
        self._count += len(value)
        if self._count > _MAX_VALUE_CHARACTERS:
            raise TemplateRuntimeError(f"values of more than {_MAX_VALUE_CHARACTERS:,} characters")
        number = str(len(self._values))
        self._values[number] = _MARK_CHARACTERS.sub("", value)
        return f"\ue000{number}\ue001"

    def resolve(self, text: str) -> str:
        """Return a text with the values in place of the marks.

        Raises:
            UsageError: a mark is unknown or there twice, so the author wrote it.
        """
        return _MARK.sub(self._replace_mark, text)

    def _replace_mark(self, match: re.Match[str]) -> str:
        value = self._values.pop(match[1], None)
        if value is None:
            raise UsageError(f"{self._name}: {_MARK_PROBLEM}")
        return value


@contextmanager
def _convert_errors(name: str) -> Iterator[None]:
    """Make a UsageError of each error of a template, also of those that Jinja does not foresee."""
    try:
        yield
    except UsageError:
        raise
    except TemplateSyntaxError as error:
        raise UsageError(f"{name}, line {error.lineno}: {error.message}") from error
    except TemplateError as error:
        raise UsageError(f"{name}: {error.message}") from error
    except Exception as error:
        raise UsageError(f"{name}: the template fails: {error}") from error


def fill_template(name: str, texts: Mapping[str, str], values: Mapping[str, Any]) -> Filling:
    """Fill in the template `name`. It includes and extends only other `texts`.

    Raises:
        UsageError: the template cannot be filled in.
    """
    filling = Filling(name)

    @pass_context  # which also keeps constants from being computed, and escaped, before
    def mark(_: Any, value: Any) -> Any:
        # The text of a block of the parent, by `super()`, is no value.
        if isinstance(value, Markup):
            return value
        return Markup(filling.add(_write_value(value)))

    pieces: list[str] = []
    count = 0
    with _convert_errors(name):
        environment = _make_environment(texts, mark)
        for piece in environment.get_template(name).generate(values):
            pieces.append(piece)
            count += len(piece)
            if count > MAX_CHARACTERS:
                raise UsageError(f"{name}: more than {MAX_CHARACTERS:,} characters after the template is filled in")
    filling.text = "".join(pieces)
    return filling


def _make_environment(texts: Mapping[str, str], finalize: Any = None) -> Environment:
    environment = ImmutableSandboxedEnvironment(
        loader=DictLoader({name: keep_broken_expressions(text) for name, text in texts.items()}),
        undefined=_Literal,
        finalize=finalize,
        # Only so that the text of a parent's block can be told from a value.
        autoescape=True,
        cache_size=0,
        keep_trailing_newline=True,
    )
    environment.filters |= _OWN_FILTERS
    return environment


def keep_broken_expressions(text: str) -> str:
    """Return a template whose expressions that are none, such as `{{your name}}`, stay in the text, as in goose."""
    environment = Environment()

    def keep(match: re.Match[str]) -> str:
        is_quoted = match[1].strip().startswith(("'", '"'))
        if is_quoted or _NAME.fullmatch(match[1]):
            return match[0]
        try:
            environment.parse(match[0])
        except TemplateSyntaxError:
            return f"{{% raw %}}{match[0]}{{% endraw %}}"
        return match[0]

    return _EXPRESSION.sub(keep, text)


def find_templates(name: str, text: str) -> list[str]:
    """Check a template, and return the names of those that it extends or includes.

    Raises:
        UsageError: it is no template, or does what a recipe may not.
    """
    if _MARK_CHARACTERS.search(text):
        raise UsageError(f"{name}: {_MARK_PROBLEM}")
    if len(_EXPRESSION.findall(text)) > _MAX_EXPRESSIONS:
        raise UsageError(f"{name}: more than {_MAX_EXPRESSIONS:,} variables")
    tree = _parse(name, text)
    names = []
    for node in tree.find_all((nodes.Extends, nodes.Include)):
        source = getattr(node, "template", None)
        if not isinstance(source, nodes.Const) or not isinstance(source.value, str):
            raise UsageError(f"{name}, line {node.lineno}: write the name of the file in quotes")
        names.append(source.value)
    return names


def check_renders(name: str, templates: Mapping[str, Sequence[str]], label: str) -> None:
    """Check that few files are rendered for the template `name`. `templates` are those that each file names.

    Raises:
        UsageError: there are too many, or a file includes itself.
    """
    waiting = [name]
    count = 0
    while waiting:
        count += 1
        if count > _MAX_RENDERS:
            raise UsageError(f"{label}: its files include each other more than {_MAX_RENDERS} times")
        waiting += templates.get(waiting.pop(), ())


def find_variables(name: str, text: str) -> dict[str, int]:
    """Return the variables of a template that it does not set itself, each with its first line."""
    tree = _parse(name, text)
    with _convert_errors(name):
        free = find_undeclared_variables(tree)
    lines: dict[str, int] = {}
    for node in tree.find_all(nodes.Name):
        is_free = node.ctx == "load" and node.name in free
        if is_free:
            first_line = lines.get(node.name, node.lineno)
            lines[node.name] = min(node.lineno, first_line)
    lines.pop("super", None)
    return lines


def _parse(name: str, text: str) -> nodes.Template:
    with _convert_errors(name):
        tree = _make_environment({}).parse(keep_broken_expressions(text))
        _check_depth(tree)
    for node in tree.find_all(nodes.Node):
        problem = _find_problem(node)
        if problem:
            raise UsageError(f"{name}, line {node.lineno}: {problem}")
    return tree


def _check_depth(node: nodes.Node, depth: int = 0) -> None:
    if depth > _MAX_NESTING:
        raise RecursionError("it nests too deep")
    for child in node.iter_child_nodes():
        _check_depth(child, depth + 1)


def _find_problem(node: nodes.Node) -> str:
    """Return why a recipe may not have a part of a template, or an empty text."""
    kind = type(node).__name__
    if kind not in _ALLOWED:
        return f"templates of recipes have no `{kind.lower()}`"
    calls = [child for child in node.iter_child_nodes() if isinstance(child, nodes.Call)]
    if not all(getattr(call.node, "name", "") == "super" for call in calls):
        return "templates of recipes call nothing but `super()`"
    if calls and kind != "Output":
        return "`super()` stands alone in its braces"  # with a name, it would be there twice, and so on for each parent
    match node:
        case nodes.Filter() if node.name not in _FILTERS:
            return f"no filter {node.name!r} for recipes"
        case nodes.For() if any(node.find_all((nodes.For, nodes.Include, nodes.Block, nodes.Call))):
            return "no loops, blocks, calls and other files in a loop"
        case nodes.Block() if len(list(node.find_all(nodes.Call))) > 1:
            return "only one `super()` in a block"
        case nodes.Assign() if len(list(_iterate_names(node.node))) > 1:
            return "`set` takes one value"
    return ""


def _iterate_names(node: nodes.Node) -> Iterator[nodes.Name]:
    if isinstance(node, nodes.Name):
        yield node
    yield from node.find_all(nodes.Name)
