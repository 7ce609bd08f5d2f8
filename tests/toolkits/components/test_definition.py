"""A component's config.yaml: its coordinates, what is read of it, and what is said of one that is wrong."""

import os
from pathlib import Path

import pytest
from goose_like_toolkits.components.described.coordinates import Coordinates, parse
from goose_like_toolkits.components.described.definition import read_definition
from hypothesis import given as for_all
from hypothesis import strategies as st

from goose_like.core.errors import GooseLikeError, UsageError
from tests.toolkits.components.component_files import HEAD, commands, component, defined, told

SHAPES = {
    "resource": """\
        group_id: org.example.shop.model
        artifact_id: big-model
        version: 0.2.1-SNAPSHOT

        type: Resource
        as_plugin: false

        resource_type: Model

        setup:
          pip:
            - torch>=2.0
            - ["--pre", "--no-deps", tokens]
          package: example.models.big
        url:
        config:
          api_version: 2023-05-15
          ratio: 1.5
          null_one: ~
          4: four
          yes: kept
        """,
    "interactor": """\
        group_id: org.example.shop
        artifact_id: talk
        version: "1.0"
        type: interactor
        as_plugin: false
        commands:
          -
            command_name: clear
            description: forgets all.
            parameter:
              type: null
            response:
              type:
                status: {type: bool, description: whether it did, optional: false}
          -
            command_name: recall
            description: gives the newest.
            parameter:
              type:
                most: {type: int, description: how many, required: false}
              required: false
            response:
              type:
                found: {type: "List[Message]", optional: false}
        setup: {package: example.talk}
        """,
    "copilot": """\
        group_id: org.example.shop
        artifact_id: clerk
        version: 0.0.4
        type: copilot
        as_plugin: false
        setup: {pip: [example-clerk], package: example.clerk}
        config:
          plugin_manager:
            group_id: org.example.manager
            artifact_id: manager
            version: 0.0.1
            config:
              plugins:
                - group_id: org.example.shop
                  artifact_id: stock
                  version: 0.1.0
                  instance_id: 0
                  config: &small {limit: 3}
                - group_id: org.example.shop
                  artifact_id: stock
                  version: 0.1.0
                  instance_id: large
                  config: {<<: *small, size: 9}
                -
        """,
}


@pytest.fixture
def shapes(tmp_path):
    return {name: defined(component(tmp_path, text, head="", name=f"{name}.yaml")) for name, text in SHAPES.items()}


def test_a_resource(shapes):
    resource = shapes["resource"]
    assert resource.coordinates == Coordinates("org.example.shop.model", "big-model", "0.2.1-SNAPSHOT")
    assert (resource.type, resource.resource_type, resource.as_plugin) == ("resource", "model", False)
    assert resource.package == "example.models.big"
    assert resource.pip == (("torch>=2.0",), ("--pre", "--no-deps", "tokens"))
    assert resource.config == {
        "api_version": "2023-05-15",
        "ratio": 1.5,
        "null_one": None,
        "4": "four",
        "yes": "kept",
    }
    assert resource.data["url"] is None
    assert resource.commands == ()
    assert resource.file.name == "resource.yaml"


def test_an_interactor(shapes):
    clear, recall = shapes["interactor"].commands
    assert clear.parameter is None
    assert recall.parameter is not None
    assert not recall.parameter.is_required
    assert str(shapes["interactor"].coordinates) == "org.example.shop:talk:1.0"


def test_a_copilot_holds_others(shapes):
    first, second, placeholder = shapes["copilot"].config["plugin_manager"]["config"]["plugins"]
    assert first["config"] == {"limit": 3}
    assert second["config"] == {"limit": 3, "size": 9}
    assert placeholder is None


INFO = """\
group_id: g
artifact_id: a
version: 0.1.0
type: plugin
as_plugin: true
setup: {package: x}
commands: [{command_name: do, description: d}]
"""


