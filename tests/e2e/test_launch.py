"""The command line of a start: the flags of other agents, first messages, and what a first session says."""

import json
import shlex
import subprocess
import sys

import pytest

from tests.e2e.command import shell


@pytest.mark.parametrize(
    ("words", "report"),
    [
        (["sesion"], "no command 'sesion'; did you mean 'session'?"),
        (["hello"], "did you mean 'help'? As a first message: goose-like -- hello"),
        (["run", "-t", "x"], "no option -t; here it is: the task itself, in quotes"),
        (["fix", "the", "test"], 'as a first message: goose-like "fix the test"'),
        (["task.md"], "for a task in a file: goose-like run -i task.md"),
        (["login"], "here it is: goose-like setup"),
        (["run", "missing.md"], "there is no file 'missing.md'"),
        (["exec", "fix it"], "here it is: goose-like run"),
        (["-P", "boss", "--approval", "plan", "word"], "as a first message: goose-like -- word"),
        (["--model", "run", "word"], "as a first message: goose-like -- word"),
        (["--yolo"], "--approval yolo --sandbox full"),
        (["run", "--sandbox", "none", "x"], "Invalid value for '--sandbox': 'none' is not one of"),
        (["--approval", "no"], "Invalid value for '--approval': 'no' is not one of"),
        (["--fork"], "--fork needs --continue or --resume"),
        (["-p", "--fork", "x"], "--fork needs --continue or --resume"),
        (["run", "--fork", "talk", "x"], "--fork needs --continue or --resume"),
        (["-c", "session", "list"], "put options after the command"),
        (["-p", "--allowed-tools", "tol:x", "x"], "--allowed-tools: expected the start of a command"),
        (["-p", "--allowed-tools", "Edit(/etc/*)", "x"], "--allowed-tools Edit(/etc/*): it leads out of the workspace"),
        (["-p", "--permission-mode", "plan", "x"], "no option --permission-mode; here it is: --approval"),
        (["resume", "--last"], "no option --last; here it is: --continue"),
        (["-c", "--fork-session"], "no option --fork-session; here it is: --fork"),
        (["fork"], "here it is: goose-like --continue --fork"),
        (["--mode", "json", "x"], "no option --mode; here it is: --approval, --sandbox or --output-format"),
        (["run", "--json", "x"], "no option --json; here it is: --output-format stream-json"),
        (["session", "start", "-C", "x"], "no option -C; here it is: cd DIR"),
        (["-i", "picture.png"], "no option -i; here it is: @FILE in the message"),
        (["-p", "--add-dir", "missing", "x"], "--add-dir missing: there is no such folder"),
    ],
)
def test_a_mistake_names_the_next_step(place, words, report):
    (place.work / "task.md").write_text("say hello")
    done = place.run(*words)
    assert done.returncode == 2
    assert report in " ".join(done.stderr.split())


def test_print_is_a_run_and_continues_sessions(place):
    assert place.run("say hello", "-p", "--session", "one", "-m", place.script("hello")).stdout == "hello\n"
    assert place.run("-p", "-r", "one", "again", "-m", place.script("hello", "once")).stdout == "once\n"
    assert place.run("-c", "-p", "--fork", "more", "-m", place.script("", "", "more")).stdout == "more\n"
    assert place.list_messages() == ["say hello", "again", "more"]
    listed = place.run("session", "list").stdout.splitlines()
    assert [line.split()[-5] for line in listed if "say hello" in line] == ["3", "2"], listed


def test_an_added_folder_that_is_a_link_to_secrets_is_refused(place):
    (place.home / ".ssh").mkdir()
    (place.work / "docs").symlink_to(place.home / ".ssh")
    done = place.run("-p", "--add-dir", "docs", "x", "-m", place.script("ok"), env={"HOME": str(place.home)})
    assert done.returncode == 2
    assert f"is a link to {place.home}/.ssh, which holds secrets" in " ".join(done.stderr.split())


def test_agents_of_a_project_work_when_it_is_trusted_this_time(place):
    (place.work / ".claude/agents").mkdir(parents=True)
    (place.work / ".claude/agents/finder.md").write_text("---\nname: finder\ndescription: Finds\n---\nFind things.")
    call = {"tool": "delegate", "arguments": {"task": "find it", "profile": "finder"}}
    model = place.script({"calls": [call]}, "found", {"text": "done", "expect": "found"})
    assert place.run("run", "--trust", "go", "-m", model).stdout == "done\n"


@pytest.mark.parametrize(
    "rule",
    [
        "touch",
        "Bash(touch)",
        "Bash(touch:*)",
        "bash(touch a.txt)",
        "Read Bash(touch:*) Edit",
        "Bash",
        "Bash(git, x), touch",
    ],
)
def test_allowed_tools_of_other_agents(place, rule):
    model = place.script({"calls": [shell("touch a.txt")]}, "done")
    done = place.run("-p", "--approval", "ask", "--allowed-tools", rule, "go", "-m", model)
    assert (done.returncode, (place.work / "a.txt").exists()) == (0, True), done.stderr


