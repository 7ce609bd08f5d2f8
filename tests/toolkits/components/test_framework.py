"""What components import: the same programs with the stage's own modules, and with the real package of PyPI."""

import json
from fnmatch import fnmatch

from tests.toolkits.components.component_programs import Stage, stage
from tests.toolkits.components.concopilot_real import Real, real, real_python

__all__ = ["real", "real_python", "stage"]  # fixtures

# --- the names

# Packing, signing and uploading is the host's affair, and how JSON is mended each one's own.
ELSEWHERE = tuple(
    f"concopilot.package.{name}" for name in ("captcha", "conpack", "encrypt", "repo", "request", "transfer")
)
NOT_HERE = {"concopilot.package.check": {"gpg"}, "concopilot.basic.message.manager.jsonmanager.manager": {"*_json*"}}
MORE_HERE = {"InteractResponse"}  # it takes a single `plugin_call` too
SURFACE = """
import importlib, inspect, pkgutil
from types import FunctionType, ModuleType

def shape(function):
    return [[p.name, p.kind.name, p.default is p.empty] for p in inspect.signature(function).parameters.values()
            if p.name != "self"]

def members(kind):
    seen = {}
    for name in dir(kind):
        if (name.startswith("_") and name != "__init__") or hasattr(dict, name) and name != "__init__":
            continue
        value = inspect.getattr_static(kind, name)
        function = value.__func__ if isinstance(value, staticmethod) else value
        if isinstance(function, FunctionType):
            seen[name] = shape(function)
        elif isinstance(value, type):
            seen[name] = members(value)
        else:
            seen[name] = [type(value).__name__, bool(getattr(value, "fset", None))]
    return [seen, sorted(getattr(kind, "__abstractmethods__", ())), [b.__name__ for b in kind.__mro__]]

def surface(module):
    names = {name for name in vars(module) if not name.startswith("_") and home(module, name)}
    names |= set(getattr(module, "__all__", ()))
    values = {name: getattr(module, name) for name in names}
    return {name: ["module"] if isinstance(value, ModuleType) else members(value) if isinstance(value, type)
            else shape(value) if isinstance(value, FunctionType) else type(value).__name__
            for name, value in values.items()}

def home(module, name):
    return getattr(vars(module)[name], "__module__", None) == module.__name__
"""
WALK = """
import concopilot
paths = sorted(found.name for found in pkgutil.walk_packages(concopilot.__path__, "concopilot."))
"""


def test_every_module_name_and_signature(stage: Stage, real: Real) -> None:
    collect = "result = {path: surface(importlib.import_module(path)) for path in paths}"
    found = stage.really(real, SURFACE + WALK + collect)
    ours = stage.ours(SURFACE + "paths = json.loads(sys.argv[1])\n" + collect, json.dumps([*found]))
    assert [*ours] == [*found]
    for path in [path for path in found if path not in ELSEWHERE]:
        for name, shape in found[path].items():
            if not any(fnmatch(name, pattern) for pattern in NOT_HERE.get(path, ())) and name not in MORE_HERE:
                assert (path, name, ours[path].get(name)) == (path, name, shape)


def test_other_names_that_components_take(stage: Stage, real: Real) -> None:
    program = """
from concopilot import Settings
from concopilot.package import config
from concopilot.framework.asset import asset_regex
import concopilot.framework.resource
import concopilot.util.initializer.component as component
from concopilot.framework.resource import category
result = [Settings is config.Settings, Settings() is Settings(), config.Settings() is Settings(),
          asset_regex.asset_ref_img_markdown_embedding_pattern.sub(r"\\\\1[\\\\2]", "a ![x](<|asset://i/a|>) b"),
          asset_regex.asset_ref_common_embedding_pattern.sub(r"[\\\\1]", "see <| asset://i/a |> there"),
          config.component_completion_flag, config.default_config_files, category.LLM.__name__,
          len(config.curr_time()), Settings().working_directory, Settings().skip_setup, Settings().pip_params,
          concopilot.framework.resource.Resource.__module__, component.create_component.__module__,
          str(type(concopilot.util.ClassDict()))]
"""
    assert stage.both(real, program)[:3] == [True, True, True]


