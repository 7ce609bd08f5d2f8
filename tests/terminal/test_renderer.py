"""Events as lines on a screen."""

import io
import json
import re
import subprocess
import sys

import pytest
from rich.console import Console
from rich.text import Text

from goose_like.core.events import (
    Answer,
    Answered,
    Asked,
    Event,
    FileChanged,
    MessageCompleted,
    PlanUpdated,
    PromptsSuggested,
    Question,
    Retrying,
    RunFinished,
    SessionStarted,
    Status,
    SubagentEvent,
    Task,
    TextDelta,
    ToolFinished,
    ToolProgress,
    ToolStarted,
    TurnFinished,
    TurnStarted,
)
from goose_like.core.message import Message, ToolCall, ToolResult, Usage
from goose_like.sessions.output_limit import append_notes
from goose_like.terminal.lines import LineWriter
from goose_like.terminal.renderer import CALL_ROWS, format_usage
from goose_like.terminal.run_screen import RunScreen
from goose_like.terminal.tool_call import RunningCall, describe_call
from goose_like.terminal.wrap import ConsoleLines
from goose_like.workspace.sandbox.bubblewrap import LANDLOCK_ADVICE


def draw(*events: Event, width: int = 100, is_terminal: bool = False, shows_answer: bool = True) -> str:
    """Return the lines on the screen, without control sequences and with times as `T`."""
    file = io.StringIO()
    console = Console(
        file=file,
        width=width,
        force_terminal=is_terminal,
        color_system=None,
        highlight=False,
        markup=False,
        emoji=False,
        soft_wrap=True,
        legacy_windows=False,
    )
    screen = RunScreen(ConsoleLines(console), shows_answer=shows_answer)
    for event in events:
        screen.notify(event)
        if is_terminal:
            screen.pause()  # the spinner has its own test
    plain = re.sub(r"\x1b\[[\d;?]*[A-Za-z]|\r", "", file.getvalue())
    lines = [line for line in plain.split("\n") if not re.match(r"[⠀-⣿] ", line)]
    return re.sub(r"\d+\.\d s\b", "T", "\n".join(lines)).rstrip("\n")


def call(name: str = "shell", id: str = "c1", **arguments: object) -> ToolCall:
    return ToolCall(id=id, name=name, arguments=json.dumps(arguments))


def run_call(output: str, *shown: str, is_error: bool = False, name: str = "shell", **arguments: object) -> list[Event]:
    """Return the events of a call of `shell` from start to end."""
    made = call(name, **(arguments or {"command": "make"}))
    progress = [ToolProgress(call_id="c1", text=text) for text in shown]
    return [
        ToolStarted(call=made),
        *progress,
        ToolFinished(result=ToolResult(call_id="c1", output=output, is_error=is_error)),
    ]


def last(text: str) -> str:
    return text.splitlines()[-1]


# --- how a call ended


def test_a_command_that_worked_has_a_tick():
    assert draw(*run_call("one\ntwo", "one\ntwo\n")) == "▸ shell  make\n  │ one\n  │ two\n  ✓ T"


def test_an_exit_code_is_shown_although_something_was_printed():
    assert draw(*run_call("oops\n[exit code 7]", "oops\n")) == "▸ shell  make\n  │ oops\n  ✗ exit code 7 · T"


def test_a_failure_is_red_and_a_success_green():
    file = io.StringIO()
    screen = RunScreen(
        ConsoleLines(Console(file=file, force_terminal=True, color_system="standard", width=80)), shows_answer=True
    )
    for event in [*run_call("[exit code 7]"), *run_call("fine", "fine\n")]:
        screen.notify(event)
    screen.pause()
    assert re.search(r"\x1b\[31m  ✗ exit code 7", file.getvalue())
    assert re.search(r"\x1b\[32m  ✓ ", file.getvalue())


