"""Commands through a spawner without a sandbox: output, exit codes, and no leftovers."""

import asyncio
import os
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest

from goose_like.core.errors import GooseLikeError
from goose_like.workspace.processes.process import Process, SpawnerClient, create_file, describe_exit
from goose_like.workspace.processes.spawner import count_packets_without_route
from tests.processes import is_alive, wait_for_count
from tests.workspace.workspace_harness import needs_sandbox

ENV = {"PATH": os.environ["PATH"]}


@pytest.fixture
async def spawner() -> AsyncIterator[SpawnerClient]:
    spawner = SpawnerClient()
    yield spawner
    await spawner.close()


async def bash(spawner: SpawnerClient, script: str, cwd: Path = Path("/")) -> Process:
    return await spawner.spawn(["bash", "-c", script], cwd, ENV)


async def read_all(process: Process) -> bytes:
    output = bytearray()
    assert await process.read_all(output.extend)
    return bytes(output)


async def wait_for_death(pid: int) -> None:
    async with asyncio.timeout(60):
        while is_alive(pid):  # noqa: ASYNC110
            await asyncio.sleep(0.02)


async def test_output_and_code(spawner: SpawnerClient, tmp_path: Path) -> None:
    process = await bash(spawner, "pwd; echo err >&2; exit 3", tmp_path)
    assert await read_all(process) == f"{tmp_path}\nerr\n".encode()
    assert await process.wait() == 3


async def test_death_by_signal_is_negative(spawner: SpawnerClient) -> None:
    assert await (await bash(spawner, "kill -9 $$")).wait() == -signal.SIGKILL
    assert await (await bash(spawner, "kill -36 $$")).wait() == -36


@pytest.mark.skipif(sys.platform != "linux", reason="counts descriptors in /proc")
@pytest.mark.parametrize("free_count", range(3))
async def test_no_descriptor_is_left_open_if_there_are_too_few(spawner: SpawnerClient, free_count: int) -> None:
    await (await bash(spawner, "true")).wait()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = [os.dup(0) for _ in range(free_count + 1)]
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest[-1], hard))  # a new descriptor must be below the limit
    for descriptor in lowest[:-1]:
        os.close(descriptor)
    try:
        with pytest.raises(GooseLikeError, match="can't start the command: Too many open files"):
            await bash(spawner, "true")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    again = [os.dup(0) for _ in range(free_count)]
    for descriptor in (*again, lowest[-1]):
        os.close(descriptor)
    assert again == lowest[:-1]


def test_exit_codes_are_described() -> None:
    texts = {0: "exit code 0", 137: "exit code 137 (SIGKILL)", 200: "exit code 200", -9: "killed by SIGKILL"}
    assert {code: describe_exit(code) for code in texts} == texts
    assert describe_exit(-36) == "killed by signal 36"


async def test_many_at_once(spawner: SpawnerClient) -> None:
    processes = await asyncio.gather(*(bash(spawner, f"echo {n}; exit {n}") for n in range(40)))
    assert [await read_all(process) for process in processes] == [b"%d\n" % n for n in range(40)]
    assert [await process.wait() for process in processes] == list(range(40))


async def test_environment_larger_than_a_packet(spawner: SpawnerClient) -> None:
    env = ENV | {f"V{n}": "x" * 100_000 for n in range(8)}
    process = await spawner.spawn(["bash", "-c", "echo ${#V7}"], Path("/"), env)
    assert await read_all(process) == b"100000\n"


async def test_nothing_is_inherited(spawner: SpawnerClient) -> None:
    process = await spawner.spawn(["ls", "/proc/self/fd"], Path("/"), ENV)
    assert (await read_all(process)).split() == [b"0", b"1", b"2", b"3"]  # 3 is the folder that is listed
    process = await bash(spawner, "readlink /proc/self/fd/0; ps -o sid= -p $$; echo $$")
    stdin, session, pid = (await read_all(process)).split()
    assert stdin == b"/dev/null"
    assert session == pid