def test_a_file_as_task_is_pointed_out(place):
    (place.work / "task.md").write_text("say hello")
    done = place.run("run", "task.md", "-m", place.script({"text": "ok", "expect": "say hello"}))
    assert (done.stdout, done.returncode) == ("ok\n", 0)
    assert "the task is the text of the file task.md" in done.stderr


@pytest.mark.parametrize("words", [[], ["session", "start"]])
def test_without_a_terminal_a_session_reads_lines(place, words):
    model = place.script({"text": "one", "expect": "first"}, {"text": "two", "expect": "second"})
    done = place.run(*words, "-m", model, input="first\nsecond\n")
    assert (done.returncode, place.list_messages()) == (0, ["first", "second"])
    assert done.stdout == "one\ntwo\n"


def test_the_first_message_of_a_session_by_lines(place):
    model = place.script({"text": "one", "expect": "fix it"}, {"text": "two", "expect": "and that"})
    done = place.run("fix it", "-m", model, input="and that\n")
    assert (done.returncode, done.stdout, place.list_messages()) == (0, "one\ntwo\n", ["fix it", "and that"])


@pytest.mark.parametrize("word", ["hello", "run"])
def test_one_word_can_be_the_first_message(place, word):
    done = place.run("-m", place.script({"text": "one", "expect": word}), "--", word, input="")
    assert (done.returncode, done.stdout, place.list_messages()) == (0, "one\n", [word])


@pytest.mark.parametrize(
    "words",
    [
        *[("-p", "sum up"), ("sum up", "--print"), ("-p", "sum up", "-"), ("run", "sum up"), ("run", "sum", "up", "-")],
        *[("run", "-i", "task.txt"), ("run", "task.txt")],
    ],
)
def test_a_run_reads_a_pipe(place, words):
    (place.work / "task.txt").write_text("sum up")
    done = place.run(*words, "-m", place.script({"text": "ok", "expect": "sum up\n\nsome data"}), input="some data")
    assert (done.stdout, done.returncode) == ("ok\n", 0)
    is_said = "standard input (9 bytes) is added to the task" in done.stderr
    assert is_said == (words[-1] != "-")


def test_a_run_in_a_loop_leaves_the_rest_of_the_file(place):
    (place.work / "list.txt").write_text("first task\nsecond task\n")
    command = shlex.join(
        [sys.executable, "-m", "goose_like", "run", "-m", place.script({"text": "ok"}), "--no-session"]
    )
    script = f'while read line; do {command} "$line"; done < list.txt'
    done = subprocess.run(["bash", "-c", script], cwd=place.work, env=place.env(), text=True, capture_output=True)
    assert done.stdout == "ok\nok\n", done.stderr
    assert done.stderr.count("standard input is not read, as another program has read a part of it") == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [("", "nothing came through standard input"), ("some data", "waiting for the end of standard input")],
)
def test_a_pipe_that_does_not_end_is_named(place, text, said):
    model = place.script({"text": "ok", "expect": f"sum up\n\n{text}" if text else "sum up"})
    process = place.start("run", "sum up", "-m", model, stdin=subprocess.PIPE)
    process.stdin.write(text)
    process.stdin.flush()
    while said not in (line := process.stderr.readline()):
        assert line, "the note did not come"
    if not text:  # it does not wait for the end of the pipe
        assert process.stdout.read() == "ok\n"
    process.stdin.close()
    assert process.stdout.read() in ("ok\n", "")
    assert process.wait(60) == 0
    process.stderr.close()
    process.stdout.close()


@pytest.fixture
def two_sessions(place):
    """The place with the sessions `one` and `two`, of which `two` is the newest."""
    for name in ("one", "two"):
        assert place.run("run", "--session", name, f"this is {name}", "-m", place.script("ok")).returncode == 0
    return place


NAMED = [
    ("run", "-r", "one", "more here"),
    ("run", "--resume", "one", "more", "here"),
    ("run", "more here", "-r", "one"),
    ("run", "-r=one", "more here"),
    ("run", "--resume=one", "more here"),
    ("run", "--session", "one", "--resume", "more here"),
    ("run", "more here", "--resume", "--session", "one"),
    ("-p", "-r", "one", "more here"),
    ("-r", "one", "-p", "more here"),
]