@pytest.mark.parametrize(
    ("output", "closing"),
    [
        ("[no output]", "  ✓ no output · T"),
        ("[no output]\n[exit code 1]", "  ✗ exit code 1 · no output · T"),
        ("[no output]\n[killed by SIGKILL]", "  ✗ killed by SIGKILL · no output · T"),
        ("[no output]\n[now in /tmp]", "  ✓ no output · now in /tmp · T"),
        ("[no output]\n[not allowed: connect to x: no]", "  ✗ not allowed: connect to x: no · no output · T"),
        ("[no new output]\n[p1: exit code 3]", "  ✗ p1: exit code 3 · no new output · T"),
        ("[no new output]\n[p1: exit code 0]", "  ✓ no new output · p1: exit code 0 · T"),
        (append_notes("", ["exit code 1", LANDLOCK_ADVICE]), "✗ exit code 1"),
        (append_notes("", ["exit code 1", "not allowed: a\nb"]), "  ✗ exit code 1 · not allowed: a b · no output · T"),
        (append_notes("", ["exit code 1", "x" * 5000]), "✗ exit code 1"),
    ],
)
def test_notes_of_a_command_stand_in_its_closing_line(output, closing):
    shown = draw(*run_call(output))
    assert last(shown) == closing if closing.endswith("T") else closing in shown


def test_the_time_of_a_question_is_not_that_of_the_call():
    started, replayed = (RunningCall(ToolCall(id="a", name="shell", arguments="{}"), "", at) for at in (7.0, None))
    for running in (started, replayed):
        running.skip_time(5)
    assert (started.started_at, replayed.started_at) == (12.0, None)


@pytest.mark.parametrize("printed", ["[2, 3, 5]", "[exit code 3]", "[section]"])
def test_what_a_command_printed_in_brackets_is_no_note(printed):
    assert last(draw(*run_call(printed, f"{printed}\n"))) == "  ✓ T"


def test_brackets_in_a_file_are_no_notes():
    shown = draw(*run_call("x = 1\n[exit code 7]", name="read_file", path="a.toml"))
    assert last(shown) == "  ✓ x = 1 … 1 more line · T"


@pytest.mark.parametrize(
    ("value", "closing"),
    [
        ([6, 1], "  ✓ [6, 1] · T"),
        ({"faces": [6, 1], "kept": None}, '  ✓ {"faces": [6, 1], "kept": null} · T'),
        ([5] * 5000, f"  ✓ [{'5, ' * 28}… · T"),
    ],
)
def test_a_value_is_shown_in_one_line(value, closing):
    assert last(draw(*run_call(json.dumps(value, indent=2), name="roll", count=2))) == closing


def test_a_line_in_brackets_says_what_the_rest_is():
    assert last(draw(*run_call("[a.py: 2 lines]\nx\ny", name="read_file", path="a.py"))) == "  ✓ a.py: 2 lines · T"


# --- errors


def test_an_error_is_whole_in_a_log():
    text = "word " * 100 + "end\nand what to do"
    shown = draw(*run_call(text, is_error=True, name="patch_file", path="a"))
    assert shown == f"▸ patch_file  a\n  ✗ {text.splitlines()[0]}\n    and what to do · T"


def test_an_error_is_wrapped_on_a_terminal():
    shown = draw(
        *run_call("no tool 'nope'; the tools are: shell, read_file", is_error=True), width=40, is_terminal=True
    )
    assert shown == "▸ shell  make\n  ✗ no tool 'nope'; the tools are:\n    shell, read_file · T"


def test_an_error_without_end_is_cut():
    shown = draw(*run_call("\n".join(f"line {n}" for n in range(1000)), is_error=True))
    assert shown.splitlines()[-2:] == ["    line 8", "    … 991 more lines · T"]


@pytest.mark.parametrize("width", [40, 100])
def test_nothing_is_wider_than_the_terminal(width):
    long = "some words and /a/rather/long/path/that/goes/on/and/on " * 4
    events = [
        *run_call(f"{long}\n[exit code 7]\n[{long[:190]}]", f"{long}\n{'x' * 5000}\n", command=long),
        *run_call(long, is_error=True, name="write_file", path=long, content="x"),
        PlanUpdated(tasks=(Task(description=long),)),
    ]
    shown = draw(*events, width=width, is_terminal=True)
    assert max(map(len, shown.splitlines())) <= width


# --- several calls at once


