"""The session commands as processes: output, refusals and exit codes."""

import json
import shutil
import signal
import subprocess
import sys

import pytest

from goose_like.cli.commands.session_actions import MAX_LISTED
from tests.e2e.test_terminal import open_terminal  # noqa: F401


def talk(place, name, *words):
    """Run a session with one turn per word; the model answers `ok`."""
    for number, word in enumerate(words):
        resume = ["--resume"] if number else []
        model = place.script(*["ok"] * (number + 1))
        done = place.run("run", "--quiet", "--session", name, *resume, "--model", model, word)
        assert done.returncode == 0, done.stderr


def names(place, *words):
    done = place.run("session", "list", *words)
    assert done.returncode == 0, done.stderr
    return [line.split()[0] for line in done.stdout.splitlines()[1:] if line.strip() and ";" not in line]


def copies(place, name, count):
    for number in range(count):
        assert place.run("session", "fork", name, "--name", f"c{number}").returncode == 0


def test_a_title_by_the_fast_model_is_listed(place):
    config = place.home / "config"
    config.mkdir()
    strong = place.script(
        {"text": "mended"}, {"calls": [{"tool": "shell", "arguments": {"command": "sleep 1"}}]}, "bye"
    )
    fast = place.script('"Mending the sums of the baker."\n')
    (config / "profiles.yaml").write_text(
        f"two:\n  extends: default\n  processor: {strong}\n  accelerator: {fast}\n  sandbox: full\n"
    )
    done = place.run("session", "start", "mine", "--profile", "two", input="mend it\nand wait\n")
    assert done.returncode == 0, done.stderr
    assert "Mending the sums of the baker" in place.run("session", "list", "baker").stdout
    assert place.run("session", "list").stdout.count("mine") == 1
    resumed = place.run("session", "resume", "sums of the baker", input="/rename Baker's dozen\n")
    assert resumed.returncode == 0
    assert 'renamed to "Baker\'s dozen"' in resumed.stdout + resumed.stderr
    assert "Baker's dozen" in place.run("session", "list").stdout


def test_list(place):
    talk(place, "one", "hello there", "and again")
    talk(place, "two", "something else")
    (head, two, one) = place.run("session", "list").stdout.splitlines()
    assert head.split() == ["name", "age", "folder", "turns", "cost", "tokens", "about"]
    assert two.split()[:2] == ["two", "now"]
    assert one.split() == ["one", "now", str(place.work), "2", "$0", "0", "hello", "there"]
    assert names(place, "AGAIN") == ["one"]
    assert names(place, "--here") == ["two", "one"]
    elsewhere = place.home
    assert names(type(place)(place.home, elsewhere), "--here") == []


def test_a_price_that_is_not_known_is_not_told_as_0(place):
    talk(place, "one", "hello")
    (file,) = (place.home / "state/sessions").glob("*/events.jsonl")
    usage = '"usage":{"input_tokens":1000,"output_tokens":10,"cache_read_tokens":0,"cache_write_tokens":0}'
    before = file.read_text().replace("scripted:", "nobody:")
    file.write_text(
        before.replace(before[before.index('"usage"') : before.index("}", before.index('"usage"')) + 1], usage)
    )
    assert place.run("session", "list").stdout.splitlines()[1].split()[4:6] == ["?", "1,010"]
    assert place.run("session", "show", "one").stdout.splitlines()[-1].endswith("?")


def test_the_newest_are_listed_unless_all_are_asked_for(place):
    talk(place, "one", "hello")
    (folder,) = (place.home / "state/sessions").iterdir()
    for number in range(MAX_LISTED):
        shutil.copytree(folder, folder.with_name(f"copy-{number}"))
    done = place.run("session", "list")
    assert len(done.stdout.splitlines()) == MAX_LISTED + 3
    assert "the newest 20; see all: goose-like session list --all" in done.stdout
    assert len(names(place, "--all")) == MAX_LISTED + 1