async def test_default_signals(spawner: SpawnerClient) -> None:
    process = await bash(spawner, "grep -E 'Sig(Ign|Blk)' /proc/self/status")
    masks = [int(line.split()[1], 16) for line in (await read_all(process)).splitlines()]
    assert [mask & 0x7FFFFFFF for mask in masks] == [0, 0]  # 32 and 33 belong to the C library


async def test_stdin(spawner: SpawnerClient) -> None:
    theirs, ours = os.pipe()
    process = await spawner.spawn(["cat"], Path("/"), ENV, {0: theirs})
    os.close(theirs)
    os.write(ours, b"hello")
    os.close(ours)
    assert await read_all(process) == b"hello"


async def test_descriptors_keep_their_numbers(spawner: SpawnerClient) -> None:
    files = [create_file(word.encode()) for word in ("input", "first")]
    process = await spawner.spawn(
        ["bash", "-c", "cat; cat <&3; cat /dev/fd/3; ls /proc/self/fd"], Path("/"), ENV, {3: files[0], 0: files[1]}
    )
    for file in files:
        os.close(file)
    assert await read_all(process) == b"firstinputinput0\n1\n2\n3\n4\n"


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["no-such-command"], "no such command"),
        (["/etc/passwd"], "Permission denied"),
        (["echo", "x" * 3_000_000], "too long"),
        (["echo", "a\0b"], "NUL"),
        (["echo", "\ud800"], "no valid text"),
    ],
)
async def test_what_cant_be_started(spawner: SpawnerClient, argv: list[str], words: str) -> None:
    with pytest.raises(GooseLikeError, match=words):
        await spawner.spawn(argv, Path("/"), ENV)
    assert await read_all(await bash(spawner, "echo on")) == b"on\n"


async def test_missing_folder(spawner: SpawnerClient) -> None:
    with pytest.raises(GooseLikeError, match="No such file"):
        await bash(spawner, "true", Path("/no/such/folder"))


async def test_stop_reaches_grandchildren_that_ignore_term(spawner: SpawnerClient) -> None:
    process = await bash(
        spawner,
        "trap '' TERM; echo $$; sleep 300 & echo $!; setsid sleep 300 & echo $!; "
        "set -m; sleep 300 & echo $!; echo .; wait",
    )
    output = b""
    while b"." not in output:
        output += await process.read()
    pids = [int(word) for word in output.split()[:-1]]
    assert all(map(is_alive, pids))
    await process.stop(grace_s=0.1)
    assert not any(map(is_alive, pids))
    assert await process.wait() == -signal.SIGKILL


async def test_stop_of_the_dead(spawner: SpawnerClient) -> None:
    process = await bash(spawner, "exit 4")
    assert await process.wait() == 4
    await process.stop()
    assert await process.wait() == 4


async def test_background_keeps_the_pipe_open(spawner: SpawnerClient) -> None:
    process = await bash(spawner, "(while sleep 0.01; do echo noise; done) & echo $!; echo done")
    output = await asyncio.wait_for(read_all(process), 60)
    assert await process.wait() == 0
    assert b"done" in output
    pid = int(output.split()[0])
    await asyncio.sleep(0.3)
    assert is_alive(pid)  # it goes on, and nobody's pipe breaks
    await spawner.close()
    await wait_for_death(pid)


async def test_a_read_that_is_given_up_loses_nothing(spawner: SpawnerClient) -> None:
    process = await bash(spawner, "seq 300000")
    output, given_up = b"", 0
    while True:
        reading = asyncio.create_task(process.read())
        for _ in range(given_up % 4):
            await asyncio.sleep(0)
        reading.cancel()
        try:
            chunk = await reading
        except asyncio.CancelledError:
            given_up += 1
            continue
        if not chunk:
            break
        output += chunk
        given_up += 1
    assert output == "".join(f"{n}\n" for n in range(1, 300_001)).encode()


async def test_what_lives_of_a_command_is_counted(spawner: SpawnerClient) -> None:
    process = await bash(spawner, "sleep 100 & sleep 100 & echo up")
    await read_all(process)
    assert await process.count_processes() == 2
    await process.stop(0.1)
    assert await process.count_processes() == 0


