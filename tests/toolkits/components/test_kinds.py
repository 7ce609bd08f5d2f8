"""The grammar of a command's parameter and response: what it says to a model, and which values pass."""

import json
import math

import pytest
from goose_like_toolkits.components.described.arguments import Checked, check, check_response, given
from goose_like_toolkits.components.described.kinds import (
    REFERENCE_OBJECT,
    REFERENCE_URL,
    Anything,
    Choice,
    Field,
    Foreign,
    ListOf,
    MapOf,
    Nothing,
    Number,
    OneOf,
    Parameter,
    Record,
    Response,
    Text,
    Truth,
    Whole,
    schema,
)
from goose_like_toolkits.components.described.references import Reference, read_reference
from hypothesis import given as for_all
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from tests.toolkits.components.component_files import commands, defined, parameter_of, told

SHELF = """\
- command_name: place
  description: Puts goods on a shelf.
  parameter:
    type:
      colour:
        type: string
        description: The shelf's colour.
        enum:
          - red
          - green
        required: true
        asset_ref_acceptable: false
        example: red
      sizes:
        type: List
        description: How large they are.
        required: true
        example: [1, large]
      goods:
        type:
          -
            name: count
            type: int
            description: How many.
            required: true
            example: 3
          -
            name: label
            type: string
            description: What is on it.
            required: true
            example: tea
        description: What is put there.
        required: true
        example: [{count: 3, label: tea}]
      prices:
        type: Dict
        description: By label.
        required: true
        example: {tea: 2.5}
      place:
        type:
          _type_ref: spot
          row:
            type: int
            description: From the door.
            required: true
            example: 4
          side:
            type: string
            description: Left or right.
            required: true
            example: left
        description: Where to.
        required: true
        example: {row: 4, side: left}
      former_place:
        type: spot
        description: Where from.
        required: false
        example: {row: 5, side: left}
    description: What goes where.
    required: true
    asset_ref_acceptable: false
  response:
    type:
      placed:
        type: int
        description: How many are there now.
        optional: false
        example: 12
      spots:
        type: List[spot]
        description: Where.
        optional: true
-
  command_name: find
  description: Finds goods.
  parameter:
    type: string
  response:
    type: spot
"""
GOODS = {
    "colour": "red",
    "sizes": [1, "large"],
    "goods": [{"count": 3, "label": "tea"}],
    "prices": {"tea": 2.5},
    "place": {"row": 4, "side": "left"},
}


@pytest.fixture
def shelf(tmp_path):
    return defined(commands(tmp_path, SHELF)).commands


def changed(**values):
    return GOODS | values


def faults(parameter, value):
    return check(parameter, value).faults


def test_every_construct_of_the_guide_reads_without_a_remark(tmp_path):
    assert [text for _, text, _ in told(commands(tmp_path, SHELF))] == []