def test_show(place):
    calls = {"calls": [{"tool": "write_file", "arguments": {"path": "x.py", "content": "1\n"}}]}
    model = place.script({**calls, "usage": {"input": 1200, "output": 34}}, "done")
    assert place.run("run", "--session", "one", "--model", model, "write it").returncode == 0
    shown = place.run("session", "show", "one").stdout
    assert "1     write it     stop" in shown
    assert "files written by tools:\n  x.py\n" in shown
    assert shown.splitlines()[-1].split() == [model, "1,200", "0", "34", "$0"]


def test_export_and_import(place):
    talk(place, "one", "hello", "again")
    assert "> hello" in place.run("session", "export", "one").stdout
    for name, start in (("x.html", "<!doctype html>"), ("x.json", '{"format"'), ("x.txt", "# one"), ("x.ipynb", "{")):
        assert place.run("session", "export", "one", "-o", name).stdout == f"wrote {name}\n"
        assert (place.work / name).read_text().startswith(start)
    assert json.loads(place.run("session", "export", "one", "--format", "json").stdout)["name"] == "one"
    report = place.run("session", "import", "x.json", "--name", "two").stdout
    assert report.startswith("imported as 'two' (auto · workspace · ")
    assert report.endswith("); resume with: goose-like session resume two\n")
    model = place.script("ok", "ok", {"text": "went on", "expect": "more"})
    done = place.run("session", "resume", "two", "--model", model, input="more\n")
    assert (done.returncode, "went on" in done.stderr + done.stdout) == (0, True), done.stderr
    assert place.run("session", "export", "one", "-o", "none/x.md").returncode == 1
    done = place.run("session", "export", "one", "-o", "x.docx")
    assert (done.returncode, "use one of .md, .txt, .html, .htm, .ipynb, .json" in done.stderr) == (2, True), (
        done.stderr
    )


def test_an_import_tells_with_which_mode_and_model_it_goes_on(place):
    talk(place, "one", "hello")
    archive = json.loads(place.run("session", "export", "one", "--format", "json").stdout)
    archive["events"][0] |= {"profile": "yolo", "models": {"processor": "scripted:theirs.yaml"}}
    (place.work / "x.json").write_text(json.dumps(archive))
    (place.home / "config").mkdir()
    profiles = place.home / "config/profiles.yaml"
    own = place.script("ok", "mine")
    profiles.write_text(f"default: {{extends: default, approval: ask, processor: '{own}'}}")
    report = place.run("session", "import", "x.json", "--name", "two").stdout
    assert report.startswith(f"imported as 'two' (ask · workspace · {own}); resume with")
    done = place.run("run", "--session", "two", "--resume", "go on")
    assert (done.returncode, done.stdout) == (0, "mine\n"), done.stderr
    profiles.write_text("default: {extends: nothing}")
    done = place.run("session", "import", "x.json", "--name", "three")
    assert (done.returncode, "its profile can't be loaded: " in done.stdout) == (0, True), done.stderr


def test_an_export_follows_no_link_of_the_workspace(place):
    talk(place, "one", "hello")
    outside = place.home / "outside"
    outside.mkdir()
    (place.work / "file.md").symlink_to(outside / "new")
    (place.work / "docs").symlink_to(outside)
    for name in ("file.md", "docs/x.md", "docs/../docs/x.md"):
        done = place.run("session", "export", "one", "-o", name)
        assert (done.returncode, "is a link" in done.stderr) == (2, True), done.stderr
    assert list(outside.iterdir()) == []
    assert place.run("session", "export", "one", "-o", str(outside / "x.md")).returncode == 0


def test_a_session_of_goose_09_is_gone_on_with(place, open_terminal):  # noqa: F811
    messages = [
        {"role": "user", "id": "m1", "created": 1, "content": [{"text": "hi", "type": "Text"}]},
        {"role": "assistant", "id": "m2", "created": 2, "content": [{"text": "hello", "type": "Text"}]},
    ]
    (place.work / "old.jsonl").write_text("".join(json.dumps(message) + "\n" for message in messages))
    assert "imported as 'old'" in place.run("session", "import", "old.jsonl").stdout
    terminal = open_terminal("session", "resume", "old", "--model", place.script("played"))
    terminal.see("hello")
    terminal.type("\x04")
    assert terminal.wait_exit() == 0
    done = place.run("run", "--resume", "--model", place.script("played", "went on"), "more")
    assert (done.returncode, done.stdout) == (0, "went on\n"), done.stderr
    assert [event["type"] for event in place.events()].count("turn_started") == 2