async def test_a_process_of_our_own_is_not_counted_and_ends_with_its_input(spawner: SpawnerClient) -> None:
    theirs, ours = os.pipe()
    process = await spawner.spawn(["cat"], Path("/"), {}, {0: theirs}, is_counted=False)
    os.close(theirs)
    assert await spawner.count_processes() == 0
    command = await bash(spawner, "sleep 100")
    assert await spawner.count_processes() == 1
    await command.stop(0)
    os.close(ours)
    assert await process.wait() == 0
    await process.stop(0)


async def test_flood_is_not_hoarded(spawner: SpawnerClient) -> None:
    process = await bash(spawner, "head -c 300000000 /dev/zero")
    await asyncio.sleep(0.3)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    size = 0
    while chunk := await process.read():
        size += len(chunk)
    assert size == 300_000_000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000  # KiB


@pytest.mark.parametrize(
    ("script", "limit_bytes", "is_whole"), [("yes", 100_000, False), ("echo 123", 4, True), ("echo 123", 3, False)]
)
async def test_reading_ends_at_a_limit(spawner: SpawnerClient, script: str, limit_bytes: int, is_whole: bool) -> None:
    process, output = await bash(spawner, script), bytearray()
    assert await process.read_all(output.extend, limit_bytes) == is_whole
    assert (len(output) > limit_bytes) != is_whole
    await process.stop(0)


async def test_close_kills_those_who_hid(spawner: SpawnerClient) -> None:
    process = await bash(spawner, "(setsid bash -c 'trap \"\" TERM HUP; sleep 300 & echo $!; wait' &)")
    pid = int(await process.read())
    assert await process.wait() == 0
    await spawner.close()
    await wait_for_death(pid)


async def test_stop_reaches_a_daemon(spawner: SpawnerClient) -> None:
    process = await bash(spawner, "setsid bash -c '(sleep 300 & echo $!) & wait' ; sleep 300")
    pid = int(await process.read())
    await process.stop(0.1)
    await wait_for_death(pid)


async def test_a_variable_without_a_name(spawner: SpawnerClient) -> None:
    for name in ("", "A=B"):
        with pytest.raises(GooseLikeError, match="can't be named"):
            await spawner.spawn(["true"], Path("/"), {name: "x"})
    assert await (await spawner.spawn(["true"], Path("/"), ENV)).wait() == 0


async def test_killed_spawner_is_noticed(spawner: SpawnerClient) -> None:
    earlier = int(await read_all(await bash(spawner, "sleep 300 > /dev/null & echo $!")))
    process = await bash(spawner, "sleep 300 & echo $!; sleep 0.2; kill -9 $PPID; wait")
    pid = int(await process.read())
    with pytest.raises(GooseLikeError, match="was killed"):
        await process.wait()
    assert not spawner.is_alive
    await wait_for_death(pid)
    await wait_for_death(earlier)
    with pytest.raises(GooseLikeError, match="gone"):
        await bash(spawner, "true")


