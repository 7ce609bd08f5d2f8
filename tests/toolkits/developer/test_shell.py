"""The shell: commands behave as if typed into one bash, never hang, and use bounded memory."""

import asyncio
import os
import shutil
import socket
from contextlib import suppress
from pathlib import Path

import pytest
from goose_like_toolkits.developer import shell as module

from goose_like.config.profile import NetworkChoice, PermissionLists, WorkspaceSettings
from goose_like.core.events import Answer, StateSaved
from goose_like.core.message import ToolCall
from goose_like.terminal.tool_call import RunningCall
from tests.toolkits.developer.developer_harness import DeveloperHarness, open_developer, wait_until
from tests.workspace.workspace_harness import needs_sandbox


@pytest.fixture(params=["workspace", "full"])
async def here(request, tmp_path):
    """A toolkit in each of the two modes."""
    async with open_developer(tmp_path, request.param) as made:
        yield made


@pytest.fixture
async def confined_toolkit(tmp_path):
    async with open_developer(tmp_path) as made:
        yield made


def is_held(path: Path) -> bool:
    """Check that a process has the file open."""
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        with suppress(OSError):
            if link.readlink() == path:
                return True
    return False


# --- one shell


async def test_folder_and_exports_last(here: DeveloperHarness):
    assert "[now in /usr]" in await here.shell("cd /usr; export WORD=$'it\\'s \"two\"\\nlines $x'")
    assert await here.shell('pwd; echo "$WORD"') == '/usr\nit\'s "two"\nlines $x'
    assert await here.shell("cd - >/dev/null; pwd") == f"{here.root}\n[now in {here.root}]"


async def test_the_disk_keeps_no_variable(here: DeveloperHarness):
    await here.shell("export LETTERS=secretive")
    [file] = here.workspace.tmp.glob(".shell-*")
    assert not file.read_bytes().strip()
    assert await here.shell("echo $LETTERS") == "secretive"
    assert list(here.workspace.tmp.glob(".shell-*")) == [file]


@pytest.mark.parametrize("loss", ["rm -f {}", "ln -sf /etc/passwd {}", "mkdir x; mv {} x", "rm {}; mkdir {}"])
async def test_the_shell_goes_on_after_the_loss_of_its_file(here: DeveloperHarness, loss):
    await here.shell("export WORD=kept; cd /usr")
    [file] = here.workspace.tmp.glob(".shell-*")
    await here.shell(f"cd {here.root}; {loss.replace('{}', here.workspace.path_in_sandbox(file))}; trap - EXIT")
    assert await here.shell("pwd; echo $WORD; cd /etc") == "/usr\nkept\n[now in /etc]"


async def test_a_command_that_is_killed_does_not_repeat_the_state_of_another(here: DeveloperHarness):
    await here.shell("cd /usr; export WORD=1")
    await here.shell("sleep 0.2; cd /etc; export WORD=2", timeout_s=0.1)
    await here.call_ok("process", action="stop", id="p1")
    assert "cd and export did not last" in await here.shell("cd /; kill -9 $$")
    assert await here.shell("pwd; echo $WORD") == "/usr\n1"


async def test_each_command_has_its_own_mark(here: DeveloperHarness):
    marks = [await here.shell("echo $GOOSE_LIKE_COMMAND; bash -c 'echo $GOOSE_LIKE_COMMAND'") for _ in range(3)]
    assert len(set(marks)) == 3
    assert all(len(set(mark.split())) == 1 for mark in marks)


async def test_a_command_inherits_no_descriptor(here: DeveloperHarness):
    assert await here.shell("ls /proc/self/fd") == "0\n1\n2\n3"  # 3 is the folder that is listed


async def test_what_is_not_exported_does_not_last(here: DeveloperHarness):
    await here.shell("plain=1; set -u; shopt -s extglob")
    assert await here.shell("echo [$plain]") == "[]"


