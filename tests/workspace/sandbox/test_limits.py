"""Limits of the sandbox, met by real commands, and the explanations that follow."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from goose_like.config.profile import ResourceLimits, WorkspaceSettings
from goose_like.core.events import Logged
from goose_like.core.notifier import Recorder
from goose_like.workspace.sandbox.limits import explain_limits
from goose_like.workspace.workspace import Workspace
from tests.workspace.workspace_harness import needs_sandbox, run_script

LIMITS = ResourceLimits(processes=60, memory_mb=128, file_size_mb=2, open_files=40, tmpfs_mb=1)


@pytest.fixture
async def small_workspace(root: Path) -> AsyncIterator[Workspace]:
    settings = WorkspaceSettings(resources=LIMITS)
    async with Workspace(root, mode="workspace", approval="auto", notifier=Recorder(), settings=settings) as workspace:
        yield workspace


HOGS = {
    "memory_mb": "python3 -c 'bytearray(300 << 20)'",
    "file_size_mb": "head -c 3000000 /dev/zero > large",
    "open_files": "python3 -c 'files = [open(\"/dev/null\") for _ in range(100)]'",
    "tmpfs_mb": "head -c 2000000 /dev/zero > /dev/shm/large || { echo /dev/shm: No space left on device; false; }",
    "processes": "for _ in $(seq 200); do sleep 9 & done 2>&1; wait -n; kill $(jobs -p); false",
}


@needs_sandbox
@pytest.mark.parametrize("key", HOGS)
async def test_each_limit_holds_and_is_explained(small_workspace: Workspace, key: str) -> None:
    code, output = await run_script(small_workspace, HOGS[key])
    assert code != 0
    assert [sentence for sentence in small_workspace.explain_limits(code, output) if f"{key}:" in sentence], output
    assert (await run_script(small_workspace, "echo on"))[1] == "on\n"


@needs_sandbox
async def test_a_command_can_end_processes_that_fill_the_limit(small_workspace: Workspace) -> None:
    await run_script(small_workspace, "for _ in $(seq 100); do sleep 99 & done 2>/dev/null")
    assert await run_script(small_workspace, "kill -9 -1; echo free") == (0, "free\n")
    assert await run_script(small_workspace, "echo $(echo on)") == (0, "on\n")


@needs_sandbox
async def test_commands_cannot_raise_a_limit(small_workspace: Workspace) -> None:
    # The limit of processes arrives a moment after the start.
    script = "ulimit -n 1000000; ulimit -d unlimited; sleep 0.5; ulimit -n; ulimit -d; ulimit -u"
    _, output = await run_script(small_workspace, script)
    assert output.endswith("\n40\n131072\n60\n")


@needs_sandbox
async def test_no_limits(root: Path) -> None:
    settings = WorkspaceSettings(
        resources=ResourceLimits(processes=None, memory_mb=None, file_size_mb=None, open_files=None, tmpfs_mb=None)
    )
    async with Workspace(root, mode="workspace", approval="auto", notifier=Recorder(), settings=settings) as workspace:
        _, output = await run_script(workspace, "ulimit -d; ulimit -f; df --output=size -k /dev/shm | tail -1")
    assert output.split()[:2] == ["unlimited", "unlimited"]
    assert int(output.split()[2]) > 1024


@needs_sandbox
async def test_nothing_but_shm_is_a_writable_tmpfs(small_workspace: Workspace) -> None:
    _, output = await run_script(
        small_workspace,
        "for folder in /run /dev /proc /sys; do (echo x > $folder/x) 2>/dev/null && echo $folder; done; true",
    )
    assert output == ""


async def test_the_person_reads_it_too(root: Path) -> None:
    recorder = Recorder()
    async with Workspace(root, mode="read-only", approval="auto", notifier=recorder) as workspace:
        notes = workspace.explain_limits(1, "x: Too many open files")
    assert [event.text for event in recorder.events if isinstance(event, Logged)] == notes
    assert len(notes) == 1


@pytest.mark.parametrize(
    ("code", "output", "key"),
    [
        (1, "bash: fork: retry: Resource temporarily unavailable", "processes"),
        (1, "RuntimeError: can't start new thread", "processes"),
        (1, "Error: spawn /bin/sh EAGAIN", "processes"),
        (1, "fork/exec /usr/bin/go: resource temporarily unavailable", "processes"),
        (134, "terminate called after throwing an instance of 'std::bad_alloc'", "memory_mb"),
        (101, "memory allocation of 99999 bytes failed", "memory_mb"),
        (2, "fatal error: runtime: out of memory", "memory_mb"),
        (-25, "", "file_size_mb"),
        (153, "", "file_size_mb"),
        (1, "OSError: [Errno 24] Too many open files: 'x'", "open_files"),
        (135, "Bus error", "tmpfs_mb"),
        (1, "==1==LeakSanitizer has encountered a fatal error.", "tracers"),
        (1, "strace: ptrace(PTRACE_TRACEME, ...): Operation not permitted", "tracers"),
        (1, "unshare: unshare failed: Operation not permitted", "namespaces"),
    ],
)
def test_words_of_programs(code: int, output: str, key: str) -> None:
    assert key in next(explain_limits(LIMITS, code, output))


@pytest.mark.parametrize("output", ["FAILED test_x.py", "No space left on device", "heap out of memory"])
def test_other_failures_need_no_explanation(output: str) -> None:
    assert not list(explain_limits(LIMITS, 1, output))


def test_no_explanation_without_a_limit() -> None:
    limits = ResourceLimits(open_files=None)
    assert not list(explain_limits(limits, 1, "Too many open files"))
