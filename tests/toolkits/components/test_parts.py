"""The parts of a copilot as components meet them: with the stage's own modules, and with the real package."""

import os

from tests.toolkits.components.component_programs import DEMO, Stage, stage
from tests.toolkits.components.concopilot_real import Real, real, real_python

__all__ = ["real", "real_python", "stage"]  # fixtures

# --- plugins


def test_what_a_plugin_knows_of_itself(stage: Stage, real: Real) -> None:
    (stage.folder / "told.md").write_text("tell of it, naïvely", encoding="utf8")
    program = (
        DEMO
        + """
place = {"config_folder": os.getcwd(), "config_file": "other.yaml"}
info = {"title": "Title", "prompt_file_name": "told.md"}
one = Demo(config("Plugin", as_plugin="TRUE", info=info, _config_info=place))
two = Demo(config(as_plugin=1, name="outer", info={"prompt": "p", **info}, config={"id": 7, "name": "own"}))
three = Demo(config(as_plugin=False, info={"title": ""}, config={"id": "default"}))
four = Demo(config(as_plugin=True, info={"title": "t", "prompt_file_path": "told.md"}))
result = [
    [one.group_id, one.artifact_id, one.version, one.type, one.as_plugin, one.name, one.prompt, type(one.id).__name__],
    [two.as_plugin, two.name, two.id, two.prompt], [three.name, type(three.id).__name__, three.prompt, three.context],
    four.prompt, one.config_file_path() == os.path.join(os.getcwd(), "other.yaml"),
    one.config_file_path("x/y.md") == os.path.join(os.getcwd(), "x/y.md"), one.config.info.title, one.config.nothing,
    one.has_msg(), one.get_msg(), one.resources, one.resource_type_map, one.initialize(), one.finalize(),
    told(lambda: Demo(config(as_plugin=True, info={})))[0] in ("AssertionError", "ValueError"),
]
"""
    )
    found = stage.both(real, program)
    assert found[0][:6] == ["org.demo", "it", "1.0-b", "plugin", True, "Title"]
    assert found[1] == [True, "own", 7, "p"]


def test_replies_to_messages(stage: Stage, real: Real) -> None:
    program = (
        DEMO
        + """
demo = Demo(config("interactor", as_plugin=True, info={"title": "demo"}, config={"id": "d1"}))
def reply(**changed):
    given = {"sender": {"role": "cerebrum", "id": "c", "name": "Brain"}, "receiver": {"role": "plugin", "name": "demo"},
             "content_type": "command", "content": {"command": "go", "param": {"x": [1]}, "id": "call-1"}, "thrd_id": 9}
    return told(lambda: demo.on_msg(Message(**{**given, **changed})))
result = [
    reply(), reply(receiver={"role": "interactor", "id": "d1", "name": "other"}), reply(sender=None, thrd_id=None),
    reply(content={"command": "go"}), reply(content={"command": "go", "param": "text"}), demo.send_msg(Message(
        receiver={"role": "plugin", "id": "d1"}, content_type="command", content={"command": "go"})),
    [reply(**changed)[0] for changed in (
        {"receiver": None}, {"receiver": "user"}, {"receiver": {"role": "plugin", "name": "Demo"}},
        {"content_type": "text/plain"}, {"content": None}, {"content": {"param": 1}}, {"content": {"command": ""}})],
]
"""
    )
    found = stage.both(real, program)
    assert found[0] == {
        "sender": {"role": "plugin", "id": "d1", "name": "demo"},
        "receiver": {"role": "cerebrum", "id": "c", "name": "Brain"},
        "content_type": "command",
        "content": {"command": "go", "response": {"answer": "go", "param": {"x": [1]}}, "id": "call-1"},
        "time": "now",
        "thrd_id": 9,
    }
    assert found[-1] == ["ValueError"] * 7


def test_a_malformed_message_is_told_by_its_field(stage: Stage) -> None:
    program = (
        DEMO
        + """
class Plain(Demo):
    def command(self, command_name, param, **kwargs):
        return "text"
demo = Plain(config(as_plugin=True, info={"title": "demo"}))
good = {"receiver": {"role": "plugin", "name": "demo"}, "content_type": "command", "content": {"command": "go"}}
result = [demo.on_msg(good).content, demo.on_msg(Message(**{**good, "receiver": {"role": "plugin", "id": str(demo.id)}}
          )).content.command]
for field, value in [("receiver", None), ("receiver", {}), ("receiver", {"name": "demo"}), ("content", "go"),
                     ("receiver", {"role": "plugin"}), ("content_type", "Command"), ("content", {"command": 3}),
                     ("content", [])]:
    bad = Message(**good)
    bad[field] = value
    result.append(told(lambda: demo.on_msg(bad))[1])
result.append(told(lambda: demo.on_msg("go"))[1])
"""
    )
    kept, by_id, *texts = stage.ours(program)
    assert (kept, by_id) == ({"command": "go", "response": "text"}, "go")
    fields = ["receiver", "receiver", "receiver.role", "content", "receiver.id", "content_type", "content.command"]
    fields += ["content", "a"]
    assert [text.split()[0] for text in texts] == fields
    assert "'demo'" in texts[4]


