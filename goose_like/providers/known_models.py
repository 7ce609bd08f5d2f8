"""Facts about models by their names, from `known_models.yaml`."""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

from goose_like.config.profile import ModelChoice
from goose_like.config.shipped_yaml import parse_shipped
from goose_like.core.errors import ProfileError
from goose_like.core.message import FrozenModel

COMPACTION = "compaction"
"""The name in `native` of models whose server shortens conversations."""

TOOL_SEARCH = "tool_search"
"""The name in `native` of models whose server searches deferred tools. Tools that search otherwise have it, too."""

WEB_SEARCH: Final = "web_search"
WEB_FETCH: Final = "web_fetch"

HOSTED_TOOLS = frozenset({WEB_SEARCH, WEB_FETCH})
"""The names in `native` of tools that a server runs itself, if the profile chose them."""

_FILE = Path(__file__).with_name("known_models.yaml")


class KnownModel(FrozenModel):
    """Facts about the models of a provider whose names begin with a pattern. An unknown fact is None.

    `efforts` are the levels of reasoning that the models take, from the least, and `default_effort` the one that is
    sent if nobody chooses. With `thinking: adaptive` the models think as much as a task needs. `window` is the context
    window, and `max_output` the longest answer, in tokens. With `system_messages` the models take messages of the role
    `system` after one of the user. `native` names what the vendor's server has for them: tools, see `tool`,
    `COMPACTION`, `TOOL_SEARCH` and `HOSTED_TOOLS`.
    """

    name: str
    efforts: tuple[str, ...] | None = None
    default_effort: str | None = None
    thinking: Literal["adaptive", "off"] = "off"
    window: int | None = None
    system_messages: bool = False
    max_output: int | None = None
    native: tuple[str, ...] = ()

    @property
    def reasons(self) -> bool:
        """True if the models may think before they answer."""
        return self.thinking == "adaptive"


_UNKNOWN = KnownModel.make_unchecked(name="")


def find_known_model(provider: str, name: str) -> KnownModel:
    """Find what is known of a model; what the server told in this process wins.

    Bedrock and Vertex have Anthropic's models under longer names, and Azure has OpenAI's.
    """
    known = _find_in_table(provider, name)
    told = _get_told_facts().get((provider, name))
    if told is None:
        return known
    return known.model_copy(update=told)


def record_facts(provider: str, name: str, facts: Mapping[str, Any]) -> None:
    """Record what a server tells of a model: values of fields of `KnownModel`."""
    _get_told_facts()[provider, name] = facts


@cache
def _get_told_facts() -> dict[tuple[str, str], Mapping[str, Any]]:
    # For the whole process: every client of a provider asks the same servers.
    return {}


@cache
def _find_in_table(provider: str, name: str) -> KnownModel:
    if provider in ("bedrock", "vertex"):
        provider = "anthropic"
        name = name[max(name.find("claude-"), 0) :]
    # Many deployments have the name of their model. What a wrong guess sends, the server refuses, and it is left out.
    if provider == "azure":
        provider = "openai"
    for entry in _read_table().get(provider, ()):
        if re.match(entry["name"], name):
            return KnownModel.model_validate(entry)
    return _UNKNOWN


def find_effort_error(choice: ModelChoice, name: str) -> ProfileError | None:
    """Return the error about an effort that a model does not take. An unknown model may take any."""
    efforts = find_known_model(choice.provider, name).efforts
    if choice.effort is None or efforts is None or choice.effort in efforts:
        return None
    if not efforts:
        return ProfileError(f"{name} has no levels of effort; leave out `effort`")
    return ProfileError(f"{name} does not know the effort {choice.effort!r}; it knows {', '.join(efforts)}")


@cache
def _read_table() -> dict[str, list[dict[str, Any]]]:
    """Read the entries of each provider. They become models one by one: a process needs a few of them."""
    entries: dict[str, list[dict[str, Any]]] = parse_shipped(_FILE.read_text(encoding="utf-8"))
    return entries
