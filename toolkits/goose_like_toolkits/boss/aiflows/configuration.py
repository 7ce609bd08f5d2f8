"""Read the configuration of a boss, in our short form or in the long form of aiflows."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from goose_like.config.yaml_source import YamlSource, describe_validation_error
from goose_like.core.entry_points import did_you_mean
from goose_like.core.errors import ProfileError
from goose_like_toolkits.boss.spec import ACTIONS, BossSpec, Branch, KeyInterface, RoleSettings

from .importer import Configuration, Importer
from .schema import BOSS_KEYS, CommandConfig, FlowConfig, InterfaceConfig, TopologyNode

_ONLY_SHORT = frozenset(BossSpec.model_fields) - BOSS_KEYS
_ONLY_LONG = BOSS_KEYS - frozenset(BossSpec.model_fields) - {"max_rounds"}

M = TypeVar("M", bound=BaseModel)


def read_configuration(
    given: Mapping[str, Any] | YamlSource, *, imports: bool, owner: object | None = None
) -> Configuration:
    """Read a boss.

    Args:
        given: Our short form (`BossSpec`), or a configuration of aiflows.
        imports: Import the dotted paths of `_target_`: True for a program, never for a file.
        owner: An object with methods that a topology may name.

    Raises:
        ProfileError: a key or value is wrong, or a flow can't be built. The text has one line per problem.
    """
    source = given if isinstance(given, YamlSource) else YamlSource("configuration", Path("configuration"), given)
    data = source.data
    if not isinstance(data, Mapping):
        raise ProfileError(f"{source.locate()}: a boss is described by a mapping, not by {data!r}")
    long, short = sorted(_ONLY_LONG & set(data)), sorted(_ONLY_SHORT & set(data))
    if long and short:
        raise ProfileError(
            f"{source.locate(short[0])}: {short[0]!r} belongs to the short form and {long[0]!r} to the form of "
            "aiflows; use only one of them"
        )
    if long:
        flow = _validate(FlowConfig, source, data)
        return Importer(source, imports).import_boss(flow, (), owner=owner)
    if {"max_round", "max_rounds"} <= data.keys():
        one, other = data["max_round"], data["max_rounds"]
        if one != other:
            place = source.locate("max_rounds")
            raise ProfileError(f"{place}: `max_round` is {one} and `max_rounds` is {other}; give one of them")
        data = {key: value for key, value in data.items() if key != "max_rounds"}
    spec = _validate(BossSpec, source, data)
    _check_branches(spec, source, ())
    return Configuration(spec)


def _validate(kind: type[M], source: YamlSource, data: Any) -> M:
    def suggest(path: tuple[str | int, ...]) -> str:
        return did_you_mean(str(path[-1]), _list_known_keys(path, kind))

    try:
        return kind.model_validate(data)
    except ValidationError as error:
        raise ProfileError(describe_validation_error(error, source, suggest, "the configuration")) from error


def _list_known_keys(path: tuple[str | int, ...], top: type[BaseModel]) -> Iterable[str]:
    parent, grandparent = (None, None, *path)[-2], (None, None, *path)[-3]
    kinds: Mapping[str, type[BaseModel]] = {
        "branches": Branch,
        "topology": TopologyNode,
        "commands": CommandConfig,
    }
    if parent in ("input_interface", "output_interface"):
        return (KeyInterface if top is BossSpec else InterfaceConfig).model_fields
    if grandparent in kinds:
        return kinds[str(grandparent)].model_fields
    if parent in ("planner", "controller"):
        return RoleSettings.model_fields
    return BOSS_KEYS if top is FlowConfig else BossSpec.model_fields


def _check_branches(spec: BossSpec, source: YamlSource, path: tuple[str, ...]) -> None:
    for name, branch in spec.branches.items():
        place = (*path, "branches", name)
        if branch.boss:
            _check_branches(branch.boss, source, (*place, "boss"))
        elif not branch.toolkits and name not in ACTIONS:
            raise ProfileError(
                f"{source.locate(*place)}: branch {name!r} has neither `toolkits` nor a `boss`, and is no action; "
                f"{did_you_mean(name, ACTIONS)}"
            )