def test_what_a_plugin_can_not_be_made_of(stage: Stage) -> None:
    program = (
        DEMO
        + """
def text(call):
    return told(call)[1]
lost = Demo(config(as_plugin=True, info={"title": "t"}))
open("latin.md", "wb").write(b"\\xe9")
result = [
    text(lambda: Demo(config(as_plugin=True))), text(lambda: Demo(config(as_plugin=True, info={
        "title": "t", "prompt_file_path": "nowhere.md"}))), text(lambda: Demo(config(as_plugin=True, info={
        "title": "t", "prompt_file_path": "latin.md"}))), text(lambda: Demo([])), text(lost.config_file_path),
    text(lambda: Pool(config("plugin"))), text(lambda: Disk(config("resource", resource_type="tape"))),
    Demo({"type": "plugin"}).config.config, Demo(config(config={"id": 0})).id,
    text(lambda: lost.config_resources(None)),
]
"""
    )
    found = stage.ours(program)
    assert found[0] == "org.demo:it:1.0-b is called as a plugin and has no name: give info.title or config.name"
    assert "nowhere.md" in found[1]
    assert "'t' (org.demo:it:1.0-b)" in found[2]
    assert found[3].startswith("a component takes its configuration as a mapping")
    assert "without a configuration file" in found[4]
    assert "type must be 'resource', not 'plugin'" in found[5]
    assert "resource_type must be 'disk', not 'tape'" in found[6]
    assert found[7:9] == [{}, 0]
    assert "no resource manager" in found[9]


# --- resources


def test_resources_are_matched(stage: Stage, real: Real) -> None:
    program = (
        DEMO
        + """
a, b = pool("a", name="first"), pool("b", name="second")
c = pool("c", "Cache")
made = manager(a, b, c)
def taken(*wanted, outer=()):
    demo = Demo(config(config={"resources": list(wanted)}, resources=list(outer)))
    demo.config_resources(made)
    return [resource.id for resource in demo.resources]
demo = Demo(config(config={"resources": [{"type": "pool", "id": "b"}, {"type": "cache", "id": "default"}]}))
demo.config_resources(made)
get = lambda **wanted: (lambda found: found and found.id)(demo.get_resource(**wanted))
result = [
    taken({"type": "pool"}), taken({"type": "pool", "id": "default"}), taken({"id": "b", "type": "pool"}),
    taken({"name": "second"}), taken({"type": "cache"}, {"type": "pool"}), taken({"id": "a"}, outer=[{"id": "c"}]),
    told(lambda: taken({"type": "none"}))[0], told(lambda: taken({"id": "a", "name": "second"}))[0],
    told(lambda: taken({"type": "pool"}, {"id": "a"}))[0], taken(),
    get(resource_type="pool"), get(resource_type="none"), get(resource_id="b"), get(resource_id="a"), get(),
    get(resource_id="DEFAULT", resource_type="cache"), get(resource_name="second"), get(resource_id="b",
    resource_type="cache"), get(resource_name="second", resource_type="cache"), get(resource_id="b", resource_name="x"),
    sorted(demo.resource_id_map), sorted(demo.resource_name_map), sorted(demo.resource_type_map), c.resource_type,
    told(lambda: made.add_resource(pool("a")))[0], told(lambda: made.add_resource(pool("z", name="first")))[0],
    c.command("x", {}), c.config_resources(made), [r.id for r in made.resource_type_map["pool"]],
]
"""
    )
    found = stage.both(real, program)
    assert found[:4] == [["a"], ["a"], ["b"], ["b"]]


def test_errors_of_resources_name_component_and_what_there_is(stage: Stage) -> None:
    program = (
        DEMO
        + """
made = manager(pool("a", name="first"), pool(0))
demo = Demo(config(as_plugin=True, info={"title": "t"}, config={"resources": [{"type": "disk", "id": "default"}]}))
twice = Demo(config(config={"resources": [{"id": 0}]}))
twice.config_resources(made)
twice.config_resources(made)
upper = Demo(config(config={"resources": [{"type": "POOL"}]}))
upper.config_resources(made)
wrong = Demo(config(config={"resources": ["disk"]}))
result = [told(lambda: demo.config_resources(made))[1], told(lambda: made.add_resource(pool("a")))[1],
          [r.id for r in twice.resources], [r.id for r in upper.resources], twice.get_resource(resource_id=0).id,
          told(lambda: wrong.config_resources(made))[1]]
"""
    )
    needs, has, twice, upper, zero, wrong = stage.ours(program)
    assert needs.startswith("'t' (org.demo:it:1.0-b) needs the resource with id 'default', type 'disk'; there are pool")
    assert "'first' (org.demo:it:1.0-b)" in needs
    assert "two resources with id 'a'" in has
    assert (twice, upper, zero) == ([0], ["a"], 0)
    assert "not 'disk'" in wrong