def test_calls_side_by_side_are_told_by_number():
    one, two = call(id="a", command="one"), call(id="b", command="two")
    shown = draw(
        MessageCompleted(message=Message.assistant("", [one, two])),
        ToolStarted(call=one),
        ToolStarted(call=two),
        ToolProgress(call_id="b", text="from two\n"),
        ToolProgress(call_id="a", text="from one\n"),
        ToolFinished(result=ToolResult(call_id="b", output="from two")),
        ToolFinished(result=ToolResult(call_id="a", output="from one\n[exit code 1]")),
    )
    assert shown.splitlines() == [
        "▸1 shell  one",
        "▸2 shell  two",
        "  │2 from two",
        "  │1 from one",
        "  ✓2 T",
        "  ✗1 exit code 1 · T",
    ]


def within(id: str, event: Event) -> SubagentEvent:
    return SubagentEvent(call_id=id, event=event)


def test_what_a_delegate_does_stands_below_its_call():
    """One line for each of its calls, behind its number; nothing of it is obeyed, and what it says is not shown."""
    one, two = call("delegate", "a", task="look"), call("delegate", "b", task="more")
    failed = ToolFinished(result=ToolResult(call_id="x", output="no such\nfile", is_error=True))
    shown = draw(
        MessageCompleted(message=Message.assistant("", [one, two])),
        ToolStarted(call=one),
        ToolStarted(call=two),
        within("b", ToolStarted(call=call(command="ls \x1b[31m"))),
        within("a", TextDelta(text="said")),
        within("a", ToolStarted(call=call("read_file", path="x"))),
        within("a", failed),
        within("a", within("a", ToolStarted(call=call(command="deep")))),
        within("gone", ToolStarted(call=call(command="late"))),
        ToolFinished(result=ToolResult(call_id="b", output="Two files.\n[took 1 step]")),
        ToolFinished(result=ToolResult(call_id="a", output="One file.\n[took 2 steps]")),
    )
    assert shown.splitlines() == [
        "▸1 delegate  look",
        "▸2 delegate  more",
        "  │2 ▸ shell ls \\x1b[31m",
        "  │1 ▸ read_file x",
        "  │1 ✗ no such file",
        "  │1 ▸ ▸ shell deep",
        "  ✓2 took 1 step · T",
        "  ✓1 took 2 steps · T",
    ]


def test_what_a_delegate_waits_for_is_told():
    assert draw(within("a", Status(text="the model is loaded"))) == "the model is loaded"


DISPLAYS = SessionStarted(
    version="0",
    name="",
    cwd="/",
    profile="",
    models={},
    tools=(),
    displays={"show_steps": "nothing", "inquire": "name"},
)
"""The start of a session with a tool for the plan and one for questions."""


def test_a_call_beside_the_plan_has_no_number():
    plan, one = call("show_steps", id="p", tasks=[]), call(command="one")
    message = MessageCompleted(message=Message.assistant("", [plan, one]))
    assert draw(DISPLAYS, message, ToolStarted(call=plan), ToolStarted(call=one)) == "▸ shell  one"
    both = draw(message, ToolStarted(call=plan), ToolStarted(call=one))
    assert both.splitlines() == ["▸1 show_steps  tasks=[]", "▸2 shell  one"]


# --- output


def test_of_long_output_the_beginning_the_count_and_the_end_are_shown():
    lines = [f"line {n}" for n in range(1, 41)]
    text = "\n".join(lines) + "\n"
    shown = draw(*run_call(text, text)).splitlines()
    assert shown[12:] == ["  │ line 12", "  │ … 25 more lines", "  │ line 38", "  │ line 39", "  │ line 40", "  ✓ T"]


def test_a_few_lines_more_are_all_shown():
    text = "".join(f"{n}\n" for n in range(1, 15))
    assert draw(*run_call(text, text)) == "▸ shell  make\n" + "".join(f"  │ {n}\n" for n in range(1, 15)) + "  ✓ T"