def test_a_models_schema_says_all_of_it(shelf):
    place, find = (schema(command.parameter) for command in shelf)
    Draft202012Validator.check_schema(place)
    spot = {
        "type": "object",
        "properties": {
            "row": {"type": "integer", "description": "From the door.", "examples": [4]},
            "side": {"type": "string", "description": "Left or right.", "examples": ["left"]},
        },
        "required": ["row", "side"],
        "additionalProperties": False,
    }
    assert place["type"] == "object"
    assert place["description"] == "What goes where."
    assert place["required"] == ["colour", "sizes", "goods", "prices", "place"]
    assert place["additionalProperties"] is False
    assert place["properties"]["colour"] == {
        "type": "string",
        "enum": ["red", "green"],
        "description": "The shelf's colour.",
        "examples": ["red"],
    }
    assert place["properties"]["sizes"]["items"] == {}
    assert place["properties"]["goods"]["items"]["required"] == ["count", "label"]
    assert place["properties"]["prices"]["additionalProperties"] == {}
    assert place["properties"]["former_place"] == spot | {
        "description": "Where from.",
        "examples": [{"row": 5, "side": "left"}],
    }
    assert find == {
        "type": "object",
        "properties": {"param": {"type": "string"}},
        "required": ["param"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        (GOODS, ()),
        (changed(former_place={"row": 1.0, "side": "left"}), ()),
        (changed(former_place=None), ()),
        (changed(colour="gren"), ("colour: 'gren' is none of its values; did you mean 'green'?",)),
        (changed(colour="mauve"), ("colour: 'mauve' is none of its values; there are: green, red",)),
        (changed(colour=3), ("colour: expected text, not 3",)),
        (changed(goods=[{"count": 1, "label": "a"}, {"count": "x", "label": "b"}]),
         ("goods[1].count: expected a whole number, not 'x'",)),
        (changed(goods=[{"count": 1.5, "label": "a"}]), ("goods[0].count: expected a whole number, not 1.5",)),
        (changed(goods=[{"count": True, "label": "a"}]), ("goods[0].count: expected a whole number, not true",)),
        (changed(goods=[{"count": "3", "label": "a"}]), ("goods[0].count: expected a whole number, not '3'",)),
        (changed(goods={}), ("goods: expected a list, not a mapping",)),
        (changed(place={"row": 1}), ("place.side: this is missing; expected text",)),
        (changed(place=None), ("place: expected a mapping, not null",)),
        (changed(plaice=1), ("plaice: there is no such key; did you mean 'place'?",)),
        ({}, tuple(f"{key}: this is missing; expected {kind}" for key, kind in [
            ("colour", "text"), ("sizes", "a list"), ("goods", "a list"), ("prices", "a mapping"),
            ("place", "a mapping")])),
        ([], ("the parameter: expected a mapping, not a list",)),
        (None, ("the parameter is missing; expected a mapping",)),
    ],
)  # fmt: skip
def test_a_call_is_told_where_it_is_wrong(shelf, value, fault):
    assert faults(shelf[0].parameter, value) == fault


def test_what_goes_to_the_command_is_of_the_kind(shelf):
    taken = check(shelf[0].parameter, changed(former_place=None, goods=[{"count": 3.0, "label": "a"}])).value
    assert "former_place" not in taken
    assert repr(taken["goods"][0]["count"]) == "3"


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ({"placed": 1}, ()),
        ({"placed": 1, "spots": None}, ()),
        ({"placed": 1, "spots": [{"row": 1, "side": "left"}]}, ()),
        ({"placed": 1, "spots": [{"row": 1}]}, ("spots[0].side: this is missing; expected text",)),
        ({"placed": 1, "spots": {"asset_id": "a"}}, ()),
        ("asset://a/0", ()),
        ({}, ("placed: this is missing; expected a whole number",)),
        ({"placed": "many"}, ("placed: expected a whole number, not 'many'",)),
        ({"placed": 1, "more": 2}, ("more: there is no such key; there are: placed, spots",)),
        (None, ("the response: expected a mapping, not null",)),
    ],
)
def test_an_answer_is_held_against_what_was_promised(shelf, value, fault):
    assert check_response(shelf[0].response, value) == fault


def test_where_nothing_is_promised_nothing_is_told():
    assert check_response(None, {"anything": math.nan}) == ()


