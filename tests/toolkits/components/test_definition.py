"""config.yaml of a component: what is read of it, what is wrong with it, and which values its schemas accept."""

from pathlib import Path

import pytest
from goose_like_toolkits.components.definition.coordinates import Coordinates, parse
from goose_like_toolkits.components.definition.references import Reference, read_reference
from goose_like_toolkits.components.definition.validation import check_parameter, check_response, get_parameter
from hypothesis import given as for_all
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from goose_like.core.errors import UsageError
from tests.toolkits.components.component_files import HEAD, commands, component, defined, parameter_of, told


def check(folder: Path, text: str, value: object):
    command = parameter_of(folder, text)
    return check_parameter(command.parameter, command.is_required, value)


def test_the_fields_of_a_component(tmp_path):
    text = HEAD.replace("as_plugin: true", "as_plugin: false").replace("type: plugin", "type: Resource")
    more = 'resource_type: Model\nname: beside\nconfig: {api_version: 2023-05-15, 4: four, "yes": kept}\n'
    definition = defined(
        component(tmp_path, head=text.replace("setup:\n", 'setup:\n  pip: [torch>=2, ["--pre", x]]\n') + more)
    )
    assert definition.coordinates == Coordinates("org.example.shop", "stock", "0.1.0")
    assert (definition.kind, definition.resource_type, definition.setup.package) == (
        "resource",
        "Model",
        "example.stock",
    )
    assert definition.setup.pip == (("torch>=2",), ("--pre", "x"))
    assert definition.config == {"api_version": "2023-05-15", "4": "four", "yes": "kept"}
    assert [definition.get_name(), definition.get_name({"name": "mine"})] == ["beside", "mine"]


@pytest.mark.parametrize(
    ("old", "new", "line", "text"),
    [
        ("version: 0.1.0", "version: 0.1", 3, "version: YAML reads 0.1 as a number; write it in quotes"),
        ("group_id: org.example.shop", "group_id: ../x", 1, "group_id: '../x' can't be one"),
        ("as_plugin: true", "as_plugin: maybe", 5, "as_plugin: expected a valid boolean, not 'maybe'"),
        ("  title: Stock\n", "", 6, "info.title: this is missing, and a plugin is known by it"),
        ("  package: example.stock", "  package: a b", 10, "setup.package: expected"),
        ("type: plugin", "type: plugin\ntype: other", 5, "this is not valid YAML: found duplicate key 'type'"),
        ("  package: example.stock", "  package: x\n  pip: 3", 11, "setup.pip: expected a list"),
    ],
)
def test_problems_have_their_line(tmp_path, old, new, line, text):
    assert old in HEAD
    problems = told(component(tmp_path, head=HEAD.replace(old, new)))
    assert [(at, said.startswith(text)) for at, said, is_warning in problems if not is_warning] == [(line, True)]


@pytest.mark.parametrize(
    ("type_name", "good", "bad"),
    [
        ("string", "a", 1),
        ("int", 1, 1.5),
        ("float", 1.5, "1.5"),
        ("bool", True, 1),
        ("List[int]", [1], ["1"]),
        ("Dict[str, float]", {"a": 1}, {"a": "1"}),
        ("Optional[str]", None, 1),
        ("Union[int, List[str]]", ["a"], [1]),
        ("int | None", None, "x"),
        ('Literal["a", 3]', 3, 4),
        ("string[]", ["a"], "a"),
        ("numpy.ndarray", [[1]], None),
        ("Any", {"x": None}, ...),
    ],
)
def test_names_of_types(tmp_path, type_name, good, bad):
    text = f"type:\n  x: {{type: '{type_name}'}}\n"
    assert check(tmp_path, text, {"x": good}).problems == ()
    if bad is not ...:
        assert check(tmp_path, text, {"x": bad}).problems != ()


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("{type: strin}", "there is no type 'strin'; did you mean 'string'"),
        ("{type: int, enum: [1, x]}", "'x' is not of type 'integer'"),
        ("{type: later}", "there is no type 'later'"),
        ("{type: int, required: 1}", "expected true or false, not '1'"),
        ("{type: [[" + "a" * 30, "YAML"),
    ],
)
def test_wrong_types_are_reported(tmp_path, field, text):
    file = commands(
        tmp_path,
        f"- command_name: do\n  description: Does it.\n  parameter:\n    type:\n      x: {field}\n"
        "      y: {type: {_type_ref: later, a: {type: int}}}\n",
    )
    assert [said for _, said, is_warning in told(file) if text in said and not is_warning]


def test_a_type_reference_counts_in_all_that_follows(tmp_path):
    text = """\
        type:
          one: {type: {_type_ref: point, x: {type: int}, y: {type: int, required: false}}}
          two: {type: 'List[point]'}
          three: {type: point, required: false}
    """
    assert check(tmp_path, text, {"one": {"x": 1.0}, "two": [{"x": 2, "y": None}]}).value == {
        "one": {"x": 1},
        "two": [{"x": 2}],
    }
    (problem,) = check(tmp_path, text, {"one": {"x": 1}, "two": [{"x": 2, "z": 1}]}).problems
    assert problem == "two[0]: Additional properties are not allowed ('z' was unexpected)"