async def test_exported_functions_and_read_only_variables_last(here: DeveloperHarness):
    await here.shell("greet() { echo hello; }; export -f greet; declare -rx FIXED=1; export SHELLOPTS")
    assert await here.shell("greet; bash -c greet; echo $FIXED; FIXED=2") == (
        "hello\nhello\n1\nbash: line 1: FIXED: readonly variable\n[exit code 1]"
    )
    assert await here.shell("echo still fine") == "still fine"


async def test_messages_are_those_of_the_command_alone(here: DeveloperHarness):
    said = "bash: line 2: nosuch: command not found\n2\n"
    assert await here.shell("\nnosuch; echo $LINENO") == said.strip()
    assert await here.shell("if then") == (
        "bash: -c: line 1: syntax error near unexpected token `then'\nbash: -c: line 1: `if then'\n[exit code 2]"
    )
    assert await here.shell("env | grep -c BASH_ENV; bash -c 'echo ${BASH_ENV-none}'") == "0\nnone"


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        ("exit 3", "[no output]\n[exit code 3]"),
        ("set -euo pipefail; cd /usr; false; echo no", "[no output]\n[exit code 1]\n[now in /usr]"),
        ("set -C; cd /usr", "[no output]\n[now in /usr]"),
        ("set -x; cd /usr", "+ cd /usr\n[now in /usr]"),
        ("printf() { echo mine; }; cd() { builtin cd /usr; }; cd", "[no output]\n[now in /usr]"),
        ("(cd /usr; exit 1)", "[no output]\n[exit code 1]"),
        ("umask 777; cd /usr", "[no output]\n[now in /usr]"),
        ("exec >&-; cd /usr", "[no output]\n[now in /usr]"),
        ("kill -SEGV $BASHPID", "[no output]\n[killed by SIGSEGV]"),
        ("bash -c 'kill -9 $$'; true", "bash: line 1:"),
        ("cat; read line; echo [$line]", "[]"),
        ("true", "[no output]"),
    ],
)
async def test_however_a_command_ends(here: DeveloperHarness, command, answer):
    assert (await here.shell(command)).startswith(answer)


@pytest.mark.parametrize("command", ["trap 'echo bye' EXIT; cd /usr", "cd /usr; exec echo bye"])
async def test_a_command_that_leaves_no_state_keeps_the_old_and_is_told(here: DeveloperHarness, command):
    await here.shell("export KEPT=1")
    assert await here.shell(command) == (
        "bye\n[cd and export did not last: exec, an EXIT trap, a kill, network, 100 kB of variables prevent it]"
    )
    assert await here.shell("pwd; echo $KEPT") == f"{here.root}\n1"


async def test_variables_too_large_for_every_later_program_do_not_last(here: DeveloperHarness):
    assert "did not last" in await here.shell("export BIG=$(head -c 120000 /dev/zero | tr '\\0' x)")
    assert await here.shell("echo ${#BIG}; ls /nosuchfolder 2>/dev/null || echo ran") == "0\nran"


async def test_a_missed_file_reminds_of_an_earlier_cd(here: DeveloperHarness):
    assert "this ran in" not in await here.shell("mkdir sub; cat sub/gone")
    assert "this ran in" not in await here.shell("cd sub; cat sub/gone")
    note = f"[this ran in {here.root}/sub, where an earlier cd led]"
    assert note in await here.shell("cat sub/gone")
    assert note in await here.shell("cat sub/gone | head")
    assert "this ran in" not in await here.shell("cat sub/gone; cd ..; false")
    assert "this ran in" not in await here.shell("ls; cat sub/gone")


async def test_a_folder_that_was_deleted(here: DeveloperHarness):
    await here.shell("mkdir 'a b'; cd 'a b'; rmdir ../'a b'")
    answer = await here.shell("pwd")
    assert answer == f"[{here.root}/a b is gone; this ran in {here.root}]\n{here.root}\n[now in {here.root}]"
    assert await here.shell("pwd") == str(here.root)


