"""What Anthropic's server tells of its models in `/v1/models`."""

from collections.abc import Iterator, Mapping
from typing import Any

from .wire import read_count, read_list, read_object

_EFFORTS = ("low", "medium", "high", "xhigh", "max")


def parse_model_facts(listed: object) -> Iterator[tuple[str, dict[str, Any]]]:
    """Parse the list of models. Yield the name of each and what the server tells of it, as fields of `KnownModel`."""
    for entry in read_list(read_object(listed).get("data")):
        name = _dig(entry, "id")
        if isinstance(name, str):
            yield name, _read_facts(entry)


def _read_facts(entry: object) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    window = read_count(_dig(entry, "max_input_tokens"))
    if window:
        facts["window"] = window
    longest = read_count(_dig(entry, "max_tokens"))
    if longest:
        facts["max_output"] = longest
    if isinstance(_dig(entry, "capabilities", "effort"), Mapping):
        found = [level for level in _EFFORTS if _dig(entry, "capabilities", "effort", level, "supported") is True]
        facts["efforts"] = tuple(found)
    is_adaptive = _dig(entry, "capabilities", "thinking", "types", "adaptive", "supported")
    if isinstance(is_adaptive, bool):
        facts["thinking"] = "adaptive" if is_adaptive else "off"
    return facts


def _dig(value: object, *keys: str) -> object:
    """Return the value below these keys, or None if there is none."""
    for key in keys:
        value = read_object(value).get(key)
    return value
