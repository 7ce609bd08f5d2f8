"""The command `boss` as a process: its output, memory files, exit codes and resumes."""

import json
import re
import shutil
import signal
from pathlib import Path

import pytest

from tests import ROOT
from tests.e2e.command import Place, shell
from tests.e2e.screen import ScreenTerminal

PLAN = "- [ ] look\n- [ ] write\n"
MEMORY = ("--memory", "plan=plan.md", "--memory", "logs=logs.md")


def act(tool: str, **arguments) -> dict:
    return {"calls": [{"tool": tool, "arguments": arguments}]}


FINISH = act("finish", result="all is done", summary="did it")
LOOK = {"calls": [shell("echo hello")], "usage": {"input": 1000, "output": 24}}
WAIT = {"calls": [shell("echo it waits; sleep 300")]}


def boss(place: Place, *words: str, steps=None, **how):
    chosen = () if steps is None else ("--model", place.script(*steps))
    return place.run("boss", *words, *chosen, "--sandbox", "full", **how)


# --- output


def test_stdout_has_only_the_result(place):
    done = boss(place, "look around", *MEMORY, steps=[PLAN, LOOK, act("update_plan", done=[1]), FINISH])
    assert (done.returncode, done.stdout) == (0, "all is done\n")
    shown = re.sub(r"\d+\.\d s", "T", done.stderr).splitlines()
    library = shown.pop(2)
    assert library.startswith(f"  memory in {place.home}/state/sessions/"), "what has no name lies there"
    assert library.endswith("/memory: library.py")
    assert shown[1:] == [
        "  memory in .: plan.md, logs.md",
        "planning",
        "✓ shell  echo hello · T",
        "✓ update_plan  done=[1] · T",
        "✓ finish  did it · T",
        "1,000 tokens in, 24 out",
    ]
    assert (place.work / "plan.md").read_text() == "- [x] look\n- [ ] write\n"
    log = (place.work / "logs.md").read_text().splitlines()
    assert [log[0], log[-1]] == ["# look around", "- 3 · finish: did it"]


def test_action_without_output_is_shown(place):
    done = boss(place, "look", *MEMORY, steps=[PLAN, {"calls": [shell("true")]}, FINISH])
    assert "✓ shell  true" in done.stderr
    assert "✓ finish" in done.stderr, "the picture goes on"


def test_json_output(place):
    plan = {"text": PLAN, "usage": {"input": 500, "output": 9}}
    done = boss(place, "look", "--output-format", "json", "-q", *MEMORY, steps=[plan, LOOK, FINISH])
    summary = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (0, "")
    assert {key: summary[key] for key in ("result", "summary", "status", "rounds", "cost_usd", "detail")} == {
        "result": "all is done",
        "summary": "did it",
        "status": "finished",
        "rounds": 2,
        "cost_usd": 0.0,
        "detail": "",
    }
    assert summary["usage"]["input_tokens"] == 1500, "the planner's count as well"
    assert summary["memory"]["plan"] == "plan.md"
    assert summary["session"] in place.run("session", "list").stdout


def test_stream_json_output(place):
    done = boss(place, "look", "--output-format", "stream-json", steps=[PLAN, LOOK, FINISH])
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert [events[0]["type"], events[-1]["type"], events[-1]["reason"]] == [
        "session_started",
        "run_finished",
        "finished",
    ]
    assert {"plan_updated", "usage_recorded", "tool_finished"} <= {event["type"] for event in events}