def test_resources_are_released_the_last_first_whatever_fails(stage: Stage) -> None:
    program = (
        DEMO
        + """
fine = manager(pool(1), pool(2))
fine.initialize(); fine.finalize(); fine.finalize()
stuck = manager(pool(3), pool(4, sticks=True), pool(5))
stuck.initialize()
errors = [told(stuck.finalize)]
broken = manager(pool(6), pool(7, fails=True), pool(8))
errors.append(told(broken.initialize))
both = manager(pool(9, sticks=True), pool(10, sticks=True))
both.initialize()
errors.append(told(both.finalize)[0])
result = [" ".join(log), errors]
"""
    )
    log, errors = stage.ours(program)
    assert log == "+1 +2 -2 -1 +3 +4 +5 -5 -4 -3 +6 +7 -7 -6 +9 +10 -10 -9"
    assert errors == [["OSError", "4 sticks"], ["OSError", "7 is down"], "ExceptionGroup"]


# --- disks and storages

DISK = (
    DEMO
    + """
from concopilot.basic.storage.disk import DiskStorage
def disk(root):
    return Disk(config("resource", resource_type="disk", config={"root_directory": root}))
def storage(root, **more):
    own = {"root_directory": root, "sub_root_key": "_sub", "resources": [{"type": "disk"}], **more}
    made = DiskStorage(config("storage", config=own))
    made.config_resources(manager(disk(root)))
    made.config_context(Context(assets=ClassDict()))
    return made
"""
)


def test_a_disk(stage: Stage, real: Real) -> None:
    program = (
        DISK
        + """
import shutil
root = os.path.join(os.getcwd(), "root")
shutil.rmtree(root, ignore_errors=True)
os.mkdir(root)
it = disk(root)
at = lambda path: os.path.join(root, path)
result = [
    str(it.root) == root, it.write_file(at("a/b.txt"), "ä\\n"), it.read_file(at("a/b.txt")),
    it.read_file(at("a/b.txt"), binary=True) == "ä\\n".encode(), it.write_file(at("c.bin"), b"\\xff\\x00"),
    it.read_file(at("c.bin"), True) == b"\\xff\\x00", told(lambda: it.read_file(at("none")))[0],
    it.delete_file(at("c.bin")),
    told(lambda: it.delete_file(at("a")))[0], it.delete_folder(at("a")), told(lambda: it.delete_folder(at("a")))[0],
    os.listdir(root), told(lambda: it.read_file(os.path.dirname(root)))[0], told(lambda: it.delete_folder(root))[0],
    it.initialize(), it.finalize(),
]
"""
    )
    assert stage.both(real, program)[1:3] == [2, "ä\n"]


def test_no_path_leads_out_of_a_disk(stage: Stage) -> None:
    root = stage.folder / "root"
    (root / "inner").mkdir(parents=True)
    (root / "inner" / "kept.txt").write_text("kept")
    (stage.folder / "secret.txt").write_text("secret")
    (stage.folder / "rooted").mkdir()
    (root / "out").symlink_to(stage.folder / "secret.txt")
    (root / "folder").symlink_to(stage.folder)
    (root / "link").symlink_to("inner")
    (root / "circle").symlink_to("circle")
    program = (
        DISK
        + """
it = disk("root")
bad = ["../secret.txt", os.path.abspath("secret.txt"), "out", "folder/secret.txt", "inner/../../secret.txt", "", ".",
       "link/../../secret.txt", "../rooted/x", "a\\0b", 3, None]
do = [lambda path: it.read_file(path), lambda path: it.write_file(path, "x"), lambda path: it.delete_folder(path)]
refused = [told(lambda: call(path)) for path in bad for call in do if not (call is do[2] and path == "out")]
open("root/latin.txt", "wb").write(b"\\xe9")
result = [
    {error[0] for error in refused} == {"ValueError"}, refused[0][1],
    it.read_file("link/kept.txt"), it.read_file("inner/kept.txt"),
    told(lambda: it.read_file("circle"))[0], told(lambda: it.read_file("latin.txt"))[1], it.delete_file("out"),
    it.delete_folder("folder"), it.delete_folder("link"), sorted(os.listdir("root")), open("secret.txt").read(),
    told(lambda: it.write_file("inner", "x"))[0],
    told(lambda: it.write_file("n", 3))[0], disk(None).root == disk(".").root,
]
"""
    )
    found = stage.ours(program)
    assert found[0] is True
    assert f"'../secret.txt' leads to no place below its root {os.path.realpath(root)}" in found[1]
    assert found[2:5] == ["kept", "kept", "FileNotFoundError"]
    assert "binary=True" in found[5]
    assert found[9:] == [["circle", "inner", "latin.txt"], "secret", "IsADirectoryError", "TypeError", True]