def test_a_name_that_there_is_not(stage: Stage) -> None:
    program = """
import importlib.util
def attribute():
    import concopilot.util
    return concopilot.util.Nothing
def imported():
    from concopilot.framework.plugin import Nothing
def module():
    import concopilot.framework.nothing
import concopilot.package.transfer
def transferred():
    from concopilot.package.transfer import upload_component
import concopilot.util
result = [told(attribute), told(imported), told(module), told(transferred), hasattr(concopilot.util, "Nothing"),
          getattr(concopilot.util, "Nothing", 3), told(concopilot.conpack)]
"""
    attribute, imported, module, transferred, is_there, given, packed = stage.ours(program)
    assert attribute[0] == "AttributeError"
    assert "ClassDict" in attribute[1]
    assert imported[0] == "ImportError"
    assert "AbstractPlugin, Plugin, PluginPromptGenerator, PluginManager" in imported[1]
    assert module[0] == "ModuleNotFoundError"
    assert "interactor" in module[1]
    for error in (attribute, imported, module, transferred):
        assert "pip install concopilot" in error[1]
    assert (is_there, given) == (False, 3)
    assert packed[0] == "ConCopilotError"


def test_the_real_package_wins_where_it_is_installed(stage: Stage) -> None:
    (stage.folder / "concopilot").mkdir()
    (stage.folder / "concopilot" / "__init__.py").write_text("Settings = 'the real one'\n")
    program = """
import concopilot
def other():
    import concopilot.util
result = [concopilot.Settings, told(other)]
"""
    assert stage.ours(program) == ["the real one", ["ModuleNotFoundError", "No module named 'concopilot.util'"]]


def test_a_folder_of_that_name_is_no_package(stage: Stage) -> None:
    (stage.folder / "concopilot").mkdir()
    program = """
from concopilot import Settings
from concopilot.util import ClassDict
result = [Settings.__module__, ClassDict.__module__]
"""
    assert stage.ours(program) == ["concopilot.package.config", "concopilot.util.class_dict"]


# --- values


def test_class_dict(stage: Stage, real: Real) -> None:
    program = """
import copy, pickle
from concopilot.util import ClassDict
one = ClassDict(a=1, b={"c": [1, {"d": (2, None)}], "e": {}}, s={1}, t="text")
merged = ClassDict.convert({"a": {"x": 1, "list": [1, 2], "keep": True}, "b": [1], "c": 1})
merged.update_nested({"a": {"x": 2, "list": [3]}, "b": {"n": 1}, "c": None, "d": {"e": [{"f": 1}]}})
one.new = 5
del one.a
deep, flat = copy.deepcopy(one), copy.copy(one)
deep.b.c.append(3)
result = [
    one, one.missing, one.b.c[1].d, one.hasattr("t"), one.hasattr("missing"), type(one.b).__name__,
    ClassDict.convert(one) is one, merged, type(merged.a).__name__, type(merged.d).__name__,
    one.flatten(), one.flatten("at", "/", True, True), one.flatten(sep="__", keep_none=True),
    deep, flat.b is one.b, flat == one, type(deep).__name__, pickle.loads(pickle.dumps(one)) == one,
    ClassDict.convert("text"), ClassDict.convert((1, b"x")), told(lambda: ClassDict.convert({1: 2}))[0] in
    ("AssertionError", "TypeError"),
]
"""
    stage.both(real, program)