@pytest.mark.parametrize(
    ("info", "description"),
    [
        ("{title: T, description: all}", "all"),
        ("{title: T, description: all, description_for_human: people, description_for_model: models}", "models"),
        ("{title: T, description_for_model: models}", "models"),
        ("{title: T, description: all, description_for_model: }", "all"),
    ],
)
def test_the_description_is_that_for_models(tmp_path, info, description):
    assert defined(component(tmp_path, f"info: {info}", INFO)).description == description


@pytest.mark.parametrize(
    ("config", "given", "name"),
    [
        ("", None, "Stock"),
        ("name: outer", None, "outer"),
        ("name: outer\nconfig: {name: inner}", None, "inner"),
        ("name: outer\nconfig: {name: inner}", {"name": "given"}, "given"),
        ("config: {name: null}", {}, "Stock"),
        ("config: {name: 7}", None, "7"),
    ],
)
def test_its_name(tmp_path, config, given, name):
    assert defined(component(tmp_path, config)).name(given) == name


PROMPTS = {
    "prompt": "prompt: here",
    "prompt_file_name": "prompt_file_name: words.md",
    "prompt_file_path": "prompt_file_path: more/words.md",
}


@pytest.mark.parametrize(
    ("keys", "prompt"),
    [
        (["prompt", "prompt_file_name", "prompt_file_path"], "here"),
        (["prompt_file_name", "prompt_file_path"], "from the file"),
        (["prompt_file_path"], "from further"),
        ([], ""),
    ],
)
def test_where_the_prompt_comes_from(tmp_path, keys, prompt):
    (tmp_path / "words.md").write_text("from the file\n")
    (tmp_path / "more").mkdir()
    (tmp_path / "more/words.md").write_bytes(b"\xef\xbb\xbffrom further\r\n")
    said = ", ".join(["title: T", "description: d", *(PROMPTS[key] for key in keys)])
    assert defined(component(tmp_path, f"info: {{{said}}}", INFO)).prompt(tmp_path) == prompt


def test_a_prompt_may_lie_in_the_working_folder(tmp_path):
    elsewhere = tmp_path / "work"
    elsewhere.mkdir()
    (elsewhere / "p.md").write_text("there")
    definition = defined(
        component(tmp_path / "c", f"info: {{title: T, description: d, prompt_file_path: {elsewhere}/p.md}}", INFO)
    )
    assert definition.prompt(tmp_path / "c", [elsewhere]) == "there"
    with pytest.raises(GooseLikeError, match="outside of"):
        definition.prompt(tmp_path / "c")


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("../secret", "outside of"),
        ("/etc/passwd", "outside of"),
        ("link", "outside of"),
        ("loop", "can't be read|no such file"),
        ("missing", "no such file"),
        (".", "no such file"),
        ("binary", "can't be read"),
        ("huge", "shorten it"),
        ("x" * 5000, "can't be read"),
    ],
)
def test_a_prompt_that_can_not_be_read(tmp_path, name, fault):
    folder = tmp_path / "config"
    folder.mkdir()
    (tmp_path / "secret").write_text("secret")
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / "loop").symlink_to(folder / "loop")
    (folder / "binary").write_bytes(b"\xff\xfe")
    (folder / "huge").write_text("x" * 300_000)
    definition = defined(component(folder, f"info: {{title: T, description: d, prompt_file_name: '{name}'}}", INFO))
    with pytest.raises(GooseLikeError, match=fault):
        definition.prompt(folder)


def replaced(old, new):
    return HEAD.replace(old, new)