def test_fork_and_rename(place):
    talk(place, "one", "hello", "again")
    report = place.run("session", "fork", "one", "--at", "2", "--name", "two").stdout
    assert report == "forked 'one' as 'two'; resume with: goose-like session resume two\n"
    assert "renamed 'two' to 'three'" in place.run("session", "rename", "two", "three").stdout
    assert names(place) == ["three", "one"]
    done = place.run("run", "--resume", "--session", "three", "--model", place.script("ok", "went on"), "x")
    assert (done.returncode, done.stdout) == (0, "went on\n"), done.stderr
    assert names(place, "--here") == ["three", "one"]


def test_without_a_name_the_newest_session_of_the_folder_is_taken(place):
    done = place.run("session", "show")
    assert (done.returncode, done.stderr) == (
        1, f"goose-like: there is no session in {place.work}; start one: goose-like session start\n"
    )  # fmt: skip
    talk(place, "one", "hello")
    talk(place, "two", "again")
    assert place.run("session", "show").stdout.split()[:2] == ["name", "two"]
    assert "> again" in place.run("session", "export").stdout
    assert place.run("session", "fork", "--name", "three").stdout.startswith("forked 'two' as 'three'")


@pytest.mark.parametrize(
    "words", [["show"], ["export"], ["fork"], ["rename", "new"], ["resume"]], ids=lambda words: words[0]
)
def test_a_misspelt_name_is_told_with_the_nearest(place, words):
    talk(place, "parser", "hello")
    done = place.run("session", words[0], "parsr", *words[1:])
    assert (done.returncode, done.stderr) == (1, "goose-like: no session 'parsr'; did you mean 'parser'?\n")


@pytest.mark.parametrize("words", [["show"], ["export"], ["fork"], ["rename"], ["resume"]], ids=lambda words: words[0])
def test_names_are_completed(place, words):
    talk(place, "parser", "hello")
    assert place.complete("session", *words, "p").stdout == "parser\thello\n"


def test_clear_says_what_and_needs_a_yes(place):
    talk(place, "one", "hello")
    copies(place, "one", 2)
    done = place.run("session", "clear", "--keep", "1")
    assert done.returncode == 6
    assert "one" in done.stdout
    assert "nobody can be asked; confirm with --yes" in done.stderr
    assert len(names(place)) == 3
    done = place.run("session", "clear", "--keep", "1", "--yes")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "deleted 2")
    assert names(place) == ["c1"]
    assert "nothing was deleted" in place.run("session", "clear", "--keep", "1").stdout


@pytest.mark.parametrize(("key", "code", "left"), [("y\r", 0, 0), ("n\r", 6, 1), ("\r", 6, 1), ("\x03", 6, 1)])
def test_clear_asks_a_person(place, open_terminal, key, code, left):  # noqa: F811
    talk(place, "one", "hello")
    terminal = open_terminal("session", "clear", "--keep", "0")
    terminal.see("delete this session permanently?")
    if key == "\x03":
        terminal.interrupt()
    else:
        terminal.type(key)
    assert terminal.wait_exit() == code
    assert len(names(place)) == left