@pytest.mark.parametrize(
    ("written", "kind"),
    [
        ("string", Text()), ("STR", Text()), ("text", Text()), ("'str'", Text()),
        ("int", Whole()), ("Integer", Whole()), ("long", Whole()),
        ("float", Number()), ("number", Number()), ("double", Number()),
        ("bool", Truth()), ("Boolean", Truth()),
        ("Any", Anything()), ("typing.Any", Anything()),
        ("List", ListOf(Anything())), ("array", ListOf(Anything())), ("Sequence", ListOf(Anything())),
        ("list[int]", ListOf(Whole())), ("typing.List[ str ]", ListOf(Text())), ("string[]", ListOf(Text())),
        ("List[Dict[str, int]]", ListOf(MapOf(Whole()))),
        ("Tuple[int, str]", ListOf(OneOf((Whole(), Text())))), ("tuple[int, ...]", ListOf(Whole())),
        ("Dict", MapOf(Anything())), ("Mapping", MapOf(Anything())), ("object", MapOf(Anything())),
        ("map", MapOf(Anything())), ("Dict[str, List[float]]", MapOf(ListOf(Number()))),
        ("Optional[int]", OneOf((Whole(), Nothing()))), ("int | None", OneOf((Whole(), Nothing()))),
        ("Union[str, List[int | float]]", OneOf((Text(), ListOf(OneOf((Whole(), Number())))))),
        ("Union[str, str]", Text()),
        ("Literal['a', 'b']", Choice(Text(), ("a", "b"))),
        ("bytes", Foreign("bytes")), ("numpy.ndarray", Foreign("numpy.ndarray")),
        ("List[PIL.Image.Image]", ListOf(Foreign("PIL.Image.Image"))), ("List[Message]", ListOf(Foreign("Message"))),
    ],
)  # fmt: skip
def test_types_as_they_are_written(tmp_path, written, kind):
    file = commands(tmp_path, f"- command_name: do\n  description: d\n  parameter: {{type: {json.dumps(written)}}}\n")
    assert defined(file).commands[0].parameter == Parameter(kind)
    assert told(file) == []


@pytest.mark.parametrize(
    ("written", "fault"),
    [
        ("strng", "there is no type 'strng'; did you mean 'string'?"),
        ("List[itn]", "there is no type 'itn'; did you mean 'int'?"),
        ("nothing-like-it", "there is no type 'nothing-like-it'; there are:"),
        ("List[int", "'List[int' is no name of a type; write one such as List[string]"),
        ("", "'' is no name of a type"),
        ("int |", "'' is no name of a type"),
        ("Literal[x]", "'x' are no values for Literal"),
        ("List[" * 30 + "int" + "]" * 30, "it nests too deep"),
        ("[" * 900, "is no name of a type"),
        ("int|" * 20_000 + "int", "it is too long"),
    ],
)
def test_a_type_that_there_is_not_is_a_fault_with_its_line(tmp_path, written, fault):
    file = commands(tmp_path, f"- command_name: do\n  description: d\n  parameter:\n    type: {json.dumps(written)}\n")
    (line, text, is_remark), *more = told(file)
    assert (line, is_remark, more) == (15, False, [])
    assert text.startswith("commands.do.parameter.type: ")
    assert fault in text


def test_a_class_of_pythons_is_remarked_and_anything_is_taken(tmp_path):
    file = commands(tmp_path, "- {command_name: do, description: d, parameter: {type: Spreadsheet}}")
    assert defined(file).commands[0].parameter == Parameter(Foreign("Spreadsheet"))
    assert [(is_remark, "class of Python" in text) for _, text, is_remark in told(file)] == [(True, True)]


NAMED = """\
- command_name: one
  description: d
  parameter: {type: {a: {type: {_type_ref: item, x: {type: int}}}}}
- command_name: two
  description: d
  parameter: {type: "List[item]"}
  response: {type: {found: {type: "Dict[str, item]"}}}
- command_name: three
  description: d
  parameter: {type: [{_type_ref: rows}, {name: it, type: item}]}
- command_name: four
  description: d
  parameter: {type: {all: {type: rows}, size: {type: int, enum: [1, 2], _type_ref: size}, other: {type: size}}}
"""


def test_a_named_type_counts_in_all_that_follows(tmp_path):
    one, two, three, four = defined(commands(tmp_path, NAMED)).commands
    item = Record((Field("x", Whole()),))
    assert one.parameter.kind == Record((Field("a", item),))
    assert two.parameter.kind == ListOf(item)
    assert two.response == Response(Record((Field("found", MapOf(item)),)))
    assert three.parameter.kind == ListOf(Record((Field("it", item),)))
    size = Choice(Whole(), (1, 2))
    assert four.parameter.kind == Record(
        (Field("all", three.parameter.kind), Field("size", size), Field("other", size))
    )


def test_an_alias_brings_the_same_definition_again(tmp_path):
    command = parameter_of(tmp_path, "type: {a: {type: &x {_type_ref: it, n: {type: int}}}, b: {type: *x}}")
    first, second = command.parameter.kind.fields
    assert first.kind == second.kind == Record((Field("n", Whole()),))


