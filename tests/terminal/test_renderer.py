"""Events as lines on a screen."""

import io
import json
import re

import pytest
from rich.console import Console

from goose_like.core.events import (
    Answer,
    Answered,
    Artifact,
    ArtifactShown,
    Asked,
    Event,
    Logged,
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
from goose_like.terminal.escape import escape_controls, escape_invisible, to_one_line
from goose_like.terminal.progress import ProgressScreen
from goose_like.terminal.renderer import CALL_ROWS, format_usage
from goose_like.terminal.tool_call import describe_call


def drawn(*events: Event, width: int = 100, is_terminal: bool = False, shows_answer: bool = True) -> str:
    """What stands on the screen; times are `T`, and a terminal's control sequences are left out."""
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
    screen = ProgressScreen(console, shows_answer=shows_answer)
    for event in events:
        screen.notify(event)
        if is_terminal:
            screen.pause()  # the spinner has its own test
    plain = re.sub(r"\x1b\[[\d;?]*[A-Za-z]|\r", "", file.getvalue())
    lines = [line for line in plain.split("\n") if not re.match(r"[⠀-⣿] ", line)]
    return re.sub(r"\d+\.\d s\b", "T", "\n".join(lines)).rstrip("\n")


def call(name: str = "shell", id: str = "c1", **arguments: object) -> ToolCall:
    return ToolCall(id=id, name=name, arguments=json.dumps(arguments))


def ran(output: str, *shown: str, is_error: bool = False, name: str = "shell", **arguments: object) -> list[Event]:
    """A call of `shell` from start to end."""
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
    assert drawn(*ran("one\ntwo", "one\ntwo\n")) == "▸ shell  make\n  │ one\n  │ two\n  ✓ T"


def test_an_exit_code_is_shown_although_something_was_printed():
    assert drawn(*ran("oops\n[exit code 7]", "oops\n")) == "▸ shell  make\n  │ oops\n  ✗ exit code 7 · T"


def test_a_failure_is_red_and_a_success_green():
    file = io.StringIO()
    screen = ProgressScreen(
        Console(file=file, force_terminal=True, color_system="standard", width=80), shows_answer=True
    )
    for event in [*ran("[exit code 7]"), *ran("fine", "fine\n")]:
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
    ],
)
def test_notes_of_a_command_stand_in_its_closing_line(output, closing):
    assert last(drawn(*ran(output))) == closing


@pytest.mark.parametrize("printed", ["[2, 3, 5]", "[exit code 3]", "[section]"])
def test_what_a_command_printed_in_brackets_is_no_note(printed):
    assert last(drawn(*ran(printed, f"{printed}\n"))) == "  ✓ T"


def test_brackets_in_a_file_are_no_notes():
    shown = drawn(*ran("x = 1\n[exit code 7]", name="read_file", path="a.toml"))
    assert last(shown) == "  ✓ x = 1 (+1 lines) · T"


@pytest.mark.parametrize(
    ("value", "closing"),
    [
        ([6, 1], "  ✓ [6, 1] · T"),
        ({"faces": [6, 1], "kept": None}, '  ✓ {"faces": [6, 1], "kept": null} · T'),
        ([5] * 5000, f"  ✓ [{'5, ' * 28}… · T"),
    ],
)
def test_a_value_is_shown_in_one_line(value, closing):
    assert last(drawn(*ran(json.dumps(value, indent=2), name="roll", count=2))) == closing


def test_a_line_in_brackets_says_what_the_rest_is():
    assert last(drawn(*ran("[a.py: 2 lines]\nx\ny", name="read_file", path="a.py"))) == "  ✓ a.py: 2 lines · T"


# --- errors


def test_an_error_is_whole_in_a_log():
    text = "word " * 100 + "end\nand what to do"
    shown = drawn(*ran(text, is_error=True, name="patch_file", path="a"))
    assert shown == f"▸ patch_file  a\n  ✗ {text.splitlines()[0]}\n    and what to do · T"