def test_messages(stage: Stage, real: Real) -> None:
    program = """
from concopilot.framework.message import Message
from concopilot.framework.identity import Identity
Mode = Message.RetrievalMode
msg = Message(sender="user", receiver={"role": "plugin", "name": "n"}, content_type="command",
              content={"command": "c", "param": {"x": [1]}}, time="t", thrd_id=7, extra={"y": 1})
plain = Message(sender=Identity(role="cerebrum", id="i"), content={"a": {"b": 1}}, content_type="x")
result = [
    msg, type(msg.content).__name__, type(msg.content.param).__name__, msg.sender.role, msg.extra.y, msg.id,
    plain, plain.content.a.b, type(plain.content).__name__, [plain.retrieve(mode) for mode in (*Mode, None)],
    msg.retrieve() is msg, [mode.value for mode in Mode], [mode.name for mode in Mode], Mode["CONTENT"].name,
    Message(), Message(content="", id=0), Identity(role="r", more=1), Message.Command(command="c", response={"a": 1}),
    Message(**msg) == msg, type(Message(**msg).content).__name__, Message(content=[{"command": 1}]),
]
"""
    stage.both(real, program)


def test_what_language_models_and_cerebra_are_asked_and_answer(stage: Stage, real: Real) -> None:
    program = """
from concopilot.framework.resource.category import LLM
from concopilot.framework.cerebrum import InteractParameter, InteractResponse
from concopilot.framework.context import Context
from concopilot.framework.asset import Asset
answer = InteractResponse(content="c", plugin_calls=[{"plugin_name": "p", "command": "c", "param": {"a": {"b": 1}}}],
                          calls=[1])
context = Context(assets={"one": {"asset_type": "t", "asset_id": "one", "content": {"x": 1}}}, more=1)
result = [
    LLM.LLMParameter("p", 3, top_p=1), LLM.LLMResponse("c", [{"name": {"x": 1}}], model="m"), LLM.LLMResponse(),
    InteractParameter(instructions=["i"], other={"x": 1}).other.x, InteractParameter(), answer,
    type(answer.plugin_calls[0]).__name__, answer.plugin_calls[0].param.a.b, answer.calls, InteractResponse(),
    context, type(context.assets.one).__name__, context.assets.one.content.x, context.user_interface,
    told(lambda: Context(assets={"one": 1}))[0], type(Asset(asset_type="t").asset_id).__name__,
]
"""
    stage.both(real, program)
    single = """
from concopilot.framework.cerebrum import InteractResponse
one = InteractResponse(plugin_call={"plugin_name": "p", "command": "c", "param": 1})
later = InteractResponse(content="x")
later.plugin_call = {"command": "d"}
result = [one.plugin_calls, one.plugin_call.command, later.plugin_call, InteractResponse().plugin_call]
"""
    calls, command, later, none = stage.ours(single)
    assert [call["plugin_name"] for call in calls] == ["p"]
    assert (command, later, none) == ("c", {"command": "d"}, None)


ASSETS = """
import uuid, decimal
from concopilot.framework.asset import Asset, AssetRef
from concopilot.util import ClassDict
class Thing:
    size = 4
assets = ClassDict(
    data=Asset(asset_type="t", asset_id="data", content={"rows": [{"n": 1}, {"n": 2}], "o": Thing(), "s": "text"})
)
"""


def test_references_to_assets(stage: Stage, real: Real) -> None:
    program = (
        ASSETS
        + """
get = lambda obj: AssetRef.try_retrieve(obj, assets)
ref = AssetRef(asset_id="data", field_path=["content", "rows", "1", "n"])
meta = Asset(asset_type="t", asset_id=uuid.UUID(int=1), content={"o": len, "l": [1, "x", (True, None)], "n": None})
result = [
    get(ref), get({"asset_id": "data", "field_path": ["content", "rows", 0]}), get("asset://data/content/rows/0/n"),
    get("<|asset://data/content/s|>"), get("<| asset://data/content/o/size |>"), get(" asset://data/content/rows/-1/n/"),
    get('<|{"asset_id": "data", "field_path": ["content", "rows", "0", "n"]}|>'), get("ASSET://data/asset_type"),
    get({"asset_id": "data", "field_path": None}).asset_id, get("plain"), get({"asset_id": 3, "other": 1}), get([1]),
    get(None), get(3), get("<|no reference|>"), str(ref), ref.to_asset_ref_url(2), ref.to_asset_ref_url(0),
    AssetRef.asset_ref_like({"asset_id": "x"}) or True, AssetRef.asset_ref_like({"field_path": None}),
    bool(AssetRef.asset_ref_url_like("asset://a/b")), bool(AssetRef.asset_ref_url_like("http://a/b")),
    bool(AssetRef.asset_ref_embedding_like("<|x|>")), AssetRef.try_convert("x"),
    AssetRef.convert_url("asset://a%20b/c%2Fd"), meta.meta(), meta.trivial(), Asset.get_meta([uuid.UUID(int=2)]),
    [Asset.is_trivial(x) for x in (1, "x", True, 1.5, [1, ("x",)], {"a": [uuid.UUID(int=1)]}, len, {1}, b"x")],
]
"""
    )
    assert stage.both(real, program)[0] == 2


