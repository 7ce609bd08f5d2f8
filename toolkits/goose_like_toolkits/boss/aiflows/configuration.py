"""A boss as it is written down: in our short form, or in aiflows' long one."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from goose_like.config.yaml_source import Source, explain
from goose_like.core.entry_points import did_you_mean
from goose_like.core.errors import ProfileError
from goose_like_toolkits.boss.spec import ACTIONS, BossSpec, Branch, Interface, Part

from .importer import Configuration, Mapped
from .schema import OF_A_BOSS, Command, Flow, Node, Way

_ONLY_SHORT = frozenset(BossSpec.model_fields) - OF_A_BOSS
_ONLY_LONG = OF_A_BOSS - frozenset(BossSpec.model_fields) - {"max_rounds"}

M = TypeVar("M", bound=BaseModel)


def read_configuration(
    given: Mapping[str, Any] | Source, *, imports: bool, owner: object | None = None
) -> Configuration:
    """The boss that is described.

    Args:
        given: our short form (`BossSpec`), or a configuration of aiflows.
        imports: whether dotted paths of `_target_` are imported: for a program, never for a file.
        owner: whose methods a topology may name, beside those of the `_target_` of CtrlExMem.

    Raises:
        ProfileError: a key or value is wrong, or a flow can't be made; the text has a line for each.
    """
    source = given if isinstance(given, Source) else Source("configuration", Path("configuration"), given)
    data = source.data
    if not isinstance(data, Mapping):
        raise ProfileError(f"{source.place()}: a boss is described by a mapping, not by {data!r}")
    long, short = sorted(_ONLY_LONG & set(data)), sorted(_ONLY_SHORT & set(data))
    if long and short:
        raise ProfileError(
            f"{source.place(short[0])}: {short[0]!r} is of the short form and {long[0]!r} of aiflows'; use one of both"
        )
    if long:
        flow = _checked(Flow, source, data)
        return Mapped(source, imports).boss(flow, (), owner=owner)
    if {"max_round", "max_rounds"} <= data.keys():
        one, other = data["max_round"], data["max_rounds"]
        if one != other:
            place = source.place("max_rounds")
            raise ProfileError(f"{place}: `max_round` is {one} and `max_rounds` is {other}; give one of them")
        data = {key: value for key, value in data.items() if key != "max_rounds"}
    spec = _checked(BossSpec, source, data)
    _check_branches(spec, source, ())
    return Configuration(spec)


def _checked(kind: type[M], source: Source, data: Any) -> M:
    try:
        return kind.model_validate(data)
    except ValidationError as error:

        def near(path: tuple[str | int, ...]) -> str:
            return did_you_mean(str(path[-1]), _known_at(path, kind))

        raise ProfileError(explain(error, source, near, "the configuration")) from error


def _known_at(path: tuple[str | int, ...], top: type[BaseModel]) -> Iterable[str]:
    parent, beyond = (None, None, *path)[-2], (None, None, *path)[-3]
    if parent in ("input_interface", "output_interface"):
        fields = (Interface if top is BossSpec else Way).model_fields
    elif beyond in ("branches", "topology", "commands"):
        kinds: Mapping[str, type[BaseModel]] = {"branches": Branch, "topology": Node, "commands": Command}
        fields = kinds[str(beyond)].model_fields
    elif parent in ("planner", "controller"):
        fields = Part.model_fields
    else:
        return OF_A_BOSS if top is Flow else BossSpec.model_fields
    return fields


def _check_branches(spec: BossSpec, source: Source, path: tuple[str, ...]) -> None:
    for name, branch in spec.branches.items():
        at = (*path, "branches", name)
        if branch.boss:
            _check_branches(branch.boss, source, (*at, "boss"))
        elif not branch.toolkits and name not in ACTIONS:
            raise ProfileError(
                f"{source.place(*at)}: branch {name!r} has neither `toolkits` nor a `boss`, and is no action; "
                f"{did_you_mean(name, ACTIONS)}"
            )