def test_two_processes_on_one_session(place):
    talk(place, "one", "hello")
    model = place.script("ok", {"text": "late", "delay_s": 600})
    holder = place.start(
        "run", "--resume", "--session", "one", "--model", model, "go", "--output-format", "stream-json"
    )
    try:
        assert any('"turn_started"' in line for line in holder.stdout)
        second = place.run("session", "resume", "one")
        assert second.returncode == 1
        assert f"session 'one' is open in another process (process {holder.pid})" in second.stderr
        assert "goose-like session fork one" in second.stderr
        done = place.run("session", "clear", "--keep", "0", "--yes")
        assert done.stdout.splitlines()[-2:] == ["deleted 0", "kept, because another process has it open: one"]
        assert place.run("session", "fork", "one", "--name", "two").returncode == 0
        assert "hello" in place.run("session", "show", "one").stdout
    finally:
        holder.send_signal(signal.SIGINT)
        holder.communicate()
    done = place.run("run", "--resume", "--session", "two", "--model", place.script("ok", "on its own"), "x")
    assert (done.returncode, done.stdout) == (0, "on its own\n"), done.stderr


def test_a_full_disk_ends_the_run_and_the_session_resumes(place):
    words = ["goose-like", "run", "--session", "one", "--model", place.script("x" * 9000), "go"]
    program = f"""
import resource, runpy, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (6000, resource.RLIM_INFINITY))
sys.argv = {words!r}
runpy.run_module("goose_like", run_name="__main__")
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=place.work,
        env=place.env(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 1
    assert "can't be written" in done.stderr
    assert "Traceback" not in done.stderr
    assert all(event["type"] for event in place.events())  # each line is whole
    done = place.run("run", "--resume", "--session", "one", "--model", place.script("went on", "went on"), "on")
    assert (done.returncode, done.stdout) == (0, "went on\n"), done.stderr


def test_a_corrupt_line_is_told_and_the_rest_goes_on(place):
    talk(place, "one", "hello", "again")
    (file,) = (place.home / "state/sessions").glob("*/events.jsonl")
    lines = file.read_bytes().splitlines(keepends=True)
    broken = b"".join([*lines[:3], b'{"type":"logged"\xff\n', *lines[3:]])
    file.write_bytes(broken)
    done = place.run("session", "resume", "one", "--model", place.script("ok", "ok", "on"), input="more\n")
    assert done.returncode == 0
    assert f"{file}, line 4: left out" in done.stderr
    assert file.read_bytes().startswith(broken)
    assert [event["message"]["parts"][0]["text"] for event in map(json.loads, file.read_bytes().splitlines()[4:])
            if event["type"] == "turn_started"] == ["again", "more"]  # fmt: skip


def test_planned_work(place):
    (place.work / "plan.md").write_text("Port {{ name }} from {{ url }}.\n\n- read it\n- write {{ name }}\n")
    asked = {"text": "begun", "expect": r"Port x from http://x:80/\.\n\nThe plan:\n- read it\n- write x"}
    model = place.script(asked)
    args = ["--plan", "plan.md", "--args", "name=x,url=http://x:80/", "--model", model]
    for words in (["planned"], ["start", "one"]):
        done = place.run("session", *words, *args, input="")
        assert (done.returncode, "begun" in done.stdout + done.stderr) == (0, True), done.stderr
        assert "☐ write x" in done.stderr
        planned = [event["tasks"] for event in place.events() if event["type"] == "plan_updated"]
        assert planned == [
            [{"description": "read it", "status": "planned"}, {"description": "write x", "status": "planned"}]
        ]


@pytest.mark.parametrize(
    ("words", "report"),
    [
        (
            ["planned", "--plan", "plan.md"],
            "goose-like: plan.md: 'name' is undefined; none were given: --args NAME=VALUE",
        ),
        (["planned", "--plan", "plan.md", "--args", "nam=x"], "goose-like: plan.md has no variable 'nam'; it has name"),
        (["planned", "--plan", "plan.md", "--args", "x"], "goose-like: --args 'x': 'x' has no name; write NAME=VALUE"),
        (["planned", "--plan", "none.md"], "goose-like: the plan 'none.md' can't be read"),
        (["start", "--args", "a=b"], "--args needs --plan"),
        (["planned"], "Missing option '--plan'"),
    ],
)
def test_plans_that_are_refused(place, words, report):
    (place.work / "plan.md").write_text("Port {{ name }}.\n\n- read it\n")
    done = place.run("session", *words)
    assert done.returncode == 2
    assert report in done.stderr
    assert not (place.home / "state/sessions").exists()
