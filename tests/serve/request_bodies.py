"""Request bodies of the OpenBB protocol: fixtures, builders and a Hypothesis strategy."""

import json
from typing import Any

from hypothesis import strategies as st

from goose_like.serve.openbb.query import Query
from goose_like.serve.openbb.request import parse_query
from tests import ROOT

BODIES = ROOT / "tests/fixtures" / "openbb"


def load_body(name: str) -> dict[str, Any]:
    """Load the JSON of a fixture."""
    return json.loads((BODIES / f"{name}.json").read_text())


def load_query(name: str) -> Query:
    return parse_query((BODIES / f"{name}.json").read_bytes())


def build_query(*messages: dict[str, Any], **fields: Any) -> Query:
    """Build the query of a body with these messages."""
    return parse_query(json.dumps({"messages": messages, **fields}).encode())


def human(text: str) -> dict[str, Any]:
    return {"role": "human", "content": text}


def ai(text: str, **fields: Any) -> dict[str, Any]:
    return {"role": "ai", "content": text, **fields}


def call(uuid: str = "w1", **fields: Any) -> dict[str, Any]:
    return ai(json.dumps({"function": "get_widget_data", "input_arguments": {"widget_uuid": uuid}, **fields}))


def data(content: str, **fields: Any) -> dict[str, Any]:
    return {"role": "tool", "function": "get_widget_data", "data": {"content": content}, **fields}


# --- bodies that no client should send

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None), max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def _objects(**fields: st.SearchStrategy) -> st.SearchStrategy[dict]:
    """Generate objects in which any field may be missing or have any value."""
    return st.fixed_dictionaries({}, optional={name: field | anything for name, field in fields.items()})


_short = st.sampled_from(["", "a", "f", "get_widget_data", "openbb-copilot"])
_asked = st.sampled_from([{}, {"widget_uuid": "a"}, {"data_sources": [{"widget_uuid": "a"}, {"origin": "a"}, 1]}])
_call = _objects(function=_short, input_arguments=_asked, goose_like=_short)
_format = _objects(data_type=st.sampled_from(["object", "png", "pdf", "csv"]), parse_as=_short, filename=_short)
_item = _objects(content=_short, url=_short, data_format=_format)
_data = _item | _objects(items=st.lists(_item, max_size=2), extra_citations=st.lists(anything, max_size=2))
_outcome = _data | _objects(status=st.sampled_from(["error", "a"]), message=_short, data=anything, error_type=_short)
_message = st.one_of(
    st.fixed_dictionaries({"role": st.just("human"), "content": _short}),
    st.fixed_dictionaries(
        {"role": st.just("ai"), "content": _short | _call | _call.map(json.dumps)}, optional={"agent_id": _short}
    ),
    st.fixed_dictionaries(
        {"role": st.just("tool")},
        optional={
            "function": _short,
            "input_arguments": _asked,
            "data": _outcome | st.lists(_outcome, max_size=3) | anything,
            "extra_state": anything,
        },
    ),
)
_param = st.fixed_dictionaries({"name": _short}, optional={"current_value": anything, "default_value": anything})
_widget = st.fixed_dictionaries({"uuid": _short, "name": _short}, optional={"params": st.lists(_param, max_size=2)})
_context = _objects(name=_short, data=_data, metadata=anything)
_object = st.fixed_dictionaries(
    {"messages": st.lists(_message, max_size=8)},
    optional={
        "widgets": st.lists(_widget, max_size=3) | _objects(primary=st.lists(_widget, max_size=3)),
        "context": st.lists(_context, max_size=2) | _short,
        "urls": st.lists(_short, max_size=2),
        "timezone": _short,
        "workspace_options": st.dictionaries(_short, anything, max_size=2),
    },
)

any_body = st.one_of(st.binary(), anything.map(json.dumps).map(str.encode), _object.map(json.dumps).map(str.encode))
"""Any bytes, any JSON, and objects with nearly valid messages."""