def test_errors_of_references_name_the_level(stage: Stage, real: Real) -> None:
    cases = {
        "asset://nothing/content": ["nothing"],
        "asset://data/content/cols": ["asset://data/content", "cols", "'rows', 'o', 's'"],
        "asset://data/content/rows/x/n": ["asset://data/content/rows", "`x`"],
        "asset://data/content/rows/7/n": ["asset://data/content/rows", "`7`", "out of range"],
        "asset://data/content/o/color": ["asset://data/content/o", "color", "Thing"],
        "asset://data/content/rows/0/n/deeper": ["asset://data/content/rows/0/n", "deeper", "int"],
    }
    program = ASSETS + "result = [told(lambda: AssetRef.try_retrieve(url, assets)) for url in %r]" % [*cases]
    for told in (stage.ours(program), stage.really(real, program)):
        for (kind, text), words in zip(told, cases.values(), strict=True):
            assert kind == "ValueError"
            assert [word for word in words if word not in text] == [], text


def test_references_that_the_real_one_does_not_take(stage: Stage) -> None:
    program = (
        ASSETS
        + """
key = uuid.uuid4()
assets[str(key)] = Asset(asset_type="t", asset_id=key, content=[1])
assets.Capital = Asset(asset_type="t", content="c")
get = lambda obj: told(lambda: AssetRef.try_retrieve(obj, assets))
many = 200_000
LONG = ["x" * many + "<|", "<|" + " " * many, "<|" + " " * many + "x|>", " " * many + "asset:/", "asset://\\n" * many]
result = [
    get("asset://data").asset_id, get({"asset_id": "data"}).asset_id, get(AssetRef(asset_id=key)).content,
    str(AssetRef(asset_id="a/b")), AssetRef.convert_url(str(AssetRef(asset_id="a/b", field_path=["c d"]))),
    get("asset://Capital/content"), get("<|{broken|>"), get("<|asset://data|> and more"), get("asset://data/__class__"),
    told(lambda: AssetRef.try_retrieve("asset://data", None))[1], get({"asset_id": True, "field_path": None}),
    get({"asset_id": "data", "field_path": "content"}), all(get(text) == text for text in LONG),
    get("asset://data/content/o/__class__"), told(lambda: AssetRef.convert_url("http://x"))[0],
]
"""
    )
    found = stage.ours(program)
    assert found[:3] == ["data", "data", [1]]
    assert found[3:5] == ["asset://a%2Fb", {"asset_id": "a/b", "field_path": ["c d"]}]
    assert found[5:8] == ["c", "<|{broken|>", "<|asset://data|> and more"]
    assert found[8][0] == "ValueError"
    assert "there are none" in found[9]
    assert found[10:13] == [{"asset_id": True, "field_path": None}, {"asset_id": "data", "field_path": "content"}, True]
    assert (found[13][0], found[14]) == ("ValueError", "ValueError")