@pytest.mark.parametrize(
    ("types", "fault"),
    [
        ("{a: {type: later}, b: {type: {_type_ref: later, x: {type: int}}}}", "is defined in line 14"),
        ("{a: {type: {_type_ref: it, x: {type: int}}}, b: {type: {_type_ref: it, y: {type: int}}}}", "defined twice"),
        ("{a: {type: {_type_ref: List, x: {type: int}}}}", "'List' is the name of a type already"),
        ("{a: {type: {_type_ref: item, x: {type: int}}}, b: {type: itme}}", "did you mean 'item'?"),
    ],
)
def test_names_that_can_not_be_meant(tmp_path, types, fault):
    file = commands(tmp_path, f"- command_name: do\n  description: d\n  parameter: {{type: {types}}}\n")
    [(line, text, is_remark)] = told(file)
    assert fault in text
    assert (line, is_remark) == (14, False)


def test_a_type_that_holds_itself_takes_anything_there(tmp_path):
    tree = "{type: {_type_ref: tree, leaf: {type: int}, branches: {type: 'List[tree]'}}}"
    command = parameter_of(tmp_path, f"type: {{root: {tree}}}")
    [(_, text, is_remark)] = told(tmp_path / "config.yaml")
    assert is_remark
    assert "holds itself" in text
    assert faults(command.parameter, {"root": {"leaf": 1, "branches": [{"any": "thing"}]}}) == ()
    Draft202012Validator.check_schema(schema(command.parameter))


def test_types_that_double_with_each_line_are_refused(tmp_path):
    lines = ["- {command_name: c0, description: d, parameter: {type: {a: {type: {_type_ref: t0, x: {type: int}}}}}}"]
    for at in range(1, 30):
        inner = f"{{_type_ref: t{at}, x: {{type: t{at - 1}}}, y: {{type: t{at - 1}}}}}"
        lines.append(f"- {{command_name: c{at}, description: d, parameter: {{type: {{a: {{type: {inner}}}}}}}}}")
    texts = [text for _, text, _ in told(commands(tmp_path, "\n".join(lines)))]
    assert texts
    assert all("has more than 5,000 fields" in text for text in texts)


@pytest.mark.parametrize(
    ("field", "choice"),
    [
        ("{type: string, enum: [yes, no, 1.10, 2024-01-02]}", Choice(Text(), ("yes", "no", "1.10", "2024-01-02"))),
        ("{type: bool, enum: [yes]}", Choice(Truth(), (True,))),
        ("{type: int, enum: [1, 2.0, 1]}", Choice(Whole(), (1, 2))),
        ("{type: float, enum: [1, 2.5]}", Choice(Number(), (1, 2.5))),
        ("{type: 'Optional[str]', enum: [yes, null]}", Choice(OneOf((Text(), Nothing())), ("yes", None))),
        ("{type: 'List[int]', enum: [0, 1]}", ListOf(Choice(Whole(), (0, 1)))),
        ("{type: 'List[int]', enum: [[0, 1], [2]]}", Choice(ListOf(Whole()), ([0, 1], [2]))),
        ("{type: Any, enum: [1, true, x]}", Choice(Anything(), (1, True, "x"))),
        ("{type: int, enum: }", Whole()),
    ],
)  # fmt: skip
def test_a_choice_has_values_of_its_type(tmp_path, field, choice):
    command = parameter_of(tmp_path, f"type: {{a: {field}}}")
    assert repr(command.parameter.kind) == repr(Record((Field("a", choice),)))
    Draft202012Validator.check_schema(schema(command.parameter))


@pytest.mark.parametrize(
    ("enum", "fault"),
    [
        ("[1, x]", "commands.do.parameter.a.enum: expected a whole number, not 'x'"),
        ('["3"]', "commands.do.parameter.a.enum: expected a whole number, not '3'"),
        ("1", "commands.do.parameter.a.enum: expected a list of the possible values"),
        (str([*range(1001)]), "commands.do.parameter.a.enum: it has more than 1,000 values; leave it out"),
        ("[]", "commands.do.parameter.a.enum: expected a list of the possible values"),
    ],
)
def test_a_value_of_another_type_is_no_choice(tmp_path, enum, fault):
    body = "- {command_name: do, description: d, parameter: {type: {a: {type: int, enum: %s}}}}"
    [(_, text, is_remark)] = told(commands(tmp_path, body % enum))
    assert (text, is_remark) == (fault, False)


