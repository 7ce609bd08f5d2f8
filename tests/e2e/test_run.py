"""The one-shot run as a process: what comes on stdout and stderr, and the exit code of each end."""

import json
import re
import signal
import subprocess
import sys
from importlib.util import find_spec
from subprocess import PIPE

import pytest

from goose_like.workspace.sandbox.bubblewrap import find_bwrap
from goose_like.workspace.sandbox.landlock import find_landlock_problem
from tests.e2e.command import shell
from tests.e2e.screen import ScreenTerminal
from tests.loopback import called, listed, refusal, said, sse, threaded, usage


def test_a_file_is_written_and_run(place):
    program = "print([n for n in range(2, 30) if all(n % d for d in range(2, n))])\n"
    model = place.script(
        {"calls": [{"tool": "write_file", "arguments": {"path": "hello.py", "content": program}}]},
        {"calls": [shell("python3 hello.py")], "expect": "created hello.py"},
        {"text": "It prints the first 10 primes.", "expect": r"\[2, 3, 5, 7, 11, 13, 17, 19, 23, 29\]"},
    )
    done = place.run("run", "--model", model, "make primes")
    assert (done.returncode, done.stdout) == (0, "It prints the first 10 primes.\n"), done.stderr
    assert (place.work / "hello.py").read_text() == program
    assert "▸ write_file  hello.py" in done.stderr
    assert "▸ shell  python3 hello.py" in done.stderr
    assert "│ [2, 3, 5, 7, 11, 13, 17, 19, 23, 29]" in done.stderr


def test_stream_json_is_every_event_from_session_started_to_run_finished(place):
    model = place.script({"calls": [shell("echo hi")]}, {"text": "said hi"})
    done = place.run("run", "--model", model, "--output-format", "stream-json", "say hi")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    kinds = [event["type"] for event in events]
    assert kinds[0] == "session_started"
    assert kinds[-1] == "run_finished"
    assert events[-1]["exit_code"] == done.returncode == 0
    durable = [{k: v for k, v in event.items() if k != "at"} for event in place.events()]
    assert [event for event in events if event in durable] == durable


def test_json_is_one_object(place):
    model = place.script({"text": "the answer", "usage": {"input": 7, "output": 3, "cached": 2}})
    done = place.run("run", "--model", model, "--output-format", "json", "--quiet", "ask")
    summary = json.loads(done.stdout)
    assert (summary["result"], summary["reason"], summary["exit_code"]) == ("the answer", "stop", 0)
    assert summary["usage"]["input_tokens"] == 7
    assert done.stderr == ""


def test_each_call_of_a_message_sees_what_those_before_it_did(place):
    (place.work / "src").mkdir()
    wanted = [
        {"tool": "write_file", "arguments": {"path": "src/a.py", "content": "print('old')\n"}},
        shell("cd src"),
        shell("python3 a.py"),
        {"tool": "patch_file", "arguments": {"path": "src/a.py", "patches": [{"before": "old", "after": "new"}]}},
        shell("python3 a.py && cd .."),
        shell("ls -d src"),
    ]
    model = place.script({"calls": wanted}, {"text": "Done."})
    assert place.run("run", "--model", model, "go").returncode == 0
    results = [event["result"] for event in place.events() if event["type"] == "tool_finished"]
    first_lines = [result["output"].splitlines()[0] for result in results]
    assert [first_lines[2], first_lines[4], first_lines[5]] == ["old", "new", "src"]


def plan(*statuses):
    tasks = [{"description": f"task {number}", "status": status} for number, status in enumerate(statuses)]
    return {"tool": "update_plan", "arguments": {"tasks": tasks}}


@pytest.mark.parametrize("output_format", ["text", "json"])
def test_a_reminder_does_not_replace_the_answer(place, output_format):
    summary = "Both ports are done.\n\n- a: 3 tests\n- b: 4 tests"
    broken = {"tool": "write_file", "arguments": {"path": "a.json", "content": "{"}}
    model = place.script(
        {"calls": [broken]},
        {"text": summary},
        {"text": "The summary above stands.", "expect": r"(?s)a.json does not parse.*is kept"},
    )
    done = place.run("run", "--model", model, "--output-format", output_format, "port both")
    answer = json.loads(done.stdout)["result"] if output_format == "json" else done.stdout.rstrip("\n")
    assert answer == f"{summary}\n\nThe summary above stands."