def test_a_run_resumes_the_named_session(two_sessions):
    place = two_sessions
    for count, words in enumerate(NAMED, 1):
        done = place.run(*words, "--output-format", "json", "-m", place.script(*["ok"] * (count + 1)))
        assert json.loads(done.stdout)["session"] == "one", (words, done.stderr)
    assert place.list_messages() == ["this is two"]
    for words in (("run", "--fork", "-r", "one", "more here"), ("run", "more here", "-r", "one", "--fork")):
        done = place.run(*words, "-m", place.script(*["ok"] * 20))
        assert place.list_messages() == ["this is one", *["more here"] * (len(NAMED) + 1)], done.stderr


def test_a_run_resumes_the_newest_session_without_a_name(two_sessions):
    place = two_sessions
    ways = [
        ("run", "-r", "more here"),
        ("run", "-c", "more here"),
        ("run", "-c", "more", "here"),
        ("run", "more here", "-r"),
        ("-p", "-r", "--", "more", "here"),
        ("run", "--session", "two", "--resume", "continue"),
    ]
    for first, *rest in ways:
        assert place.run(first, "-m", place.script(*["ok"] * 9), *rest).returncode == 0
    assert place.list_messages() == ["this is two", *["more here"] * 5, "continue"]


def test_a_run_that_resumes_no_session_says_so(two_sessions):
    reports = {
        ("run", "-r", "tow", "more here"): (1, "no session 'tow'; did you mean 'two'?"),
        ("run", "--resume", "continue"): (1, "for the newest session: goose-like run --continue continue"),
        ("run", "-c", "two", "more here"): (
            2,
            "--continue takes no name; for the session 'two': goose-like run --resume",
        ),
        ("run", "-r", "one", "--session", "two", "x y"): (2, "--resume and --session name two sessions"),
        ("run", "-r", "two"): (2, 'the task is empty; say what to do: goose-like run --resume NAME "continue"'),
    }
    for words, (code, report) in reports.items():
        done = two_sessions.run(*words)
        assert (done.returncode, done.stdout) == (code, "")
        assert report in " ".join(done.stderr.split())
    assert two_sessions.list_messages() == ["this is two"]


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (["-P", "default", "two words", "-m"], "new"),
        (["-m", "SCRIPT", "-P", "boss", "-r", "run", "-p", "two words"], "resumed"),
        (["-m", "SCRIPT", "-cp", "two words"], "resumed"),
        (["-p", "-r=run", "two words", "-m"], "resumed"),
        (["-p", "--resume=run", "two words", "-m"], "resumed"),
    ],
)
def test_values_of_options_that_are_names_of_commands(place, words, answer):
    script = place.script("new", {"text": "resumed", "expect": "two words"})
    assert place.run("run", "one", "--session", "run", "-m", script).returncode == 0
    (place.home / "config").mkdir()
    (place.home / "config" / "profiles.yaml").write_text("boss: {extends: default}\n")
    words = [script if word == "SCRIPT" else word for word in words]
    done = place.run(*words, *([script] if words[-1] == "-m" else []))
    assert (done.returncode, done.stdout) == (0, f"{answer}\n"), done.stderr


def test_a_dumb_terminal_has_a_session_by_lines(place, open_screen):
    terminal = open_screen("-m", place.script("hello you"), TERM="dumb")
    terminal.see("goose>")
    terminal.type("hi\r")
    terminal.see("hello you")
    terminal.type("exit\r")
    assert terminal.wait_exit() == 0


def test_a_first_session_says_what_it_works_with(place, open_screen):
    model = place.script("hello you", "and again", "later")
    terminal = open_screen("say hello", "-m", model, "--approval", "yolo", columns=80)
    terminal.see("hello you")
    lines = [line for line in terminal.text.splitlines() if line.startswith(("approval", "model", "sandbox", "type"))]
    assert [line.split()[0] for line in lines] == ["approval", "model", "sandbox", "type"]
    assert "(from --model)" in terminal.text.replace("\n", "")
    assert "goose>" not in terminal.text[: terminal.text.index("> say hello")]
    assert terminal.leave() == 0
    terminal = open_screen("-c", "go on", "-m", model, columns=80)
    terminal.see("and again")
    assert "type a task" not in terminal.text
    assert terminal.leave() == 0
    assert place.list_messages() == ["say hello", "go on"]


def test_allowed_tools_and_folders_hold_for_one_process(place):
    other = place.home / "other"
    other.mkdir()
    write = {"tool": "write_file", "arguments": {"path": str(other / "new.txt"), "content": "x"}}
    model = place.script({"calls": [write]}, "done")
    place.run("-p", "-m", model, "--approval", "ask", "go")
    assert not (other / "new.txt").exists()
    place.run(
        "-p", "-m", model, "--approval", "ask", "--allowed-tools", f"path:{other}/**", "--add-dir", str(other), "go"
    )
    assert (other / "new.txt").read_text() == "x"
    (other / "new.txt").unlink()
    place.run("-p", "-c", "-m", place.script("", "", {"calls": [write]}, "done"), "go")
    assert not (other / "new.txt").exists()
