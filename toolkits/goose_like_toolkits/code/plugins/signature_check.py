"""Drift: where a plugin's YAML and its source say different things of how it is called."""

import ast
from collections.abc import Iterator
from typing import Any

from goose_like.core.entry_points import find_nearest_name
from goose_like.sdk.diagnostics import Diagnostic

from .signature import Signature
from .spec import Definition, Parameter


def drift(definition: Definition, signature: Signature) -> Iterator[Diagnostic]:
    """Where a call as the YAML describes it would fail or mean something else; remarks where both say a default."""
    place = f"{signature.called} ({definition.code.name}:{signature.line})"
    taken = {accepted.name: accepted for accepted in signature.accepted}
    described = {parameter.name for parameter in definition.parameters}
    unmet = [each.name for each in signature.accepted if each.default is None and each.name not in described]

    def fault(parameter: Parameter | None, text: str, *, is_remark: bool = False) -> Diagnostic:
        line = parameter.line if parameter else definition.line
        return Diagnostic(file=definition.file, line=line, text=text, is_warning=is_remark)

    for at, parameter in enumerate(definition.parameters):
        name = parameter.name
        if accepted := taken.get(name):
            if accepted.by == "position":
                yield fault(parameter, f"{place} takes {name!r} by its position only, and models call by name")
            elif accepted.default is None and parameter.required is False:
                text = f"parameter {name!r} is said to be optional, but {place} has no default for it"
                yield fault(parameter, f"{text}; say `required: true`, or give it one")
            elif accepted.default is not None and _differs(parameter, accepted.default):
                text = f"the default of {name!r} is {accepted.default} in {place}, here {parameter.default!r}"
                yield fault(parameter, text, is_remark=True)
        elif not (signature.takes_more_by_name or signature.takes_more_by_position):
            names = [accepted.name for accepted in signature.accepted if accepted.name not in described]
            meant = find_nearest_name(name, names) or _at_same_place(signature, at, names)
            if meant in unmet:
                unmet.remove(meant)
            near = f"; did you mean {meant!r}?" if meant else f"; it takes {', '.join(taken) or 'nothing'}"
            yield fault(parameter, f"{place} takes no parameter {name!r}{near}")
    for name in unmet:
        yield fault(
            None, f"{place} needs {name!r}, of which `parameters` says nothing; describe it, or give it a default"
        )
    order = [accepted.name for accepted in signature.accepted if accepted.by != "name" and accepted.name in described]
    written = [parameter.name for parameter in definition.parameters if parameter.name in order]
    if written != order:
        at_fault = next(p for p in definition.parameters if p.name == _first_difference(written, order))
        yield fault(at_fault, f"{place} takes the parameters in another order: {', '.join(order)}")


def _first_difference(written: list[str], order: list[str]) -> str:
    return next(name for name, other in zip(written, order, strict=True) if name != other)


def _at_same_place(signature: Signature, at: int, names: list[str]) -> str | None:
    name = signature.accepted[at].name if at < len(signature.accepted) else None
    return name if name in names else None


def _differs(parameter: Parameter, source: str) -> bool:
    value = _literal(source)
    has_both = value is not ... and "default" in parameter.model_fields_set
    return has_both and value != parameter.default and str(value) != str(parameter.default)


def _literal(source: str) -> Any:
    """The value that is written; `...` where it must be worked out."""
    try:
        return ast.literal_eval(source)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return ...


def settled(definition: Definition, signature: Signature) -> Definition:
    """The definition with what it leaves open as the source says it: what must be given, and defaults."""
    taken = {accepted.name: accepted.default for accepted in signature.accepted}

    def each(parameter: Parameter) -> Parameter:
        default = taken.get(parameter.name, "...")
        update: dict[str, Any] = {}
        if parameter.required is None:
            update["required"] = default is None
        if default is not None and "default" not in parameter.model_fields_set:
            value = _literal(default)
            if isinstance(value, str | int | float | bool | None):
                update["default"] = value
        return parameter.model_copy(update=update) if update else parameter

    return definition.model_copy(update={"parameters": tuple(map(each, definition.parameters))})