def test_skipped_lines_are_counted():
    made = call(command="seq 1000")
    shown = draw(
        ToolStarted(call=made),
        ToolProgress(call_id="c1", text="1\n2\n"),
        ToolProgress(call_id="c1", text="", skipped_line_count=990),
        ToolProgress(call_id="c1", text="".join(f"{n}\n" for n in range(993, 1001))),
        ToolFinished(result=ToolResult(call_id="c1", output="all of it")),
    )
    assert shown.splitlines()[1:-1] == [
        "  │ 1",
        "  │ 2",
        "  │ … 995 more lines",
        "  │ 998",
        "  │ 999",
        "  │ 1000",
    ]


@pytest.mark.parametrize("mark", ["[... 1,000 lines ...]", "[... 0 lines ...]", "\r[... 1,000 lines ...]", "[...]"])
def test_output_cannot_pretend_that_lines_were_skipped(mark):
    lines = ["rm -rf ~", mark, "all is well"]
    text = "".join(f"{line}\n" for line in lines)
    shown = draw(*run_call(text, *(f"{line}\n" for line in lines)))
    assert shown.splitlines()[1:-1] == ["  │ rm -rf ~", f"  │ {mark.strip()}", "  │ all is well"]


def test_where_all_of_it_is():
    live = "\n[...]\n" + "".join(f"{n}\n" for n in range(90, 101))
    note = "[... 4,998 lines (9,000 bytes) left out here; all of it is in /s/out.txt: search it with rg ...]"
    shown = draw(*run_call(f"1\n{note}\n100", live)).splitlines()
    assert shown[-3:] == ["  │ … 4,987 more lines", "  │ 100", "  ✓ all of it is in /s/out.txt · T"]


def test_an_enormous_line_is_clipped_and_its_size_told():
    chunks = ["x" * 10_000] * 100
    shown = draw(*run_call("x", *chunks, "\n"), width=60, is_terminal=True).splitlines()
    assert shown[1] == f"  │ {'x' * 32}… [1,000,000 characters]"


def test_a_carriage_return_starts_the_line_over():
    assert (
        draw(*run_call("", "10%\r", "50%", "\r100%\r", "\ndone\r\nnext\n"))[14:]
        == "  │ 100%\n  │ done\n  │ next\n  ✓ T"
    )


def test_binary_output_is_named_not_shown():
    shown = draw(*run_call("[binary output, 9 bytes, saved as /s/o]", "\0\1\2\3\4\5\6\7\n"))
    assert shown == "▸ shell  make\n  │ [binary, 8 bytes]\n  ✓ binary output, 9 bytes, saved as /s/o · T"


def test_what_is_kept_of_output_is_bounded():
    screen = RunScreen(LineWriter(io.StringIO()), shows_answer=False)
    screen.notify(ToolStarted(call=call(command="x")))
    for _ in range(100):
        screen.notify(ToolProgress(call_id="c1", text="x" * 10_000))
        screen.notify(TextDelta(text="y" * 10_000))
    assert len(screen._calls["c1"].rest) <= 1_000
    assert len(screen._stream_tail) <= 200


def test_escapes_are_shown_not_obeyed():
    shown = draw(*run_call("", "\x1b]0;title\x07\x1b[2J\u202e\n"))
    assert "  │ \\x1b]0;title\\x07\\x1b[2J\\u202e" in shown


# --- calls in a line


@pytest.mark.parametrize(
    ("made", "line"),
    [
        (call("shell", command="ls\n-l", timeout_s=5), "ls -l · timeout_s=5"),
        (call("write_file", path="a.py", content="é\n" * 2), "a.py · 6 bytes"),
        (call("patch_file", path="a.py", patches=[{"before": "x"}] * 2), "a.py · 2 patches"),
        (call("patch_file", path="a.py", patches=[{"before": "x"}]), "a.py · 1 patch"),
        (ToolCall(id="c", name="x", arguments="{broken"), "{broken"),
        (ToolCall(id="c", name="x", arguments="[1]"), "[1]"),
    ],
)
def test_a_call_is_one_line(made, line):
    assert describe_call(made, 60) == line


def test_a_long_command_is_wrapped_and_not_cut():
    command = "x" * 100 + "end"
    rows = draw(ToolStarted(call=call("shell", command=command)), width=60, is_terminal=True).splitlines()
    assert "".join(row.strip() for row in rows) == f"▸ shell  {command}"
    assert all(len(row) <= 60 for row in rows)
    assert (
        len(draw(ToolStarted(call=call("shell", command="y" * 5000)), width=60, is_terminal=True).splitlines())
        == CALL_ROWS
    )


