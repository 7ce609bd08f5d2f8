"""Checks of what goes over the wires, by the types of the vendors' SDKs. Addresses of no wire have no check.

check_body("/v1/messages", asked.json)         # raises for a body that the SDK does not know
check_event("/v1/messages", event)             # raises for an event that the SDK does not know

The SDKs are imported at the first check: it takes seconds.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, get_args

from pydantic import TypeAdapter

_UNTYPED = ("ping", "error")
"""Events that Anthropic documents; its SDK reads them without a type."""


def is_wire(path: str) -> bool:
    """Return whether the SDKs know the bodies and events of this address."""
    return path.endswith(("/chat/completions", "/responses", "/messages"))


def check_body(path: str, body: Mapping[str, Any], *, is_beta: bool = False) -> None:
    """Check a body as it was sent. `is_beta`: with a header that turns on features of a beta.

    Raises:
        ValueError: The SDK knows no such body.
    """
    if path.endswith("/chat/completions"):
        from tests.chat_types import check_body

        check_body(body, body.keys())  # servers of chat completions have keys of their own
    elif path.endswith(("/responses", "/messages")):
        body_type = _load_wire(path.rpartition("/")[2], is_beta)[1 if body.get("stream") else 0]
        read_all(_adapt(body_type).validate_python(body), body)
        unknown = body.keys() - body_type.__annotations__.keys()
        if unknown:
            raise ValueError(f"unknown keys: {sorted(unknown)}")


def check_compact_body(body: Mapping[str, Any]) -> None:
    """Check a body for `/responses/compact`.

    Raises:
        ValueError: The SDK knows no such body.
    """
    from openai.types.responses.response_compact_params import ResponseCompactParams

    read_all(_adapt(ResponseCompactParams).validate_python(body), body)
    unknown = body.keys() - ResponseCompactParams.__annotations__.keys()
    if unknown:
        raise ValueError(f"unknown keys: {sorted(unknown)}")


def check_event(path: str, event: Mapping[str, Any], *, is_beta: bool = False) -> None:
    """Check an event of a server that follows the format, in answer to a body with `is_beta`.

    Raises:
        ValueError: The SDK knows no such event.
    """
    if path.endswith("/chat/completions"):
        from tests.chat_types import check_chunk

        if "error" not in event:  # the SDK reads errors without a type
            check_chunk(event)
    elif path.endswith(("/responses", "/messages")):
        events = _load_wire(path.rpartition("/")[2], is_beta)[2]
        kind = event.get("type", "no type")
        if path.endswith("/messages") and kind in _UNTYPED:
            return
        if kind not in events:
            raise ValueError(f"no event is called {kind!r}")
        events[kind].model_validate(event)


def read_all(value: Any, source: Any) -> None:
    """Read a validated value to its ends: pydantic checks the entries of an `Iterable` only when they are read.

    `source` is the value before. To pydantic a text such as "default" is an `Iterable` too, of letters.
    """
    if isinstance(source, str):
        return
    if isinstance(value, Mapping):
        for key, entry in value.items():
            read_all(entry, source[key])
    elif isinstance(value, list | Iterator):
        for entry, before in zip(value, source, strict=True):
            read_all(entry, before)


@cache
def _adapt(body_type: Any) -> TypeAdapter[Any]:
    return TypeAdapter(body_type)


@cache
def _load_wire(name: str, is_beta: bool) -> tuple[Any, Any, Mapping[str, type[Any]]]:
    """Load the types of a body without and with a stream, and the types of events by their names."""
    if name == "responses":
        from openai.types.responses import ResponseStreamEvent
        from openai.types.responses.response_create_params import (
            ResponseCreateParamsNonStreaming,
            ResponseCreateParamsStreaming,
        )

        return ResponseCreateParamsNonStreaming, ResponseCreateParamsStreaming, _list_events(ResponseStreamEvent)
    if is_beta:
        from anthropic.types import beta

        bodies = beta.message_create_params
        streaming = bodies.MessageCreateParamsStreaming
        return bodies.MessageCreateParamsNonStreaming, streaming, _list_events(beta.BetaRawMessageStreamEvent)
    from anthropic.types import RawMessageStreamEvent
    from anthropic.types.message_create_params import MessageCreateParamsNonStreaming, MessageCreateParamsStreaming

    return MessageCreateParamsNonStreaming, MessageCreateParamsStreaming, _list_events(RawMessageStreamEvent)


def _list_events(union: Any) -> dict[str, type[Any]]:
    """List the members of a union of events by their `type`."""
    members = get_args(get_args(union)[0])
    return {get_args(member.model_fields["type"].annotation)[0]: member for member in members}