FIELDS = """\
    type:
      name: {type: string, enum: [small, large]}
      rows: {type: 'List[int]', asset_ref_acceptable: true}
      note: {type: string, required: false}
"""


@pytest.mark.parametrize(
    ("value", "problems"),
    [
        ({"name": "small", "rows": [1]}, []),
        ({"name": "small", "rows": "asset://a/content"}, []),
        ({"name": "small", "rows": ["asset://a/content/0", 2], "note": None}, []),
        ({"name": "smal", "rows": []}, ["name: 'smal' is not one of ['small', 'large']"]),
        ({"rows": []}, ["the parameter: 'name' is a required property"]),
        ({"name": "small", "rows": 3}, ["rows: 3 is not of type 'array'"]),
        ({"name": "asset://a/b", "rows": []}, ["name: a reference to an asset is not accepted here"]),
        ({"name": None, "rows": []}, ["name: None is not one of"]),
        ("x", ["the parameter: 'x' is not of type 'object'"]),
    ],
)
def test_parameters_are_checked(tmp_path, value, problems):
    found = check(tmp_path, FIELDS, value).problems
    assert [any(each.startswith(wanted.rstrip("?")) for each in found) for wanted in problems] == [True] * len(problems)
    assert bool(found) == bool(problems), found


def test_references_are_found_where_they_are_accepted(tmp_path):
    value = {"name": "small", "rows": ["asset://a/content/0", {"asset_id": "b", "field_path": ["content"]}, 3]}
    assert check(tmp_path, FIELDS, value).references == (("rows", 0), ("rows", 1))


@pytest.mark.parametrize(
    "text",
    [
        "type: {a: {type: int, required: false}}",
        "type: {a: {type: int, required: false}}\nrequired: false",
        "type: {a: {type: int, required: false}}\nasset_ref_acceptable: true",
    ],
)
def test_nothing_is_enough_where_all_is_optional(tmp_path, text):
    command = parameter_of(tmp_path, text)
    given = get_parameter(command.parameter, command.is_required, {})
    checked = check_parameter(command.parameter, command.is_required, given)
    assert (checked.value, checked.problems) == ({}, ())


@pytest.mark.parametrize(
    ("response", "problems"),
    [
        ({"count": 1}, []),
        ({"count": 1, "more": None}, []),
        ({"count": "asset://x/content"}, []),
        ({"count": None}, ["count: None is not of type 'integer'"]),
        ({"picture": 1}, ["the response: 'count' is a required property"]),
        (None, ["the response: None is not of type 'object'"]),
    ],
)
def test_responses_are_checked(tmp_path, response, problems):
    text = "- command_name: do\n  description: D.\n  response:\n    type:\n      count: {type: int}\n"
    (command,) = defined(commands(tmp_path, f"{text}      more: {{type: ndarray, optional: true}}\n")).commands
    found = check_response(command.response, response)
    assert [each in found for each in problems] == [True] * len(problems)
    assert bool(found) == (bool(problems) and response != {"picture": 1}) or response == {"picture": 1}


def test_a_required_python_value_is_not_null(tmp_path):
    text = "- command_name: do\n  description: D.\n  response:\n    type:\n      picture: {type: numpy.ndarray}\n"
    (command,) = defined(commands(tmp_path, text)).commands
    assert check_response(command.response, {"picture": None}) == [
        "picture: None should not be valid under {'type': 'null'}"
    ]


def test_schemas_for_models_are_standard(tmp_path):
    command = parameter_of(tmp_path, FIELDS)
    Draft202012Validator.check_schema(command.arguments)
    assert command.arguments["required"] == ["name", "rows"]
    alternatives = command.arguments["properties"]["rows"]["anyOf"]
    assert [each["type"] for each in alternatives] == ["array", "string", "object"]
    assert "x-" not in str(command.arguments)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@for_all(VALUES)
def test_a_check_never_raises(tmp_path_factory, value):
    checked = check(tmp_path_factory.mktemp("x"), FIELDS, value)
    assert checked.problems or isinstance(checked.value, dict)


@pytest.mark.parametrize(
    ("value", "reference"),
    [
        ("asset://a", Reference("a")),
        ("ASSET://a/b%20c/0/", Reference("a", ("b c", "0"))),
        ("<| asset://a/b |>", Reference("a", ("b",))),
        ('<|{"asset_id": "a", "field_path": ["b", 0]}|>', Reference("a", ("b", "0"))),
        ({"asset_id": "a"}, Reference("a")),
        ({"asset_id": "a", "other": 1}, None),
        ("see asset://a", None),
        ("asset://", None),
    ],
)
def test_forms_of_references(value, reference):
    assert read_reference(value) == reference


def test_coordinates():
    assert [parse("a.b:c:1").instance_folder(each).as_posix() for each in (None, 0, "x")] == [
        "a/b/c/1/0",
        "a/b/c/1/0",
        "a/b/c/1/x",
    ]
    for wrong in ("a:b", "a:b:c", "a/b:c:1", "..:c:1"):
        with pytest.raises(UsageError):
            parse(wrong)