@pytest.mark.parametrize("name", ["command", "code"])
def test_the_lines_of_a_command_are_shown_as_they_are(name):
    heredoc = "python3 - <<'EOF'\nfor i in range(3):\n    if i  % 2:\n\tprint('odd', '\x1b')\n\nEOF\n"
    shown = draw(ToolStarted(call=call(**{name: heredoc}, timeout_s=5)), is_terminal=True)
    assert [row.rstrip() for row in shown.splitlines()] == [
        "▸ shell  python3 - <<'EOF'",
        "         for i in range(3):",
        "             if i  % 2:",
        "                 print('odd', '\\x1b')",
        "",
        "         EOF",
        "         · timeout_s=5",
    ]
    assert draw(ToolStarted(call=call(**{name: "grep 'a   b' f", "access": "network"}))) == (
        "▸ shell  grep 'a   b' f · access=network"
    )


def test_of_a_long_command_the_first_lines_and_the_count_are_shown():
    long = ToolStarted(call=call(command="\n".join(["x" * 900, *map(str, range(1, 30))]), access="network"))
    rows = [row.strip() for row in draw(long, width=60, is_terminal=True).splitlines()]
    assert rows[4].endswith("x…")
    assert rows[5:] == ["1", "2", "3", "4", "5", "6", "… 23 more lines", "· access=network"]
    twelve = ToolStarted(call=call(command="\n".join("abcdefghijkl")))
    assert len(draw(twelve, is_terminal=True).splitlines()) == 12


def test_the_plan_is_drawn_without_its_call():
    tasks = (Task(description="look", status="complete"), Task(description="mend", status="in-progress"))
    plan = call("show_steps", tasks=[])
    done = ToolFinished(result=ToolResult(call_id="c1", output="the plan is shown"))
    assert draw(DISPLAYS, ToolStarted(call=plan), PlanUpdated(tasks=tasks), done) == "  ☑ look\n  ▶ mend"


def test_a_plan_that_was_refused_is_told():
    shown = draw(DISPLAYS, *run_call("field 'tasks' is missing", is_error=True, name="show_steps", tasks=[]))
    assert last(shown) == "  ✗ field 'tasks' is missing · T"
    assert "▸ show_steps" in shown


# --- the turn


def test_a_turn_of_a_session():
    question = Question(kind="network", subject="curl", text="network access for: curl")
    shown = draw(
        SessionStarted(version="0", name="n", cwd="/", profile="p", models={"processor": "m"}, tools=()),
        TurnStarted(message=Message.user("hi")),
        TextDelta(text="Let me "),
        TextDelta(text="look."),
        MessageCompleted(message=Message.assistant("Let me look.", [call(command="curl")])),
        ToolStarted(call=call(command="curl")),
        Asked(question=question),
        Answered(question=question, answer=Answer(choice="deny", by="person")),
        ToolFinished(result=ToolResult(call_id="c1", output="not allowed", is_error=True)),
        Retrying(text="429", wait_s=0.5),
        FileChanged(call_id="c1", path="/w/f", diff="--- a/f\n+++ b/f\n@@ -0,0 +1 @@\n+x"),
        TurnFinished(reason="stop"),
    )
    assert shown.splitlines() == [
        "session n · profile p · m",
        "Let me look.",
        "▸ shell  curl",
        "? network access for: curl",
        "  network denied",
        "  ✗ not allowed · T",
        "↻ 429 · trying again in T",
        "  --- a/f",
        "  +++ b/f",
        "  @@ -0,0 +1 @@",
        "     1 +x",
    ]


@pytest.mark.parametrize(
    ("end", "line"),
    [
        (TurnFinished(reason="stop"), ""),
        (TurnFinished(reason="stop", detail="denied, as nobody could be asked", exit_code=6), "■ denied, as nobody"),
        (TurnFinished(reason="cancelled"), "■ cancelled"),
        (TurnFinished(reason="step_limit", detail="the limit of 3 steps"), "■ stopped at the limit of 3 steps"),
        (TurnFinished(reason="budget", detail="30 of 20 tokens are used"), "■ stopped: 30 of 20 tokens are used"),
        (TurnFinished(reason="error", detail="no key"), "■ error no key"),
    ],
)
def test_how_a_turn_ended(end, line):
    assert draw(end).startswith(line)
    assert (draw(end) == "") == (line == "")


