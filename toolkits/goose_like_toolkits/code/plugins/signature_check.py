"""The comparison of a plugin's YAML with the signature of its Python source."""

import ast
from collections.abc import Iterator
from typing import Any

from goose_like.core.entry_points import find_nearest_name
from goose_like.sdk.diagnostics import Diagnostic

from .signature import Argument, Signature
from .spec import Parameter, PluginSpec


def check_signature(spec: PluginSpec, signature: Signature) -> Iterator[Diagnostic]:
    """Yield an error where a call according to the YAML fails or means something else, and a warning on defaults."""
    place = f"{signature.callable} ({spec.code.name}:{signature.line})"
    arguments = {argument.name: argument for argument in signature.arguments}
    described = {parameter.name for parameter in spec.parameters}
    missing = [each.name for each in signature.arguments if each.default is None and each.name not in described]
    for at, parameter in enumerate(spec.parameters):
        if argument := arguments.get(parameter.name):
            yield from _check_parameter(spec, parameter, argument, place)
        elif not (signature.has_var_keyword or signature.has_var_positional):
            names = [argument.name for argument in signature.arguments if argument.name not in described]
            meant = find_nearest_name(parameter.name, names) or _find_at_position(signature, at, names)
            if meant in missing:
                missing.remove(meant)
            hint = f"did you mean {meant!r}?" if meant else f"it takes {', '.join(arguments) or 'nothing'}"
            yield _error(spec, parameter, f"{place} takes no parameter {parameter.name!r}; {hint}")
    for name in missing:
        text = f"{place} needs {name!r}, which is missing in `parameters`; describe it, or give it a default"
        yield _error(spec, None, text)
    order = [each.name for each in signature.arguments if each.by != "name" and each.name in described]
    written = [parameter.name for parameter in spec.parameters if parameter.name in order]
    if written != order:
        first = next(name for name, other in zip(written, order, strict=True) if name != other)
        parameter = next(each for each in spec.parameters if each.name == first)
        yield _error(spec, parameter, f"{place} takes the parameters in another order: {', '.join(order)}")


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
    return Diagnostic(file=spec.file, line=parameter.line if parameter else spec.line, text=text)


def _find_at_position(signature: Signature, at: int, names: list[str]) -> str | None:
    name = signature.arguments[at].name if at < len(signature.arguments) else None
    return name if name in names else None


def _has_other_default(parameter: Parameter, source: str) -> bool:
    value = _parse_literal(source)
    has_both = value is not ... and "default" in parameter.model_fields_set
    return has_both and value != parameter.default and str(value) != str(parameter.default)


def _parse_literal(source: str) -> Any:
    """Return the value of a literal, or `...` for any other expression."""
    try:
        return ast.literal_eval(source)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return ...


def complete_spec(spec: PluginSpec, signature: Signature) -> PluginSpec:
    """Return the spec with `required` and `default` from the source where the YAML leaves them out."""
    defaults = {argument.name: argument.default for argument in signature.arguments}

    def complete(parameter: Parameter) -> Parameter:
        default = defaults.get(parameter.name, "...")
        update: dict[str, Any] = {}
        if parameter.required is None:
            update["required"] = default is None
        if default is not None and "default" not in parameter.model_fields_set:
            value = _parse_literal(default)
            if isinstance(value, str | int | float | bool | None):
                update["default"] = value
        return parameter.model_copy(update=update) if update else parameter

    return spec.model_copy(update={"parameters": tuple(map(complete, spec.parameters))})