async def test_variables_leave_nothing_on_the_disk(here: DeveloperHarness):
    await here.shell("export PASSPHRASE=open-sesame")
    assert await here.shell("echo $PASSPHRASE") == "open-sesame"
    folders = (here.workspace.tmp, here.session.folder, here.root)
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    assert not [path for path in files if b"open-sesame" in path.read_bytes()]
    assert not [event for event in here.recorder.events if isinstance(event, StateSaved)]


@pytest.mark.parametrize(("folder", "is_kept"), [("inside", True), ("/usr", False)])
async def test_a_resumed_session_goes_on_in_its_folder_of_the_workspace(here: DeveloperHarness, folder, is_kept):
    (here.root / "inside").mkdir()
    await here.shell(f"cd {folder}")
    saved = [event for event in here.recorder.events if isinstance(event, StateSaved)]
    here.session.history.apply(saved[-1])
    again = DeveloperHarness(here.root, here.session, here.workspace, here.recorder)
    assert await again.shell("pwd") == str(here.root / folder if is_kept else here.root)


async def test_a_link_in_the_place_of_the_state_brings_no_secret(confined_toolkit: DeveloperHarness, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("/usr\0\0export LEAK=1\n\0")
    command = (
        f"for end in $(trap -p EXIT | grep -o '/tmp/[^ ]*-end'); do ln -sf {secret} $end; done; trap - EXIT; cd /usr"
    )
    assert "did not last" in await confined_toolkit.shell(command)
    assert await confined_toolkit.shell("echo [$LEAK]") == "[]"


# --- bad input


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"command": ""}, "the command is empty"),
        ({"command": " \n"}, "the command is empty"),
        ({"command": "echo a\0b"}, "NUL"),
        ({"command": "echo \ud800"}, "invalid JSON"),
        ({"command": "true", "timeout_s": 0}, "timeout_s is in seconds"),
        ({"command": "true", "timeout_s": -1}, "timeout_s is in seconds"),
        ({"command": "true", "timeout_s": 1e300}, "at most 3600"),
        ({"command": "true", "timeout_s": float("nan")}, "timeout_s"),
        ({"command": "true", "access": "root"}, "'workspace' or 'network'"),
        ({}, "'command' is missing"),
    ],
)
async def test_what_can_not_be_run_is_told(confined_toolkit: DeveloperHarness, arguments, words):
    assert words in await confined_toolkit.call_error("shell", **arguments)


async def test_nothing_of_a_command_runs_if_bash_cannot_read_a_later_line(here: DeveloperHarness):
    lines = ["cd /usr", f"touch {here.root}/ran", *["true"] * 42, "echo 'it's fine'"]
    answer = await here.call_error("shell", command="\n".join(lines))
    assert "line 45: unexpected EOF while looking for matching `''" in answer
    assert "Nothing ran. Correct this" in answer
    assert not (here.root / "ran").exists()
    assert (await here.call_error("process", action="start", command="touch ran\nfi")).count("Nothing ran.") == 1
    assert not (here.root / "ran").exists()
    assert await here.shell("pwd") == str(here.root)


@pytest.mark.parametrize(
    "command",
    [
        "shopt -s extglob\necho !(*)",
        "cat <<EOF\nit's\nEOF",
        "cat <<EOF\nthe end is missing",
        "a=(1\n2)\n[[ ${a[1]} =~ ^[0-9]+$ ]] && echo ok",
        "case x in\nx) echo ok;;\nesac",
    ],
)
async def test_bash_reads_what_it_can_run(here: DeveloperHarness, command):
    assert "Nothing ran" not in await here.shell(command)


async def test_a_command_longer_than_one_argument_may_be(here: DeveloperHarness):
    assert await here.shell(f"echo {'x' * 200_000} | wc -c; cd /usr") == "200001\n[now in /usr]"
    assert not list(here.workspace.tmp.glob("*.sh"))


# --- output


async def test_output_is_seen_while_it_comes(here: DeveloperHarness):
    running = asyncio.create_task(here.shell("echo first; until [ -e go ]; do sleep 0.01; done; echo é"))
    await wait_until(lambda: "first" in here.shown)
    (here.root / "go").touch()
    assert await running == "first\né"
    assert here.shown == "first\né\n"