def test_default_memory_lies_in_the_session_folder(place):
    done = boss(place, "-", "--output-format", "json", input="look\n", steps=[PLAN, FINISH])
    files = {name: Path(file) for name, file in json.loads(done.stdout)["memory"].items()}
    assert set(files) == {"plan", "logs", "code_library"}
    assert files["plan"].read_text() == PLAN
    assert files["plan"].is_relative_to(place.home / "state/sessions")
    assert f"memory in {files['plan'].parent}: plan.md, logs.md, library.py" in done.stderr
    assert list(place.work.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "steps", "code", "status"),
    [
        (("--max-round", "2"), [PLAN, LOOK, LOOK, LOOK], 3, "max_round"),
        (("--max-tokens", "1500"), [PLAN, LOOK, LOOK, LOOK], 5, "budget"),
        (("--max-time", "0.5"), [PLAN, WAIT], 124, "budget"),
        ((), [PLAN, LOOK, {"error": {"status": 401, "text": "no"}}], 76, "failed"),
    ],
)
def test_limits_and_errors_have_a_status_and_an_exit_code(place, words, steps, code, status):
    done = boss(place, "look", *words, "--output-format", "json", steps=steps)
    summary = json.loads(done.stdout)
    assert (done.returncode, summary["status"]) == (code, status)
    assert summary["result"].startswith(f"not finished ({status.replace('_', ' ')}")
    assert summary["summary"].startswith(f"not finished ({status.replace('_', ' ')}")
    assert " steps" not in done.stdout + done.stderr, "they are rounds here"
    assert f"boss --resume --session {summary['session']}" in done.stderr