def test_an_example_may_be_a_reference(tmp_path):
    command = parameter_of(tmp_path, "type: {a: {type: int, asset_ref_acceptable: true, example: 'asset://a/0'}}")
    assert schema(command.parameter)["properties"]["a"]["examples"] == ["asset://a/0"]
    assert told(tmp_path / "config.yaml") == []


def test_an_example_that_does_not_fit_is_remarked_and_not_shown(tmp_path):
    command = parameter_of(tmp_path, "type: {a: {type: int, example: x}, b: {type: string, example: 1.10}}")
    properties = schema(command.parameter)["properties"]
    assert properties == {"a": {"type": "integer"}, "b": {"type": "string", "examples": ["1.10"]}}
    assert [is_remark for _, _, is_remark in told(tmp_path / "config.yaml")] == [True]


@pytest.mark.parametrize(
    ("text", "arguments", "value"),
    [
        ("type: string", {"param": "x"}, "x"),
        ("type: {a: {type: int}}", {"a": 1}, {"a": 1}),
        ("type: {a: {type: int}}\nasset_ref_acceptable: true", {"param": {"a": 1}}, {"a": 1}),
        ("type: {a: {type: int}}\nasset_ref_acceptable: true", {"a": 1}, {"a": 1}),
        ("type: {a: {type: int}}\nasset_ref_acceptable: true", {"asset_id": "x"}, {"asset_id": "x"}),
        ("type: {a: {type: int}}\nrequired: false", {}, None),
        ("type: {a: {type: int, required: false}}\nrequired: false", {}, {}),
        ("type: Dict[str, int]", {"param": {"a": 1}}, {"a": 1}),
        ("type: [{name: a, type: int}]", {"param": [{"a": 1}]}, [{"a": 1}]),
        ("type: string\nrequired: false", {}, None),
    ],
)
def test_a_models_arguments_are_a_parameter(tmp_path, text, arguments, value):
    parameter = parameter_of(tmp_path, text).parameter
    assert given(parameter, arguments) == value
    assert check(parameter, value).faults == ()
    top = schema(parameter)
    assert top["type"] == "object"
    assert not {"anyOf", "enum"} & set(top)


@pytest.mark.parametrize("text", ["type: null", "type:", "{}", ""])
def test_a_command_without_a_parameter(tmp_path, text):
    command = (
        parameter_of(tmp_path, text)
        if text
        else defined(commands(tmp_path, "- {command_name: do, description: d}")).commands[0]
    )
    assert command.parameter is None
    assert schema(None)["properties"] == {}
    assert given(None, {}) is None
    assert check(None, {}).faults == check(None, None).faults == ()
    assert check(None, {"a": 1}).faults == ("the command takes no parameter; leave it out",)


REFERRING = """\
type:
  picture: {type: "Union[numpy.ndarray, PIL.Image.Image]", asset_ref_acceptable: true, required: false}
  pictures: {type: "List[numpy.ndarray]", asset_ref_acceptable: true, required: false}
  count: {type: int, asset_ref_acceptable: true, required: false}
  table: {type: "List[List[int]]", asset_ref_acceptable: true, required: false}
  note: {type: string, required: false}
  notes: {type: "Dict[str, Any]", required: false}
  rows:
    type:
      - {name: size, type: int, asset_ref_acceptable: true}
      - {name: label, type: string, required: false}
    required: false
"""
EMBEDDED = '<| {"asset_id": "a", "field_path": ["b", 0]} |>'


