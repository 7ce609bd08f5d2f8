"""What a component is configured with in the end, where its copy lies, and what a check says of its file."""

import json
import os
import threading
from pathlib import Path

import pytest
from goose_like_toolkits.components.described.checking import check_file, component_schema
from goose_like_toolkits.components.described.coordinates import Coordinates, parse
from goose_like_toolkits.components.described.document import read_document
from goose_like_toolkits.components.described.overriding import Layer, overlaid
from goose_like_toolkits.components.repositories.runtime import Instance, Runtime
from hypothesis import given as for_all
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from goose_like.core.errors import GooseLikeError, UsageError
from tests.toolkits.components.component_files import HEAD, component, defined

OWN = HEAD + "config:\n  num_results: 8\n  model:\n    name: small\n    stops: [a, b]\n  empty: {}\n"
OUTER = """\
config:
  plugins:
    - group_id: org.example.shop
      artifact_id: stock
      version: 0.1.0
      config:
        num_results: 3
        model: {stops: [c], heat: 0.5}
"""


def test_the_outermost_wins_and_each_key_has_its_origin(tmp_path):
    own = defined(component(tmp_path, head=OWN))
    outer = read_document(component(tmp_path, head=OUTER, name="outer.yaml")).value
    at = ("config", "plugins", 0, "config")
    effective = overlaid(
        Layer(own.config, "the component's config.yaml", own.document, ("config",)),
        Layer(outer.data["config"]["plugins"][0]["config"], "the copilot's config.yaml", outer, at),
        Layer({"model": {"name": "large"}}, "the profile"),
    )
    assert effective.value == {
        "num_results": 3,
        "model": {"name": "large", "stops": ["c"], "heat": 0.5},
        "empty": {},
    }
    assert effective.origins == {
        ("num_results",): "the copilot's config.yaml, line 7",
        ("model", "name"): "the profile",
        ("model", "stops"): "the copilot's config.yaml, line 8",
        ("model", "heat"): "the copilot's config.yaml, line 8",
        ("empty",): "the component's config.yaml, line 16",
    }
    assert own.config["num_results"] == 8


@pytest.mark.parametrize(
    ("own", "outer", "value"),
    [
        ({"a": {"b": 1}}, {"a": 2}, {"a": 2}),
        ({"a": {"b": 1}}, {"a": None}, {"a": None}),
        ({"a": 2}, {"a": {"b": 1}}, {"a": {"b": 1}}),
        ({"a": {"b": 1}}, {"a": {}}, {"a": {"b": 1}}),
        ({"a": 2}, {"a": {}}, {"a": {}}),
        ({"a": {}}, {"a": {"b": {}}}, {"a": {"b": {}}}),
        ({"a": [{"b": 1}]}, {"a": [{"c": 1}]}, {"a": [{"c": 1}]}),
        ({"a": [1, 2]}, {"a": []}, {"a": []}),
        ({}, {}, {}),
    ],
)
def test_what_merges_and_what_replaces(own, outer, value):
    assert overlaid(Layer(own, "own"), Layer(outer, "outer")).value == value