def test_a_streamed_answer_that_was_cut_says_so_after_it():
    cut = MessageCompleted(message=Message.assistant("half"), is_cut=True)
    assert draw(TextDelta(text="half"), cut, TurnFinished(reason="cancelled")) == "half\n(cut off)\n■ cancelled"


def test_a_run_whose_answer_comes_after_says_that_it_is_cut():
    cut = MessageCompleted(message=Message.assistant("half"), is_cut=True)
    shown = draw(TextDelta(text="half"), cut, TurnFinished(reason="cancelled"), shows_answer=False)
    assert shown == "■ cancelled · the answer is cut off"


def test_tokens_are_told_when_some_were_used():
    end = {"cost_usd": None, "reason": "stop", "exit_code": 0}
    assert draw(RunFinished(usage=Usage(), **end)) == ""
    assert draw(RunFinished(usage=Usage(input_tokens=1200, output_tokens=3), **end)) == "1,200 tokens in, 3 out"
    assert format_usage(Usage(input_tokens=9, cache_read_tokens=5), 0.5) == "9 tokens in (5 cached), 0 out · $0.5000"


def test_without_a_terminal_a_status_is_told_once_a_kind():
    shown = draw(Status(text="weights 10 %"), Status(text="weights 20 %"), Status(text="loading"))
    assert shown == "weights 10 %\nloading"
    assert draw(Status(text="reading ██░░ 50%")) == "reading"


# --- questions


def question(text: str, detail: str = "", kind: str = "command", prefix: str = "") -> Asked:
    return Asked(question=Question(kind=kind, subject="s", text=text, detail=detail, prefix=prefix))


@pytest.mark.parametrize("is_terminal", [True, False])
def test_all_of_a_long_command_is_shown(is_terminal):
    command = "run: echo " + "x" * 5000 + "; rm -rf ~"
    shown = draw(question(command), width=80, is_terminal=is_terminal)
    assert shown.replace("\n  ┃ ", "").partition("\n")[0] == f"? {command}"


@pytest.mark.parametrize("word", ["word", "日本", "e\u0301e\u0301", "long" * 9, "a  b", "a b " * 9 + "c"])
def test_a_question_breaks_before_spaces_and_loses_none(word):
    command = "run: " + " ".join([word] * 4)
    first, *more = draw(question(command), width=24, is_terminal=True).splitlines()
    rows = [first.removeprefix("? "), *(row.removeprefix("  ┃ ") for row in more)]
    assert "".join(rows) == command
    if "long" not in word:
        assert {part for row in rows for part in row.split()} == {"run:", *word.split()}


def test_no_part_of_a_command_passes_for_a_line_of_ours():
    shown = draw(question("run: true\n  command denied\n" + "x" * 76 + "  command denied"), width=80, is_terminal=True)
    assert len(shown.splitlines()) > 3
    assert all(line.startswith(("? run", "  ┃ ")) for line in shown.splitlines())


def test_a_question_in_words_is_shown_once_and_split_between_words():
    asked = {"question": "Should one table hold all of them?", "choices": ["One table, as most people search for it"]}
    shown = question(asked["question"], f"1. {asked['choices'][0]}", "text")
    answer = Answer(choice="allow", by="person", text="the first, for now and for all the years")
    answered = Answered(question=shown.question, answer=answer)
    started = ToolStarted(call=call("inquire", **asked))
    assert draw(DISPLAYS, started, shown, answered, width=30, is_terminal=True).splitlines() == [
        "▸ inquire",
        "? Should one table hold all",
        "  ┃ of them?",
        "  ┃ 1. One table, as most",
        "  ┃ people search for it",
        "  answered: the first, for now",
        "  and for all the years",
    ]