@pytest.mark.parametrize(
    ("value", "references"),
    [
        ({"picture": "asset://a"}, [("picture",)]),
        ({"picture": {"asset_id": "a"}}, [("picture",)]),
        ({"picture": {"asset_id": "a", "field_path": ["b", 0]}}, [("picture",)]),
        ({"picture": {"asset_id": "a", "field_path": None}}, [("picture",)]),
        ({"picture": EMBEDDED}, [("picture",)]),
        ({"picture": "<|asset://a/b/0|>"}, [("picture",)]),
        ({"picture": [[1]]}, []),
        ({"pictures": "asset://a"}, [("pictures",)]),
        ({"pictures": ["asset://a", {"asset_id": "b"}, [1]]}, [("pictures", 0), ("pictures", 1)]),
        ({"count": "asset://a"}, [("count",)]),
        ({"count": 3}, []),
        ({"table": ["asset://a", [1]]}, [("table", 0)]),
        ({"rows": [{"size": 1}, {"size": "ASSET://a/0"}]}, [("rows", 1, "size")]),
        ({"note": "asset://"}, []),
        ({"note": "see asset://a"}, []),
        ({"notes": {"asset_id": "a"}}, []),
    ],
)
def test_references_are_found_where_they_are_accepted(tmp_path, value, references):
    parameter = parameter_of(tmp_path, REFERRING).parameter
    assert check(parameter, value) == Checked(value, (), tuple(references))


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ({"note": "asset://a"}, "note"),
        ({"note": EMBEDDED}, "note"),
        ({"notes": {"asset_id": "a", "field_path": []}}, "notes"),
        ({"notes": {"x": "asset://a"}}, "notes.x"),
        ({"rows": [{"size": 1, "label": "asset://a"}]}, "rows[0].label"),
        ({"rows": "asset://a"}, "rows"),
        ({"table": [["asset://a"]]}, "table[0][0]"),
        ("asset://a", "the parameter"),
    ],
)
def test_a_reference_elsewhere_is_refused(tmp_path, value, place):
    parameter = parameter_of(tmp_path, REFERRING).parameter
    assert faults(parameter, value) == (
        f"{place}: a reference to an asset is not accepted here; give the value itself",
    )


def test_the_whole_parameter_may_be_a_reference(tmp_path):
    parameter = parameter_of(tmp_path, "type: {a: {type: int}}\nasset_ref_acceptable: true").parameter
    record, *references = schema(parameter)["properties"]["param"]["anyOf"]
    assert record["properties"] == {"a": {"type": "integer"}}
    assert references == [REFERENCE_URL, REFERENCE_OBJECT]
    for value in ("asset://a/b", {"asset_id": "a", "field_path": ["b"]}):
        assert check(parameter, value) == Checked(value, (), ((),))


def test_a_record_with_a_key_asset_id_is_itself(tmp_path):
    inner = "{asset_id: {type: string}, field_path: {type: 'List[str]', required: false}}"
    parameter = parameter_of(tmp_path, f"type: {{a: {{type: {inner}, asset_ref_acceptable: true}}}}").parameter
    value = {"a": {"asset_id": "x", "field_path": ["y"]}}
    assert check(parameter, value) == Checked(value)
    assert check(parameter, {"a": "asset://x"}).references == (("a",),)


def test_references_in_all_their_forms():
    whole, inner = Reference("a b/c"), Reference("a b/c", ("x/y", "0"))
    assert read_reference(str(whole)) == whole
    assert read_reference(str(inner)) == read_reference(f" <|{inner}|> ") == inner
    assert read_reference({"asset_id": "a b/c", "field_path": ["x/y", 0]}) == inner
    assert read_reference(" asset://a/ ") == Reference("a")
    for none in ("asset:///x", "asset://", "<||>", "<|{|>", "<|" + "[" * 99_999 + "|>", "<|{}|>", "", 3, None, [],
                 {"asset_id": True}, {"asset_id": "a", "field_path": "b"}, {"asset_id": "a", "more": 1}):  # fmt: skip
        assert read_reference(none) is None


@pytest.mark.parametrize("value", [math.nan, math.inf, 1e400])
def test_what_json_can_not_say_is_no_number(value):
    assert faults(Parameter(Number()), value) == (f"the parameter: expected a number, not {value}",)
    assert faults(Parameter(Whole()), value) == (f"the parameter: expected a whole number, not {value}",)
    assert check_response(Response(Number()), value) == ()


