"""What the model has seen of a file counts in each later process of a session, and in each mode."""

from tests.e2e.command import Place

READ = {"tool": "read_file", "arguments": {"path": "a.txt"}}
WRITE = {"tool": "write_file", "arguments": {"path": "a.txt", "content": "new\n"}}


def outputs(place: Place) -> list[str]:
    return [event["result"]["output"] for event in place.events() if event["type"] == "tool_finished"]


def reminders(place: Place) -> list[str]:
    return [event["text"] for event in place.events() if event["type"] == "reminded"]


def test_a_resumed_session_writes_what_it_read_before(place):
    (place.work / "a.txt").write_text("old\n")
    model = place.script({"calls": [READ]}, "read", {"calls": [WRITE]}, "written")
    done = place.run("run", "go", "--session", "s", "--model", model)
    assert done.returncode == 0, done.stderr
    done = place.run("run", "go on", "--session", "s", "--resume", "--model", model)
    assert done.returncode == 0, done.stderr
    assert outputs(place)[-1] == "saved a.txt (+1 -1 lines)"
    assert not any("no longer as you saw it" in text for text in reminders(place))


def test_a_resumed_session_is_told_which_files_differ(place):
    (place.work / "a.txt").write_text("old\n")
    model = place.script({"calls": [READ]}, "read", {"calls": [WRITE]}, "told")
    place.run("run", "go", "--session", "s", "--model", model)
    (place.work / "a.txt").write_text("by a person\n")
    done = place.run("run", "go on", "--session", "s", "--resume", "--model", model)
    assert done.returncode == 0, done.stderr
    assert "no longer as you saw it: a.txt (" in reminders(place)[-1]
    assert outputs(place)[-1].startswith("not written, as it has changed since you read it")
    assert (place.work / "a.txt").read_text() == "by a person\n"


def test_plan_mode_reads_and_auto_mode_writes(place, open_screen):
    (place.work / "a.txt").write_text("old\n")
    model = place.script({"calls": [READ]}, "My plan: write it.", {"calls": [WRITE]}, "written")
    terminal = open_screen("session", "start", "talk", "--model", model, "--approval", "plan")
    terminal.see("goose>")
    terminal.type("look\r")
    terminal.see("[y] run it")
    terminal.type("y\r")
    terminal.see("written")
    assert terminal.leave() == 0
    assert outputs(place)[-1] == "saved a.txt (+1 -1 lines)"
    assert (place.work / "a.txt").read_text() == "new\n"


def test_an_undo_is_told(place, open_screen):
    (place.work / "a.txt").write_text("old\n")
    model = place.script({"calls": [READ, WRITE]}, "written", {"calls": [WRITE]}, "again")
    terminal = open_screen("session", "start", "talk", "--model", model)
    terminal.see("goose>")
    terminal.type("write\r")
    terminal.see("written")
    terminal.idle()
    terminal.type("/undo files\r")
    terminal.see("back to before message 1: files")
    assert (place.work / "a.txt").read_text() == "old\n"
    terminal.type("go on\r")
    terminal.see("again")
    assert terminal.leave() == 0
    assert any("no longer as you saw it: a.txt (" in text for text in reminders(place))
    assert outputs(place)[-1].startswith("not written, as it has changed since you read it")