@pytest.mark.parametrize("options", [[], ["--approval", "plan"]])
def test_open_tasks_cause_no_reminder(place, options):
    model = place.script({"calls": [plan("in-progress", "planned", "planned")]}, {"text": "All of it."})
    done = place.run("run", "--model", model, *options, "go")
    assert (done.returncode, done.stdout) == (0, "All of it.\n"), done.stderr


def test_plan_mode_offers_only_what_it_allows(place):
    model = place.script({"text": "1. Split utils.py."})
    done = place.run("run", "--model", model, "--approval", "plan", "--output-format", "stream-json", "plan it")
    offered = set(json.loads(done.stdout.splitlines()[0])["tools"])
    assert {"shell", "read_file"} <= offered
    assert not offered & {"write_file", "patch_file", "update_plan", "fetch_web_content"}


def test_a_broken_file_is_mentioned_once_and_a_running_process_never(place):
    (place.work / "broken.json").write_text("{ // a comment\n}")
    write = [
        {"tool": "write_file", "arguments": {"path": path, "content": content}}
        for path, content in {"a.py": "def f(:\n", "b.json": "{}", "c.toml": "x = ", "d.yaml": "a: [1"}.items()
    ]
    read = {"tool": "read_file", "arguments": {"path": "broken.json"}}
    patch = {"before": "}", "after": '"a": 1}'}
    edit = {"tool": "patch_file", "arguments": {"path": "broken.json", "patches": [patch]}}
    start = {"tool": "process", "arguments": {"action": "start", "command": "sleep 300"}}
    repair = {"tool": "write_file", "arguments": {"path": "a.py", "content": "def f(): ...\n"}}
    told = r"(?s)a.py does not parse: line 1: .*c.toml does not parse: .*d.yaml does not parse: "
    model = place.script(
        {"calls": [*write, read, edit, start]},
        {"text": "Done."},
        {"calls": [repair], "expect": told},
        {"text": "And a.py is repaired."},
    )
    done = place.run("run", "--model", model, "go")
    assert done.stdout == "Done.\n\nAnd a.py is repaired.\n", done.stderr
    (reminder,) = [
        event["text"] for event in place.events() if event["type"] == "reminded" and "parse" in event["text"]
    ]
    assert "b.json" not in reminder
    assert "broken.json" not in reminder  # it did not parse before


@pytest.mark.parametrize("words", [["-"], []])
def test_the_task_comes_from_standard_input(place, words):
    model = place.script({"text": "ok", "expect": "from the pipe"})
    assert place.run("run", "--model", model, *words, input="from the pipe").returncode == 0


def test_standard_input_is_added_to_words(place):
    model = place.script({"text": "ok", "expect": r"explain this\n\nfrom the pipe"})
    assert place.run("run", "--model", model, "explain", "this", "-", input="from the pipe").returncode == 0


def test_the_task_comes_from_a_file(place):
    (place.work / "task.txt").write_text("from the file")
    model = place.script({"text": "ok", "expect": "from the file"})
    assert place.run("run", "--model", model, "-i", "task.txt").returncode == 0
    assert place.run("run", "--model", model, "task.txt").returncode == 0


@pytest.mark.parametrize("words", [["-"], [], ["", "-"], ["-i", "task.txt"], ["task.txt"]])
def test_only_words_on_the_command_line_are_a_command(place, words):
    (place.work / "task.txt").write_text("/api: returns 500")
    model = place.script({"text": "ok", "expect": "/api: returns 500"})
    done = place.run("run", "--model", model, *words, input=None if "task.txt" in words else "/api: returns 500")
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr
    done = place.run("run", "--model", model, "/api: returns 500", "-", input="x")
    assert done.returncode == 2
    assert "no command /api" in done.stderr