def test_no_part_of_a_question_in_words_passes_for_a_line_of_ours():
    shown = draw(question("a\n  command denied\n" + "x" * 90, "b\n\nc", "text"), width=80, is_terminal=True)
    assert len(shown.splitlines()) == 7
    assert all(line.startswith(("? a", "  ┃")) for line in shown.splitlines())


def test_a_change_is_shown_whole_and_its_lines_are_counted():
    diff = "\n".join(f"+line {number}\u200b" for number in range(100))
    shown = draw(question("change /x", diff, "change")).splitlines()
    assert shown[0] == "? change /x"
    assert shown[1:-1] == [f"  ┃ +line {number}\\u200b" for number in range(100)]
    assert shown[-1] == "  (100 lines; they begin above)"


def test_what_a_project_brings_is_shown_when_it_is_asked_for():
    assert draw(question("this project brings settings", "a secret", "trust")) == "? this project brings settings"


def test_a_long_prefix_is_shown_with_the_question():
    assert (
        draw(question("x", prefix="ls, " * 9 + "cat"))
        .splitlines()[1]
        .startswith("  p allows until the session ends: ls,")
    )


def test_each_answer_is_told():
    verdicts = {
        Answer(choice="allow", by="person"): "allowed",
        Answer(choice="allow_prefix", by="person"): "allowed until the session ends: git push",
        Answer(choice="allow_always", by="person"): "allowed from now on",
        Answer(by="person", text="too \x1b large"): "denied: too \\x1b large",
    }
    asked = question("x", prefix="git push").question
    for answer, verdict in verdicts.items():
        assert draw(Answered(question=asked, answer=answer)) == f"  command {verdict}"


def change(diff: str) -> FileChanged:
    return FileChanged(call_id="c1", path="/w/f", diff=diff)


def test_a_change_without_a_diff_draws_nothing():
    assert draw(change("")) == ""


def test_the_lines_of_a_change_have_their_numbers():
    diff = "--- a/f\n+++ b/f\n@@ -9,4 +9,4 @@\n one\n-two\n+zwei\n three\n+vier\n-- a/f"
    assert draw(change(diff)).splitlines() == [
        "  --- a/f",
        "  +++ b/f",
        "  @@ -9,4 +9,4 @@",
        "     9  one",
        "    10 -two",
        "    10 +zwei",
        "    11  three",
        "    12 +vier",
        "    12 -- a/f",
    ]


def test_a_long_line_of_a_change_is_indented_below_its_text():
    diff = "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-short\n+\tlong line that  is wider 界界界 than it\n"
    assert draw(change(diff), width=30, is_terminal=True).splitlines()[3:6] == [
        "     1 -short",
        "     1 +    long line that  is",
        "         wider 界界界 than it",
    ]
    assert draw(change(f"{diff}+{'x' * 3000}")).splitlines()[-1].endswith("x" * 3000)


def test_what_may_be_asked_next_stands_below_the_answer():
    turn = [PromptsSuggested(prompts=("Why?", "And\nthen?")), TextDelta(text="So.\n"), TurnFinished(reason="stop")]
    assert draw(*turn) == "So.\n  → Why?\n  → And then?"
    assert draw(*turn, TurnFinished(reason="stop")) == draw(*turn)


@pytest.mark.parametrize("text", ["one two", "a\tb\n\tc", "x" * 3_000, "one\ntwo\n", "", "é\x07b 界"])
def test_a_log_gets_the_lines_that_rich_would_print(text: str) -> None:
    log, printed = io.StringIO(), io.StringIO()
    console = Console(file=printed, highlight=False, soft_wrap=True, markup=False)
    for line in (text, [(text, "cyan"), (" more", "")], Text(text)):
        LineWriter(log).write_line(line, "dim")
        console.print(Text.assemble(*line) if isinstance(line, list) else Text(str(line)))
    assert log.getvalue() == printed.getvalue()


def test_a_run_without_a_terminal_loads_no_rich():
    program = (
        "import io, sys; import goose_like.cli.run; from goose_like.terminal.interaction import open_screen;"
        "from goose_like.core.events import Status; open_screen(shows_answer=False).notify(Status(text='hello'));"
        "print('rich' in sys.modules)"
    )
    process = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert (process.stdout, process.stderr) == ("False\n", "hello\n")