STORED = """
where = sys.argv[1]
it = storage(os.path.join(os.getcwd(), where), asset_key="files")
"""
PUT = (
    DISK
    + STORED
    + """
it.put(" a/text ", "ä\\n")
it.put("bytes", b"\\xff\\x00")
it.put("gone/deep", "x")
result = [it.get("a/text"), it.get("nothing"), it.get_or_default("nothing", 3), it.remove("gone/deep"),
          os.path.exists(os.path.join(it.root, "gone")), it.remove("gone/deep"), told(lambda: it.put(" ", ""))[0],
          it.command("write", {"file_path": "n/f.txt", "content": "c"}), it.command("read", {"file_path": "n/f.txt"}),
          list(it.context.assets.files.content), it.context.assets.files.asset_type, told(lambda: it.command("no", {
          "file_path": "x"}))[0], told(lambda: it.command("read", {"file_path": "/x"}))[0],
          told(lambda: it.command("read", {"file_path": "../x"}))[0], told(lambda: it.put("_sub/x", "x"))[0],
          it.command("delete", {"file_path": "n/f.txt"}), "files" in it.context.assets, it.get("n/f.txt")]
"""
)


def test_a_storage_is_read_by_either(stage: Stage, real: Real) -> None:
    (stage.folder / "one").mkdir()
    (stage.folder / "two").mkdir()
    assert stage.ours(PUT, "one") == stage.really(real, PUT, "two")
    get = DISK + STORED + "result = [it.get('a/text'), it.get('bytes') == b'\\xff\\x00']\n"
    assert stage.really(real, get, "one") == stage.ours(get, "two") == ["ä\n", True]


def test_what_a_storage_keeps(stage: Stage, real: Real) -> None:
    (stage.folder / "kept").mkdir()
    program = (
        DISK
        + STORED
        + """
import uuid
from concopilot.framework.asset import Asset
msg = Message(sender="user", content={"command": "c", "param": {"x": 1}}, id=uuid.UUID(int=1))
value = {"l": [1, 2.5, None, True], "t": (1, {"x": b"\\xff"}), "s": {1}, "n": {1: "a", (2, 3): "b"}, "m": [msg],
         "$type": "mine", "a": ClassDict(k=Asset(asset_type="t", asset_id="k", content="c"))}
it.put("value", value)
back = storage(it.root).get("value")
it.put("crlf", "a\\r\\nb\\r")
it.put("empty", "")
sub = it.get_sub_storage("mine")
sub.put("x", "below")
circle = []
circle.append(circle)
class Odd: pass
result = [
    back == value, type(back["m"][0]).__name__, back["m"][0].retrieve(Message.RetrievalMode.CONTENT).param.x,
    type(back["a"].k).__name__, it.get("crlf"), it.get("empty"), it.get("x"),
    sub.get("x"), it.get_sub_storage("mine") is sub,
    os.path.exists(os.path.join(it.root, "_sub", "mine", "x")), told(lambda: it.put("a.info", "x"))[1],
    told(lambda: it.put("../x", "x"))[1], told(lambda: it.get("a/../../x"))[0], told(lambda: it.put("/tmp/x", "x"))[0],
    told(lambda: it.put("o", {"deep": [Odd()]}))[1], told(lambda: it.put("c", circle))[1], it.get("o"),
    told(lambda: it.put(3, "x"))[1], told(lambda: it.get_sub_storage("../.."))[0], it.remove_sub_storage("mine"),
    it.remove_sub_storage("mine"), told(lambda: DiskStorage(config("storage")).get("x"))[1],
    told(lambda: it.command("write", {"file_path": "x"}))[1], told(lambda: it.command("read", None))[1],
    told(lambda: storage(".").config_resources(manager(pool("p", "disk"))))[1],
]
"""
    )
    found = stage.ours(program, "kept")
    assert found[:4] == [True, "Message", 1, "Asset"]
    assert found[4:10] == ["a\r\nb\r", "", None, "below", True, True]
    assert ".info" in found[10]
    assert "leads out of the storage" in found[11]
    assert found[12:14] == ["ValueError", "ValueError"]
    assert found[14] == "o.deep[0]: a Odd can't be kept, only text, bytes and plain values can"
    assert "holds itself" in found[15]
    assert found[16] is None
    assert found[18:21] == ["ValueError", True, False]
    assert "has no disk yet" in found[21]
    assert found[22:24] == ["content is missing: say what is to be written", "file_path must be text, not None"]
    assert "needs a resource of type 'disk'" in found[24]
    pickled = DISK + STORED + "it.put('value', {'x': len})\nresult = 1\n"
    stage.really(real, pickled, "kept")
    read = DISK + STORED + "result = told(lambda: it.get('value'))\n"
    assert stage.ours(read, "kept")[0] == "ValueError"


# --- talking


def test_a_duplex_interface(stage: Stage, real: Real) -> None:
    program = (
        DEMO
        + """
import threading
from concopilot.basic.interface.duplex import constructor
it = constructor(config("user_interface"))
def answers():
    asked = it.wait_agent_msg()
    it.send_msg_to_agent(Message(content="meanwhile"))
    it.send_msg_to_agent(Message(content="re: " + asked.content, thrd_id=asked.thrd_id))
thread = threading.Thread(target=answers)
thread.start()
answer = it.on_msg_to_user(Message(content="question"))
thread.join()
first = it.has_user_msg(), it.get_user_msg(), it.has_user_msg(), it.get_user_msg(), it.has_agent_msg()
errors = []
waiting = threading.Thread(target=lambda: errors.append(told(it.wait_user_msg)[0]))
waiting.start()
it.interrupt()
waiting.join()
result = [answer.content, first, errors, it.interrupted, told(lambda: it.send_msg_to_user(Message()))[0]]
"""
    )
    found = stage.both(real, program)
    assert found == [
        "re: question",
        [True, {"content": "meanwhile"}, False, None, False],
        ["InterruptedError"],
        True,
        "InterruptedError",
    ]