@pytest.mark.parametrize(
    ("head", "line", "fault"),
    [
        (replaced("0.1.0", "1.0"), 3, 'version: YAML reads 1.0 as a number; write it in quotes: version: "1.0"'),
        (replaced("0.1.0", "1"), 3, "version: expected text, not 1;"),
        (replaced("0.1.0", "one"), 3, "version: 'one' can't be one;"),
        (replaced("0.1.0", "<version>"), 3, "version: '<version>' can't be one;"),
        (replaced("0.1.0", "../1"), 3, "version: '../1' can't be one;"),
        (replaced("org.example.shop", "org..shop"), 1, "group_id: 'org..shop' can't be one;"),
        (replaced("org.example.shop", "org/shop"), 1, "group_id: 'org/shop' can't be one;"),
        (replaced("stock\nv", "..\nv"), 2, "artifact_id: '..' can't be one;"),
        (replaced("stock\nv", "x" * 101 + "\nv"), 2, "artifact_id: it is longer than 100 characters;"),
        (replaced("stock\nv", "[a]\nv"), 2, "artifact_id: expected text, not ['a'];"),
        (replaced("artifact_id: stock\n", ""), 1, "artifact_id: expected text, and it is missing"),
        (replaced("type: plugin\n", ""), 1, "type: expected text, and it is missing"),
        (replaced("type: plugin", "type: [x]"), 4, "type: expected text, not \"['x']\""),
        (replaced("true", "'true'"), 5, "as_plugin: expected true or false, not 'true'"),
        (replaced("as_plugin: true\n", ""), 1, "as_plugin: expected true or false, and it is missing"),
        (replaced("  title: Stock\n", ""), 6, "info.title: this is missing"),
        (replaced("  title: Stock\n", "  title: [x]\n"), 7, "info.title: expected text"),
        (replaced("  description: Knows what is in store.\n", ""), 6, "info.description: this is missing"),
        (replaced("  package: example.stock\n", "  package: ../x\n"), 10, "setup.package: expected the package's full"),
        (replaced("setup:\n  package: example.stock\n", ""), 1, "setup.package: expected the package's full name"),
        (HEAD + "  pip: torch\n", 11, "setup.pip: expected a list"),
        (HEAD + "  pip:\n  - torch\n  - 3\n", 13, "setup.pip: expected a list"),
        (HEAD + "config: [a]\n", 11, "config: expected a mapping"),
        (HEAD + "commands: {a: b}\n", 11, "commands: expected a list"),
        (HEAD + "commands:\n- 3\n", 12, "commands[0].command_name: expected text"),
        (HEAD + "commands:\n- command_name: 3\n", 12, "commands[0].command_name: expected text, not 3"),
        (HEAD + "commands:\n- command_name: yes\n", 12, "commands[0].command_name: expected text, not True"),
        (HEAD + "commands:\n- command_name: a\n- {command_name: a}\n", 13, "there are two commands of this name"),
        (HEAD + "commands:\n- {command_name: a, parameter: [x]}\n", 12, "parameter: expected a mapping with"),
        (HEAD + "commands:\n- {command_name: a, parameter: 3}\n", 12, "parameter: expected a mapping with"),
        (HEAD + "commands:\n- {command_name: a, parameter: {type: {x: {type: int, required: maybe}}}}\n", 12,
         "commands.a.parameter.x.required: expected true or false, not 'maybe'"),
        (HEAD + "commands:\n- {command_name: a, parameter: {type: [{type: int}]}}\n", 12,
         "commands.a.parameter[0]: expected a mapping with the `name` and `type`"),
        (HEAD + "commands:\n- {command_name: a, parameter: {type: 3}}\n", 12, "expected the name of a type, not 3"),
        (HEAD + "commands:\n- {command_name: a, parameter: {type: {x: {type: {y: {type: in}}}}}}\n", 12,
         "commands.a.parameter.x.y.type: there is no type 'in'"),
    ],
)  # fmt: skip
def test_a_fault_has_its_line(tmp_path, head, line, fault):
    file = component(tmp_path, head=head)
    assert read_definition(file).value is None
    assert [(at, text) for at, text, is_remark in told(file) if not is_remark and fault in text and at == line]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "this file is empty"),
        ("# nothing\n", "this file is empty"),
        ("-", "described by a mapping"),
        ("text", "described by a mapping"),
        ("\tgroup_id: x", "no valid YAML"),
        ("a: b: c", "no valid YAML"),
        ("a: *nobody", "no valid YAML"),
        ("a: 'open", "no valid YAML"),
        ("a: 1\n---\na: 2\n", "no valid YAML"),
        ("a: \x00", "no valid YAML"),
        ("a: 1\nb:\n  c: 1\n  c: 2\n", "c: this key is there twice, first in line 3; remove one"),
        ("on: 1\n'on': 2\n", "on: this key is there twice"),
        ("? [a]\n: b\n", "a key is text"),
        ("a: !!python/object/apply:os.system [ls]\n", "is not known here"),
        ("a: !!set {x, y}\n", "is not known here"),
        ("a: !own x\n", "is not known here"),
        ("a: 2024-13-45\n", "put it in quotes"),
        ("a: !!int x\n", "put it in quotes"),
        ("a: !!bool x\n", "can't be read|is not known here|no valid"),
        ("a: " + "1" * 5000 + "\n", "put it in quotes"),
        ("a: 0x" + "f" * 5000 + "\n", "the number is too large; put it in quotes"),
        ("as_plugin: " + ":".join(["59"] * 3000) + "\n", "the number is too large"),
        ("a: &a [*a]\n", "aliases repeat"),
        ("a: &a {<<: *a}\n", "aliases repeat"),
        ("[" * 60_000, "nests too deep"),
        ("- " * 60_000, "nests too deep"),
        ("a: " + "{a: " * 20_000, "nests too deep"),
        ("x" * 1_100_000, "larger than"),
    ],
)
def test_what_is_no_description_is_told_in_a_sentence(tmp_path, text, fault):
    file = tmp_path / "config.yaml"
    file.write_text(text)
    reading = read_definition(file)
    assert reading.value is None
    assert any(part in reading.diagnostics[0].text for part in fault.split("|")), reading.diagnostics
    assert "\n" not in reading.diagnostics[0].text