def test_an_error_is_wrapped_on_a_terminal():
    shown = drawn(*ran("no tool 'nope'; the tools are: shell, read_file", is_error=True), width=40, is_terminal=True)
    assert shown == "▸ shell  make\n  ✗ no tool 'nope'; the tools are:\n    shell, read_file · T"


def test_an_error_without_end_is_cut():
    shown = drawn(*ran("\n".join(f"line {n}" for n in range(1000)), is_error=True))
    assert shown.splitlines()[-2:] == ["    line 8", "    … 991 more lines · T"]


@pytest.mark.parametrize("width", [40, 100])
def test_nothing_is_wider_than_the_terminal(width):
    long = "some words and /a/rather/long/path/that/goes/on/and/on " * 4
    events = [
        *ran(f"{long}\n[exit code 7]\n[{long[:190]}]", f"{long}\n{'x' * 5000}\n", command=long),
        *ran(long, is_error=True, name="write_file", path=long, content="x"),
        PlanUpdated(tasks=(Task(description=long),)),
    ]
    shown = drawn(*events, width=width, is_terminal=True)
    assert max(map(len, shown.splitlines())) <= width


# --- several calls at once


def test_calls_side_by_side_are_told_by_number():
    one, two = call(id="a", command="one"), call(id="b", command="two")
    shown = drawn(
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
    return SubagentEvent(call_id=id, event=event.model_dump(mode="json"))


def test_what_a_delegate_does_stands_below_its_call():
    """One line for each of its calls, behind its number; nothing of it is obeyed, and what it says is not shown."""
    one, two = call("delegate", "a", task="look"), call("delegate", "b", task="more")
    failed = ToolFinished(result=ToolResult(call_id="x", output="no such\nfile", is_error=True))
    shown = drawn(
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
    assert drawn(within("a", Status(text="the model is loaded"))) == "the model is loaded"


def test_a_call_beside_the_plan_has_no_number():
    plan, one = call("update_plan", id="p", tasks=[]), call(command="one")
    message = MessageCompleted(message=Message.assistant("", [plan, one]))
    assert drawn(message, ToolStarted(call=plan), ToolStarted(call=one)) == "▸ shell  one"


# --- output


def test_of_long_output_the_beginning_the_count_and_the_end_are_shown():
    lines = [f"line {n}" for n in range(1, 41)]
    text = "\n".join(lines) + "\n"
    shown = drawn(*ran(text, text)).splitlines()
    assert shown[12:] == ["  │ line 12", "  │ … 25 more lines", "  │ line 38", "  │ line 39", "  │ line 40", "  ✓ T"]


def test_a_few_lines_more_are_all_shown():
    text = "".join(f"{n}\n" for n in range(1, 15))
    assert drawn(*ran(text, text)) == "▸ shell  make\n" + "".join(f"  │ {n}\n" for n in range(1, 15)) + "  ✓ T"


def test_where_all_of_it_is():
    live = "\n[...]\n" + "".join(f"{n}\n" for n in range(90, 101))
    note = "[... 9,000 of 9,500 bytes (5,000 lines) left out here; all of it is in /s/out.txt: search it with rg ...]"
    shown = drawn(*ran(f"1\n{note}\n100", live)).splitlines()
    assert shown[-3:] == ["  │ … 4,987 more lines", "  │ 100", "  ✓ all of it is in /s/out.txt · T"]


def test_an_enormous_line_is_clipped_and_its_size_told():
    chunks = ["x" * 10_000] * 100
    shown = drawn(*ran("x", *chunks, "\n"), width=60, is_terminal=True).splitlines()
    assert shown[1] == f"  │ {'x' * 32}… [1,000,000 characters]"


def test_a_carriage_return_starts_the_line_over():
    assert drawn(*ran("", "10%\r", "50%", "\r100%\r", "\ndone\r\nnext\n"))[14:] == "  │ 100%\n  │ done\n  │ next\n  ✓ T"


def test_binary_output_is_named_not_shown():
    shown = drawn(*ran("[binary output, 9 bytes, saved as /s/o]", "\0\1\2\3\4\5\6\7\n"))
    assert shown == "▸ shell  make\n  │ [binary, 8 bytes]\n  ✓ binary output, 9 bytes, saved as /s/o · T"


def test_what_is_kept_of_output_is_bounded():
    screen = ProgressScreen(Console(file=io.StringIO(), width=80), shows_answer=False)
    screen.notify(ToolStarted(call=call(command="x")))
    for _ in range(100):
        screen.notify(ToolProgress(call_id="c1", text="x" * 10_000))
        screen.notify(TextDelta(text="y" * 10_000))
    assert len(screen._calls["c1"].rest) <= 1_000
    assert len(screen._stream_tail) <= 200


def test_escapes_are_shown_not_obeyed():
    shown = drawn(*ran("", "\x1b]0;title\x07\x1b[2J\u202e\n"))
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
    rows = drawn(ToolStarted(call=call("shell", command=command)), width=60, is_terminal=True).splitlines()
    assert "".join(row.strip() for row in rows) == f"▸ shell  {command}"
    assert all(len(row) <= 60 for row in rows)
    assert (
        len(drawn(ToolStarted(call=call("shell", command="y" * 5000)), width=60, is_terminal=True).splitlines())
        == CALL_ROWS
    )


def test_wide_characters_count_twice():
    assert to_one_line("日本語日本語", 7) == "日本語…"


def test_the_plan_is_drawn_without_its_call():
    tasks = (Task(description="look", status="complete"), Task(description="mend", status="in-progress"))
    plan = call("update_plan", tasks=[])
    done = ToolFinished(result=ToolResult(call_id="c1", output="the plan is shown"))
    assert drawn(ToolStarted(call=plan), PlanUpdated(tasks=tasks), done) == "  ☑ look\n  ▶ mend"


def test_a_plan_that_was_refused_is_told():
    shown = drawn(*ran("field 'tasks' is missing", is_error=True, name="update_plan", tasks=[]))
    assert last(shown) == "  ✗ field 'tasks' is missing · T"
    assert "▸ update_plan" in shown


# --- the turn


def test_a_turn_of_a_session():
    question = Question(kind="network", subject="curl", text="network access for: curl")
    shown = drawn(
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
        Logged(text="--- a/f\n+++ b/f\n@@ -0,0 +1 @@\n+x"),
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
        (TurnFinished(reason="error", detail="no key"), "■ error no key"),
    ],
)
def test_how_a_turn_ended(end, line):
    assert drawn(end).startswith(line)
    assert (drawn(end) == "") == (line == "")


def test_a_streamed_answer_that_was_cut_says_so_after_it():
    cut = MessageCompleted(message=Message.assistant("half"), is_cut=True)
    assert drawn(TextDelta(text="half"), cut, TurnFinished(reason="cancelled")) == "half\n(cut off)\n■ cancelled"


def test_a_run_whose_answer_comes_after_says_that_it_is_cut():
    cut = MessageCompleted(message=Message.assistant("half"), is_cut=True)
    shown = drawn(TextDelta(text="half"), cut, TurnFinished(reason="cancelled"), shows_answer=False)
    assert shown == "■ cancelled · the answer is cut off"


def test_tokens_are_told_when_some_were_used():
    end = {"cost_usd": None, "reason": "stop", "exit_code": 0}
    assert drawn(RunFinished(usage=Usage(), **end)) == ""
    assert drawn(RunFinished(usage=Usage(input_tokens=1200, output_tokens=3), **end)) == "1,200 tokens in, 3 out"
    assert format_usage(Usage(input_tokens=9, cache_read_tokens=5), 0.5) == "9 tokens in (5 cached), 0 out · $0.5000"


def test_without_a_terminal_a_status_is_told_once_a_kind():
    shown = drawn(Status(text="weights 10 %"), Status(text="weights 20 %"), Status(text="loading"))
    assert shown == "weights 10 %\nloading"
    assert drawn(Status(text="reading ██░░ 50%")) == "reading"


def test_control_characters_are_written_out():
    assert escape_controls("a\x1b[31m\x9b\r\nb\tc") == "a\\x1b[31m\\x9b\nb\tc"


# --- questions


@pytest.mark.parametrize(
    "code",
    [
        *(0x00, 0x07, 0x0D, 0x1B, 0x7F, 0x9B, 0xA0, 0xAD, 0x034F, 0x061C, 0x115F, 0x1680, 0x180E, 0x2003, 0x200B),
        *(0x200D, 0x200F, 0x2028, 0x2029, 0x202E, 0x202F, 0x205F, 0x2060, 0x2066, 0x2800, 0x3000, 0x3164, 0xFE0F),
        *(0xFEFF, 0xFFA0, 0xFFF9, 0xE000, 0xE0001, 0xE0041, 0xE0100, 0xF0000, 0x1D173, 0x0378),
    ],
    ids=hex,
)
def test_what_one_does_not_see_is_written_out_where_it_is_asked_about(code):
    shown = escape_invisible(f"a{chr(code)}b")
    assert re.fullmatch(rf"a\\[xuU]0*{code:x}b", shown)


def test_words_of_any_script_are_shown_as_they_are():
    text = "grün 日本語 עברית हिन्दी é 🎉 ~!\tx\ny"
    assert escape_invisible(text) == text


def test_gaps_hide_nothing():
    assert escape_invisible(f"ls{' ' * 3000}; rm -rf ~") == "ls [3,000 blanks] ; rm -rf ~"
    assert escape_invisible("ls" + "\n" * 3000 + "rm -rf ~") == "ls\n[3,000 line ends]\nrm -rf ~"
    assert escape_invisible("if x:\n        y\n\n\nz") == "if x:\n        y\n\n\nz"


def question(text: str, detail: str = "", kind: str = "command") -> Asked:
    return Asked(question=Question(kind=kind, subject="s", text=text, detail=detail))


@pytest.mark.parametrize("is_terminal", [True, False])
def test_all_of_a_long_command_is_shown(is_terminal):
    command = "run: echo " + "x" * 5000 + "; rm -rf ~"
    shown = drawn(question(command), width=80, is_terminal=is_terminal)
    assert shown.replace("\n  ┃ ", "").partition("\n")[0] == f"? {command}"


def test_no_part_of_a_command_passes_for_a_line_of_ours():
    shown = drawn(question("run: true\n  command denied\n" + "x" * 76 + "  command denied"), width=80, is_terminal=True)
    assert len(shown.splitlines()) > 3
    assert all(line.startswith(("? run", "  ┃ ")) for line in shown.splitlines())


def test_a_change_is_shown_whole_and_its_lines_are_counted():
    diff = "\n".join(f"+line {number}\u200b" for number in range(100))
    shown = drawn(question("change /x", diff, "change")).splitlines()
    assert shown[0] == "? change /x"
    assert shown[1:-1] == [f"  ┃ +line {number}\\u200b" for number in range(100)]
    assert shown[-1] == "  (100 lines; they begin above)"


def test_what_a_project_brings_is_shown_when_it_is_asked_for():
    assert drawn(question("this project brings settings", "a secret", "trust")) == "? this project brings settings"


def test_each_answer_is_told():
    told = [
        drawn(Answered(question=question("x").question, answer=Answer(choice=choice, by="person")))
        for choice in ("allow", "allow_session", "allow_always", "deny")
    ]
    assert told == [
        "  command allowed",
        "  command allowed until the session ends",
        "  command allowed from now on",
        "  command denied",
    ]


def test_the_lines_of_a_change_have_their_numbers():
    diff = "--- a/f\n+++ b/f\n@@ -9,4 +9,4 @@\n one\n-two\n+zwei\n three\n+vier\n-- a/f"
    assert drawn(Logged(text=diff)).splitlines() == [
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


# --- what is shown beside the words


def shown(what: str, rows: object = (), /, text: str = "", width: int = 100, **chart: object) -> str:
    made = {"kind": what, "name": "Prices", "rows": rows, "text": text, "chart": chart or None}
    event = ArtifactShown(call_id="c1", artifact=Artifact.model_validate(made))
    return "\n".join(row.rstrip() for row in drawn(event, width=width, is_terminal=True).strip("\n").split("\n"))


def test_a_table_is_drawn_and_cut():
    rows = [{"day": "Mon", "price": 2.5, "open": True}, {"day": "a\nb\x1b[31m", "price": None}]
    assert shown("table", rows) == (
        "    Prices\n    day         │ price │ open\n    ────────────┼───────┼─────\n"
        "    Mon         │   2.5 │ true\n    a b\\x1b[31m │       │"
    )
    many = [{f"c{column}": row for column in range(14)} for row in range(23)]
    assert last(shown("table", many, width=120)) == "    … 3 more rows, 2 more columns"
    assert "more" not in shown("table", many[:21]).replace("2 more columns", "")
    narrow = shown("table", many, width=30).split("\n")
    assert len(narrow) == 62
    assert narrow[-1].startswith("    … 3 more rows, 2 more columns")


def test_bars():
    rows = [{"who": "Ada", "n": 4, "m": 2}, {"who": "Grace", "n": -2, "m": None}]
    bars = shown("chart", rows, kind="bar", x="who", y=["n", "m"], width=34).split("\n")
    assert bars[1:6] == [
        "    Ada    ███████████████████ 4",
        "           █████████▌ 2",
        "    Grace  █████████▌ -2",
        "            -",
        "    ■ n  ■ m",
    ]
    assert "█ 4 (100%)" in shown("chart", rows[:1], kind="pie", x="who", y=["n"])
    many = [{"who": n, "n": n} for n in range(50)]
    assert "    … 30 more\n" in shown("chart", many, kind="bar", x="who", y=["n"])


def test_lines_and_points():
    rows = [{"t": 10 * x, "v": x} for x in range(8)]
    line = shown("chart", rows, kind="line", x="t", y=["v"], width=26).split("\n")
    assert line[1] == "    7 │                ⢀⠤⠊"
    assert line[8:10] == ["    0 │⡠⠒⠁", "       0                70"]
    points = shown("chart", [{"t": 1, "v": 5}, {"t": 3, "v": 7}], kind="scatter", x="t", y=["v"], width=26).split("\n")
    assert [row.index("•") for row in points if "•" in row] == [25, 7]
    assert points[9] == "       1                 3"


@pytest.mark.parametrize("kind", ["line", "bar", "scatter", "pie", "donut"])
@pytest.mark.parametrize("value", [None, "x", True, pytest.param(10**400, id="huge"), 1e308, float("nan"), 0, [1], 7])
def test_any_chart_is_drawn(kind, value):
    rows = [{"t": value, "v": value}, {"v": value}]
    assert "Prices" in shown("chart", rows, kind=kind, x="t", y=["v"], width=30)
    assert "Prices" in shown("chart", [], kind=kind, x="t", y=["v"])


def test_a_page_and_a_text_are_told():
    assert last(shown("html", text="<p>hello</p>")) == "    an HTML page of 12 bytes, for a browser"
    assert shown("text", text="one\n" * 20).split("\n")[-2:] == ["    one", "    … 8 more lines"]


def test_what_may_be_asked_next_stands_below_the_answer():
    turn = [PromptsSuggested(prompts=("Why?", "And\nthen?")), TextDelta(text="So.\n"), TurnFinished(reason="stop")]
    assert drawn(*turn) == "So.\n  → Why?\n  → And then?"
    assert drawn(*turn, TurnFinished(reason="stop")) == drawn(*turn)