def test_a_queue_that_can_be_interrupted(stage: Stage, real: Real) -> None:
    program = """
import queue, threading
from concopilot.util.interruptable_queue import InterruptableQueue
it = InterruptableQueue(maxsize=1, interrupt_checking_timeout=0.01)
it.put(1)
full = told(lambda: it.put(2, block=False))[0]
got = it.get(), told(lambda: it.get(timeout=0.01))[0], told(it.get_nowait)[0]
errors = []
thread = threading.Thread(target=lambda: errors.append(told(it.get)[0]))
thread.start()
it.interrupt()
thread.join()
result = [full, got, errors, it.interrupted, told(lambda: it.put(1))[0], it.qsize()]
"""
    assert stage.both(real, program)[1] == [1, "Empty", "Empty"]


def test_an_interface_of_one_way(stage: Stage, real: Real) -> None:
    program = (
        DEMO
        + """
from concopilot.framework.interface import AgentDrivenSimplexUserInterface as Agent
from concopilot.framework.interface import UserDrivenSimplexUserInterface as User
def refused(kind, end):
    names = [name for name in dir(kind) if name.endswith(end)]
    made = type("Made", (kind,), {name: lambda self, *a: None for name in kind.__abstractmethods__})(
        config("user_interface"))
    return [[name, told(lambda: getattr(made, name)(*[Message()] * name.count("_to_")))[0]] for name in names]
result = [refused(Agent, "agent_msg"), refused(Agent, "msg_to_agent"), refused(User, "user_msg"),
          refused(User, "msg_to_user")]
"""
    )
    found = stage.both(real, program)
    assert {error for each in found for _, error in each} == {"ConCopilotError"}
    assert [len(each) for each in found] == [3, 2, 3, 2]


def test_the_prompt_is_the_hosts(stage: Stage) -> None:
    program = (
        DEMO
        + """
from concopilot.basic.interface.cmd import constructor
typed = ["one", None]
said = []
class Host:
    def call(self, method, text):
        said.append([method, text])
        return typed.pop(0) if method == "ask" else None
it = constructor(config("user_interface", config={"user_msg_prefix": "> ", "non_user_msg_suffix": "---"}))
from stage import wire
wire.connect(None)
lost = told(lambda: it.send_msg_to_user(Message(content="x")))
wire.connect(Host())
answer = it.on_msg_to_user(Message(sender="cerebrum", receiver="user", content="hello"))
it.send_msg_to_user(Message(content={"a": {1}}))
result = [lost, answer, it.wait_user_msg(), said, it.has_user_msg(), it.get_user_msg(), it.interrupt(), it.interrupted]
"""
    )
    lost, answer, none, said, *_ = stage.ours(program)
    assert lost[0] == "HostError"
    assert answer == {
        "sender": {"role": "user"},
        "receiver": {"role": "cerebrum"},
        "content_type": "text/plain",
        "content": "one",
        "time": "now",
    }
    assert none is None
    assert said[:2] == [["tell", "hello\n---"], ["ask", "> "]]
    assert '"a": [\n' in said[2][1]


def test_messages_of_a_response(stage: Stage, real: Real) -> None:
    program = (
        DEMO
        + """
from concopilot.framework.cerebrum import InteractResponse
from concopilot.basic.message.manager import strmanager, jsonmanager
text, data = (made.constructor(config("message_manager")) for made in (strmanager, jsonmanager))
calls = [{"plugin_name": "p", "command": "c", "param": {"x": 1}, "id": "1"},
    {"plugin_name": "q", "command": "d", "param": 2}]
def parsed(made, content=None, plugin_calls=None):
    return made.parse(InteractResponse(content=content, plugin_calls=plugin_calls), thrd_id="t")
one = ('{"receiver": {"role": "plugin", "name": "p"}, '
       '"content": {"command": "c", "param": {"p": "C:\\\\\\\\x"}}, "more": 1}')
result = [
    parsed(text, "hi"), parsed(text, None, calls), parsed(text, "hi", calls), parsed(data, None, calls), parsed(text),
    parsed(data, one), parsed(data, f"[{one}, {one}]"), parsed(data, "```json\\n" + one + "\\n```"), parsed(data, ""),
    parsed(data, "Here you are: " + one + " - fine?"), parsed(data, "no JSON here"), parsed(data, "json " + one),
    parsed(data, '{"receiver": "user", "time": "then", "content_type": "text/plain", "content": {"x": 1}}'),
    parsed(data, "{receiver: {role: \\"user\\"}, content: {\\"x\\": 1}}"), parsed(data, one[:-1]),
    parsed(data, '{"content": {"path": "C:\\\\d"}}'), data.parse_as_msg({"content": {"command": "c"}}),
]
"""
    )
    found = stage.both(real, program)
    assert found[1][0]["receiver"] == {"role": "plugin", "name": "p"}
    assert found[5][0]["content_type"] == "command"


