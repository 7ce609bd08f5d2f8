"""`run --json-schema` with the embedded model, which takes minutes. See the option `--local-answers`."""

import json
import os
from importlib.util import find_spec
from typing import Any

import pytest
from jsonschema import validate

pytestmark = [
    pytest.mark.local,
    pytest.mark.timeout(900),
    pytest.mark.skipif(find_spec("xllamacpp") is None, reason="the extra `local` is not installed"),
]


def describe(**properties: Any) -> dict[str, Any]:
    """A schema of objects with these properties, all of them required."""
    return {"type": "object", "properties": properties, "required": [*properties]}


FRUIT = describe(name={"type": "string"}, count={"type": "integer"})
CASES = {
    "enum": (describe(colour={"enum": ["red", "blue"]}, why={"type": "string"}), "Which colour has the sky?"),
    "nested": (describe(fruits={"type": "array", "items": FRUIT, "minItems": 3}), "Read fruit.csv. List its fruits."),
    "range": (describe(percent={"type": "number", "minimum": 0, "maximum": 100}), "How many percent of 8 are 2?"),
    "pattern": (describe(day={"type": "string", "pattern": r"^\d{4}-\d\d-\d\d$"}), "When was the first moon landing?"),
    "lengths": (
        {"type": "array", "items": {"type": "string", "maxLength": 5}, "minItems": 2},
        "Name two fruits.",
    ),
    "scalar": ({"type": "integer", "minimum": 1, "maximum": 12}, "Which number has the month May?"),
}
IMPOSSIBLE = describe(n={"type": "integer", "minimum": 5, "maximum": 3})


@pytest.fixture
def run(request, place, weights):
    """Run a task with a schema, and return the finished process and the text of the file."""
    if not request.config.getoption("--local-answers"):
        pytest.skip("it takes minutes: --local-answers")
    (place.work / "fruit.csv").write_text("apple,3\npear,5\nplum,2\n")

    def run(schema, task):
        words = ["--profile", "local", "--json-schema", json.dumps(schema), "-o", "answer.json", task]
        process = place.start("run", *words)
        out, err = process.communicate(timeout=800)
        file = place.work / "answer.json"
        return process.returncode, out, err, file.read_text() if file.exists() else ""

    return run


@pytest.mark.parametrize("name", CASES)
def test_a_valid_answer_is_alone_on_standard_output(run, name):
    schema, task = CASES[name]
    code, out, err, written = run(schema, task)
    assert code == 0, err
    assert out == written
    assert out.count(os.linesep) == 1
    validate(json.loads(out), schema)


def test_an_impossible_schema_ends_with_the_reasons(run):
    code, out, err, written = run(IMPOSSIBLE, "Give a number.")
    assert (code, out, written) == (1, "", "")
    assert "At `$.n`: " in err.splitlines()[-2]