async def test_long_output_is_in_a_file_and_only_sampled_on_the_screen(here: DeveloperHarness):
    answer = await here.shell("seq 1000000")
    saved = here.session.outputs / "c1-shell.txt"
    assert saved.read_text().endswith("\n1000000\n")
    assert saved.stat().st_size == 6_888_896
    assert answer.startswith("1\n2\n")
    assert answer.endswith("\n1000000")
    assert str(saved) in answer
    assert len(answer) < 16_000
    assert len(here.shown) < saved.stat().st_size // 10
    assert "rg -c" not in await here.shell(f"rg -c 77777 {saved}")


async def test_an_exchange_does_not_write_over_the_saved_output(tmp_path):
    async with open_developer(tmp_path, "full", output_bytes=400) as made:
        await made.shell("seq 10000")
        assert (made.session.outputs / "c1-shell.txt").stat().st_size == 48_894


async def test_binary_output_is_told(here: DeveloperHarness):
    answer = await here.shell(r"printf '\xff\0\1'")
    assert answer.startswith("[binary output, 3 bytes, saved as ")
    assert (here.session.outputs / "c1-shell.txt").read_bytes() == b"\xff\0\1"


async def test_a_command_without_end_is_stopped_before_it_fills_the_disk(here: DeveloperHarness, monkeypatch):
    monkeypatch.setattr(module, "MAX_OUTPUT_BYTES", 3_000_000)
    answer = await here.call_error("shell", command="yes; echo never")
    assert "printed more than 1 GiB" in answer
    assert "in the background" not in answer
    assert (here.session.outputs / "c1-shell.txt").stat().st_size < 5_000_000


# --- ends


@pytest.mark.parametrize("mode", ["workspace", "full"])
@pytest.mark.parametrize("trap", ["", "trap '' TERM; "])
async def test_without_tools_for_processes_the_time_limit_ends_the_whole_family(tmp_path, mode, trap):
    command = f"{trap}exec 9>held; echo started; (sleep 100 | sleep 100) & sleep 100"
    async with open_developer(tmp_path, mode, tools=["shell"]) as made:
        answer = await made.call_error("shell", command=command, timeout_s=0.3)
        assert answer.startswith("started\n")
        assert "time limit of 0.3 s" in answer
        assert "larger timeout_s" in answer
        assert "in the background, process" not in answer
        assert (made.root / "held").exists()
        await wait_until(lambda: not is_held(made.root / "held"))
        assert await made.shell("echo alive") == "alive"


@pytest.mark.parametrize("trap", ["", "trap '' TERM; "])
async def test_cancelling_ends_the_whole_family(here: DeveloperHarness, trap):
    command = f"{trap}exec 9>held; (sleep 100 | sleep 100 &) ; echo up > up; sleep 100"
    running = asyncio.create_task(here.shell(command))
    await wait_until(lambda: (here.root / "up").exists())
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert (here.root / "held").exists()
    await wait_until(lambda: not is_held(here.root / "held"))
    assert await here.shell("echo alive") == "alive"


async def test_a_daemon_that_holds_the_pipe_does_not_hold_us(here: DeveloperHarness):
    answer = await here.shell("sleep 100 & echo $! > pid; echo done")
    pid = (here.root / "pid").read_text().strip()
    assert answer == f"done\n[in the background, process {pid} keeps running unseen until you kill it]"
    assert await here.shell(f"kill {pid} && echo killed") == "killed"
    assert await here.shell("(setsid sleep 100 &); echo done") == "done"


async def test_what_runs_in_the_background_ends_with_the_session(tmp_path):
    async with open_developer(tmp_path, "full") as made:
        await made.shell("exec 9>held; sleep 100 > log 2>&1 &")
        held = made.root / "held"
        assert is_held(held)
    await wait_until(lambda: not is_held(held))