def test_json_that_models_write(stage: Stage) -> None:
    program = """
from concopilot.basic.message.manager.jsonmanager.manager import fix_json_using_multiple_techniques as mended
texts = ['{"a": "b"}', '```\\n{"a": 1}\\n```', 'so: {"a": "}{"} and {"b": 2}',
    '{"a": [1, 2', '{"a": "cut', "{a: 1, b_2: {c: 3,},}",
         '{"a": "x\\ny"}', '[{"a": 1}', 'text [1] {"a": 2}', '{"a": "\\\\q \\\\u0041 \\\\n"}', '\\ufeff{"a": 1}',
         '```json\\n{"a": "```"}\\n```', "```json\\n[1, {b: 2}]", '{"a": "key: x, y: z"}', '{"a": 1}}}', "3", '"t"',
         '{a: "x,]", "b": [1, 2,']
result = [told(lambda: mended(text)) for text in texts]
bad = ["", "nothing", "{" * 5000, "[" * 200_000, "\\\\" * 1000, '"' * 1001, "{]" * 100,
       '{"a' * 50_000]
result += [told(lambda: mended(text)) for text in bad]
result.append(len(mended('"' + '\\\\"' * 100_000)))
"""
    found = stage.ours(program)
    good = [{"a": "b"}, {"a": 1}, {"a": "}{"}, {"a": [1, 2]}, {"a": "cut"}, {"a": 1, "b_2": {"c": 3}}, {"a": "x\ny"}]
    assert found[:7] == good
    assert found[7:13] == [[{"a": 1}], [1], {"a": "q A \n"}, {"a": 1}, {"a": "```"}, [1, {"b": 2}]]
    assert found[13:17] == [{"a": "key: x, y: z"}, {"a": 1}, 3, "t"]
    assert found[17] == {"a": "x,]", "b": [1, 2]}
    assert {error[0] for error in found[18:-1]} == {"ValueError"}
    assert found[-1] == 100_000


# --- a whole copilot

PARTS = """
from concopilot.framework.cerebrum import AbstractCerebrum, InteractParameter, InteractResponse
from concopilot.framework.interactor import BasicInteractor
from concopilot.framework.interface import AgentDrivenSimplexUserInterface
from concopilot.framework.message import Message
from concopilot.framework.plugin import AbstractPlugin, PluginPromptGenerator
from concopilot.framework.resource.category import LLM

log = []

class Model(LLM):
    def initialize(self):
        log.append("model on")
    def finalize(self):
        log.append("model off")
    def inference(self, param, **kwargs):
        return LLM.LLMResponse(content=param.prompt.upper(), temperature=self.config.config.temperature)

class Brain(AbstractCerebrum):
    def setup_plugins(self, plugin_manager):
        self.names = [plugin.name for plugin in plugin_manager.plugins]
    @property
    def model(self):
        return self.resources[0]
    def interact(self, param, **kwargs):
        answer = self.model.inference(LLM.LLMParameter(prompt=param.command))
        call = {"plugin_name": self.names[0], "command": "shout", "param": {"text": answer.content}}
        return InteractResponse(content=f"{self.role} {answer.temperature}", plugin_calls=[call])

class Shouter(AbstractPlugin):
    def initialize(self):
        log.append(f"{self.name} on")
    def finalize(self):
        log.append(f"{self.name} off")
    def command(self, command_name, param, **kwargs):
        self.context.storage.put("said", param.text)
        return {"said": param.text + self.config.config.end * self.config.config.times}

class Prompts(PluginPromptGenerator):
    def generate_prompt(self, plugin):
        return f"{plugin.name}: {[command.command_name for command in plugin.config.commands]}"

class Screen(AgentDrivenSimplexUserInterface):
    def send_msg_to_user(self, msg):
        log.append(msg)
    def on_msg_to_user(self, msg):
        log.append(msg)
        return Message(sender="user", content="hello", thrd_id="th")
    has_user_msg = get_user_msg = wait_user_msg = interrupted = None
    def interrupt(self):
        pass

class Talk(BasicInteractor):
    def interact_loop(self):
        self.status = BasicInteractor.Status.RUNNING
        log.append(self.plugin_manager.get_combined_prompt())
        heard = self.context.user_interface.on_msg_to_user(Message(content="?"))
        answer = self.cerebrum.interact(InteractParameter(command=heard.content))
        for msg in self.message_manager.parse(answer, thrd_id=heard.thrd_id):
            msg.time = None
            if msg.receiver:
                msg.sender = {"role": "cerebrum", "name": self.cerebrum.name}
                plugin = self.plugin_manager.get_plugin(name=msg.receiver.name)
                msg = plugin.on_msg(Message(**msg))
                msg.time = None
            self.context.user_interface.send_msg_to_user(msg)
        log.append(self.context.storage.get("said"))
        if self.config.config.fails:
            raise RuntimeError("the loop failed")

MADE = {"model": Model, "brain": Brain, "shouter": Shouter, "prompts": Prompts, "screen": Screen, "talk": Talk}
"""
INFO = "info: {title: %s, description: it}\ncommands: [{command_name: shout, description: it}]\n"
KINDS = {
    "model": "resource\nresource_type: model\nconfig: {temperature: 0.5, keep: 1}",
    "brain": "cerebrum\nconfig: {role: sage, name: Brain, resources: [{type: model}]}",
    "shouter": "plugin\n" + INFO % "shouter" + "config: {id: s1, end: '!', times: 1}",
    "prompts": "plugin_prompt_generator",
    "screen": "user_interface",
    "talk": "interactor",
}
COPILOT = """
group_id: org.demo
artifact_id: whole
version: "1"
type: copilot
as_plugin: false
setup: {package: concopilot.basic.copilot}
config:
  resource_manager:
    group_id: org.demo
    artifact_id: resources
    version: "1"
    config:
      resources:
        - {group_id: org.demo, artifact_id: model, version: "1", config: {temperature: 0.9}}
        - {group_id: org.demo, artifact_id: disk, version: "1"}
  storage: {group_id: org.demo, artifact_id: storage, version: "1"}
  user_interface: {group_id: org.demo, artifact_id: screen, version: "1"}
  cerebrum: {group_id: org.demo, artifact_id: brain, version: "1"}
  plugin_manager:
    group_id: org.demo
    artifact_id: plugins
    version: "1"
    config:
      plugin_prompt_generator: {group_id: org.demo, artifact_id: prompts, version: "1"}
      plugins:
        - {group_id: org.demo, artifact_id: shouter, version: "1", instance_id: loud, config: {times: 3}}
  message_manager: {group_id: org.demo, artifact_id: texts, version: "1"}
  interactor: {group_id: org.demo, artifact_id: talk, version: "1", config: {fails: false}}
"""
BASIC = {
    "resources": ("resource_manager", "concopilot.basic.resource.manager", ""),
    "plugins": ("plugin_manager", "concopilot.basic.plugin.manager", ""),
    "texts": ("message_manager", "concopilot.basic.message.manager.strmanager", ""),
    "disk": ("resource\nresource_type: disk", "concopilot.basic.resource.category.disk", ""),
    "storage": ("storage", "concopilot.basic.storage.disk", "config: {sub_root_key: _sub, resources: [{type: disk}]}"),
}


