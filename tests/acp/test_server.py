"""The protocol from an editor's side: sessions, prompts, updates, questions, and an end at any time."""

import asyncio
import base64
import json
from contextlib import asynccontextmanager
from importlib.util import find_spec

import pytest

pytestmark = pytest.mark.skipif(find_spec("acp") is None, reason="the extra `acp` is not installed")
if find_spec("acp"):
    from acp.exceptions import RequestError

    from tests.acp.editor import FILES, open_editor, write_profile
    from tests.toolkits.mcp.servers import script

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def write(path, content):
    return {"tool": "write_file", "arguments": {"path": path, "content": content}}


def read(path):
    return {"tool": "read_file", "arguments": {"path": path}}


def shell(command):
    return {"tool": "shell", "arguments": {"command": command}}


@pytest.fixture
def work(tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def play(home):
    """Write the script of the model."""
    return lambda *steps, **settings: write_profile(home, *steps, **settings)


TASKS = [{"description": "write", "status": "complete"}, {"description": "run", "status": "in-progress"}]


async def test_a_turn_with_all_that_an_editor_shows(play, work):
    calls = [{"tool": "update_plan", "arguments": {"tasks": TASKS}}, write("a.py", "print(1)\n"), shell("echo hi")]
    play({"thinking": "hm", "text": "I write.", "calls": calls, "usage": {"input": 90, "output": 5}}, "All done.")
    async with open_editor() as editor:
        started = await editor.start()
        assert started["protocolVersion"] == 1
        assert [method["id"] for method in started["authMethods"]] == ["setup", "variable"]
        session = await editor.open(work)
        assert await editor.prompt(session, "go") == "end_turn"
        assert editor.read_text(session, "agent_thought_chunk") == "hm"
        assert editor.read_text(session) == "I write.All done."
        (plan,) = editor.list_updates(session, "plan")
        assert [entry["status"] for entry in plan["entries"]] == ["completed", "in_progress"]
        edit, command = editor.list_updates(session, "tool_call")
        assert (edit["kind"], edit["title"], edit["locations"]) == ("edit", "Write a.py", [{"path": f"{work}/a.py"}])
        assert (command["kind"], command["rawInput"]) == ("execute", {"command": "echo hi"})
        ends = [update for update in editor.list_updates(session, "tool_call_update") if "status" in update]
        assert [end["status"] for end in ends] == ["completed", "completed"]
        assert ends[0]["content"] == [{"type": "diff", "path": f"{work}/a.py", "newText": "print(1)\n"}]
        assert ends[1]["content"][0]["content"]["text"].strip() == "hi"
        counts = editor.received[-1]["result"]["usage"]
        assert (counts["inputTokens"], counts["outputTokens"], counts["totalTokens"]) == (90, 5, 95)
        usage = editor.list_updates(session, "usage_update")[-1]
        assert usage["size"] == 10_000
        assert usage["used"] > 0
        assert editor.list_updates(session, "session_info_update") == [
            {"sessionUpdate": "session_info_update", "title": "go"}
        ]


async def test_commands_come_only_after_the_answer_that_names_the_session(play, work, home):
    play()
    commands = home / "config/commands"
    commands.mkdir(parents=True)
    (commands / "explain.md").write_text("Explain $ARGUMENTS simply.")
    async with open_editor() as editor:
        await editor.start()
        session = await editor.open(work)
        await editor.wait_until(lambda: editor.list_updates(session, "available_commands_update"))
        kinds = ["result" if "result" in message else message["method"] for message in editor.received]
        assert kinds == ["result", "result", "session/update"]
        (update,) = editor.list_updates(session)
        names = {each["name"]: each for each in update["availableCommands"]}
        assert {"compact", "undo", "explain"} <= names.keys()
        assert names["explain"]["input"] == {"hint": "[ARGUMENTS]"}


async def test_slash_commands_answer_and_send_messages(play, work, home):
    play({"text": "simple", "expect": "Explain it simply"})
    commands = home / "config/commands"
    commands.mkdir(parents=True)
    (commands / "explain.md").write_text("Explain $ARGUMENTS simply.")
    async with open_editor() as editor:
        await editor.start()
        session = await editor.open(work)
        assert await editor.prompt(session, "/explain it") == "end_turn"
        assert await editor.prompt(session, "/plan") == "end_turn"
        assert await editor.prompt(session, "/nonsense") == "end_turn"
        text = editor.read_text(session)
        assert text.startswith("simple")
        assert "no command /nonsense" in text


@pytest.mark.parametrize(("choice", "content"), [("allow", "red\n"), ("deny", None), ("cancelled", None)])
async def test_a_permission(play, work, choice, content):
    play({"calls": [write("a.txt", "red\n")]}, "ok", approval="ask")
    async with open_editor() as editor:
        await editor.start()
        editor.choice = choice
        session = await editor.open(work)
        assert await editor.prompt(session, "go") == "end_turn"
        (asked,) = editor.asked
        kinds = [option["kind"] for option in asked["options"]]
        names = [option["name"] for option in asked["options"]]
        assert names == ["Allow once", "Allow in this session: this file", "Always allow", "Deny"]
        assert (kinds[0], kinds[-1]) == ("allow_once", "reject_once")
        (call,) = editor.list_updates(session, "tool_call")
        assert asked["toolCall"]["toolCallId"] == call["toolCallId"]
        assert asked["toolCall"]["content"] == [{"type": "diff", "path": f"{work}/a.txt", "newText": "red\n"}]
        end = editor.list_updates(session, "tool_call_update")[-1]
        assert end["status"] == ("completed" if content else "failed")
    file = work / "a.txt"
    assert (file.read_text() if file.exists() else None) == content


async def test_a_permission_that_nobody_answers_is_denied_and_the_turn_goes_on(play, work):
    play(
        {"calls": [write("a.txt", "x")]},
        {"text": "then not", "expect": "nobody is there"},
        approval="ask",
        session={"answer_s": 0.2},
    )
    async with open_editor() as editor:
        await editor.start()
        editor.choice = None
        session = await editor.open(work)
        assert await editor.prompt(session, "go") == "end_turn"
        assert "then not" in editor.read_text(session)
        notices = editor.list_updates(session, "notice")
        assert "nobody answered within 0.2 s" in str(notices)


READING = "fs/read_text_file"
WRITING = "fs/write_text_file"
MOMENTS = {
    "command": (shell("sleep 60"), "auto", set()),
    "permission": (shell("sleep 60"), "ask", set()),
    "reading": (read("a.txt"), "auto", {READING}),
    "writing": (write("a.txt", "red\n"), "auto", {WRITING}),
}
"""What a turn waits for: a call, the approval mode, and the requests that the editor does not answer."""


@asynccontextmanager
async def stay_in_turn(play, work, moment):
    """Start a turn that waits, and yield the editor, the session, the prompt's id, and the task with its end."""
    call, approval, silent = MOMENTS[moment]
    play({"calls": [call]}, "again", approval=approval)
    (work / "a.txt").write_text("blue\n")
    async with open_editor() as editor:
        await editor.start(FILES)
        editor.choice = None
        editor.silent = silent
        session = await editor.open(work)
        prompting = asyncio.create_task(editor.prompt(session, "go"))
        await editor.wait_until(lambda: editor.list_updates(session, "tool_call"))
        if moment != "command":
            await editor.wait_until(lambda: editor.asked)
        (prompt,) = [each for each in editor.sent if each.get("method") == "session/prompt"]
        yield editor, session, prompt["id"], prompting


@pytest.mark.parametrize("how", ["session/cancel", "$/cancel_request"])
@pytest.mark.parametrize("moment", MOMENTS)
async def test_a_prompt_that_is_cancelled(play, work, how, moment):
    async with stay_in_turn(play, work, moment) as (editor, session, prompt, prompting):
        params = {"sessionId": session} if how == "session/cancel" else {"requestId": prompt}
        await editor.connection.send_notification(how, params)
        assert await prompting == "cancelled"
        end = editor.list_updates(session, "tool_call_update")[-1]
        assert end["status"] == "failed"
        assert await editor.prompt(session, "and now?") == "end_turn"
        assert editor.read_text(session) == "again"


@pytest.mark.parametrize(("moment", "how"), [("command", "session/close"), ("permission", "session/delete")])
async def test_a_session_that_is_closed_or_deleted_during_a_turn(play, work, moment, how):
    async with stay_in_turn(play, work, moment) as (editor, session, _, prompting):
        await editor.request(how, sessionId=session)
        assert await prompting == "cancelled"
        listed = (await editor.request("session/list"))["sessions"]
        assert [each["sessionId"] for each in listed] == ([session] if how == "session/close" else [])


@pytest.mark.parametrize("moment", MOMENTS)
async def test_an_editor_that_leaves_during_a_turn(play, work, moment):
    async with stay_in_turn(play, work, moment) as (editor, session, _, prompting):
        editor.writer.close()
        with pytest.raises(ConnectionError):
            await prompting
    async with open_editor() as editor:
        await editor.start()
        await editor.request("session/resume", sessionId=session, cwd=str(work))
        assert await editor.prompt(session, "go on") == "end_turn"
        assert editor.read_text(session) == "again"


async def test_a_prompt_during_a_turn_joins_it(play, work):
    play({"calls": [shell("sleep 1")]}, {"text": "both", "expect": "and this"})
    async with open_editor() as editor:
        await editor.start()
        session = await editor.open(work)
        first = asyncio.create_task(editor.prompt(session, "go"))
        await editor.wait_until(lambda: editor.list_updates(session, "tool_call"))
        assert await editor.prompt(session, "and this") == "end_turn"
        assert await first == "end_turn"
        assert editor.read_text(session) == "both"


async def test_unsaved_text_is_read_and_replaced_in_the_editor(play, work):
    calls = [{"calls": [read("a.py")]}, {"calls": [write("a.py", "x = 3\n")], "expect": "x = 2"}]
    play(*calls, {"text": "done", "expect": "saved a.py"})
    (work / "a.py").write_text("x = 1\n")
    path = str(work / "a.py")
    async with open_editor() as editor:
        await editor.start(FILES)
        session = await editor.open(work)
        editor.buffers[path] = "x = 2\n"
        assert await editor.prompt(session, "go") == "end_turn"
        assert editor.read_text(session) == "done"
        ends = [update for update in editor.list_updates(session, "tool_call_update") if "status" in update]
        assert "not saved in the editor yet" in str(ends[0]["content"])
        assert ends[1]["content"] == [{"type": "diff", "path": path, "oldText": "x = 2\n", "newText": "x = 3\n"}]
        assert (work / "a.py").read_text() == "x = 3\n"
        assert editor.buffers == {}
        editor.answer = "f"
        await editor.prompt(session, "/undo")
        assert (work / "a.py").read_text() == "x = 2\n"


async def test_a_linked_file_of_a_prompt_has_its_unsaved_text(play, work, tmp_path):
    play({"text": "seen", "expect": "typed just now"})
    (work / "a.md").write_text("old\n")
    project = tmp_path / "project"
    project.symlink_to(work)
    async with open_editor() as editor:
        await editor.start(FILES)
        session = await editor.open(project)
        editor.buffers[str(project / "a.md")] = "typed just now\n"  # the editor does not follow the link
        link = {"type": "resource_link", "name": "a", "uri": (work / "a.md").as_uri()}
        assert await editor.prompt(session, "look at ", link) == "end_turn"
        assert editor.read_text(session) == "seen"


@pytest.mark.parametrize(
    ("fault", "reason"),
    [({"failing": {READING}}, "the editor failed"), ({"buffers": {"a.txt": 5}}, "without its text")],
)
async def test_an_editor_that_fails_to_read_leaves_that_to_the_disk(play, work, fault, reason):
    play({"calls": [read("a.txt")]}, {"text": "seen", "expect": "blue"})
    (work / "a.txt").write_text("blue\n")
    async with open_editor() as editor:
        await editor.start(FILES)
        editor.failing = fault.get("failing", set())
        editor.buffers = {str(work / name): text for name, text in fault.get("buffers", {}).items()}
        session = await editor.open(work)
        assert await editor.prompt(session, "go") == "end_turn"
        assert editor.read_text(session) == "seen"
        assert reason in str(editor.list_updates(session, "notice"))


async def test_a_write_that_the_editor_refuses_is_told_to_the_model(play, work):
    play({"calls": [write("a.txt", "red\n")]}, {"text": "that failed", "expect": "the editor did not write"})
    async with open_editor() as editor:
        await editor.start(FILES)
        editor.failing = {WRITING}
        session = await editor.open(work)
        assert await editor.prompt(session, "go") == "end_turn"
        assert editor.read_text(session) == "that failed"
        assert not (work / "a.txt").exists()


@pytest.mark.parametrize("silent", [READING, WRITING])
async def test_an_editor_that_never_answers_about_a_file_is_not_asked_again(play, work, silent):
    text = "the editor did not answer" if silent == WRITING else "saved a.txt"
    steps = [
        {"calls": [write("a.txt", "red\n")], "expect": "blue"},
        {"calls": [write("a.txt", "green\n")], "expect": text},
    ]
    play({"calls": [read("a.txt")]}, *steps, {"text": "done", "expect": "saved a.txt"}, session={"answer_s": 2})
    (work / "a.txt").write_text("blue\n")
    async with open_editor() as editor:
        await editor.start(FILES)
        editor.silent = {silent}
        session = await editor.open(work)
        assert await editor.prompt(session, "go") == "end_turn"
        assert editor.read_text(session) == "done"
        assert (work / "a.txt").read_text() == "green\n"
        notices = str(editor.list_updates(session, "notice"))
        assert notices.count("it is not asked about files") == 1


async def test_another_request_that_is_cancelled(play, work):
    play()
    async with open_editor() as editor:
        await editor.start()
        listing = asyncio.create_task(editor.request("session/new", cwd=str(work), mcpServers=[]))
        await editor.wait_until(lambda: editor.sent[-1]["method"] == "session/new")
        await editor.connection.send_notification("$/cancel_request", {"requestId": editor.sent[-1]["id"]})
        with pytest.raises(RequestError, match="was cancelled"):
            await listing
        await editor.connection.send_notification("$/cancel_request", {"requestId": 77})
        assert await editor.open(work)


async def test_a_session_is_listed_loaded_resumed_and_deleted(play, work, tmp_path):
    calls = [write("a.txt", "red\n"), shell("echo hi")]
    play({"text": "I write.", "calls": calls}, "Done.", "more")
    async with open_editor() as editor:
        await editor.start()
        session = await editor.open(work)
        await editor.prompt(session, "go")
        live = editor.list_updates(session, "agent_message_chunk", "tool_call")
    async with open_editor() as editor:
        await editor.start()
        (found,) = (await editor.request("session/list", cwd=str(work)))["sessions"]
        assert (found["sessionId"], found["cwd"], found["title"]) == (session, str(work), "go")
        assert (await editor.request("session/list", cwd=str(tmp_path)))["sessions"] == []
        loaded = await editor.request("session/load", sessionId=session, cwd=str(work), mcpServers=[])
        assert {option["id"] for option in loaded["configOptions"]} == {"mode", "model", "effort"}
        assert "result" in editor.received[-1]  # all of the conversation came before it
        assert editor.read_text(session, "user_message_chunk") == "go"
        assert editor.read_text(session) == "I write.Done."
        replayed = editor.list_updates(session, "tool_call")
        assert replayed == [update for update in live if update["sessionUpdate"] == "tool_call"]
        ends = editor.list_updates(session, "tool_call_update")
        assert [end["status"] for end in ends] == ["completed", "completed"]
        assert ends[0]["content"][0]["type"] == "diff"
        assert await editor.prompt(session, "and now?") == "end_turn"
        assert editor.read_text(session).endswith("more")
        await editor.request("session/close", sessionId=session)
        with pytest.raises(RequestError, match="is not open"):
            await editor.prompt(session, "still there?")
    async with open_editor() as editor:
        await editor.start()
        await editor.request("session/resume", sessionId=session, cwd=str(work))
        assert editor.list_updates(session, "user_message_chunk", "agent_message_chunk") == []
        await editor.request("session/delete", sessionId=session)
        assert (await editor.request("session/list"))["sessions"] == []
        with pytest.raises(RequestError, match="no session"):
            await editor.request("session/load", sessionId=session, cwd=str(work), mcpServers=[])


async def test_a_second_folder_of_the_editor_can_be_changed(play, work, tmp_path):
    play({"calls": [write(str(tmp_path / "lib/a.txt"), "red\n")]}, "done", sandbox="workspace")
    (tmp_path / "lib").mkdir()
    async with open_editor() as editor:
        started = await editor.start()
        assert started["agentCapabilities"]["sessionCapabilities"].keys() >= {"additionalDirectories"}
        session = await editor.open(work, additionalDirectories=[str(tmp_path / "lib")])
        assert await editor.prompt(session, "go") == "end_turn"
        assert (tmp_path / "lib/a.txt").read_text() == "red\n"
        with pytest.raises(RequestError, match="no such folder"):
            await editor.open(work, additionalDirectories=[str(tmp_path / "nothing")])


async def test_many_sessions_are_listed_by_pages_also_beside_a_broken_one(play, work, home):
    play(*["ok"] * 52)
    async with open_editor() as editor:
        await editor.start()
        session = await editor.open(work)
        await editor.prompt(session, "go")
        folder = next((home / "state/sessions").iterdir())
        for number in range(60):
            copy = folder.with_name(f"20250101-copy{number}")
            copy.mkdir()
            text = (folder / "events.jsonl").read_text()
            (copy / "events.jsonl").write_text(text.replace(f'"name":"{session}"', f'"name":"copy{number}"'))
        broken = folder.with_name("20250101-broken")
        broken.mkdir()
        (broken / "events.jsonl").write_bytes(b"\xff\x00 no event\n")
        first = await editor.request("session/list")
        rest = await editor.request("session/list", cursor=first["nextCursor"])
        names = {each["sessionId"] for each in first["sessions"] + rest["sessions"]}
        assert len(first["sessions"]) == 50
        assert "nextCursor" not in rest
        assert {session, "copy0", "copy59"} <= names


async def test_options_change_mode_model_and_effort(play, work, tmp_path):
    play("one")
    other = tmp_path / "other.yaml"
    other.write_text("- from the other\n")
    async with open_editor() as editor:
        await editor.start()
        opened = await editor.request("session/new", cwd=str(work), mcpServers=[])
        session = opened["sessionId"]
        assert opened["modes"]["currentModeId"] == "auto"
        categories = [option["category"] for option in opened["configOptions"]]
        assert categories == ["mode", "model", "thought_level"]

        async def change(name, value):
            answer = await editor.request("session/set_config_option", sessionId=session, configId=name, value=value)
            return {option["id"]: option["currentValue"] for option in answer["configOptions"]}

        assert (await change("mode", "plan"))["mode"] == "plan"
        assert (await change("effort", "low"))["effort"] == "low"
        assert (await change("model", f"scripted:{other}"))["model"] == f"scripted:{other}"
        editor.answer = "no"
        with pytest.raises(RequestError, match="nobody confirmed it"):  # without a sandbox, it allows more than `plan`
            await editor.request("session/set_mode", sessionId=session, modeId="ask")
        editor.answer = "y"
        assert await editor.request("session/set_mode", sessionId=session, modeId="ask") == {}
        assert "continue in ask · full?" in editor.asked[-1]["message"]
        assert editor.list_updates(session, "current_mode_update")[-1]["currentModeId"] == "ask"
        for name, value in (("mode", "bogus"), ("colour", "red"), ("effort", "extreme")):
            with pytest.raises(RequestError):
                await change(name, value)
        assert await editor.prompt(session, "hello") == "end_turn"
        assert editor.read_text(session) == "from the other"


async def test_a_slash_command_that_changes_an_option_is_told(play, work):
    play()
    async with open_editor() as editor:
        await editor.start()
        session = await editor.open(work)
        await editor.prompt(session, "/mode plan")
        await editor.prompt(session, "/plan")
        (update,) = editor.list_updates(session, "config_option_update")
        assert update["configOptions"][0]["currentValue"] == "plan"


async def test_commands_that_are_new_in_another_profile_are_told(play, work, home):
    play()
    profiles = home / "config/profiles.yaml"
    settings = json.loads(profiles.read_text())
    profiles.write_text(json.dumps({**settings, "bare": {**settings["default"], "toolkits": ["developer"]}}))
    async with open_editor() as editor:
        await editor.start()
        session = await editor.open(work)
        (home / "config/commands").mkdir()
        (home / "config/commands/explain.md").write_text("Explain $ARGUMENTS simply.")
        await editor.prompt(session, "/profile bare")
        await editor.prompt(session, "/mode plan")
        before, after = editor.list_updates(session, "available_commands_update")
        assert "'explain'" not in str(before)
        assert "'explain'" in str(after)


async def test_files_images_and_links_in_a_prompt(play, work):
    (work / "my notes.md").write_text("the notes")
    play({"text": "seen", "expect": "https://example.org.*unsaved text.*@pasted-.*the notes"})
    image = {"type": "image", "mimeType": "image/png", "data": base64.b64encode(PIXEL).decode()}
    link = {"type": "resource_link", "name": "notes", "uri": f"{work.as_uri()}/my%20notes.md"}
    page = {"type": "resource_link", "name": "page", "uri": "https://example.org"}
    buffer = {"type": "resource", "resource": {"uri": "file:///x.py", "text": "unsaved text"}}
    async with open_editor() as editor:
        await editor.start()
        session = await editor.open(work)
        assert await editor.prompt(session, "look at ", link, " and ", page, buffer, image) == "end_turn"
        assert editor.read_text(session) == "seen"
        sound = {"type": "audio", "mimeType": "audio/wav", "data": "AAAA"}
        with pytest.raises(RequestError, match="takes no audio"):
            await editor.prompt(session, sound)
        with pytest.raises(RequestError, match="no base64"):
            await editor.prompt(session, image | {"data": "!"})


async def test_a_question_in_words(play, work):
    ask = {"tool": "ask_user", "arguments": {"question": "Which colour?"}}
    play({"calls": [ask]}, {"text": "blue it is", "expect": "blue"})
    async with open_editor() as editor:
        await editor.start()
        session = await editor.open(work)
        assert await editor.prompt(session, "paint") == "end_turn"
        (asked,) = editor.asked
        assert "Which colour?" in asked["message"]
        assert editor.read_text(session) == "blue it is"


async def test_an_editor_that_offers_nothing(play, work):
    ask = {"tool": "ask_user", "arguments": {"question": "Which colour?"}}
    play({"calls": [ask]}, "any colour")
    async with open_editor() as editor:
        started = await editor.start({})
        assert [method["id"] for method in started["authMethods"]] == ["variable"]
        session = await editor.open(work)
        assert await editor.prompt(session, "paint") == "end_turn"
        assert editor.asked == []
        assert editor.read_text(session) == "any colour"


async def test_sessions_in_several_folders_work_beside_each_other(play, tmp_path):
    play({"calls": [shell("pwd > here.txt; sleep 0.2")]}, "done")
    folders = [tmp_path / f"folder{number}" for number in range(4)]
    async with open_editor() as editor:
        await editor.start()
        for folder in folders:
            folder.mkdir()
        sessions = await asyncio.gather(*map(editor.open, folders))
        ends = await asyncio.gather(*[editor.prompt(session, "go") for session in sessions])
        assert ends == ["end_turn"] * 4
    assert [(folder / "here.txt").read_text().strip() for folder in folders] == [str(folder) for folder in folders]


@pytest.mark.skipif(find_spec("mcp") is None, reason="the extra `mcp` is not installed")
async def test_the_servers_of_the_editor(play, work):
    find = {"tool": "find_tools", "arguments": {"query": "add numbers"}}
    add = {"tool": "call_tool", "arguments": {"name": "mcp__demo__add", "arguments": {"a": 2, "b": 3}}}
    play({"calls": [find]}, {"calls": [add], "expect": "mcp__demo__add"}, {"text": "five", "expect": "5"})
    command, *words = script("demo_server.py", "stdio")
    server = {"name": "demo", "command": command, "args": words, "env": [{"name": "COLOUR", "value": "red"}]}
    async with open_editor() as editor:
        await editor.start()
        opened = await editor.request("session/new", cwd=str(work), mcpServers=[server])
        assert await editor.prompt(opened["sessionId"], "add") == "end_turn"
        assert "five" in editor.read_text(opened["sessionId"])
        inside = {"type": "acp", "name": "inner", "id": "7", "serverId": "7"}
        with pytest.raises(RequestError, match=r"inside the editor|Invalid|mcpServers"):
            await editor.request("session/new", cwd=str(work), mcpServers=[inside])


async def test_mistakes_and_failures_are_errors_with_a_sentence(play, work):
    play({"error": {"status": 400, "text": "no such thing"}})
    async with open_editor() as editor:
        await editor.start()
        with pytest.raises(RequestError, match="absolute path"):
            await editor.open("here")
        with pytest.raises(RequestError, match="there is no folder"):
            await editor.open(work / "nothing")
        with pytest.raises(RequestError, match="Method not found"):
            await editor.request("session/frobnicate")
        with pytest.raises(RequestError, match=r"session/prompt: sessionId"):
            await editor.request("session/prompt", prompt=[])
        with pytest.raises(RequestError, match="is not open"):
            await editor.prompt("nobody", "hi")
        with pytest.raises(RequestError, match="no method"):
            await editor.request("authenticate", methodId="magic")
        assert await editor.request("authenticate", methodId="variable") == {}
        session = await editor.open(work, _meta={"cwd": "/nowhere", "mcp_servers": 5})
        with pytest.raises(RequestError, match="no such thing"):
            await editor.prompt(session, "go")


async def test_a_missing_key_is_a_login(work, home):
    config = home / "config"
    config.mkdir(parents=True)
    (config / "profiles.yaml").write_text("default: {extends: default, processor: 'anthropic:claude-opus-5-5'}")
    async with open_editor() as editor:
        await editor.start()
        with pytest.raises(RequestError) as caught:
            await editor.open(work)
        assert caught.value.code == -32000


async def test_half_a_character_in_a_prompt(play, work):
    """An editor in JavaScript writes it when it cuts a text."""
    play({"text": "fine", "expect": "cut \N{REPLACEMENT CHARACTER}"})
    async with open_editor() as editor:
        await editor.start()
        session = await editor.open(work)
        assert await editor.prompt(session, "cut \ud83d") == "end_turn"


async def test_lines_that_are_no_messages(play, work):
    play("still here")
    async with open_editor() as editor:
        await editor.start()
        session = await editor.open(work)
        editor.writer.write(b'\n{"half\n[1, 2]\n"text"\n{"method": 5}\n\xff\xfe\n' + b"[" * 100_000 + b"\n")
        prompt = [{"type": "text", "text": "go"}]
        await editor.request("session/prompt", sessionId=session, prompt=prompt, _meta={"long": "x" * 1_000_000})
        errors = [message["error"]["code"] for message in editor.received if message.get("error")]
        assert errors == [-32700, -32600, -32600, -32600, -32700, -32700]
        assert editor.read_text(session) == "still here"


async def test_untrusted_files_are_left_out_with_a_notice(play, work):
    play("ok")
    (work / ".goose-like").mkdir()
    (work / ".goose-like/profiles.yaml").write_text("mine: {}\n")
    async with open_editor() as editor:
        await editor.start()
        session = await editor.open(work)
        await editor.prompt(session, "go")
        assert "skipped untrusted files" in str(editor.list_updates(session, "notice"))
        assert editor.asked == []