async def test_a_file_that_a_redirection_emptied_is_told(tmp_path):
    async with open_developer(tmp_path, "full") as made:
        (made.root / "names.txt").write_text("b\na\n")
        (made.root / "log").write_text("old\n")
        assert (await made.shell("uniq < 'names.txt' > sorted")) == "[no output]"
        assert "log" not in await made.shell("echo new > log")
        answer = await made.shell("sort names.txt > names.txt")
        assert (
            "[the file names.txt is empty now: `>` emptied it before it was read; write to another file, then mv]"
            in answer
        )


# --- the sandbox


async def test_a_refused_write_says_how_to_go_on(confined_toolkit: DeveloperHarness):
    answer = await confined_toolkit.shell("touch /usr/new")
    assert "Read-only file system" in answer
    assert answer.endswith(
        "[the sandbox lets commands write only in /tmp and the workspace (not: .git/config, hooks); "
        "do it there or tell the person]"
    )


@needs_sandbox
async def test_a_file_that_a_command_writes_to_its_own_tmp_is_told(tmp_path):
    note = "in the sandbox's own /tmp, which is removed when the session ends"
    async with open_developer(tmp_path, "workspace") as made:
        answer = await made.shell("echo hello > /tmp/r.txt; ls /tmp/none; cat < notes/tmp/r.txt")
        assert f"[the file /tmp/r.txt is {note}]" in answer
        call = ToolCall(id="1", name="shell", arguments='{"command": "x"}')
        shown = RunningCall(call, "").split_result(answer)[1]  # the screen shows these without unfolding
        assert f"the file /tmp/r.txt is {note}" in shown
        answer = await made.shell("mkdir -p /tmp/out/deep; echo more >/tmp/out/deep/sub.d; touch /tmp/x")
        assert answer.endswith(f"[the files /tmp/out/deep/sub.d, /tmp/x are {note}]")
        assert note not in await made.shell("cat /tmp/r.txt; mktemp")
        assert note not in await made.shell(f"ls {tmp_path.parent}; mkdir /tmp/folder")


@needs_sandbox
async def test_the_own_tmp_of_the_sandbox_is_told(confined_toolkit: DeveloperHarness, tmp_path: Path):
    hidden = tmp_path / "real.txt"  # below the machine's /tmp
    hidden.write_text("x")
    made = await confined_toolkit.call_ok("write_file", path="/tmp/report.html", content="<p>\n")
    assert made.endswith("lines, in the sandbox's own /tmp, which is removed when the session ends)")
    assert "removed" not in await confined_toolkit.call_ok("write_file", path="report.html", content="<p>\n")
    assert "hides the machine's" in await confined_toolkit.call_error("read_file", path=str(hidden))
    for command in (f"cat {hidden}", f"""python3 -c 'open("{hidden}")'"""):
        assert "hides the machine's" in await confined_toolkit.shell(command)
    for command in ("cat missing", "cat ./tmp/cache/missing", "ls app/tmp/missing"):
        assert "hides the machine's" not in await confined_toolkit.shell(command)


@needs_sandbox
async def test_a_question_about_a_file_in_the_own_tmp_names_it_as_the_model_did(tmp_path):
    async with open_developer(tmp_path, approval="ask", answer=Answer(choice="allow", by="person")) as made:
        await made.call_ok("write_file", path="/tmp/report.html", content="x")
        (question,) = made.recorder.questions
        assert (question.text, question.subject) == (
            "change /tmp/report.html, in the sandbox's own /tmp",
            "/tmp/report.html",
        )
        await made.call_ok("write_file", path="report.html", content="x")
        assert made.recorder.questions[1].text == f"change {made.workspace.root}/report.html"


@needs_sandbox
async def test_a_missing_network_says_how_to_ask(confined_toolkit: DeveloperHarness):
    connect = "exec 3<>/dev/tcp/8.8.8.8/53"
    for failing in (connect, f"({connect}) 2>&1 | tail -1", "getent hosts example.com | cat"):
        assert (
            "[no network: the sandbox has a proxy for HTTP(S) and no other network; for that call shell with acc"
            in (await confined_toolkit.shell(failing))
        ), failing
    for other in (f"({connect}) 2>&1 | tail -1; true", "grep Network /dev/null", "echo Network is unreachable; false"):
        assert "no network" not in await confined_toolkit.shell(other), other


