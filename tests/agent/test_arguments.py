"""Arguments of calls as models send them: read if they have one clear meaning, else refused with the reason."""

import json
from typing import Any, Literal

import pytest

from goose_like.agent.arguments import read_arguments
from goose_like.core.tool import ToolError, make_tool


def edit(
    path: str,
    patches: list[dict[str, str]],
    names: list[str] | None = None,
    timeout_s: int = 5,
    mode: Literal["a", "b"] = "a",
    options: dict[str, int] | None = None,
) -> None:
    """Edit a file."""


EDIT = make_tool(edit)
PATCH = {"old": "a", "new": "b"}
PLAIN = {"path": "x", "patches": [PATCH]}


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        (PLAIN, PLAIN),
        (PLAIN | {"timeout_s": None, "mode": None}, PLAIN),
        (PLAIN | {"patches": json.dumps([PATCH])}, PLAIN),
        (PLAIN | {"patches": json.dumps(PATCH)}, PLAIN),
        (PLAIN | {"patches": PATCH}, PLAIN),
        (PLAIN | {"names": "a.txt"}, PLAIN | {"names": ["a.txt"]}),
        (PLAIN | {"names": '["a", "b"]'}, PLAIN | {"names": ["a", "b"]}),
        (PLAIN | {"options": '{"n": 1}'}, PLAIN | {"options": {"n": 1}}),
        (PLAIN | {"description": "why", "security_risk": "LOW"}, PLAIN),
        (PLAIN | {"timeout_s": "7"}, PLAIN | {"timeout_s": 7}),
        (PLAIN | {"path": "[1]"}, PLAIN | {"path": "[1]"}),
        (PLAIN | {"path": '{"a": 1}'}, PLAIN | {"path": '{"a": 1}'}),
    ],
)
@pytest.mark.parametrize("is_encoded_twice", [False, True])
def test_arguments_with_one_meaning_are_read(sent: Any, read: Any, is_encoded_twice: bool) -> None:
    text = json.dumps(sent)
    assert read_arguments(EDIT, json.dumps(text) if is_encoded_twice else text) == read


@pytest.mark.parametrize(
    ("sent", "problem"),
    [
        ({"patches": [PATCH]}, "field 'path' is missing"),
        (PLAIN | {"path": None}, "field 'path': input should be a valid string, not None"),
        (PLAIN | {"path": ["x"]}, "field 'path': input should be a valid string"),
        (PLAIN | {"mode": "c"}, "field 'mode'"),
        (PLAIN | {"recursive": True}, "there is no field 'recursive'"),
        (PLAIN | {"patches": 5}, "field 'patches': input should be a valid array, not 5"),
        (PLAIN | {"timeout_s": "soon"}, "field 'timeout_s'"),
        ([PLAIN], "not"),
        ("x", "not"),
    ],
)
def test_arguments_without_a_clear_meaning_are_refused(sent: Any, problem: str) -> None:
    with pytest.raises(ToolError, match="wrong arguments for edit") as caught:
        read_arguments(EDIT, json.dumps(sent))
    assert problem in str(caught.value)
    assert "send one JSON object with 'path', 'patches', 'names' (optional)" in str(caught.value)


def test_a_field_of_the_tool_is_no_comment() -> None:
    def note(title: str, reason: str = "") -> None:
        """Note."""

    given = {"title": "t", "reason": "r"}
    assert read_arguments(make_tool(note), json.dumps(given)) == given


@pytest.mark.parametrize("text", ['{"path": "x', '{"path": "x", "patches": [{"old": "a"', "{"])
def test_arguments_that_end_in_the_middle_name_the_output_limit(text: str) -> None:
    with pytest.raises(ToolError, match=r"ends in the middle, .* reached its output limit: Do it in parts"):
        read_arguments(EDIT, text)