@pytest.mark.parametrize(
    ("words", "report"),
    [
        (["run", ""], "the task is empty"),
        (["run", "-i", "missing.txt"], "cannot read the task from 'missing.txt'"),
        (["run", "-i", "x", "y"], "not both"),
        (["run", "-i", "x", "-"], "not both"),
        (["run", "--model", "", "x"], "unknown provider ''"),
        (["run", "--profile", "", "x"], "unknown profile ''"),
        (["session", "start", "a b"], "is no name for a session"),
        (["run", "--profile", "lokal", "x"], "did you mean 'local'?"),
        (["run", "--model", "opnai:x", "x"], "did you mean 'openai'?"),
        (["run", "--no-session", "--resume", "x"], "--no-session cannot be used with"),
        (["run", "--max-steps", "0", "x"], "--max-steps"),
        (["run", "--approval", "maybe", "x"], "--approval"),
        (["run", "--bogus"], "--bogus"),
        (["session", "resume", "nope"], "no session 'nope'"),
        (["toolkit", "show", "develper"], "did you mean 'developer'?"),
        (["profile", "show", "defalt"], "did you mean 'default'?"),
    ],
)
def test_a_mistake_is_one_clear_line(place, words, report):
    done = place.run(*words)
    assert done.returncode == (1 if words[:2] == ["session", "resume"] else 2)
    assert report in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_each_limit_has_its_exit_code(place):
    again = [{"calls": [shell("true")], "usage": {"input": 600, "output": 10}}] * 5
    assert place.run("run", "--model", place.script(*again), "--max-steps", "2", "x").returncode == 3
    assert place.run("run", "--model", place.script(*again), "--max-tokens", "1000", "x").returncode == 5
    slow = place.script({"calls": [shell("sleep 60")]})
    assert place.run("run", "--model", slow, "--timeout", "1", "x").returncode == 124


@pytest.mark.parametrize(
    ("command", "step"), [("sleep 60", {"text": "no"}), ("sleep 1", {"calls": [shell("sleep 60")]})]
)
def test_the_time_limit_holds_for_the_commands_of_a_text_and_its_turn_together(place, command, step):
    (folder := place.home / "config/commands").mkdir(parents=True)
    (folder / "slow.md").write_text(f"!`{command}`")
    done = place.run("run", "--model", place.script(step), "--timeout", "2", "--output-format", "json", "/slow")
    assert done.returncode == 124
    assert json.loads(done.stdout)["exit_code"] == 124
    assert "the time limit of 2 s" in done.stderr


def test_a_cost_limit_ends_the_turn(place):
    answers = [sse([*called(("a", "shell", '{"command": "true"}'))[:-1], usage(1_000_000, 1000)]), sse(said("never"))]
    with threaded(answers) as server:
        env = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": server.base_url}
        done = place.run("run", "--model", "openai:gpt-4o", "--max-cost", "0.01", "x", env=env)
    assert done.returncode == 4, done.stderr
    assert len(server.requests) == 1


@pytest.mark.parametrize(("status", "code"), [(401, 76), (403, 76), (404, 77), (400, 1), (422, 1)])
def test_a_refusal_never_exits_with_0(place, status, code):
    with threaded([refusal(status, "the server's words")]) as server:
        env = {"OPENAI_API_KEY": "sk-planted-key-1234567890", "OPENAI_BASE_URL": server.base_url}
        done = place.run("run", "--model", "openai:m", "x", env=env)
    assert done.returncode == code
    assert f"127.0.0.1:{server.port}" in done.stderr
    assert "sk-planted" not in done.stderr + done.stdout
    assert len(server.requests) == 1


def test_the_key_and_a_whole_run_over_http(place):
    answers = [
        sse(called(("a", "shell", '{"command": "echo one"}'), ("b", "shell", '{"command": "echo $OPENAI_API_KEY."}'))),
        sse(said("both done")),
    ]
    with threaded(answers) as server:
        env = {"OPENAI_API_KEY": "sk-planted-key-1234567890", "OPENAI_BASE_URL": server.base_url}
        done = place.run("run", "--model", "openai:m", "do two things", env=env)
    assert (done.returncode, done.stdout) == (0, "both done\n"), done.stderr
    first, second = (asked.json for asked in server.requests)
    assert second["messages"][: len(first["messages"])] == first["messages"]
    assert [m["content"] for m in second["messages"] if m["role"] == "tool"] == ["one", "."]
    assert [m["tool_call_id"] for m in second["messages"] if m["role"] == "tool"] == ["a", "b"]
    assert len(server.requests[0].body) <= 7000
    whole = "".join(file.read_text(errors="replace") for file in place.home.rglob("*") if file.is_file())
    assert "sk-planted" not in whole