def test_json_and_yaml(stage: Stage, real: Real) -> None:
    program = """
import uuid, numpy, yaml
from concopilot.util import ClassDict
from concopilot.util.jsons import JsonEncoder
from concopilot.util.yamls import YamlDumper
values = {"i": numpy.int64(3), "f": numpy.float32(0.5), "u": uuid.UUID(int=1), "n": [None, True]}
result = [json.dumps(values, cls=JsonEncoder), told(lambda: json.dumps(len, cls=JsonEncoder))[0],
          yaml.dump({"u": uuid.UUID(int=1), "c": ClassDict(a=ClassDict(b=[1]))}, Dumper=YamlDumper)]
"""
    stage.both(real, program)
    more = """
from concopilot.util.jsons import JsonEncoder
before = "numpy" in sys.modules
plain = json.dumps({"s": {1}, "e": [{frozenset({2})}]}, cls=JsonEncoder)
import numpy
result = [before, plain, json.dumps(numpy.arange(4).reshape(2, 2), cls=JsonEncoder)]
"""
    assert stage.ours(more) == [False, '{"s": [1], "e": [[[2]]]}', "[[0, 1], [2, 3]]"]


def test_values_that_are_worse(stage: Stage) -> None:
    program = """
import yaml
from concopilot.util import ClassDict
from concopilot.util.dicts import flatten_dict
from concopilot.framework.context import Context
from concopilot.framework.message import Message
circle = yaml.safe_load("&a {b: [*a]}")
shared = ClassDict.convert(yaml.safe_load("{x: &x {n: 1}, y: *x}"))
shared.update_nested({"x": {"n": 2}})
kept = Message(content={"command": "c", "response": "text"}).content
result = [
    told(lambda: ClassDict.convert(circle)), told(lambda: Message(content=circle))[0], shared,
    told(lambda: ClassDict.convert({"a": [{2: 1}]})), Context(), kept,
    [Message.Command(command="c", response=value).response for value in (0, False, [], "", 1.5, [{"a": 1}])],
    told(lambda: Message(sender=3)), hasattr(ClassDict(), "__array__"), told(lambda: ClassDict().__delattr__("x")),
    ClassDict.convert({"s": {(1, 2)}, "b": bytearray(b"x")}).b == b"x", ClassDict(obj=1, key=2, self=3),
    told(lambda: Context(assets={"a": {"content": 1}})), flatten_dict({"a": [], "b": {}}),
]
"""
    found = stage.ours(program)
    assert found[0][0] == found[1] == "ValueError"
    assert "holds itself" in found[0][1]
    assert found[2] == {"x": {"n": 2}, "y": {"n": 1}}
    assert found[3] == ["TypeError", "a key of a ClassDict is text, not 2: quote it where it is written"]
    assert found[4:6] == [
        {"storage": None, "assets": {}, "user_interface": None},
        {"command": "c", "response": "text"},
    ]
    assert found[6] == [0, False, [], "", 1.5, [{"a": 1}]]
    assert found[7] == ["ValueError", "sender must be a mapping with role, id and name, or a role, not 3"]
    assert found[8] is False
    assert found[9][0] == "AttributeError"
    assert found[10:12] == [True, {"obj": 1, "key": 2, "self": 3}]
    assert "'a' has no asset_type" in found[12][1]
    assert found[13] == {}


def test_a_plugin_without_a_prompt_is_told_by_its_config(stage: Stage) -> None:
    program = """
from concopilot.framework.plugin import AbstractPlugin
from concopilot.framework.plugin.manager import BasicPluginManager

class Plain(AbstractPlugin):
    def command(self, command_name, param, **kwargs):
        return {}

who = {"group_id": "org.demo", "version": "1"}
manager = BasicPluginManager({**who, "artifact_id": "m", "type": "plugin_manager", "as_plugin": False, "config": {}})
commands = [{"command_name": "count", "description": "Counts.", "parameter": {"type": "string"}}, {"command_name": "x"}]
info = {"title": "plain", "description": "for people", "description_for_model": "for models"}
plain = {**who, "artifact_id": "p", "type": "plugin", "as_plugin": True, "info": info, "commands": commands}
manager.add_plugin(Plain(plain))
manager.add_plugin(Plain({**plain, "info": {"title": "own", "prompt": "mine"}}))
manager.generate_prompt()
result = manager.get_combined_prompt().splitlines()
"""
    first, count, *rest = stage.ours(program)
    assert first == "plain: for models"
    assert count == '- count: Counts. It takes: {"type": "string"}'
    assert rest[-2:] == ["", "mine"]
