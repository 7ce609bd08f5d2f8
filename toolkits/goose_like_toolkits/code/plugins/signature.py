"""The call signature of a plugin, read from its Python source without an import, and compared with its YAML."""

import ast
import warnings
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from goose_like.core.message import FrozenModel
from goose_like.core.spelling import find_nearest_name
from goose_like.sdk.diagnostics import MAX_FILE_BYTES, Diagnostic, ParseResult
from goose_like.sdk.strict_yaml import build_failure

from .spec import Parameter, PluginSpec

_DECORATOR = "register_plugin"
_PLAIN_BASES = {"object", "ABC"}

# Tuples, because `isinstance` is slow with unions.
_BLOCKS = (ast.If, ast.Try, ast.TryStar, ast.With, ast.For, ast.While)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_DEFINITIONS = (*_FUNCTIONS, ast.ClassDef)


class Argument(FrozenModel):
    """An argument that Python accepts. `default` is the source of its default; None for a required argument."""

    name: str
    by: Literal["position", "either", "name"] = "either"
    default: str | None = None


class Signature(FrozenModel):
    """A callable: its name in the source, its line, and its arguments."""

    callable: str
    line: int
    arguments: tuple[Argument, ...] = ()
    has_var_positional: bool = False
    has_var_keyword: bool = False


def read_signature(file: Path) -> ParseResult[Signature]:
    """Read the signature of the only plugin that a Python file registers, without raising."""
    try:
        if not file.is_file():
            return build_failure(file, "there is no such file; write it, or correct `name` or `code` in the YAML")
        if file.stat().st_size > MAX_FILE_BYTES:
            return build_failure(file, f"this is larger than {MAX_FILE_BYTES:,} bytes, and no plugin")
        with warnings.catch_warnings(action="ignore"):
            return _find_signature(ast.parse(file.read_bytes()), file)
    except SyntaxError as error:
        return build_failure(file, f"this is not valid Python: {error.msg}", error.lineno)
    except (OSError, ValueError, RecursionError, MemoryError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        return build_failure(file, f"can't be read: {reason}")


def _unknown_signature(name: str, line: int) -> Signature:
    """Return a signature that accepts anything, for a callable from another file."""
    return Signature(callable=name, line=line, has_var_positional=True, has_var_keyword=True)


def _find_signature(tree: ast.Module, file: Path) -> ParseResult[Signature]:
    definitions: dict[str, Any] = {}
    aliases: set[str] = set()
    statements = list(_walk_statements(tree.body))
    for node, _ in statements:
        if isinstance(node, _DEFINITIONS):
            definitions[node.name] = node
        aliases.update(_find_aliases(node))
    registered: list[Any] = []
    certain: list[Any] = []  # those that are registered in any case
    for node, is_sure in statements:
        if call := _find_called_decorator(node, aliases):
            return build_failure(file, f"@{_DECORATOR} takes the class itself; write it without ()", call.lineno)
        targets = list(_list_registered(node, aliases))
        registered += targets
        if is_sure:
            certain += targets
    if not registered:
        return build_failure(file, f"nothing is registered here; put @{_DECORATOR} before the plugin's class")
    if len(certain) > 1:
        return build_failure(file, "a second plugin is registered here; move it to its own file", certain[1].lineno)
    if len(registered) > 1:  # `try` one class, `except ImportError` another
        return ParseResult(value=_unknown_signature(_DECORATOR, registered[0].lineno))
    return _read_target(registered[0], definitions, file)


def _read_target(target: Any, definitions: Mapping[str, Any], file: Path) -> ParseResult[Signature]:
    """Read the signature of the registered object. `definitions` are the functions and classes of the file."""
    if isinstance(target, ast.Name):
        target = definitions.get(target.id, target)
    if isinstance(target, _FUNCTIONS):
        return ParseResult(value=_make_signature(target.name, target.lineno, target.args))
    if isinstance(target, ast.Lambda):
        return ParseResult(value=_make_signature("lambda", target.lineno, target.args))
    if not isinstance(target, ast.ClassDef):
        return ParseResult(value=_unknown_signature(ast.unparse(target), target.lineno))
    if signature := _find_call_method(target, definitions):
        return ParseResult(value=signature)
    text = f"class {target.name!r} has no method __call__, which runs the plugin"
    bases = set(map(get_last_name, target.bases))
    if bases <= _PLAIN_BASES:
        text = f"class {target.name!r} does not derive from Plugin; write class {target.name}(Plugin)"
    return build_failure(file, text, target.lineno)


def _walk_statements(body: list[ast.stmt], *, is_sure: bool = True) -> Iterator[tuple[ast.stmt, bool]]:
    """Yield the statements outside functions and classes, and whether they run in any case."""
    for statement in body:
        if isinstance(statement, ast.If) and _is_for_scripts(statement.test):
            continue
        yield statement, is_sure
        if isinstance(statement, _BLOCKS):
            for block in ("body", "orelse", "finalbody"):
                yield from _walk_statements(getattr(statement, block, []), is_sure=False)
            for handler in getattr(statement, "handlers", ()):
                yield from _walk_statements(handler.body, is_sure=False)


def _is_for_scripts(test: ast.expr) -> bool:
    """Check whether the condition of an `if` is about `__name__`."""
    for node in ast.walk(test):
        if isinstance(node, ast.Name) and node.id == "__name__":
            return True
    return False


def _find_aliases(node: ast.stmt) -> Iterator[str]:
    """Yield other names of `register_plugin`."""
    if isinstance(node, ast.ImportFrom):
        for alias in node.names:
            if alias.name in (_DECORATOR, "*"):
                yield alias.asname or _DECORATOR
    if isinstance(node, ast.Assign) and get_last_name(node.value) == _DECORATOR:
        for target in node.targets:
            if isinstance(target, ast.Name):
                yield target.id


def get_last_name(node: ast.expr) -> str:
    """Return `c` for `a.b.c`."""
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Name):
        return node.id
    return ""