NESTED = st.recursive(
    st.integers() | st.none() | st.lists(st.integers(), max_size=2),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
LAYERS = st.lists(st.dictionaries(st.sampled_from("abc"), NESTED, max_size=3), min_size=1, max_size=4)


def leaves(value, path=()):
    for key, inner in value.items():
        if isinstance(inner, dict) and inner:
            yield from leaves(inner, (*path, key))
        else:
            yield (*path, key), inner


def at(value, path):
    for step in path:
        value = value[step]
    return value


@for_all(LAYERS)
def test_every_key_comes_from_who_is_said(values):
    effective = overlaid(*(Layer(value, str(number)) for number, value in enumerate(values)))
    found = dict(leaves(effective.value))
    assert found.keys() == effective.origins.keys()
    for path, value in found.items():
        assert at(values[int(effective.origins[path])], path) == value
    for path, value in leaves(values[-1]):
        assert value == {} or at(effective.value, path) == value


@pytest.mark.parametrize("wrap", [lambda inner: {"a": inner}, lambda inner: [inner]])
def test_a_layer_without_end_is_refused(wrap):
    deep = {}
    for _ in range(5000):
        deep = wrap(deep)
    with pytest.raises(GooseLikeError, match="nests deeper"):
        overlaid(Layer({"x": deep}, "the request"))


def test_nothing_is_shared_with_a_layer():
    own = {"a": {"b": [1, {"c": 2}]}}
    effective = overlaid(Layer(own, "own"))
    effective.value["a"]["b"][1]["c"] = 3
    assert own == {"a": {"b": [1, {"c": 2}]}}


STOCK = parse("org.example.shop:stock:0.1.0")
FILES = {
    "stock-0.1.0-config.yaml": "from: repository",
    "stock-0.1.0-config.yaml.asc": "signature",
    "stock-0.1.0-config.yaml.sha256": "sum",
    "stock-0.1.0-config_web.yaml": "from: web",
    "stock-0.1.0-words.md": "words",
    "notes.txt": "as it is",
    "more/stock-0.1.0-deep.txt": "deep",
    "more/stock-0.1.0-deep.txt.md5": "sum",
    "__COMPLETED": "",
}


class Shelf:
    """A repository of one component, which counts how often it was asked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.asked = 0
        for name, text in FILES.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)

    def find(self, coordinates: Coordinates) -> Path:
        self.asked += 1
        if coordinates != STOCK:
            raise GooseLikeError(f"there is no {coordinates}; looked in {self.folder}")
        return self.folder


@pytest.fixture
def shelf(tmp_path):
    return Shelf(tmp_path / "repository")


@pytest.fixture
def work(tmp_path):
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


@pytest.fixture
def runtime(work, shelf):
    return Runtime(work, shelf)


def texts(folder):
    return {str(file.relative_to(folder)): file.read_text() for file in sorted(folder.rglob("*")) if file.is_file()}


COPY = {
    "config.yaml": "from: repository",
    "config_web.yaml": "from: web",
    "more/deep.txt": "deep",
    "notes.txt": "as it is",
    "words.md": "words",
}
PLACE = ".runtime/org/example/shop/stock/0.1.0"


@pytest.mark.parametrize("instance", [None, 0, "0"])
def test_a_copy_is_made_once_and_edited_ones_stay(runtime, work, shelf, instance):
    file = runtime.place(Instance(STOCK, instance))
    assert file == work / PLACE / "0/config.yaml"
    assert texts(file.parent) == COPY
    file.write_text("from: person")
    assert runtime.place(Instance(STOCK, 0)).read_text() == "from: person"
    assert shelf.asked == 1


def test_instances_have_copies_of_their_own(runtime, work):
    assert runtime.place(Instance(STOCK, "large")) == work / PLACE / "large/config.yaml"
    assert runtime.place(Instance(STOCK)) == work / PLACE / "0/config.yaml"


def test_another_file_of_the_folder(runtime):
    assert runtime.place(Instance(STOCK, config_file="config_web.yaml")).read_text() == "from: web"
    mine = runtime.place(Instance(STOCK, config_file="mine.yaml"))
    assert (mine.name, mine.read_text()) == ("mine.yaml", "from: repository")
    mine.write_text("from: person")
    assert runtime.place(Instance(STOCK, config_file="mine.yaml")).read_text() == "from: person"


def test_another_folder(runtime, work, shelf):
    assert runtime.place(Instance(STOCK, config_folder="mine/stock")) == work / "mine/stock/config.yaml"
    assert runtime.place(Instance(STOCK, config_folder=str(work / "mine/stock"))) == work / "mine/stock/config.yaml"
    (work / "own").mkdir()
    (work / "own/config.yml").write_text("from: person")
    assert runtime.place(Instance(STOCK, config_folder="own")) == work / "own/config.yml"
    assert texts(work / "own") == {"config.yml": "from: person"}
    assert shelf.asked == 1


def test_what_counts_before_there_is_a_copy(runtime, work, shelf):
    stored = {name: shelf.folder / f"stock-0.1.0-{name}" for name in ("config.yaml", "config_web.yaml")}
    assert runtime.source(Instance(STOCK)) == stored["config.yaml"]
    assert runtime.source(Instance(STOCK, config_file="config_web.yaml")) == stored["config_web.yaml"]
    assert runtime.source(Instance(STOCK, config_file="mine.yaml")) == stored["config.yaml"]
    assert list(work.iterdir()) == []
    copy = runtime.place(Instance(STOCK))
    assert runtime.source(Instance(STOCK)) == runtime.source(Instance(STOCK, config_file="mine.yaml")) == copy
    assert runtime.source(Instance(STOCK, "other")) == stored["config.yaml"]
    with pytest.raises(UsageError, match="config_file"):
        runtime.source(Instance(STOCK, config_file="../x"))
    for name in stored.values():
        name.unlink()
    with pytest.raises(GooseLikeError, match=r"has no config\.yaml"):
        runtime.source(Instance(STOCK, "other"))


def test_a_copy_without_its_config_is_filled_and_what_is_there_stays(runtime, work):
    folder = runtime.place(Instance(STOCK)).parent
    (folder / "words.md").write_text("mine")
    (folder / "config.yaml").unlink()
    runtime.place(Instance(STOCK))
    assert texts(folder) == COPY | {"words.md": "mine"}


def test_a_copy_that_was_cut_off_is_made_anew(work, shelf):
    (shelf.folder / "stock-0.1.0-zz").symlink_to(shelf.folder / "nowhere")
    with pytest.raises(GooseLikeError, match="is there a link in the way"):
        Runtime(work, shelf).place(Instance(STOCK))
    folder = work / PLACE / "0"
    (folder / "config.yaml").write_text("half of i")
    (shelf.folder / "stock-0.1.0-zz").unlink()
    assert Runtime(work, shelf).place(Instance(STOCK, config_file="config_web.yaml")).read_text() == "from: web"
    assert texts(folder) == COPY


def test_sessions_may_begin_at_once(work, shelf):
    places = []
    threads = [
        threading.Thread(target=lambda: places.append(Runtime(work, shelf).place(Instance(STOCK)))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert places == [work / PLACE / "0/config.yaml"] * 8
    assert texts(places[0].parent) == COPY


def test_a_component_that_there_is_not_leaves_nothing(runtime, work):
    with pytest.raises(GooseLikeError, match="looked in"):
        runtime.place(Instance(parse("org.example:other:1")))
    assert list(work.iterdir()) == []


def test_a_repository_without_a_config_is_told(runtime, shelf):
    (shelf.folder / "stock-0.1.0-config.yaml").unlink()
    with pytest.raises(GooseLikeError, match=r"has no config\.yaml"):
        runtime.place(Instance(STOCK))


@pytest.mark.parametrize("name", ["..", "../x", "a/b", "/etc/passwd", ".hidden", "", "a\0", 3])
def test_a_config_file_is_a_name(runtime, name):
    if name == "":
        assert runtime.place(Instance(STOCK, config_file=name)).name == "config.yaml"
    else:
        with pytest.raises(UsageError, match="config_file"):
            runtime.place(Instance(STOCK, config_file=name))


@pytest.mark.parametrize("folder", ["..", "../work2", "/tmp", "x/../../y", "a\0", 3])
def test_a_config_folder_is_within_the_working_directory(runtime, folder):
    with pytest.raises(UsageError, match=r"working directory|no name"):
        runtime.place(Instance(STOCK, config_folder=folder))


@pytest.mark.parametrize("link", [".runtime", ".runtime/org", PLACE, f"{PLACE}/0"])
def test_no_link_leads_out(runtime, work, tmp_path, link):
    (tmp_path / "outside").mkdir()
    (work / link).parent.mkdir(parents=True, exist_ok=True)
    (work / link).symlink_to(tmp_path / "outside")
    with pytest.raises(UsageError, match="leads out of the working directory"):
        runtime.place(Instance(STOCK))
    assert list((tmp_path / "outside").iterdir()) == []


def test_a_link_for_a_file_is_not_followed(runtime, work, tmp_path):
    (tmp_path / "secret").write_text("secret")
    folder = runtime.place(Instance(STOCK)).parent
    (folder / "config.yaml").unlink()
    (folder / "config.yaml").symlink_to(tmp_path / "secret")
    with pytest.raises(GooseLikeError, match="is no file"):
        runtime.place(Instance(STOCK))
    (folder / "config.yaml").unlink()
    os.mkfifo(folder / "config.yaml")
    with pytest.raises(GooseLikeError, match="is no file"):
        runtime.place(Instance(STOCK))


def test_a_circle_of_links_is_told(runtime, work):
    (work / ".runtime").symlink_to(work / ".runtime")
    with pytest.raises(GooseLikeError, match="can't hold"):
        runtime.place(Instance(STOCK))


def test_a_working_directory_behind_a_link(work, shelf, tmp_path):
    (tmp_path / "way").symlink_to(work)
    assert Runtime(tmp_path / "way", shelf).place(Instance(STOCK)) == tmp_path / "way" / PLACE / "0/config.yaml"


GOOD = (
    HEAD
    + """\
commands:
- command_name: count
  description: Counts.
  parameter: {type: {of: {type: string, description: what}}}
  response: {type: {number: {type: int, description: how many, optional: false}}}
url: https://example.org
developers: [{name: Ann}]
licenses: [{name: MIT, url: https://example.org/mit}]
"""
)


def checked(folder, text):
    return [(fault.line, fault.text, fault.is_warning) for fault in check_file(component(folder, head=text))]


def test_the_schema_is_one():
    Draft202012Validator.check_schema(component_schema())


def test_of_a_good_file_nothing_is_said(tmp_path):
    assert checked(tmp_path, GOOD) == []


def test_what_is_recommended_is_remarked(tmp_path):
    without = GOOD[: GOOD.index("url:")] + "licenses: []\n"
    assert [(line, text.partition(":")[0], is_remark) for line, text, is_remark in checked(tmp_path, without)] == [
        (1, "developers", True),
        (1, "url", True),
        (16, "licenses", True),
    ]


@pytest.mark.parametrize(
    ("old", "new", "line", "fault"),
    [
        ("version: 0.1.0", "version: 1.0", 3, "write it in quotes"),
        ("url: https://example.org\n", "url: [x]\n", 16, "url: expected text, not ['x']"),
        ("[{name: Ann}]", "Ann", 17, "developers: expected a list, not 'Ann'"),
        ("[{name: Ann}]", "[Ann]", 17, "developers[0]: expected a mapping, not 'Ann'"),
        ("[{name: Ann}]", "[{id: x}]", 17, "developers[0].name: this is missing"),
        ("[{name: Ann}]", "[{name: ' '}]", 17, "developers[0].name: expected text, and it is empty"),
        ("type: int", "type: itn", 15, "there is no type 'itn'; did you mean 'int'?"),
        ("title: Stock", "prompt_file_name: p.md\n  title: Stock", 7, "info.prompt_file_name: "),
        ("setup:", "resource_type: [x]\nsetup:", 9, "resource_type: expected text"),
        ("url:", "config: {resources: x}\nurl:", 16, "config.resources: expected a list, not 'x'"),
        ("url:", "config:\n  a:\n  - {group_id: g, artifact_id: a, version: 1.0}\nurl:", 18,
         "config.a[0].version: YAML reads 1.0 as a number"),
        ("url:", "config: {a: {group_id: g, artifact_id: a}}\nurl:", 16, "config.a.version: '' can't be one"),
        ("url:", "config: {a: {group_id: g, artifact_id: a, version: '1', instance_id: ../x}}\nurl:", 16,
         "config.a.instance_id: '../x' can't be one"),
    ],
)  # fmt: skip
def test_a_check_tells_the_line(tmp_path, old, new, line, fault):
    [(at, text, is_remark)] = checked(tmp_path, GOOD.replace(old, new, 1))
    assert (at, is_remark) == (line, False)
    assert fault in text


def test_a_misspelt_key_is_remarked_and_others_are_the_components_own(tmp_path):
    text = GOOD.replace("licenses:", "licences:") + "own_key: 3\n"
    assert [(line, text.partition(":")[0]) for line, text, _ in checked(tmp_path, text)] == [
        (1, "licenses"),
        (18, "licences"),
    ]


@pytest.mark.parametrize("text", ["", "-", "a: &a [*a]", "\t", "a: 1\na: 2"])
def test_a_check_of_what_can_not_be_read(tmp_path, text):
    assert [is_remark for *_, is_remark in checked(tmp_path, text)] == [False]


def test_a_check_of_nothing_but_keys_is_in_sentences(tmp_path):
    for _, text, _ in checked(tmp_path, "a: 1\n"):
        assert "is not valid under any" not in text
        assert "\n" not in text


def test_a_place_left_for_others_is_remarked(tmp_path):
    text = GOOD + "config: {model: {group_id: <whose>, artifact_id: a, version: '1'}}\n"
    [(line, said, is_remark)] = checked(tmp_path, text)
    assert (line, is_remark) == (19, True)
    assert said.startswith("config.model.group_id: ")


KEYS = sorted({*component_schema()["properties"], "command_name", "parameter", "name", "package", "pip", "title"})
ANY = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.floats(allow_nan=False) | st.sampled_from(["x", "1.0", ""]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=12,
)


@for_all(st.dictionaries(st.sampled_from(KEYS), ANY, max_size=8))
def test_a_check_never_raises(tmp_path_factory, data):
    file = tmp_path_factory.getbasetemp() / "checked.yaml"
    file.write_text(json.dumps(data))
    faults = check_file(file)
    assert faults
    assert all("\n" not in fault.text for fault in faults)