def test_a_long_or_huge_value_is_not_quoted_whole():
    assert len(faults(Parameter(Whole()), "x" * 10_000)[0]) < 200
    assert faults(Parameter(Text()), 10**5000) == ("the parameter: expected text, not a huge number",)
    assert len(faults(Parameter(ListOf(Whole())), ["x"] * 100_000)) == 21


def test_of_alternatives_the_one_that_is_meant_speaks():
    parameter = Parameter(OneOf((Text(), ListOf(Record((Field("a", Whole()),))))))
    assert faults(parameter, [{"a": "x"}]) == ("[0].a: expected a whole number, not 'x'",)
    assert faults(parameter, 3) == ("the parameter: expected text or a list, not 3",)


SCALARS = [Text(), Whole(), Number(), Truth(), Nothing(), Anything(), Foreign("x.Y")]
NAMES = st.sampled_from(["a", "b", "asset_id", "param"])
PLAIN = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([1.0, 1.5, -0.0, 1e300]),
    st.sampled_from(["", "a", "1", "asset://", "asset://x/0", "asset:// x", "true"]),
)
VALUES = st.recursive(
    PLAIN | st.fixed_dictionaries({"asset_id": st.just("x")}, optional={"field_path": st.lists(st.just("0"))}),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)


def record(kinds):
    fields = st.builds(Field, NAMES, kinds, st.just("d"), st.booleans(), st.booleans())
    return st.lists(fields, max_size=3, unique_by=lambda field: field.name).map(lambda some: Record(tuple(some)))


KINDS = st.recursive(
    st.sampled_from(SCALARS),
    lambda inner: st.one_of(
        inner.map(ListOf),
        inner.map(MapOf),
        record(inner),
        st.lists(inner, min_size=1, max_size=3).map(lambda some: OneOf(tuple(some))),
        st.builds(
            Choice,
            inner.filter(lambda kind: not isinstance(kind, Choice)),
            st.lists(VALUES, min_size=1, max_size=3).map(tuple),
        ),
    ),
    max_leaves=6,
)
PARAMETERS = st.builds(Parameter, KINDS, st.just("d"), st.booleans(), st.booleans())


def valued(kind):
    """Values that a kind mostly takes, so that both answers come up."""
    match kind:
        case ListOf(item):
            return st.lists(valued(item), max_size=3) | VALUES
        case MapOf(item):
            return st.dictionaries(NAMES, valued(item), max_size=2) | VALUES
        case Record(fields):
            made = {field.name: valued(field.kind) for field in fields}
            needed = {field.name: made[field.name] for field in fields if field.is_required}
            rest = {name: each for name, each in made.items() if name not in needed}
            return st.fixed_dictionaries(needed, optional=rest) | VALUES
        case OneOf(kinds):
            return st.one_of(*map(valued, kinds))
        case Choice(_, values):
            return st.sampled_from(values) | VALUES
    return VALUES


def holds(value, is_meant):
    inner = value if isinstance(value, list) else value.values() if isinstance(value, dict) else ()
    return is_meant(value) or any(holds(each, is_meant) for each in inner)


def is_mapped(value):
    return isinstance(value, dict) and read_reference(value) is not None


@for_all(st.data())
def test_the_schema_and_the_check_agree(data):
    """Up to what `check` says of itself: null for what is optional, and references where none are accepted."""
    parameter = data.draw(PARAMETERS)
    top = schema(parameter)
    Draft202012Validator.check_schema(top)
    value = data.draw(valued(parameter.kind))
    if parameter.is_wrapped:
        arguments = {"param": value}
    elif isinstance(value, dict):
        arguments = value
    else:
        return
    is_valid = Draft202012Validator(top).is_valid(arguments)
    checked = check(parameter, given(parameter, arguments))
    if is_valid and checked.faults:
        assert holds(value, lambda inner: read_reference(inner) is not None)
    if not is_valid and not checked.faults:
        assert holds(value, lambda inner: inner is None or (isinstance(inner, list) and any(map(is_mapped, inner))))
