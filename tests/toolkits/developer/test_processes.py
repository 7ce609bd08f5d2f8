"""Background processes: output, input, cancelling, and the end of the session."""

import asyncio
import fcntl
import re
from pathlib import Path

import pytest
from goose_like_toolkits.developer import processes as module

from tests.toolkits.developer.developer_harness import DeveloperHarness, open_developer, wait_until

SERVER = """
import http.server
class Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(b"it works")
server = http.server.HTTPServer(("127.0.0.1", 0), Answers)
print("port", server.server_port, flush=True)
server.serve_forever()
"""


@pytest.fixture(params=["workspace", "full"])
async def here(request, tmp_path):
    """A toolkit in each of the two modes."""
    async with open_developer(tmp_path, request.param) as made:
        yield made


@pytest.fixture
async def free(tmp_path):
    async with open_developer(tmp_path, "full") as made:
        yield made


async def start(made: DeveloperHarness, command: str) -> str:
    return await made.call_ok("process", action="start", command=command)


async def view(made: DeveloperHarness, name: str = "p1") -> str:
    return await made.call_ok("process", action="view", id=name)


async def all_end(made: DeveloperHarness) -> None:
    async with asyncio.timeout(60):
        while "running" in await made.call_ok("process", action="list"):  # noqa: ASYNC110
            await asyncio.sleep(0.01)


def is_free(path: Path) -> bool:
    """Check that no living process holds the lock of `flock`, which children inherit. Create a missing file."""
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


# --- a life


async def test_the_oldest_of_many_that_ended_are_forgotten(free: DeveloperHarness):
    await start(free, "sleep 300")
    for _ in range(module.KEPT_ENDED + 5):
        await start(free, "echo said")
    listed = (await free.call_ok("process", action="list")).splitlines()
    assert listed[0].startswith("p1: running")
    assert len(listed) == module.KEPT_ENDED + 2  # the one that runs, and the newest
    assert listed[-1].startswith(f"p{module.KEPT_ENDED + 6}: ")
    assert "no process 'p2'" in await free.call_error("process", action="view", id="p2")


async def test_a_server_is_started_asked_and_cancelled(here: DeveloperHarness):
    (here.root / "server.py").write_text(SERVER)
    answer = await start(here, "exec python3 server.py")
    assert re.fullmatch(r"port \d+\n\[p1: running for \d+ s\]", answer)
    port = answer.split()[1]
    assert await here.shell(f"curl -s http://127.0.0.1:{port}/") == "it works"
    assert "GET / HTTP/1.1" in await view(here)
    assert (await view(here)).startswith("[no new output]\n[p1: running for ")
    assert re.fullmatch(
        r"p1: running for \d+ s, 0 new bytes: exec python3 server.py", await here.call_ok("process", action="list")
    )
    assert (await here.call_ok("process", action="stop", id="p1")).endswith("[p1: cancelled]")
    assert "exit code 7" in await here.shell(f"curl -s http://127.0.0.1:{port}/")
    assert await here.call_ok("process", action="list") == "p1: cancelled, 0 new bytes: exec python3 server.py"


async def test_an_early_death_is_told_with_its_last_words(here: DeveloperHarness):
    assert await start(here, "echo no such port >&2; exit 3") == "no such port\n[p1: exit code 3]"
    assert await start(here, "kill -9 $$") == "[no new output]\n[p2: killed by SIGKILL]"


async def test_it_starts_where_the_shell_is_with_its_variables(here: DeveloperHarness):
    await here.shell("cd /usr; export WORD=hello; greet() { echo greeted; }; export -f greet")
    assert await start(here, "pwd; echo $WORD; greet; cd /; export WORD=other") == (
        "/usr\nhello\ngreeted\n[p1: exit code 0]"
    )
    assert await here.shell("pwd; echo $WORD") == "/usr\nhello"


async def test_it_leaves_no_variables_on_the_disk(here: DeveloperHarness):
    await here.shell("export PASSPHRASE=open-sesame")
    await start(here, "true")
    await start(here, "sleep 100")
    await here.call_ok("process", action="stop", id="p2")
    await here.call_ok("shell", command="echo $PASSPHRASE >/dev/null; sleep 0.4", timeout_s=0.1)
    await all_end(here)
    files = [path for path in here.workspace.tmp.rglob("*") if path.is_file()]
    assert not [path for path in files if b"open-sesame" in path.read_bytes()]