@needs_sandbox
async def test_a_host_that_cannot_be_reached_is_named_however_the_output_is_piped(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        closed = f"127.0.0.1:{server.getsockname()[1]}"
    settings = WorkspaceSettings(network=NetworkChoice(allow=("nowhere.invalid", closed)))
    async with open_developer(tmp_path, settings=settings) as made:
        answer = await made.shell("curl -s https://nowhere.invalid | head")
        assert "[no connection: no address is known for the host 'nowhere.invalid'" in answer
        answer = await made.shell(f"curl -s --noproxy x http://{closed} | head; true")
        assert f"[no connection: can't connect to {closed}: " in answer


@pytest.mark.parametrize(
    ("line", "note"),
    [
        ("(exit 6) | cat", "[exit code 6 of exit, command 1 of the pipe]"),
        ("cd . && sh -c 'echo out; exit 1' 2>&1 | tail -2", "[exit code 1 of sh, command 1 of the pipe]"),
        ("true | sh -c 'exit 3' | cat", "[exit code 3 of sh, command 2 of the pipe]"),
        ("sh -c 'kill -9 $$' | cat", "[exit code 137 (SIGKILL) of sh, command 1 of the pipe]"),
        ("A=1 B='x y' sh -c 'exit 3' | cat", "[exit code 3 of sh, command 1 of the pipe]"),
        ('false | cat <<< "it\'s"', "[exit code 1 of false, command 1 of the pipe]"),
        ("false | cat <<x\nit's\nx", "[exit code 1 of false, command 1 of the pipe]"),
        ("cat <<x | sh -c 'exit 3' | cat\nit's\nx", "[exit code 3 of sh, command 2 of the pipe]"),
        ("sh -c 'echo out; exit 23' | head -1", ""),
        ("sh -c 'exit 23' | head -1", "[exit code 23 of sh, command 1 of the pipe]"),
        ("grep nothing /dev/null | wc -l", ""),
        ("yes | head -1", ""),
        ("false | true | false", "[exit code 1]"),
        ("false || true", ""),
        ("(exit 6) | cat; true", ""),
    ],
)
async def test_a_failure_in_a_pipe_is_told(confined_toolkit: DeveloperHarness, line, note):
    answer = await confined_toolkit.shell(line)
    assert answer.endswith(note) if note else "exit code" not in answer


@pytest.mark.parametrize("access", ["workspace", "network"])
async def test_an_unreachable_host_is_told_when_network_is_allowed(tmp_path, access):
    async with open_developer(tmp_path, mode="workspace+network") as made:
        fails = "sh -c 'echo curl: Could not resolve host: x; exit 6'"
        curl = "curl() { return 6; }; curl -s x.org"
        for line in (fails, f"{fails} 2>&1 | tail -1", curl, f"{curl} | head" if access == "workspace" else curl):
            assert "[no connection: this machine can't reach the host]" in await made.shell(line, access=access)
        assert "no connection" not in await made.shell("echo Could not resolve host", access=access)


async def test_network_is_asked_for_and_a_refusal_told(confined_toolkit: DeveloperHarness):
    assert "network access for: true" in await confined_toolkit.call_error("shell", command="true", access="network")
    assert confined_toolkit.recorder.questions[0].subject == "true"


async def test_nothing_of_earlier_commands_changes_one_with_network(tmp_path):
    tricks = r"""mkdir -p sub bin; printf '#!/bin/sh\necho planted\n' >bin/curl; chmod +x bin/curl; cd sub
        curl() { echo planted; }; alias ls="echo planted"; export -f curl
        export A=1 PATH="$PWD/../bin:$PATH" BASH_ENV=x"""
    race = "while sleep 0.01; do for f in /tmp/.shell-*; do echo 'echo planted' >$f; done; done 2>/dev/null &"
    async with open_developer(tmp_path, answer=Answer(choice="allow", by="person")) as made:
        await made.shell(tricks)
        await made.shell(race)
        answer = await made.shell('type curl; pwd; echo "A=$A"; ls; cd /usr; export A=2', access="network")
        assert answer.split("\n")[:3] == [f"curl is {shutil.which('curl')}", f"{made.workspace.root}/sub", "A="]
        assert "planted" not in answer
        assert made.recorder.questions[0].subject.startswith(f"cd {made.workspace.root}/sub && type curl")


@pytest.mark.parametrize(
    ("left", "line", "shown"),
    [
        ("git() { echo FAKE; }; export -f git", "git --version", "echo FAKE"),
        ("mkdir /tmp/pp; cp /bin/true /tmp/pp/git; export PATH=/tmp/pp:$PATH", "git --version", "git is /tmp/pp/git"),
        ("export BASH_ENV=/tmp/x", "git --version", 'declare -x BASH_ENV="/tmp/x"'),
        ("export BUILD=dist", "git status $BUILD", 'declare -x BUILD="dist"'),
    ],
)
async def test_a_question_shows_what_earlier_commands_left_and_no_rule_allows_that(tmp_path, left, line, shown):
    settings = WorkspaceSettings(permissions=PermissionLists(allow=("git",)))
    answer = Answer(choice="allow", by="person")
    async with open_developer(tmp_path, answer=answer, approval="ask", settings=settings) as bench:
        await bench.call_ok("shell", command="git --version")
        assert bench.recorder.questions == []
        await bench.call_ok("shell", command=left)
        await bench.outcome("shell", command=line)
        before, question = bench.recorder.questions
        assert (before.detail, question.text) == ("", f"run: {line}")
        assert shown in question.detail


async def test_a_program_in_the_workspace_does_not_shadow_one_with_network(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", f"{tmp_path}/project/bin:.:{os.environ['PATH']}")
    plant = r"mkdir -p bin; printf '#!/bin/sh\necho planted\n' | tee bin/curl >curl; chmod +x curl bin/curl"
    async with open_developer(tmp_path, answer=Answer(choice="allow", by="person")) as made:
        assert await made.shell(f"{plant}; curl") == "planted"
        assert "planted" not in await made.shell("type curl; curl --version", access="network")


async def test_a_command_with_network_leaves_nothing_behind(tmp_path):
    async with open_developer(tmp_path, answer=Answer(choice="allow", by="person")) as made:
        left = "while sleep 0.02; do date +%N >/tmp/alive; done"
        await made.shell(f"env -i setsid bash -c '{left}' >/dev/null 2>&1 & sleep 0.2", access="network")
        look = "sleep 0.1; cp /tmp/alive /tmp/was; sleep 0.3; cmp /tmp/alive /tmp/was && echo dead; rm /tmp/was"
        assert await made.shell(look) == "dead"


async def test_without_a_sandbox_nothing_is_said_of_one(tmp_path):
    async with open_developer(tmp_path, "full") as made:
        assert await made.shell("echo Read-only file system; false") == "Read-only file system\n[exit code 1]"


async def test_what_a_new_repository_would_run_is_told(confined_toolkit: DeveloperHarness):
    answer = await confined_toolkit.shell("git init -q r && echo 'echo hi' > r/.git/hooks/post-commit")
    assert "post-commit" in answer
    assert "not allowed" in answer


async def test_output_survives_the_death_of_the_sandbox(tmp_path):
    async with open_developer(tmp_path, "full") as made:
        assert await made.shell("echo before; true") == "before"
        answer = await made.call_error("shell", command="echo before; sleep 0.2; kill -9 $PPID; sleep 100")
        assert answer.startswith("before")
        assert await made.shell("echo after") == "after"


async def test_the_model_reads_which_limit_a_command_met(confined_toolkit: DeveloperHarness):
    answer = await confined_toolkit.shell("echo 'x: Too many open files'; false")
    assert "`resources: {open_files: ...}` in the profile" in answer