def test_aliases_that_stand_for_millions_are_refused(tmp_path):
    lines = ["a0: &a0 {x: 1}"] + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    file = component(tmp_path, "\n".join(lines))
    [(_, text, _)] = told(file)
    assert "aliases repeat" in text
    merges = ["a0: &a0 {x: 1}"] + [f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 10)}]}}" for n in range(1, 12)]
    [(_, text, _)] = told(component(tmp_path, "\n".join(merges)))
    assert "aliases repeat" in text


def test_merged_keys_are_no_repetition(tmp_path):
    body = "x: &x {a: 1, b: 2}\ny: &y {<<: *x, b: 3}\nconfig: {<<: *y, a: 4}\n"
    definition = defined(component(tmp_path, body))
    assert definition.config == {"a": 4, "b": 3}
    assert definition.data["y"] == {"a": 1, "b": 3}


def test_what_is_no_file_is_told(tmp_path):
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    os.mkfifo(tmp_path / "pipe")
    for name, fault in [("", "this is a folder"), ("none", "no file"), ("pipe", "no file"), ("loop", "no file|can't")]:
        [(_, text, _)] = told(tmp_path / name)
        assert any(part in text for part in fault.split("|"))
    (tmp_path / "latin").write_bytes(b"a: \xe9")
    assert "is no text in UTF-8" in told(tmp_path / "latin")[0][1]
    assert "larger than" in told(sized(tmp_path / "large", 10_000_000))[0][1]


def sized(file: Path, size_bytes: int) -> Path:
    with file.open("wb") as new:
        new.truncate(size_bytes)
    return file


def test_lines_end_as_they_may(tmp_path):
    file = component(tmp_path)
    file.write_bytes(b"\xef\xbb\xbf" + HEAD.replace("\n", "\r\n").encode())
    assert defined(file).title == "Stock"