def lay_out(stage: Stage) -> None:
    head = 'group_id: org.demo\nartifact_id: {}\nversion: "1"\nas_plugin: {}\ntype: {}\nsetup: {{package: {}}}\n{}\n'
    for name, (kind, package, rest) in BASIC.items():
        stage.component(f"org/demo/{name}/1", head.format(name, "false", kind, package, rest))
    for name, kind in KINDS.items():
        text = head.format(name, "true" if name == "shouter" else "false", kind, f"demo_{name}", "")
        stage.component(f"org/demo/{name}/1", text, "loud" if name == "shouter" else "0")
        (stage.folder / f"demo_{name}.py").write_text(f"from demo_parts import MADE\n\nconstructor = MADE[{name!r}]\n")
    (stage.folder / "demo_parts.py").write_text(PARTS)
    (stage.folder / "whole.yaml").write_text(COPILOT)


MAKE = """
from concopilot import Settings
from concopilot.util.initializer import component
Settings().skip_setup = True
Settings().working_directory = os.getcwd()
made = component.create(config_folder=".", config_file="whole.yaml")
import demo_parts
"""


def test_a_copilot_runs(stage: Stage, real: Real) -> None:
    lay_out(stage)
    program = MAKE + (
        "made.run()\nresult = [demo_parts.log, made.plugin_manager.plugins[0].name, made.storage.disk.root == "
        "made.resource_manager.resources[1].root, type(made).__name__, type(made).__module__]\n"
    )
    ours = stage.both(real, program)
    assert ours[0][0] == "model on"
    assert {"said": "HELLO!!!"} in [entry["content"].get("response") for entry in ours[0] if "command" in str(entry)]
    assert ours[0][-2:] == ["shouter off", "model off"]


def test_a_copilot_beside_others_ends_and_tells_its_error(stage: Stage) -> None:
    lay_out(stage)
    whole = stage.folder / "whole.yaml"
    program = MAKE + "result = [told(made.initialize), told(made.finalize), demo_parts.log[-3:]]\n"
    fine = stage.ours(program)
    assert fine[:2] == [None, None]
    assert fine[2] == ["HELLO", "shouter off", "model off"]
    whole.write_text(COPILOT.replace("fails: false", "fails: true"))
    assert stage.ours(program)[1:] == [["RuntimeError", "the loop failed"], ["HELLO", "shouter off", "model off"]]
    without_disk = [line for line in COPILOT.splitlines() if "artifact_id: disk" not in line]
    whole.write_text("\n".join(without_disk))
    broken = MAKE + "result = [told(made.initialize), demo_parts.log]\n"
    error, log = stage.ours(broken)
    assert error[0] == "ValueError"
    assert log[-1:] == ["model off"]
    whole.write_text("\n".join(line for line in COPILOT.splitlines() if "interactor" not in line))
    assert "has no interactor" in stage.ours(MAKE + "result = told(made.run)\n")[1]


