"""`run --json-schema` as a process: what is on standard output, in the file, and what each failure says."""

import json

import pytest

SCHEMA = {"type": "object", "properties": {"legs": {"type": "integer"}}, "required": ["legs"]}
LEGS = json.dumps(SCHEMA)


def test_the_value_is_alone_on_standard_output_and_in_the_file(place):
    (place.work / "legs.json").write_text(LEGS)
    model = place.script({"text": "It has 3 legs."}, {"text": '{"legs": "3"}'}, {"text": '{"legs": 3}'})
    words = ("--json-schema", "legs.json", "-o", "answer.json", "--model", model, "how many legs?")
    done = place.run("run", *words)
    assert (done.returncode, done.stdout) == (0, '{"legs": 3}\n'), done.stderr
    assert (place.work / "answer.json").read_text() == '{"legs": 3}\n'


def test_the_format_json_has_the_value(place):
    model = place.script({"text": '[{"legs": 4}, {"legs": 2}]'})
    schema = json.dumps({"type": "array", "items": SCHEMA})
    done = place.run("run", "-q", "--json-schema", schema, "--model", model, "--output-format", "json", "legs?")
    summary = json.loads(done.stdout)
    assert (summary["schema_version"], summary["structured"]) == (1, [{"legs": 4}, {"legs": 2}])
    assert json.loads(summary["result"]) == summary["structured"]


def test_a_wrong_answer_leaves_standard_output_empty(place):
    model = place.script(*[{"text": '{"legs": "many"}'}] * 4)
    done = place.run("run", "-q", "--json-schema", LEGS, "-o", "answer.json", "--model", model, "how many legs?")
    assert (done.returncode, done.stdout) == (1, "")
    assert "At `$.legs`: 'many' is not of type 'integer'." in done.stderr
    assert not (place.work / "answer.json").exists()


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--json-schema", '{"type": "objec"}'], "invalid at `$.type`"),
        (["--json-schema", "{legs}"], "--json-schema is no JSON"),
        (["--json-schema", "none.json"], "none.json: No such file"),
        (["-o", "no/folder/answer.json"], "no file can be written there"),
    ],
)
def test_what_cannot_work_costs_nothing(place, options, problem):
    done = place.run("run", *options, "--model", place.script(), "how many legs?")
    assert (done.returncode, done.stdout) == (2, "")
    assert problem in done.stderr
    assert len(done.stderr.splitlines()) == 1
