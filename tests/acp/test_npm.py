"""The npm packages of the protocol: its schema, its SDK as a client, and the client acpx. See the option `--npm`."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec

import pytest
from jsonschema import Draft202012Validator
from referencing import Registry

from tests import ROOT
from tests.e2e.command import Place, shell
from tests.toolkits.mcp.test_npm import find_node

pytestmark = pytest.mark.skipif(find_spec("acp") is None, reason="the extra `acp` is not installed")
if find_spec("acp"):
    from acp.exceptions import RequestError

    from tests.acp.editor import open_editor, write_profile

METHODS = {
    "initialize",
    "authenticate",
    "session/new",
    "session/load",
    "session/resume",
    "session/list",
    "session/close",
    "session/delete",
    "session/prompt",
    "session/set_mode",
    "session/set_config_option",
    "session/request_permission",
    "elicitation/create",
}
UPDATES = {
    "user_message_chunk",
    "agent_message_chunk",
    "agent_thought_chunk",
    "tool_call",
    "tool_call_update",
    "plan",
    "available_commands_update",
    "usage_update",
    "session_info_update",
    "config_option_update",
    "current_mode_update",
}
PACKAGES = ("@agentclientprotocol/sdk@2.4", "acpx@0.19")


@pytest.fixture
def modules(request):
    """The folder of the installed npm packages."""
    folder = request.config.getoption("--npm")
    if folder is None:
        pytest.skip("it installs npm packages: --npm FOLDER")
    if shutil.which("npm") is None:
        pytest.skip("no npm on the PATH")
    if not (folder / "node_modules/acpx").is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        install = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder), *PACKAGES]
        subprocess.run(install, check=True)
    return folder / "node_modules"


class Schema:
    """The schema of the protocol. Its definitions name their method and their side."""

    def __init__(self, modules):
        text = (modules / "@agentclientprotocol/sdk/schema/v1/schema.json").read_text()
        self._schema = json.loads(text)

    def check(self, received, sent):
        """Check all messages that an editor received, and return the methods and kinds of updates in them."""
        asked = {message["id"]: message["method"] for message in sent if "method" in message and "id" in message}
        seen = set()
        for message in received:
            if message.get("error"):
                self._validate("Error", message["error"])
            elif "method" in message:
                kind = "Request" if "id" in message else "Notification"
                self._validate(self._find(message["method"], kind), message["params"])
                update = message["params"].get("update", {})
                seen.add(update.get("sessionUpdate", message["method"]))
            else:
                method = asked[message["id"]]
                self._validate(self._find(method, "Response"), message["result"])
                seen.add(method)
        return seen

    def _find(self, method, kind):
        for name, definition in self._schema["$defs"].items():
            if definition.get("x-method") == method and name.endswith(kind):
                return name
        raise AssertionError(f"the schema has no {kind} of {method}")

    def _validate(self, name, value):
        schema = {"$defs": self._schema["$defs"], "$ref": f"#/$defs/{name}"}
        Draft202012Validator(schema, registry=Registry()).validate(value)


async def test_every_message_fits_the_schema(modules, home, tmp_path):
    schema = Schema(modules)
    tasks = [{"description": "one", "status": "in-progress"}]
    calls = [
        {"tool": "update_plan", "arguments": {"tasks": tasks}},
        {"tool": "write_file", "arguments": {"path": "a.txt", "content": "red\n"}},
        {"tool": "ask_user", "arguments": {"question": "Which?"}},
        shell("echo hi; exit 3"),
    ]
    steps = [
        {"thinking": "hm", "text": "I write.", "calls": calls},
        {"error": {"status": 503}},
        "the command failed",
        {"calls": [shell("sleep 60")]},
        {"error": {"status": 400, "text": "bad"}},
        "a summary",
    ]
    write_profile(home, *steps, approval="ask")
    async with open_editor() as editor:
        await editor.start()
        session = await editor.open(tmp_path)
        await editor.prompt(session, "go")
        prompting = asyncio.create_task(editor.prompt(session, "wait"))
        await editor.wait_until(lambda: len(editor.list_updates(session, "tool_call")) == 4)
        await editor.connection.send_notification("session/cancel", {"sessionId": session})
        assert await prompting == "cancelled"
        with pytest.raises(RequestError):
            await editor.prompt(session, "fail")
        await editor.prompt(session, "/mode plan")
        await editor.prompt(session, "/compact")
        await editor.prompt(session, "/undo conversation")
        await editor.request("session/set_config_option", sessionId=session, configId="effort", value="low")
        await editor.request("session/set_mode", sessionId=session, modeId="plan")
        await editor.request("session/load", sessionId=session, cwd=str(tmp_path), mcpServers=[])
        await editor.request("session/resume", sessionId=session, cwd=str(tmp_path))
        await editor.request("session/list")
        await editor.request("authenticate", methodId="variable")
        await editor.request("session/close", sessionId=session)
        await editor.request("session/delete", sessionId=session)
        editor.writer.write(b"[1]\nno json\n")
        await editor.wait_until(lambda: (editor.received[-1].get("error") or {}).get("code") == -32700)
        seen = schema.check(editor.received, editor.sent)
    assert seen >= {*METHODS, *UPDATES, "notice"}


def test_the_client_of_the_typescript_sdk(modules, tmp_path):
    place = Place(tmp_path / "home", tmp_path / "work")
    place.home.mkdir()
    place.work.mkdir()
    read = {"tool": "read_file", "arguments": {"path": "a.py"}}
    write = {"tool": "write_file", "arguments": {"path": "a.py", "content": "x = 3\n"}}
    tasks = [{"description": "one", "status": "in-progress"}]
    plan = {"tool": "update_plan", "arguments": {"tasks": tasks}}
    wait = {"calls": [shell("sleep 60; exit 3")]}
    steps = [
        {"thinking": "hm", "text": "I look.", "calls": [read, plan]},
        {"calls": [write], "expect": "x = 2"},
        {"text": "changed", "expect": "saved a.py"},
        wait,
        "not run",
        wait,
        wait,
        "a summary",
    ]
    write_profile(place.home, *steps, approval="ask")
    client = [find_node(), str(ROOT / "tests/acp/sdk_client.mjs")]
    sdk = (modules / "@agentclientprotocol/sdk/dist/v1/stable/acp.js").as_uri()
    command = [*client, sdk, str(place.work), sys.executable, "-m", "goose_like", "acp"]
    done = subprocess.run(command, env=place.env(), capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    schema = Schema(modules)
    seen = set()
    for run in json.loads(done.stdout):
        seen |= schema.check(run["received"], run["sent"])
    assert seen >= {*METHODS, *UPDATES, "fs/read_text_file", "fs/write_text_file"}


def test_acpx_accepts_one_diff_and_rejects_another(modules, tmp_path):
    place = Place(tmp_path / "home", tmp_path / "work")
    place.home.mkdir()
    place.work.mkdir()
    (place.work / "n.txt").write_text("one\n")

    def patch(before, after):
        patches = [{"before": before, "after": after}]
        return {"calls": [{"tool": "patch_file", "arguments": {"path": "n.txt", "patches": patches}}]}

    write_profile(place.home, patch("one", "two"), "Changed.", patch("two", "three"), "You said no.", approval="ask")
    node = find_node()
    path = f"{os.path.dirname(node)}:{os.environ['PATH']}"

    def acpx(*words):
        command = [node, str(modules / ".bin/acpx"), "--agent", f"{sys.executable} -m goose_like acp", *words]
        env = place.env(HOME=str(tmp_path), PATH=path)
        done = subprocess.run(
            command, cwd=place.work, env=env, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    acpx("sessions", "new")
    try:
        assert "Changed." in acpx("--approve-all", "change it")
        assert (place.work / "n.txt").read_text() == "two\n"
        assert "You said no." in acpx("--deny-all", "again")
        assert (place.work / "n.txt").read_text() == "two\n"
    finally:
        acpx("sessions", "close")
    assert place.list_messages() == ["change it", "again"]