def test_remarks_leave_it_usable(tmp_path):
    file = commands(tmp_path, "- {command_name: do, parameter: {type: {x: {tpye: int}, y: int}}}")
    assert [(is_remark, text.partition(": ")[2]) for _, text, is_remark in told(file)] == [
        (True, "there is none, and a model chooses by it"),
        (True, "no `type` is said, and any value is taken"),
        (True, "unknown key 'tpye' is ignored; did you mean 'type'?"),
    ]
    assert defined(file).commands[0].name == "do"
    assert [is_remark for _, _, is_remark in told(component(tmp_path))] == [True]  # a plugin without commands


@for_all(st.text(max_size=200) | st.text("abc:-[]{}&*<!|>'\"\n ,#?1", max_size=80))
def test_no_text_makes_reading_raise(tmp_path_factory, text):
    file = tmp_path_factory.getbasetemp() / "any.yaml"
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    assert read_definition(file).diagnostics


ODD = st.sampled_from(
    ["x", "3", "1.5", "yes", "~", "[a, b]", "[]", "{}", "{a: b}", "{name: x}", "int", "'<|a|>'", "*a"]
)


KEYS = ["type", "description", "enum", "required", "optional", "asset_ref_acceptable", "example", "name", "_type_ref"]
AROUND = ["%s", "{type: %s}", "{type: {x: %s}}", "{type: [%s]}", "{type: [{name: x}, %s]}"]


@for_all(st.dictionaries(st.sampled_from(KEYS), ODD, max_size=6), st.sampled_from(AROUND))
def test_no_grammar_makes_reading_raise(tmp_path_factory, said, around):
    field = "{" + ", ".join(f"{key}: {value}" for key, value in said.items()) + "}"
    body = f"x: &a [{{a: 1}}]\ncommands:\n- {{command_name: do, description: d, parameter: {around % field}, "
    file = component(tmp_path_factory.getbasetemp(), body + f"response: {around % field}}}\n", name="odd.yaml")
    reading = read_definition(file)
    assert all(fault.line for fault in reading.diagnostics)


def test_coordinates_are_parsed_and_shown():
    coordinates = parse(" org.example:ocr-detection:0.1.0-rc.1 ")
    assert str(coordinates) == "org.example:ocr-detection:0.1.0-rc.1"
    assert coordinates.folder == Path("org/example/ocr-detection/0.1.0-rc.1")


@pytest.mark.parametrize(
    "text", ["", "a", "a:b", "a:b:1:c", "a:b:", "a::1", "a.b.:c:1", "-a:b:1", "a:b:1\n:", "a:b/c:1"]
)
def test_what_names_no_component(text):
    with pytest.raises(UsageError, match=r"GROUP:ARTIFACT:VERSION|can't be one"):
        parse(text)


def test_case_makes_no_difference():
    one, other = parse("Org.X:Y:1.0-snapshot"), parse("org.x:y:1.0-SNAPSHOT")
    assert one == other
    assert hash(one) == hash(other)
    assert one.is_snapshot
    assert one.folder == Path("Org/X/Y/1.0-snapshot")
    assert one != "org.x:y:1.0-SNAPSHOT"


def test_older_versions_come_first():
    versions = ["0.9", "0.10-SNAPSHOT", "0.10-beta-SNAPSHOT", "0.10-beta", "0.10", "1.0", "10.0"]
    ordered = sorted(parse(f"g:a:{version}") for version in reversed(versions))
    expected = ["0.9", "0.10-beta-SNAPSHOT", "0.10-beta", "0.10-SNAPSHOT", "0.10", "1.0", "10.0"]
    assert [each.version for each in ordered] == expected


@pytest.mark.parametrize(("instance", "name"), [(None, "0"), (0, "0"), ("0", "0"), (12, "12"), ("eu west", "eu west")])
def test_the_folder_of_an_instance(instance, name):
    assert parse("g.h:a:1").instance_folder(instance) == Path("g/h/a/1") / name


@pytest.mark.parametrize("instance", ["", "a/b", "..", ".hidden", "a\\b", "a\0", "a\nb", True, 1.5, [], "x" * 101])
def test_what_is_no_instance(instance):
    with pytest.raises(UsageError, match="instance_id: "):
        parse("g:a:1").instance_folder(instance)