@pytest.mark.parametrize("trap", ["", "trap '' TERM; "])
async def test_cancelling_reaches_grandchildren(here: DeveloperHarness, trap):
    command = f"{trap}exec 9>held; flock 9; (sleep 100 | sleep 100) & setsid sleep 100 & echo up; wait"
    assert (await start(here, command)).startswith("up\n")
    held = here.root / "held"
    assert not is_free(held)
    await here.call_ok("process", action="stop", id="p1")
    assert is_free(held)


async def test_what_it_left_in_the_background_is_told_and_can_be_cancelled(here: DeveloperHarness):
    answer = await start(here, "exec 9>held; flock 9; sleep 100 > log 2>&1 &")
    assert "[p1: exit code 0; it left 1 in the background" in answer
    held = here.root / "held"
    assert not is_free(held)
    assert (await here.call_ok("process", action="stop", id="p1")).endswith("[p1: exit code 0]")
    assert is_free(held)


async def test_all_end_with_the_session(tmp_path):
    async with open_developer(tmp_path, "full") as made:
        for number in range(3):
            await start(made, f"exec 9>held{number}; flock 9; sleep 100 & sleep 100")
        held = [made.root / f"held{number}" for number in range(3)]
        await wait_until(lambda: not any(map(is_free, held)))
    assert all(map(is_free, held))


async def test_a_start_that_is_cancelled_leaves_nothing(here: DeveloperHarness):
    starting = asyncio.create_task(start(here, "exec 9>held; flock 9; sleep 100"))
    held = here.root / "held"
    await wait_until(lambda: not is_free(held))
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    await wait_until(lambda: is_free(held))  # cancelled that early it is killed, and nobody waits


@pytest.mark.parametrize("action", ["view", "stop", "write", "restart"])
async def test_an_unknown_id(free: DeveloperHarness, action):
    call = {"action": action, "id": "p7", "text": "x"}
    assert await free.call_error("process", **call) == "no process 'p7'; `start` with a command starts one"
    await start(free, "true")
    assert await free.call_error("process", **call) == "no process 'p7'; there are: p1"
    assert "command is empty" in await free.call_error("process", action="start", command=" ")


async def test_none_yet(free: DeveloperHarness):
    assert await free.call_ok("process", action="list") == "[no process was started]"


# --- output


async def test_only_what_is_new_is_shown_and_the_file_has_all(here: DeveloperHarness):
    await start(here, "echo one; read; echo two; seq 100000; read; echo three")
    assert (await here.call_ok("process", action="write", id="p1", text="go")).startswith("two\n1\n2\n")
    answer = await here.call_ok("process", action="write", id="p1", text="go")
    assert answer == "three\n[p1: exit code 0]"
    (saved,) = here.session.outputs.iterdir()
    assert saved.read_text() == "one\ntwo\n" + "".join(f"{n}\n" for n in range(1, 100_001)) + "three\n"
    assert here.shown.startswith("one\ntwo\n")


async def test_long_news_are_cut_and_name_the_file(here: DeveloperHarness):
    answer = await start(here, "seq 100000; sleep 100")
    (saved,) = here.session.outputs.iterdir()
    assert re.search(rf"\n\d+\n\[\.\.\. 97,\d+ lines \(57\d,\d+ bytes\) left out here; all of it is in {saved}", answer)
    assert len(answer) < 16_500
    assert "[no new output]" in await view(here)


async def test_output_is_drained_without_being_viewed(here: DeveloperHarness):
    await start(here, "head -c 5000000 /dev/zero | tr '\\0' x; touch done; sleep 100")
    await wait_until((here.root / "done").exists)


async def test_half_a_character_waits_for_its_other_half(free: DeveloperHarness):
    await start(free, r"printf 'caf\303'; read; printf '\251\n'; sleep 100")
    assert (await free.call_ok("process", action="write", id="p1", text="")).startswith("é\n")
    assert (free.session.outputs / "c1-process.txt").read_text() == "café\n"


async def test_a_process_without_end_is_stopped_before_it_fills_the_disk(here: DeveloperHarness, monkeypatch):
    monkeypatch.setattr(module, "MAX_OUTPUT_BYTES", 3_000_000)
    output = await start(here, "yes")
    while "[p1: stopped, since it printed more than 1 GiB]" not in output:  # a busy machine is slower
        await asyncio.sleep(0.05)  # a view alone may not let the reader of the output run
        output = await here.call_ok("process", action="view", id="p1")
    assert (here.session.outputs / "c1-process.txt").stat().st_size < 5_000_000