# --- mistakes


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "the task is empty"),
        (("look", "--memory", "plan.md"), "--memory takes NAME=FILE"),
        (("look", "--memory", "plan=."), "memory 'plan': '.' is a folder; name a file, e.g. 'plan.md'"),
        (("look", "--profile", "nix"), "unknown profile 'nix'"),
        (("look", "--config", "wrong.yaml"), "wrong.yaml, line 2: unknown key 'branchs'; did you mean 'branches'?"),
        (("look", "--config", "torn.yaml"), "torn.yaml, line 1: this is not valid YAML"),
        (("look", "--config", "none.yaml"), "none.yaml: can't be read"),
        (("--resume", "--memory", "plan=plan.md"), "a run keeps its goal and configuration"),
    ],
)
def test_mistake_is_one_line(place, words, said):
    (place.work / "wrong.yaml").write_text("name: x\nbranchs: {}\n")
    (place.work / "torn.yaml").write_text("name: [x\n")
    done = boss(place, *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_unsupported_parts_of_aiflows_are_reported(place):
    shutil.copy(ROOT / "tests/fixtures/aiflows/react.yaml", place.work)
    done = boss(place, "look", "--config", "react.yaml", steps=[FINISH])
    assert done.returncode == 0, done.stderr
    assert "goose-like: react.yaml: branch '" in done.stderr


def test_name_of_another_run_is_refused(place):
    boss(place, "look", "--session", "w", steps=[PLAN, FINISH])
    done = boss(place, "look", "--session", "w", steps=[PLAN, FINISH])
    assert (done.returncode, done.stdout) == (1, "")
    assert "there is a run 'w' already; continue it with: goose-like boss --resume --session w" in done.stderr


def test_memory_in_the_private_tmp_is_refused(place):
    done = place.run("boss", "look", "--memory", "plan=/tmp/plan.md", "--model", place.script(PLAN, FINISH))
    assert (done.returncode, done.stdout) == (2, "")
    assert "the memory file 'plan': /tmp/plan.md would lie in the sandbox's own /tmp" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_resume_needs_a_boss_run(place):
    done = boss(place, "--resume")
    assert (done.returncode, done.stdout) == (1, "")
    assert "there is no boss run to continue" in done.stderr
    assert place.run("run", "--session", "talk", "--model", place.script("hello"), "hi").returncode == 0
    assert "there is no boss run to continue" in boss(place, "--resume").stderr
    done = boss(place, "--resume", "--session", "talk")
    assert "session 'talk' is no boss run; continue it with: goose-like session resume talk" in done.stderr


# --- resume


def test_finished_run_repeats_its_outcome(place):
    model = place.script(PLAN, LOOK, FINISH)
    before = place.run("boss", "look", "--sandbox", "full", "--model", model)
    again = place.run("boss", "--resume", "--sandbox", "full")
    assert (again.returncode, again.stdout) == (0, before.stdout)
    assert "this run is finished" in again.stderr
    assert len([event for event in place.events() if event["type"] == "tool_finished"]) == 2
    other = place.run("boss", "something else", "--resume")
    assert (other.returncode, other.stdout) == (2, "")
    assert "a run keeps its goal and configuration; leave out GOAL" in other.stderr


def test_resume_with_more_rounds(place):
    words = ("--session", "work", *MEMORY)
    boss(place, "look", *words, "--max-round", "1", steps=[PLAN, LOOK])
    done = boss(place, "--resume", "work", steps=[LOOK, FINISH])
    assert done.returncode == 2
    assert "all 1 rounds are used up; continue with more of them, e.g. --max-round 2" in done.stderr
    done = boss(place, "--resume", "--max-round", "3", "--output-format", "json", steps=[LOOK, FINISH])
    summary = json.loads(done.stdout)
    assert (done.returncode, summary["status"], summary["rounds"]) == (0, "finished", 2)
    assert (place.work / "logs.md").read_text().endswith("- 2 · finish: did it\n")


def test_killed_run_resumes_in_the_same_round(place, open_screen):
    command = ("boss", "look", "--sandbox", "full", *MEMORY, "--model")
    terminal = open_screen(*command, place.script(PLAN, LOOK, WAIT))
    terminal.see("it waits")
    terminal.signal(signal.SIGKILL)
    terminal.wait_exit()
    done = boss(place, "--resume", "--output-format", "json", steps=[PLAN, LOOK, FINISH])
    assert (done.returncode, json.loads(done.stdout)["rounds"]) == (0, 3)
    assert len(re.findall("echo hello", (place.work / "logs.md").read_text())) == 1


def test_run_resumes_only_in_its_own_folder(place):
    boss(place, "look", "--session", "w", *MEMORY, "--max-round", "1", steps=[PLAN, LOOK])
    (place.work / "below").mkdir()
    words = ("--resume", "--session", "w", "--max-round", "9")
    done = boss(Place(place.home, place.work / "below"), *words, steps=[FINISH])
    assert done.returncode == 1
    assert f"that run works in {place.work}; continue it there: cd {place.work}" in done.stderr
    assert boss(place, *words, steps=[LOOK, FINISH]).returncode == 0


# --- signals


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signal_ends_the_run_and_resume_continues_it(place, open_screen, number, code):
    terminal = open_screen("boss", "look", "--sandbox", "full", "--session", "w", "--model", place.script(PLAN, WAIT))
    terminal.see("it waits")
    terminal.signal(number)
    assert terminal.wait_exit() == code
    assert "■ cancelled" in terminal.text
    assert "not finished (interrupted)\nno action was taken\n" in terminal.text, "the result says so, too"
    assert "continue with: goose-like boss --resume --session w" in terminal.text
    done = boss(place, "--resume", steps=[FINISH, FINISH])
    assert (done.returncode, done.stdout) == (0, "all is done\n")


def jarvis(place: Place, open_screen, *steps, **how) -> ScreenTerminal:
    shutil.copy(ROOT / "docs/boss/jarvis.yaml", place.work)
    words = ("--config", "jarvis.yaml", "--sandbox", "full", "--model", place.script(*steps))
    return open_screen("boss", "a number", *words, **how)


NESTED = (
    PLAN,
    act("Coder", goal="add numbers"),
    "- [ ] extend\n",
    act("run_code", code="import time; print('it waits', flush=True); time.sleep(300)"),
)


def test_ctrl_c_stops_the_sub_boss_with_a_note(place, open_screen):
    terminal = jarvis(place, open_screen, *NESTED, act("finish", result="R", summary="S"))
    terminal.see("it waits")
    terminal.see("Coder \u203a run_code")
    terminal.type("\x03")
    terminal.see("? a note for Jarvis (Enter: none)")
    terminal.see("answer:")
    terminal.type("use sum()\r")
    assert terminal.wait_exit() == 0
    outputs = [event["result"]["output"] for event in place.events() if event["type"] == "tool_finished"]
    assert "use sum()" in next(iter(outputs))
    rows = [re.sub(r" · [\d.]+ s$", "", row) for row in terminal.rows]
    assert rows[-4:] == ["✗ Coder  add numbers", "  the person ended it and says: use sum()", "✓ finish  S", "R"]


def test_ctrl_c_during_the_note_ends_the_run(place, open_screen):
    terminal = jarvis(place, open_screen, *NESTED)
    terminal.see("it waits")
    terminal.type("\x03")
    terminal.see("answer:")
    terminal.type("\x03")
    assert terminal.wait_exit() == 130
    assert "continue with: goose-like boss --resume" in terminal.text
    done = boss(place, "--resume", steps=[FINISH, FINISH])
    assert (done.returncode, done.stdout) == (0, "all is done\n"), done.stderr


def test_ctrl_c_during_a_question_of_the_sub_boss(place, open_screen):
    asks = act("ask_user", question="Which numbers?")
    terminal = jarvis(place, open_screen, *NESTED[:-1], asks, FINISH)
    terminal.see("? Coder asks: Which numbers?")
    terminal.see("answer:")
    terminal.type("\x03")
    terminal.see("? a note for Jarvis (Enter: none)")
    terminal.see("answer:", times=2)
    terminal.type("none of them\r")
    assert terminal.wait_exit() == 0
    outputs = [event["result"]["output"] for event in place.events() if event["type"] == "tool_finished"]
    assert "none of them" in outputs[0]


def test_controller_without_actions_fails(place):
    done = boss(place, "look", "--output-format", "json", steps=[PLAN, *["I will."] * 9])
    assert (done.returncode, json.loads(done.stdout)["status"]) == (1, "failed")


# --- the screen


def test_screen_during_work(place, open_screen):
    terminal = jarvis(place, open_screen, *NESTED, columns=44, rows=24)
    terminal.see("it waits")
    terminal.see("run_code · 0:")
    rows = "\n".join(terminal.rows)
    for shown in ("▸ Coder", "  ☐ look", "    ☐ extend", "  │ it waits", "round 1 of 30"):
        assert shown in rows
    assert max(map(len, terminal.rows)) <= 44
    terminal.resize(100, 24)
    terminal.see("Coder \u203a run_code · ")
    terminal.signal(signal.SIGTERM)
    assert terminal.wait_exit() == 143
    assert "round 1 of" not in "\n".join(terminal.rows), "the lower part is taken away"


def test_screen_between_two_rounds(place, open_screen):
    thinks = {"text": "I think.", "delay_s": 300}
    terminal = open_screen("boss", "look", "--sandbox", "full", "--model", place.script(PLAN, LOOK, thinks))
    terminal.see("round 2 of 30 · thinking")
    terminal.signal(signal.SIGTERM)
    assert terminal.wait_exit() == 143


def test_screen_while_a_sub_boss_plans(place, open_screen):
    thinks = {"text": PLAN, "delay_s": 300}
    terminal = jarvis(place, open_screen, *NESTED[:2], thinks)
    terminal.see("Coder \u203a planning")
    terminal.signal(signal.SIGTERM)
    assert terminal.wait_exit() == 143


def test_screen_without_colours(place, open_screen):
    terminal = open_screen(
        "boss", "look", "--sandbox", "full", "--model", place.script(PLAN, LOOK, FINISH), NO_COLOR="1"
    )
    assert terminal.wait_exit() == 0
    assert "✓ shell" in terminal.text
    assert not re.search(rb"\x1b\[[\d;]*3[0-7]m", terminal.raw)


def test_plan_review(place, open_screen):
    steps = [PLAN, "- [ ] better\n", FINISH]
    model = place.script(*steps)
    terminal = open_screen("boss", "look", "--review-plan", "--sandbox", "full", *MEMORY, "--model", model)
    terminal.see("┃ - [ ] look")
    terminal.see("answer:")
    terminal.type("a better one\r")
    terminal.see("┃ - [ ] better")
    terminal.see("answer:", times=2)
    terminal.type("\r")
    assert terminal.wait_exit() == 0
    assert (place.work / "plan.md").read_text() == "- [ ] better\n"
