"""Bodies that clients of the OpenBB protocol send: those of the fixtures, and such as tests make."""

import json
from pathlib import Path
from typing import Any

from goose_like.serve.query import Query
from goose_like.serve.request import read_query

BODIES = Path(__file__).parent / "fixtures" / "openbb"


def body(name: str) -> dict[str, Any]:
    """A fixture as the object that it is."""
    return json.loads((BODIES / f"{name}.json").read_text())


def query_of(name: str) -> Query:
    return read_query((BODIES / f"{name}.json").read_bytes())


def asked(*messages: dict[str, Any], **fields: Any) -> Query:
    """The query that a body of these messages is."""
    return read_query(json.dumps({"messages": messages, **fields}).encode())


def human(text: str) -> dict[str, Any]:
    return {"role": "human", "content": text}


def ai(text: str, **fields: Any) -> dict[str, Any]:
    return {"role": "ai", "content": text, **fields}


def call(uuid: str = "w1", **fields: Any) -> dict[str, Any]:
    return ai(json.dumps({"function": "get_widget_data", "input_arguments": {"widget_uuid": uuid}, **fields}))


def data(content: str, **fields: Any) -> dict[str, Any]:
    return {"role": "tool", "function": "get_widget_data", "data": {"content": content}, **fields}