def _is_decorator(node: ast.expr, aliases: set[str]) -> bool:
    if isinstance(node, ast.Name):
        return node.id in aliases
    return get_last_name(node) == _DECORATOR


def _find_called_decorator(node: ast.stmt, aliases: set[str]) -> ast.Call | None:
    if not isinstance(node, _DEFINITIONS):
        return None
    for each in node.decorator_list:
        if isinstance(each, ast.Call) and _is_decorator(each.func, aliases):
            return each
    return None


def _list_registered(node: ast.stmt, aliases: set[str]) -> Iterator[Any]:
    """Yield the objects that a statement registers, with a decorator or a call."""
    if isinstance(node, _DEFINITIONS):
        for each in node.decorator_list:
            if _is_decorator(each, aliases):
                yield node
    elif isinstance(node, (ast.Expr, ast.Assign, ast.AnnAssign)):
        call = node.value
        if isinstance(call, ast.Call) and _is_decorator(call.func, aliases) and call.args:
            yield call.args[0]


def _find_call_method(kind: ast.ClassDef, definitions: Mapping[str, Any]) -> Signature | None:
    """Return the signature of `__call__`, which a base class may define; None if there is none."""
    bases = set(map(get_last_name, kind.bases))
    if bases <= _PLAIN_BASES:
        return None  # a call would create an object of the class
    name = f"{kind.name}.__call__"
    signature = None
    for node, _ in _walk_statements(kind.body):
        if isinstance(node, _FUNCTIONS) and node.name == "__call__":
            decorators = list(map(get_last_name, node.decorator_list))
            is_static = "staticmethod" in decorators
            signature = _make_signature(name, node.lineno, node.args, has_self=not is_static)
        elif isinstance(node, ast.Assign):
            targets = list(map(get_last_name, node.targets))
            if "__call__" in targets:
                signature = _unknown_signature(name, node.lineno)
    inherited = bases - {"Plugin"} - _PLAIN_BASES
    if signature or not inherited:
        return signature
    if len(inherited) == 1:
        base = definitions.get(inherited.pop())
        if isinstance(base, ast.ClassDef):
            signature = _find_call_method(base, {})
    return signature or _unknown_signature(name, kind.lineno)


def _make_signature(name: str, line: int, written: ast.arguments, *, has_self: bool = False) -> Signature:
    arguments: list[Argument] = []
    positional = [*written.posonlyargs, *written.args]
    no_defaults = [None] * (len(positional) - len(written.defaults))
    defaults = [*no_defaults, *written.defaults]
    for arg, default in zip(positional, defaults, strict=True):
        by: Literal["position", "either"] = "position" if arg in written.posonlyargs else "either"
        arguments.append(Argument(name=arg.arg, by=by, default=_unparse(default)))
    if has_self:
        del arguments[:1]
    for arg, keyword_default in zip(written.kwonlyargs, written.kw_defaults, strict=True):
        arguments.append(Argument(name=arg.arg, by="name", default=_unparse(keyword_default)))
    return Signature(
        callable=name,
        line=line,
        arguments=tuple(arguments),
        has_var_positional=written.vararg is not None,
        has_var_keyword=written.kwarg is not None,
    )


