"""Checks of chat completions by the types of OpenAI's SDK.

check_body(asked.json, {"session_id"})      # raises for what the SDK does not know, but for further keys of the body
check_chunk(chunk)
"""

from collections.abc import Iterable, Mapping
from typing import Any

from openai.types.chat import ChatCompletionChunk, ChatCompletionMessageParam
from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming
from pydantic import TypeAdapter

from tests.sdk_types import read_all

_BODY = TypeAdapter(CompletionCreateParamsStreaming)
_MESSAGE: TypeAdapter[Any] = TypeAdapter(ChatCompletionMessageParam)


def check_body(body: Mapping[str, Any], extras: Iterable[str] = ()) -> None:
    """Check a body as it was sent.

    Raises:
        ValueError: The SDK knows no such body.
    """
    _BODY.validate_python(body)
    unknown = body.keys() - CompletionCreateParamsStreaming.__annotations__.keys() - set(extras)
    if unknown:
        raise ValueError(f"unknown keys: {sorted(unknown)}")
    for message in body["messages"]:
        read_all(_MESSAGE.validate_python(message), message)


def check_chunk(chunk: Mapping[str, Any]) -> None:
    """Check a chunk of a server that follows the format.

    Raises:
        ValueError: The SDK knows no such chunk.
    """
    ChatCompletionChunk.model_validate(chunk)
