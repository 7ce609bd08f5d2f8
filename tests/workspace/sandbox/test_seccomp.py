"""The filter of system calls and the session keyring, tried out by commands in the sandbox."""

import struct
from pathlib import Path

import pytest

from goose_like.core.notifier import Recorder
from goose_like.workspace.sandbox import seccomp
from goose_like.workspace.workspace import Workspace
from tests.workspace.workspace_harness import needs_sandbox, run_script

pytestmark = needs_sandbox

CALL = """python3 - <<'END'
import ctypes, errno, os
libc = ctypes.CDLL(None, use_errno=True)
numbers = {{"x86_64": {x86}, "aarch64": {arm}}}
print(libc.syscall(numbers[os.uname().machine], *{arguments}), errno.errorcode.get(ctypes.get_errno()))
END"""

DENIED = {
    "keyctl": (250, 219, (0, -3, 0)),
    "add_key": (248, 217, (b"user", b"name", b"secret", 6, -3)),
    "request_key": (249, 218, (b"user", b"name", None, -3)),
    "io_uring_setup": (425, 425, (8, None)),
    "io_uring_enter": (426, 426, (0, 0, 0, 0, None, 0)),
    "ptrace": (101, 117, (0, 0, None, None)),
    "process_vm_readv": (310, 270, (1, None, 0, None, 0, 0)),
    "mount": (165, 40, (None, b"/tmp", b"tmpfs", 0, None)),
    "fsopen": (430, 430, (b"tmpfs", 0)),
    "open_tree_attr": (467, 467, (-100, b"/", 0, None, 0)),
    "syslog": (103, 116, (10, None, 0)),
    "setns": (308, 268, (0, 0)),
    "bpf": (321, 280, (0, None, 0)),
    "perf_event_open": (298, 241, (None, 0, -1, -1, 0)),
    "userfaultfd": (323, 282, (1,)),
}
NAMESPACES = {
    "time": 0x80, "mount": 0x20000, "cgroup": 0x2000000, "uts": 0x4000000, "ipc": 0x8000000, "user": 0x10000000,
    "pid": 0x20000000, "net": 0x40000000,
}  # fmt: skip


async def call(workspace: Workspace, x86: int, arm: int, *arguments: object) -> str:
    return (await run_script(workspace, CALL.format(x86=x86, arm=arm, arguments=arguments)))[1].strip()


@pytest.mark.parametrize("name", DENIED)
async def test_calls_are_denied(workspace: Workspace, name: str) -> None:
    x86, arm, arguments = DENIED[name]
    assert await call(workspace, x86, arm, *arguments) == "-1 EPERM"


@pytest.mark.parametrize("name", NAMESPACES)
async def test_no_new_namespaces(workspace: Workspace, name: str) -> None:
    assert await call(workspace, 272, 97, NAMESPACES[name]) == "-1 EPERM"
    if name != "time":  # clone(2) has no flag for it
        assert await call(workspace, 56, 220, NAMESPACES[name] | 17, None, None, None, None) == "-1 EPERM"
    assert await call(workspace, 435, 435, b"\0" * 88, 88) == "-1 ENOSYS"


@pytest.mark.parametrize("mode", ["read-only", "workspace", "workspace+network"])
async def test_the_filter_is_on_in_every_mode(root: Path, mode: str) -> None:
    async with Workspace(root, mode=mode, approval="yolo", notifier=Recorder()) as workspace:  # type: ignore[arg-type]
        _, output = await run_script(workspace, "grep -E '^(Seccomp|NoNewPrivs):' /proc/self/status")
    assert output.split() == ["NoNewPrivs:", "1", "Seccomp:", "2"]


async def test_a_list_of_processes_stays_short(workspace: Workspace) -> None:
    _, output = await run_script(workspace, "wc -c < /proc/1/cmdline")
    assert 0 < int(output) < 1_500


async def test_sockets(workspace: Workspace) -> None:
    script = """python3 - <<'END'
import socket
for family in (1, 2, 10, 16, *range(3, 10), 15, *range(17, 46)):
    for open_socket in (socket.socket, socket.socketpair):
        for kind in (socket.SOCK_STREAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET):
            try:
                open_socket(family, kind)
                print(family)
            except PermissionError:
                pass
            except OSError as error:
                assert error.errno in (94, 93, 95, 97), (family, error)
try:
    socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 9)
except OSError as error:
    print("audit", error.errno)
END"""
    code, output = await run_script(workspace, script)
    assert code == 0, output
    assert set(output.split()) <= {"1", "2", "10", "16", "audit", "97"}
    assert output.endswith("audit 97\n")


async def test_ordinary_programs_work(workspace: Workspace) -> None:
    script = """set -e; python3 - <<'END'
import multiprocessing, socket, threading
if __name__ == "__main__":
    with multiprocessing.Pool(2) as pool:
        print(pool.map(abs, [-1, -2]))
    thread = threading.Thread(target=print, args=("thread",))
    thread.start()
    thread.join()
    socket.getaddrinfo("localhost", 80)
END
git init -q r; cd r; git -c user.name=n -c user.email=e commit -q --allow-empty -m first; git log --format=%s"""
    assert await run_script(workspace, script) == (0, "[1, 2]\nthread\nfirst\n")


def test_other_architectures_are_denied() -> None:
    program = seccomp.build_filter()
    if program is not None:  # a machine that the filter knows
        steps = list(struct.iter_unpack("HBBI", program))
        assert len(program) % 8 == 0
        assert len(steps) < 200
        assert steps[0] == (0x20, 0, 0, 4)  # load the architecture
        assert steps[2][0] == 0x06  # return an error for another one
        assert steps[-1] == (0x06, 0, 0, 0x7FFF0000)
        for index, (code, if_true, if_false, _) in enumerate(steps):
            assert code != 0x06 or (if_true, if_false) == (0, 0)
            assert index + max(if_true, if_false) < len(steps)


SETUID = {
    "chmod": "chmod 4755 f",
    "chmod u+s": "chmod u+s f",
    "install": "install -m 4755 f g",
    "open": "python3 -c 'import os; os.open(\"g\", os.O_CREAT | os.O_WRONLY, 0o4755)'",
    "an unnamed file": "python3 -c 'import os; os.open(\".\", os.O_TMPFILE | os.O_WRONLY, 0o4755)'",
    "fchmod": "python3 -c 'import os; os.fchmod(os.open(\"f\", 0), 0o4755)'",
    "mknod": "python3 -c 'import os, stat; os.mknod(\"g\", stat.S_IFREG | 0o4755)'",
    "fchmodat2": "python3 -c 'import ctypes; ctypes.CDLL(None).syscall(452, -100, b\"f\", 0o4755, 0) and exit(1)'",
}


@pytest.mark.parametrize("name", SETUID)
async def test_no_file_runs_as_its_owner(workspace: Workspace, name: str) -> None:
    code, _ = await run_script(workspace, f"touch f; {SETUID[name]}")
    assert code != 0
    assert not [file for file in workspace.root.iterdir() if file.stat().st_mode & 0o4000]


async def test_other_modes_can_be_set(workspace: Workspace) -> None:
    script = "touch f && chmod 755 f && mkdir -m 2775 d && chmod +t d && install -m 600 f g && stat -c %a f d g"
    assert await run_script(workspace, script) == (0, "755\n3775\n600\n")