# --- making components


def test_what_can_not_be_made_is_told(stage: Stage) -> None:
    stage.component(
        "g/lost/1", 'group_id: g\nartifact_id: lost\nversion: "1"\ntype: plugin\nsetup: {package: no_such}\n'
    )
    stage.component("g/bare/1", 'group_id: g\nartifact_id: bare\nversion: "1"\ntype: plugin\nsetup: {package: bare}\n')
    stage.component("g/none/1", 'group_id: g\nartifact_id: none\nversion: "1"\ntype: plugin\n')
    (stage.folder / "bare.py").write_text("constructor = 3\n")
    program = """
from concopilot.util.initializer import component
def make(name, **more):
    named = {"group_id": "g", "artifact_id": name, "version": "1", **more}
    return told(lambda: component.create_component(named))
none = {"group_id": "g", "artifact_id": "none", "version": "1"}
result = [make("lost"), make("bare"), make("none"), told(lambda: component.create_component({"group_id": "g"})),
          told(lambda: component.create_component("g")), make("lost", config={"x": len}), told(component.create),
          component.get_component_config({**none, "config": {"a": {1}}}),
          component.get_component_config_file_path({**none, "instance_id": 0})]
"""
    lost, bare, none, unnamed, text, odd, nothing, found, place = stage.ours(program)
    assert lost == ["ImportError", "g:lost:1: its package 'no_such' can't be imported: No module named 'no_such'"]
    assert bare == ["ImportError", "g:bare:1: its package 'bare' has no function `constructor`"]
    assert "setup.package must name" in none[1]
    assert unnamed[1] == "a component is named without artifact_id and version: g:?:?"
    assert text[0] == "ValueError"
    assert "must be plain values" in odd[1]
    assert nothing[0] == "ValueError"
    assert found["config"] == {"a": [1]}
    assert place == [".runtime/g/none/1/0", "config.yaml", ".runtime/g/none/1/0/config.yaml"]


def test_settings_versions_and_sums(stage: Stage, real: Real) -> None:
    (stage.folder / "settings.yaml").write_text(
        "local_repo_path: /r\nrepos:\n- {url: 'https://a.example/x', release: {enable: true, update: false}}\n"
    )
    (stage.folder / "file").write_text("x")
    program = """
from concopilot.package import config, check
from concopilot.util.config import tool, versions
from concopilot import Settings
made = config.load_settings("settings.yaml", working_directory="w", skip_setup=True, pip_params="-q  -U")
result = [made is Settings(), made.local_repo_path, made.repos[0].url, made.repos[0].release.update,
    made.repos[0].snapshot.update,
          made.working_directory, made.skip_setup, made.pip_params, len(made.current_time()),
          [version for version, _ in versions.sort_versions(["1.0", "1.10-snapshot", "1.2-b", "1.2-a", "1.10"])],
          versions.version_info("1.2-rc-snapshot"), told(lambda: versions.version_info("x"))[0],
          tool.get_config_folder("r", "a.b", "c", "1", "i"),
          tool.read_config_file("settings.yaml").repos[0].release.enable,
          check.md5("file"), check.sha512("file")[:9], told(lambda: check.md5("none"))[0],
          config.default_repo.repo_url("a.b", "c", "1", is_snapshot=True), config.default_repo.release_url("a.b")]
"""
    assert stage.both(real, program)[9] == ["1.10", "1.10-SNAPSHOT", "1.2-a", "1.2-b", "1.0"]
    ours = """
from concopilot.util.config import tool
from concopilot.package import config, validator
from concopilot import Settings
import pathlib
pathlib.Path("bad.yaml").write_text("group_id: g\\nartifact_id: a\\nversion: 1.0\\n")
pathlib.Path("list.yaml").write_text("[1]")
pathlib.Path("latin.yaml").write_bytes(b"a: \\xe9")
result = [tool.get_config_folder("r", "a.b", "c", "1", 0),
    told(lambda: validator.validate_component_config_file("bad.yaml")),
          told(lambda: tool.read_config_file("list.yaml"))[1], told(lambda: tool.read_config_file("latin.yaml"))[0],
          told(lambda: Settings.Repo("nonsense"))[0], Settings.Repo("https://h/x/").release_url("a.b", "c", "1")]
"""
    assert stage.ours(ours) == [
        "r/a/b/c/1/0",
        ["ValueError", "bad.yaml: version must be text that is not empty, not 1.0"],
        "list.yaml: a component's configuration is a mapping, not list",
        "ValueError",
        "ValueError",
        "https://h/x/repository/releases/a/b/c/1",
    ]