def _unparse(node: ast.expr | None) -> str | None:
    if node is None:
        return None
    if isinstance(node, ast.Constant):  # faster
        return repr(node.value)
    return ast.unparse(node)


def check_signature(spec: PluginSpec, signature: Signature) -> Iterator[Diagnostic]:
    """Yield an error where a call according to the YAML fails or means something else, and a warning on defaults."""
    place = f"{signature.callable} ({spec.code.name}:{signature.line})"
    arguments = {argument.name: argument for argument in signature.arguments}
    described = set(spec.parameter_names)
    undescribed = [argument for argument in signature.arguments if argument.name not in described]
    missing = [argument.name for argument in undescribed if argument.default is None]
    takes_any = signature.has_var_keyword or signature.has_var_positional
    for at, parameter in enumerate(spec.parameters):
        argument = arguments.get(parameter.name)
        if argument:
            yield from _check_parameter(spec, parameter, argument, place)
            continue
        if takes_any:
            continue
        hint = f"it takes {', '.join(arguments) or 'nothing'}"
        names = [argument.name for argument in undescribed]
        meant = find_nearest_name(parameter.name, names) or _find_at_position(signature, at, names)
        if meant:
            hint = f"did you mean {meant!r}?"
        if meant in missing:
            missing.remove(meant)
        yield _error(spec, parameter, f"{place} takes no parameter {parameter.name!r}; {hint}")
    for name in missing:
        text = f"{place} needs {name!r}, which is missing in `parameters`; describe it, or give it a default"
        yield _error(spec, None, text)
    yield from _check_order(spec, signature, place)


def _check_order(spec: PluginSpec, signature: Signature, place: str) -> Iterator[Diagnostic]:
    """Yield an error for the first parameter that has another place in Python."""
    positional = [each.name for each in signature.arguments if each.by != "name"]
    order = [name for name in positional if name in spec.parameter_names]
    written = [parameter for parameter in spec.parameters if parameter.name in order]
    for parameter, name in zip(written, order, strict=True):
        if parameter.name != name:
            yield _error(spec, parameter, f"{place} takes the parameters in another order: {', '.join(order)}")
            return


def _check_parameter(spec: PluginSpec, parameter: Parameter, argument: Argument, place: str) -> Iterator[Diagnostic]:
    name = parameter.name
    if argument.by == "position":
        yield _error(spec, parameter, f"{place} takes {name!r} by its position only, and models call by name")
    elif argument.default is None and parameter.required is False:
        text = f"parameter {name!r} is optional here, but {place} has no default for it"
        yield _error(spec, parameter, f"{text}; write `required: true`, or add a default")
    elif argument.default is not None and _has_other_default(parameter, argument.default):
        text = f"the default of {name!r} is {argument.default} in {place}, here {parameter.default!r}"
        yield _error(spec, parameter, text).model_copy(update={"is_warning": True})


def _error(spec: PluginSpec, parameter: Parameter | None, text: str) -> Diagnostic:
    line = parameter.line if parameter else spec.line
    return Diagnostic(file=spec.file, line=line, text=text)


def _find_at_position(signature: Signature, at: int, names: list[str]) -> str | None:
    if at >= len(signature.arguments):
        return None
    name = signature.arguments[at].name
    return name if name in names else None


def _has_other_default(parameter: Parameter, source: str) -> bool:
    if "default" not in parameter.model_fields_set:
        return False
    value = _parse_literal(source)
    if value is ...:
        return False
    return value != parameter.default and str(value) != str(parameter.default)


@lru_cache(maxsize=1024)  # many plugins share a default
def _parse_literal(source: str) -> Any:
    """Return the value of a literal, or `...` for any other expression."""
    try:
        return ast.literal_eval(source)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return ...


def complete_spec(spec: PluginSpec, signature: Signature) -> PluginSpec:
    """Return the spec with `required` and `default` from the source where the YAML leaves them out."""
    defaults = {argument.name: argument.default for argument in signature.arguments}
    parameters = [_complete_parameter(each, defaults.get(each.name, "...")) for each in spec.parameters]
    return spec.model_copy(update={"parameters": tuple(parameters)})


def _complete_parameter(parameter: Parameter, default: str | None) -> Parameter:
    """Return a parameter with what its YAML leaves out. `default` is its default in the source, None without one."""
    update: dict[str, Any] = {}
    if parameter.required is None:
        update["required"] = default is None
    if default is not None and "default" not in parameter.model_fields_set:
        value = _parse_literal(default)
        if isinstance(value, str | int | float | bool | None):
            update["default"] = value
    return parameter.model_copy(update=update) if update else parameter