async def test_the_death_of_the_sandbox_is_told(free: DeveloperHarness):
    assert "p1: the process that starts commands was killed" in await start(free, "echo x; sleep 0.2; kill -9 $PPID")
    assert await start(free, "echo again") == "again\n[p2: exit code 0]"


# --- input


async def test_a_program_is_fed_by_lines(here: DeveloperHarness):
    await start(here, 'while read -r line; do echo "[$line]"; done; echo bye; exit 5')
    assert (await here.call_ok("process", action="write", id="p1", text="a b")).startswith("[a b]\n")
    assert (await here.call_ok("process", action="write", id="p1", text="c\nd\n")).startswith("[c]\n[d]\n")
    assert await here.call_ok("process", action="write", id="p1", text="") == "bye\n[p1: exit code 5]"
    assert "p1 has no input, or that has ended" in await here.call_error("process", action="write", id="p1", text="x")


async def test_one_that_does_not_read_does_not_hold_us(here: DeveloperHarness):
    await start(here, "read line; exec sleep 100")
    answer = await here.call_error("process", action="write", id="p1", text="x\n" * 200_000)
    assert re.search(r"p1 does not read: it took only the first [\d,]+ of 400,000 bytes", answer)
    assert "running" in await view(here)


async def test_a_closed_input_is_told(here: DeveloperHarness):
    await start(here, "exec < /dev/null; sleep 100")
    assert "p1 has closed its input" in await here.call_error("process", action="write", id="p1", text="x")
    assert "no input" in await here.call_error("process", action="write", id="p1", text="")


async def test_half_a_character_can_not_be_written(free: DeveloperHarness):
    await start(free, "cat")
    assert "invalid JSON" in await free.call_error("process", action="write", id="p1", text="\ud800")


# --- restart


async def test_a_process_starts_again_under_its_id(here: DeveloperHarness):
    await start(here, "cat config; exec sleep 300")
    (here.root / "config").write_text("port = 1\n")
    answer = await here.call_ok("process", action="restart", id="p1")
    assert answer.startswith("port = 1\n[p1: running for")
    answer = await here.call_ok("process", action="restart", id="p1", command="echo other; exec cat")
    assert answer.startswith("other\n[p1: running for")
    assert (await here.call_ok("process", action="write", id="p1", text="hello")).startswith("hello\n")
    listed = await here.call_ok("process", action="list")
    assert listed.count("\n") == 0
    assert listed.endswith("echo other; exec cat")


async def test_one_that_has_ended_can_be_started_again(here: DeveloperHarness):
    await start(here, "echo $RANDOM >> runs")
    answer = await here.call_ok("process", action="restart", id="p1")
    assert answer.endswith("[p1: exit code 0]")
    assert (here.root / "runs").read_text().count("\n") == 2


# --- a command past its time limit


async def test_a_command_past_its_limit_goes_on_as_a_process(here: DeveloperHarness):
    command = "echo begun; until [ -e go ]; do sleep 0.01; done; echo ended; cd /usr"
    answer = await here.shell(command, timeout_s=2)
    assert answer.startswith("begun\n[not ended after 2 s: still running as process p1")
    assert '`process` shows what is new ("view") or ends it ("stop")' in answer
    assert await here.shell("pwd") == str(here.root)
    assert "no input" in await here.call_error("process", action="write", id="p1", text="x")
    (here.root / "go").touch()
    await all_end(here)
    assert await view(here) == "ended\n[p1: exit code 0]"
    assert await here.shell("pwd") == str(here.root)


async def test_no_byte_is_lost_where_a_command_becomes_a_process(here: DeveloperHarness):
    answer = await here.shell("seq 3000000", timeout_s=0.02)
    if "still running as process" in answer:
        await all_end(here)
    saved = here.session.outputs / "c1-shell.txt"
    assert saved.read_text() == "".join(f"{n}\n" for n in range(1, 3_000_001))


async def test_one_that_goes_on_can_be_cancelled(here: DeveloperHarness):
    await here.shell("exec 9>held; flock 9; trap '' TERM; (sleep 100 | sleep 100) & sleep 100", timeout_s=0.5)
    held = here.root / "held"
    assert not is_free(held)
    assert "[p1: cancelled]" in await here.call_ok("process", action="stop", id="p1")
    assert is_free(held)