def test_a_server_that_is_busy_is_tried_again_visibly(place):
    answers = [refusal(429, "slow down", {"retry-after": "0.2"}), refusal(503), sse(said("now"))]
    with threaded(answers) as server:
        env = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": server.base_url}
        done = place.run("run", "--model", "openai:m", "x", env=env)
    assert (done.returncode, done.stdout) == (0, "now\n")
    assert done.stderr.count("trying again") == 2


def test_a_question_that_nobody_answers_is_denied_and_told(place):
    model = place.script(
        {"calls": [shell("curl http://example.org", access="network")]},
        {"text": "no network then", "expect": "nobody"},
    )
    done = place.run("run", "--model", model, "fetch")
    assert (done.returncode, done.stdout) == (6, "no network then\n")
    assert "network" in done.stderr.splitlines()[-2] + done.stderr.splitlines()[-1]


@pytest.mark.skipif(
    find_bwrap() is None, reason="bubblewrap, in which this test takes user namespaces away, is not here"
)
def test_without_user_namespaces_commands_cannot_write_here(place):
    model = place.script(
        {"calls": [shell("echo ran > ran.txt")]}, {"text": "it may not be written: commands cannot write everywhere"}
    )
    nowhere = [
        str(find_bwrap()),
        "--bind",
        "/",
        "/",
        "--dev",
        "/dev",
        "--proc",
        "/proc",
        "--unshare-user",
        "--disable-userns",
    ]
    command = [*nowhere, "--cap-drop", "ALL", "--", sys.executable, "-m", "goose_like", "run", "--model", model, "x"]
    done = subprocess.run(command, cwd=place.work, env=place.env(), capture_output=True, text=True, timeout=60)
    if find_landlock_problem() is None:
        assert done.returncode == 0, done.stderr
        assert "commands cannot write in the workspace" in done.stderr
    else:
        assert done.returncode == 7, done.stderr
        assert "--sandbox full" in done.stderr
    assert not (place.work / "ran.txt").exists()
    command += ["--sandbox", "full"]
    done = subprocess.run(command, cwd=place.work, env=place.env(), capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert (place.work / "ran.txt").exists()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_turn_and_its_command(place, number, code):
    model = place.script({"calls": [shell("echo started; sleep 300; echo never > never.txt")]})
    process = place.start("run", "--model", model, "--output-format", "stream-json", "x")
    for line in process.stdout:
        if '"tool_progress"' in line:
            break
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == code, err
    kinds = [json.loads(line)["type"] for line in out.splitlines()]
    assert kinds[-2:] == ["turn_finished", "run_finished"]
    assert place.events()[-1]["reason"] == "cancelled"


def test_doctor_names_what_is_there_and_the_next_step_without_keys(place):
    with threaded([listed("gpt-6-sol")]) as server:
        env = {"OPENAI_API_KEY": "sk-planted-key-1234567890", "OPENAI_BASE_URL": server.base_url}
        done = place.run("doctor", env=env)
    assert done.returncode == 0, done.stdout
    assert "sk-planted" not in done.stdout
    assert "openai:" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("next: ")


def test_no_session_keeps_nothing(place):
    assert place.run("run", "--no-session", "--model", place.script({"text": "ok"}), "x").returncode == 0
    assert not list(place.home.rglob("events.jsonl"))


def test_a_named_session_is_resumed(place):
    assert place.run("run", "--session", "mine", "--model", place.script({"text": "first"}), "one").returncode == 0
    model = place.script({"text": "first"}, {"text": "second", "expect": "two"})
    assert place.run("run", "--session", "mine", "--resume", "--model", model, "two").stdout == "second\n"
    taken = place.run("run", "--session", "mine", "--model", model, "three")
    assert (taken.returncode, "session resume mine" in taken.stderr) == (1, True)
    assert "mine" in place.run("session", "list").stdout


def test_a_session_reads_lines_without_a_terminal(place):
    model = place.script({"text": "hello you"}, {"text": "and again"})
    done = place.run("session", "start", "talk", "--model", model, input="hi\n\nmore\nexit\nnever\n")
    assert done.returncode == 0
    assert done.stdout == "hello you\nand again\n"
    assert "session resume talk" in done.stderr


def test_without_a_person_a_session_ends_with_its_last_turns_exit_code(place):
    done = place.run("session", "start", "--model", place.script("hello"), input="hi\nmore than the script has\n")
    assert done.returncode == 1
    assert "the script" in done.stderr


def test_help_as_a_command(place):
    shown = place.run("--help").stdout
    assert shown != ""
    report = place.run("help").stdout
    assert [line for line in shown.splitlines() if line not in report.splitlines()] == []


def test_a_reader_that_leaves_early_is_no_traceback(place):
    model = place.script({"text": "x" * 100_000})
    process = place.start("run", "--model", model, "--quiet", "x")
    process.stdout.close()
    process.wait(timeout=60)
    assert "Traceback" not in process.stderr.read()


@pytest.mark.parametrize(
    "words",
    [
        ("--version",),
        ("profile", "list"),
        ("help",),
        ("run", "hi", "--model", "MODEL"),
        ("run", "hi", "--model", "MODEL", "--output-format", "json"),
        ("run", "hi", "--model", "MODEL", "--output-format", "stream-json"),
        ("--model", "MODEL"),
    ],
)
@pytest.mark.parametrize(
    ("output", "sentence"), [("&-", "standard output is closed; "), ("/dev/full", "No space left")]
)
def test_output_that_is_lost_is_one_sentence(place, words, output, sentence):
    model = place.script({"text": "hello"})
    line = [sys.executable, "-m", "goose_like", *(model if word == "MODEL" else word for word in words)]
    done = subprocess.run(
        ["bash", "-c", f'"$@" >{output}', "bash", *line],
        env=place.env(),
        cwd=place.work,
        input="hi\nho\n",
        stderr=PIPE,
        text=True,
    )
    assert (done.returncode, "Traceback" in done.stderr) == (1, False), done.stderr
    assert f"goose-like: {sentence}" in done.stderr.splitlines()[-1]
    assert done.stderr.count(sentence) == 1


@pytest.mark.parametrize("count", [0, 3, 8, 10])
def test_a_run_stops_when_the_reader_of_both_streams_is_gone(place, count):
    calls = [{"calls": [shell("seq 1 9")]}, {"calls": [shell("while echo more; do sleep 0.1; done")]}]
    words = [sys.executable, "-m", "goose_like", "run", "go on", "--model", place.script(*calls)]
    line = f'"$@" 2>&1 | head -{count} >/dev/null; exit ${{PIPESTATUS[0]}}'
    done = subprocess.run(["bash", "-c", line, "bash", *words], env=place.env(), cwd=place.work, timeout=60)
    assert done.returncode == 1
    # A reader that is gone at once may end the run before its session begins.
    has_begun = count > 0 or any((place.home / "state" / "sessions").glob("*/events.jsonl"))
    assert not has_begun or place.list_turn_ends() == ["cancelled"]


def test_a_session_by_lines_ends_when_the_reader_of_both_streams_is_gone(place):
    model = place.script({"calls": [shell("seq 1 20")]}, "an answer", "another")
    words = [sys.executable, "-m", "goose_like", "--model", model]
    line = 'printf "hi\\nthere\\n" | "$@" 2>&1 | head -4 >/dev/null'
    subprocess.run(["bash", "-c", line, "bash", *words], env=place.env(), cwd=place.work, timeout=60, check=True)
    assert place.list_turn_ends() == ["stop", "stop"]


@pytest.mark.parametrize("closed", ["<&-", "2>&-", "<&- 2>&-", "2>/dev/full", "2> >(exec 0<&-; sleep 1)"])
def test_a_closed_input_or_error_stream_changes_nothing(place, closed):
    line = [sys.executable, "-m", "goose_like", "run", "hi", "--model", place.script({"text": "hello"})]
    command = ["bash", "-c", f'"$@" {closed}', "bash", *line]
    done = subprocess.run(command, env=place.env(), cwd=place.work, stdout=PIPE, text=True)
    assert (done.returncode, done.stdout) == (0, "hello\n")


@pytest.mark.local
@pytest.mark.skipif(find_spec("xllamacpp") is None, reason="the extra `local` is not installed")
def test_ctrl_c_while_the_embedded_model_writes(place):
    env = place.env(XDG_CONFIG_HOME=str(place.home / "c"), XDG_STATE_HOME=str(place.home / "s"))
    del env["GOOSE_LIKE_HOME"]  # the weights of the person's own cache
    command = [sys.executable, "-m", "goose_like", "run", "--no-session", "Write a long poem into poem.txt."]
    process = subprocess.Popen(command, cwd=place.work, env=env, stderr=PIPE, stdout=PIPE, text=True)
    shown = ""
    while "the model writes" not in shown:
        shown += process.stderr.readline()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "cancelled" in err
    assert "Traceback" not in err
    assert not re.search("llama|ggml|srv ", shown + err)
    assert out == ""


@pytest.mark.parametrize("words", [(), ("--output-format", "json"), ("--output-format", "stream-json")])
def test_a_terminal_obeys_nothing_in_an_answer(place, words):
    said = "a\x1b]52;c;eA==\x07b\x1b[2Jc\u202ed\x9bem"
    terminal = ScreenTerminal(place, "run", *words, "--model", place.script(said), "go")
    try:
        assert terminal.wait_exit() == 0
    finally:
        terminal.close()
    assert not [code for code in ("\x1b]52", "\x1b[2J", "\u202e", "\x9b") if code.encode() in terminal.raw]
    piped = place.run("run", "--model", place.script(said), "go").stdout
    assert piped == f"{said}\n"


CANNOT_START = [
    (["-P", "nope", "go on"], 2, "unknown profile 'nope'"),
    (["-P", "broken", "go on"], 2, "profiles.yaml, line 1: unknown key 'sandbx'; did you mean 'sandbox'?"),
    (["-P", "unready", "go on"], 2, "profiles.yaml, line 2: unknown toolkit 'develper'"),
    (["-m", "nope:x", "go on"], 2, "--model nope:x: unknown provider 'nope'"),
    (["-m", "openai:gpt-5", "go on"], 76, "openai:gpt-5: set OPENAI_API_KEY"),
    (["-i", "missing.md"], 2, "cannot read the task from 'missing.md'"),
    (["-r", "nope", "go on"], 1, "no session 'nope'"),
    (["--wrong", "go on"], 2, "No such option: --wrong"),
    (["--json", "go on"], 2, "no option --json; here it is: --output-format stream-json"),
    (["--max-steps", "0", "go on"], 2, "Invalid value for '--max-steps'"),
    (["--fork", "go on"], 2, "--fork needs --continue or --resume"),
    (["/nope"], 2, "no command /nope"),
    ([], 2, "the task is empty"),
]


@pytest.mark.parametrize("output_format", ["json", "stream-json"])
def test_a_run_that_cannot_start_says_why_in_json(place, output_format):
    (place.home / "config").mkdir()
    profiles = "broken: {sandbx: full}\nunready: {toolkits: [develper]}\n"
    (place.home / "config" / "profiles.yaml").write_text(profiles)
    for words, code, detail in CANNOT_START:
        model = [] if "-m" in words else ["-m", place.script("ok")]
        done = place.run("run", f"--output-format={output_format}", *model, *words)
        end = json.loads(done.stdout.splitlines()[-1])
        assert (done.returncode, end["exit_code"], end["reason"]) == (code, code, "error"), words
        assert detail in end["detail"]
        assert "".join(end["detail"].split()) in re.sub(r"[\s│╭─╮╯╰]", "", done.stderr)


def test_a_run_that_ends_early_says_why_in_json(place):
    ends = [
        (["--max-steps", "1"], {"calls": [shell("true")]}, 3, "the limit of 1 step"),
        (["--timeout", "2"], {"calls": [shell("sleep 60")]}, 124, "the time limit of 2 s"),
        (["--approval", "ask"], {"calls": [shell("touch a")]}, 6, "denied, as nobody could be asked"),
        ([], {"error": {"status": 401, "text": "bad key"}}, 76, "bad key"),
    ]
    for options, step, code, detail in ends:
        done = place.run("run", "--output-format", "stream-json", "-m", place.script(step, "done"), *options, "go on")
        end = json.loads(done.stdout.splitlines()[-1])
        assert (done.returncode, end["exit_code"]) == (code, code), done.stderr
        assert detail in end["detail"]
        assert "1 steps" not in end["detail"]


@pytest.mark.parametrize("output_format", ["text", "json"])
def test_a_quiet_run_says_only_why_it_failed(place, output_format):
    limit = ["--max-steps", "1"]
    ends = [
        ([], {"text": "hi", "calls": [shell("true")]}, 0, ""),
        (limit, {"calls": [shell("true")]}, 3, "goose-like: stopped at the limit of 1 step"),
        ([], {"error": {"status": 401, "text": "bad \x1b[2J key"}}, 76, "goose-like: "),
    ]
    for options, step, code, sentence in ends:
        model = place.script(step, "done")
        done = place.run("run", "-q", "--output-format", output_format, "-m", model, *options, "go on")
        assert (done.returncode, len(done.stderr.splitlines())) == (code, bool(sentence)), done.stderr
        assert done.stderr.startswith(sentence)
        assert "\x1b" not in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_run_says_so_in_json(place, number):
    model = place.script({"calls": [shell("echo started; sleep 60")]})
    process = place.start("run", "--output-format", "json", "-m", model, "go on")
    for line in process.stderr:
        if "started" in line and "▸" not in line:
            break
    process.send_signal(number)
    out, _ = process.communicate(timeout=60)
    end = json.loads(out)
    assert (process.returncode, end["exit_code"], end["reason"]) == (128 + number, 128 + number, "cancelled")
    assert end["detail"] == f"stopped by {number.name}"


def test_a_session_that_is_open_elsewhere_is_named_in_json(place):
    holder = place.start("run", "--session", "talk", "-m", place.script({"calls": [shell("echo hi; sleep 60")]}), "go")
    for line in holder.stderr:
        if "hi" in line and "▸" not in line:
            break
    done = place.run("run", "-r", "talk", "--output-format", "json", "go on", "-m", place.script("ok"))
    holder.terminate()
    holder.communicate(timeout=60)
    assert "session 'talk' is open in another process" in json.loads(done.stdout)["detail"]


PRICED = """
fallback: {extends: default, processor: "openai:gpt-5", fallback: "openai:unheard-of", limits: {cost_usd: 1}}
fast: {extends: default, processor: "openai:gpt-5", accelerator: "openai:unheard-of", limits: {cost_usd: 1}}
reasoner: {extends: default, toolkits: [{name: reasoner, config: {model: "openai:unheard-of"}}]}
"""


@pytest.mark.parametrize(
    ("words", "place_of_limit"),
    [
        (["run", "--max-cost", "1", "-m", "openai:unheard-of", "go"], ""),
        (["run", "-P", "fallback", "go"], "profiles.yaml, line 2: "),
        (["run", "-P", "fast", "go"], "profiles.yaml, line 3: "),
        (["run", "-P", "reasoner", "-m", "openai:gpt-5", "--max-cost", "1", "go"], "profiles.yaml, line 4: "),
        (["boss", "--max-cost", "1", "-m", "openai:unheard-of", "go"], ""),
        (["session", "start", "-P", "fast"], "profiles.yaml, line 3: "),
        (["serve", "--max-cost", "1", "-m", "openai:unheard-of"], ""),
        (["profile", "check", "fast"], "profiles.yaml, line 3: "),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_cost_limit_without_a_price_is_refused_before_any_request(place, words, place_of_limit):
    (place.home / "config").mkdir()
    (place.home / "config" / "profiles.yaml").write_text(PRICED)
    with threaded([sse(said("paid"))]) as server:
        done = place.run(*words, env={"OPENAI_API_KEY": "x", "OPENAI_BASE_URL": server.base_url})
    output = " ".join((done.stderr + done.stdout).split())
    assert done.returncode == 2, output
    assert f"{place_of_limit}the price of openai:unheard-of is not known, so a cost limit can't be kept" in output
    assert "--max-tokens" in output
    assert not server.requests


@pytest.mark.parametrize("options", [[], ["--output-format", "json"]])
def test_an_answer_beside_the_last_plan_is_the_answer(place, options):
    plan = {"tool": "update_plan", "arguments": {"tasks": [{"description": "dig", "status": "complete"}]}}
    model = place.script({"calls": [shell("echo dug")]}, {"text": "It is dug.", "calls": [plan]})
    done = place.run("run", "--model", model, *options, "dig")
    answer = json.loads(done.stdout)["result"] if options else done.stdout.removesuffix("\n")
    assert (done.returncode, answer) == (0, "It is dug."), done.stderr
    assert "It is dug." not in done.stderr