async def test_cancelled_start_leaves_nothing(spawner: SpawnerClient, tmp_path: Path) -> None:
    task = asyncio.create_task(bash(spawner, f"echo $$ > {tmp_path}/pid; sleep 300"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await (await task).stop()
    await asyncio.sleep(0.3)
    pid = tmp_path / "pid"
    written = pid.read_text() if pid.exists() else ""
    if written:
        await wait_for_death(int(written))


KILLED = """
import asyncio, sys
from goose_like.core.notifier import Notifier
from goose_like.workspace.workspace import Workspace

async def main():
    workspace = Workspace(sys.argv[2], mode=sys.argv[1], approval="auto", notifier=Notifier())
    process = await workspace.spawn(["bash", "-c", "(setsid sleep 4321.5 &) ; sleep 4321.5 & echo started; wait"])
    print(await process.read(), flush=True)
    await asyncio.sleep(300)

asyncio.run(main())
"""


@pytest.mark.parametrize("mode", ["full", "workspace"])
def test_kill_9_of_us_leaves_no_child(mode: str, tmp_path: Path) -> None:
    marker = f"43210{os.getpid()}"
    script = KILLED.replace("4321.5", marker)
    parent = subprocess.Popen([sys.executable, "-c", script, mode, str(tmp_path)], stdout=subprocess.PIPE)
    assert parent.stdout is not None
    assert b"started" in parent.stdout.readline()
    try:
        wait_for_count(2, f"sleep {marker}")
    finally:
        parent.kill()
        parent.wait()
    wait_for_count(0, f"sleep {marker}")


# --- packets without a route

COUNTERS = b"Ip: OutNoRoutes InHdrErrors\nIp: 7 1\nUdp: NoPorts\nUdp: 100\n"
COUNTERS6 = b"Ip6OutNoRoutes 20\nUdp6NoPorts 1000\n"
LOCAL = b"nameserver 127.0.0.53\n"
ODD_LINES = [
    b"nameserver \n",
    b"nameserver\n",
    b"\n",
    b"# von M\xfcller\n",
    b"nameserver\t::1\n",
    b"\0\n",
    b"search x\n",
]


@pytest.mark.parametrize(
    ("name_servers", "counters", "counters6", "count"),
    [
        (LOCAL, COUNTERS, COUNTERS6, 1127),
        (b"nameserver 192.0.2.1\n" + LOCAL, COUNTERS, COUNTERS6, 27),
        (b"nameserver\t192.0.2.1\n", COUNTERS, COUNTERS6, 27),
        *((line + LOCAL, COUNTERS, COUNTERS6, 1127) for line in ODD_LINES),
        *((line + b"nameserver 192.0.2.1\n", COUNTERS, COUNTERS6, 27) for line in ODD_LINES),
        (b"", COUNTERS, COUNTERS6, 1127),
        (None, COUNTERS, COUNTERS6, 1127),
        (LOCAL, COUNTERS, None, 107),
        (LOCAL, COUNTERS, b"", 107),
        (LOCAL, COUNTERS, b"\nUdp6NoPorts\nIp6OutNoRoutes 20\n", 127),
        (LOCAL, b"", b"", 0),
        (LOCAL, None, COUNTERS6, None),
        (LOCAL, b"Ip: OutNoRoutes\n", COUNTERS6, None),
        (LOCAL, b"Ip: OutNoRoutes\nIp: 1 2\n", COUNTERS6, None),
        (LOCAL, b"Ip: OutNoRoutes\nIp: many\n", COUNTERS6, None),
        (LOCAL, b"\n\n", COUNTERS6, 1020),
        (LOCAL, COUNTERS, b"Ip6OutNoRoutes \xff\n", None),
    ],
)
def test_odd_system_files_make_the_count_unknown_at_worst(
    name_servers: bytes | None, counters: bytes | None, counters6: bytes | None, count: int | None, tmp_path: Path
) -> None:
    files = {"resolv.conf": name_servers, "snmp": counters, "snmp6": counters6}
    for name, content in files.items():
        if content is not None:
            (tmp_path / name).write_bytes(content)
    assert count_packets_without_route(str(tmp_path / "resolv.conf"), str(tmp_path / "snmp")) == count


@needs_sandbox
@pytest.mark.parametrize("line", ODD_LINES)
async def test_commands_run_with_an_odd_list_of_name_servers(line: bytes, tmp_path: Path) -> None:
    """Also when the list changes while a command runs, and the count fails at the end only."""
    servers = tmp_path / "resolv.conf"
    servers.write_bytes(LOCAL)
    mount = f'mount --bind {servers} /etc/resolv.conf && exec "$@"'
    spawner = SpawnerClient(["unshare", "--map-root-user", "--mount", "sh", "-c", mount, "sh"])
    try:
        early = await bash(spawner, "sleep 0.1; exit 3")  # it starts before `listen`, and ends after it

        async def serve(listener: socket.socket, _: SpawnerClient) -> None:
            listener.close()

        spawner.listen(0, serve)
        running = await bash(spawner, "sleep 0.3; exit 5")
        servers.write_bytes(line)
        assert await running.wait() == 5
        after = await bash(spawner, "echo on")
        assert await read_all(after) == b"on\n"
        assert await after.wait() == 0
        assert await early.wait() == 3
    finally:
        await spawner.close()
