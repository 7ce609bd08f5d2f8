"""Cells in a real kernel: text for the model, all ways to end, and no process left behind."""

import asyncio
import json
import os
import sys
import threading
import time
import venv
from contextlib import suppress
from pathlib import Path

import pytest
from goose_like_toolkits.code.kernel.channels import Channels, Message

from goose_like.core.errors import ProfileError
from goose_like.core.events import Answer, Question, StateSaved, ToolProgress
from goose_like.core.history import History
from goose_like.core.notifier import Recorder
from goose_like.workspace.sandbox import bubblewrap
from goose_like.workspace.workspace import Workspace
from tests.toolkits.code.cell_harness import CodeHarness, open_harness
from tests.toolkits.developer.developer_harness import wait_until

needs_sandbox = pytest.mark.skipif(
    bubblewrap.find_sandbox_problem() is not None, reason=str(bubblewrap.find_sandbox_problem())
)
STUBBORN = """
import time
print("begun", flush=True)
while True:
    try:
        time.sleep(60)
    except BaseException:
        pass
"""
MODES = [pytest.param("workspace", marks=needs_sandbox), "full"]


@pytest.fixture(params=MODES)
async def here(request, tmp_path):
    """Cells in each of the two modes."""
    async with open_harness(tmp_path, request.param) as made:
        yield made


@pytest.fixture
async def free(tmp_path):
    async with open_harness(tmp_path, "full") as made:
        yield made


def alive(mark: str) -> list[int]:
    """Return the processes with these words in their command line."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if mark.encode() in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
    return found


# --- values, and what is printed


async def test_cell_values_and_prints(here: CodeHarness):
    assert await here.run("import json\nx = 5") == "x = 5"
    assert await here.run("x + 1") == "6"
    assert await here.run("print('a'); print('b', end=''); x") == "a\nb\n5"
    assert await here.run("x;") == "[no output]"
    assert await here.run("def f():\n    return [x] * 3") == "[no output]"
    assert await here.run("y = f()") == "y = [5, 5, 5]"
    assert await here.run("x += 1") == "x = 6"
    assert await here.run("a, b = 1, 2") == "[no output]"
    assert await here.run("long = {'k' * 40: 1, 'l' * 60: 2}") == f"long =\n{{'{'k' * 40}': 1,\n '{'l' * 60}': 2}}"
    assert await here.run("None") == "[no output]"
    assert await here.run("import os; os.getcwd()") == f"{str(here.root)!r}"
    assert here.saved_state == {"names": ["a", "b", "f", "json", "long", "os", "x", "y"]}


async def test_await_magics_and_help_work(free: CodeHarness):
    assert await free.run("import asyncio\nawait asyncio.sleep(0)\n7") == "7"
    assert await free.run("%%bash\necho from bash") == "from bash"
    assert "Docstring" in await free.run("len?")


async def test_lines_that_the_screen_leaves_out_are_counted(free: CodeHarness):
    await free.run("print('\\n'.join(map(str, range(50_000))))")
    skipped = [event.skipped_line_count for event in free.recorder.events if isinstance(event, ToolProgress)]
    assert sum(skipped) > 0
    assert sum(skipped) + free.screen_text.count("\n") == 50_000
    assert free.screen_text.endswith("\n49999\n")


async def test_prints_are_shown_live(free: CodeHarness):
    asked = asyncio.create_task(
        free.run("print('first', flush=True)\ninput_file = open('go')\nwhile not input_file.read(): pass")
    )
    (free.root / "go").touch()
    await wait_until(lambda: "first" in free.screen_text)
    assert not asked.done()
    (free.root / "go").write_text("now")
    assert "first" in await asked


async def test_model_sees_last_state_of_progress_bar(free: CodeHarness):
    bar = "for i in range(5):\n    print(f'\\r{i}/4', end='', file=sys.stderr, flush=True)\n"
    code = f"import sys\n{bar}print(' done', file=sys.stderr)"
    assert await free.run(code) == "4/4 done"


async def test_long_output_is_saved_to_a_file(free: CodeHarness):
    text = await free.run("for i in range(100_000): print(i)")
    assert len(text) < 17_000
    assert text.startswith("0\n1\n")
    assert text.endswith("99999")
    (file,) = free.list_outputs("*.txt")
    assert f"all of it is in {file}" in text
    assert file.read_text().splitlines() == [str(n) for n in range(100_000)]


async def test_long_value_is_shortened(free: CodeHarness):
    said = await free.run("x = 'a' * 1_000_000")
    assert len(said) < 17_000
    (file,) = free.list_outputs("*.txt")
    assert "[... 900,002 characters of this value left out; print what you need ...]" in file.read_text()


async def test_printed_nul_is_text(free: CodeHarness):
    assert await free.run(r"print('a\0b')") == r"a\0b"


async def test_late_thread_output_goes_to_next_cell(free: CodeHarness):
    late = "def late():\n    go.wait(); print('late')\n"
    await free.run(f"import threading\ngo = threading.Event()\n{late}t = threading.Thread(target=late); t.start()")
    assert await free.run("go.set(); t.join(); import sys; sys.stdout.flush(); 1") in ("late\n1", "1")
    assert await free.run("2") in ("late\n2", "2")


async def test_empty_code_and_bad_timeout_are_errors(free: CodeHarness):
    assert await free.run_stopped(" \n") == "the code is empty"
    assert "at most 3600" in await free.run_stopped("1", timeout_s=0)
    assert await free.run("'\\ud83d'") == r"'\ud83d'"


async def test_printed_surrogates_are_replaced(free: CodeHarness):
    for _ in range(5):
        assert await free.run("print('a\\ud83db')") == "a?b"
    assert "ValueError: a?b" in await free.run("raise ValueError('a\\ud83db')")
    assert await free.run("print('\\udcff')") in ("?", "\ufffd")


# --- errors


async def test_traceback_shows_cell_lines_only(free: CodeHarness):
    assert await free.run("import json\ndef read(text):\n    return json.loads(text)") == "[no output]"
    assert await free.run("x = 1\nread('{')") == (
        "Traceback (most recent call last):\n"
        "  cell line 2\n"
        "    read('{')\n"
        "  cell line 3, in read\n"
        "    return json.loads(text)\n"
        "  [in json, 3 calls]\n"
        "json.decoder.JSONDecodeError: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)\n"
        "[raised JSONDecodeError]"
    )
    assert await free.run("x") == "1"


async def test_tracebacks_of_other_errors(free: CodeHarness):
    assert "    x = )\n" in (said := await free.run("x = )"))
    assert "SyntaxError" in said.splitlines()[-1]
    assert "    x\n" in (said := await free.run("def f():\nx"))
    assert "IndentationError: expected an indented block" in said
    (free.root / "mine.py").write_text("def f():\n    raise KeyError('k')\n")
    assert "  mine.py line 2, in f\n    raise KeyError('k')\nKeyError: 'k'" in await free.run("import mine; mine.f()")
    chained = await free.run("try:\n    {}['a']\nexcept KeyError as error:\n    raise ValueError('no') from error")
    assert chained.index("KeyError: 'a'") < chained.index("which led to:") < chained.index("ValueError: no")
    group = await free.run("raise ExceptionGroup('many', [ValueError('a'), KeyError('b')])")
    assert "  - ValueError: a\n  - KeyError: 'b'\n" in group
    deep = await free.run("def r(n): return r(n + 1)\nr(0)")
    assert "RecursionError" in deep
    assert len(deep.splitlines()) < 20
    assert "no repr" in await free.run("class A:\n    def __repr__(self): raise ValueError('no repr')\nA()")
    assert await free.run("import sys\nsys.exit()") == "[no output]"
    assert await free.run("import warnings\nwarnings.warn('old')") == "cell line 2: UserWarning: old"
    assert await free.run("%nomagic") != "[no output]"
    assert "SystemExit: 3" in await free.run("sys.exit(3)")


@pytest.mark.parametrize(
    "code", ["input('name? ')", "import getpass; getpass.getpass()", "breakpoint()", "import pdb; pdb.set_trace()"]
)
async def test_input_and_debugger_are_errors(free: CodeHarness, code):
    said = await free.run(code)
    assert "nobody can type" in said
    assert len(said.splitlines()) < 10
    assert await free.run("1") == "1"


# --- tables, figures, documents


async def test_long_table_is_saved_as_csv(here: CodeHarness):
    said = await here.run("t = pd.DataFrame({'n': range(50_000), 'half': [n / 2 for n in range(50_000)]})")
    assert said.startswith("t =\n")
    assert "[50,000 rows, 2 columns]" in said
    assert len(said.splitlines()) < 30
    (file,) = here.list_outputs("*-t.csv")
    assert f"[the whole table: {file}]" in said
    assert file.read_text().splitlines()[:2] == ["n,half", "0,0.0"]
    assert len(file.read_text().splitlines()) == 50_001
    assert len((await here.run("t.n")).splitlines()) < 30
    assert (await here.run("t.head(2)")).splitlines() == ["   n  half", "0  0   0.0", "1  1   0.5"]
    assert "too large to save automatically" in await here.run("pd.concat([t] * 25)")
    assert here.list_outputs("*.csv") == [file]


async def test_figure_is_saved_and_returned(here: CodeHarness):
    outcome = await here.call("run_python", code="fig, ax = plt.subplots()\nax.plot([1, 2])\nfig")
    (file,) = here.list_outputs("*.png")
    assert outcome.image is not None
    assert outcome.image.data == file.read_bytes()
    assert outcome.output == f"[figure: {file}]"
    assert file.name == "figure-1.png"
    assert await here.run("plt.get_fignums()") == "[]"
    two = await here.run("plt.plot([1, 2]); plt.show(); plt.hist([1, 1, 2]); plt.title('second'); print('and text')")
    assert two.count("[figure: ") == 2
    assert "figure-3.png]" in two
    assert "and text" in two


async def test_figures_can_be_hidden_from_the_model(tmp_path):
    async with open_harness(tmp_path, "full", figures=False) as here:
        outcome = await here.call("run_python", code="plt.plot([1, 2]);")
        assert outcome.image is None
        assert len(here.list_outputs("*.png")) == 1


async def test_images_and_documents_are_saved(free: CodeHarness):
    assert "[figure: " in await free.run("from PIL import Image\nImage.new('RGB', (3, 3))")
    said = await free.run(
        "from IPython.display import HTML, SVG, Markdown, display\ndisplay(Markdown('# hello'))\nHTML('<b>x</b>')"
    )
    (page,) = free.list_outputs("*.html")
    assert said == f"# hello\n[HTML: {page}]"
    assert page.read_text() == "<b>x</b>"
    await free.run("SVG('<svg xmlns=\"http://www.w3.org/2000/svg\"/>')")
    assert len(free.list_outputs("*.svg")) == 1
    assert "<b>" not in await free.run(
        "class Both:\n    def _repr_html_(self): return '<b>'\n    def __repr__(self): return 'said'\nBoth()"
    )
    assert len(free.list_outputs("*.html")) == 1


# --- how a cell ends that does not end by itself


async def test_time_limit_interrupts_cell_and_keeps_kernel(here: CodeHarness):
    await here.run("x = 1")
    said = await here.run_stopped("import time\nprint('so far')\nwhile True: time.sleep(0.1)", timeout_s=1)
    assert said.startswith("so far\nTraceback")
    assert "KeyboardInterrupt" in said
    assert said.endswith("[stopped: its time limit of 1 s was over; the kernel still runs, with its variables]")
    assert await here.run("x") == "1"


@needs_sandbox
async def test_time_limit_stands_still_during_a_question(tmp_path: Path):
    class Slow(Recorder):
        async def ask(self, question: Question) -> Answer:
            await asyncio.sleep(2.5)  # longer than the time limit
            return await super().ask(question)

    recorder = Slow(Answer(choice="deny", by="person"))
    async with open_harness(tmp_path, answer=recorder) as here:
        await here.run("import time, urllib.request")
        code = "try: urllib.request.urlopen('http://one.invalid/')\nexcept OSError as error: print(error)"
        said = await here.run_stopped(f"{code}\ntime.sleep(60)", timeout_s=2)
        assert [question.kind for question in recorder.questions] == ["domain"]
        assert said.startswith("HTTP Error 403")
        assert "its time limit of 2 s was over" in said


async def test_time_limit_interrupts_awaiting_cell(free: CodeHarness):
    said = await free.run_stopped("x = 1\nimport asyncio\nawait asyncio.sleep(1000)", timeout_s=0.5)
    assert "CancelledError" in said
    assert "the kernel still runs" in said
    assert await free.run("x") == "1"


async def test_ignored_interrupt_ends_kernel(here: CodeHarness):
    await here.run("x = 1")
    said = await here.run_stopped(STUBBORN, timeout_s=0.5)
    assert "the cell ignored the interrupt, so the kernel was ended too; its variables are gone (x)" in said
    assert "NameError" in await here.run("x")


async def test_stopped_kernel_is_ended(free: CodeHarness):
    said = await free.run_stopped("import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)", timeout_s=0.5)
    assert "the kernel was ended too" in said
    assert await free.run("1") == "1"


@pytest.mark.parametrize(
    ("code", "report"),
    [
        ("import ctypes; ctypes.string_at(0)", "the kernel died (killed by SIGSEGV)"),
        ("import os; os._exit(3)", "the kernel died (exit code 3)"),
        ("import os; os.kill(os.getpid(), 9)", "the kernel died (killed by SIGKILL, perhaps out of memory)"),
        ("import os; os.abort()", "the kernel died (killed by SIGABRT)"),
        ("import os; os.execv('/bin/echo', ['echo', 'another program'])", "the kernel died (exit code 0)"),
    ],
)
async def test_dead_kernel_is_reported_and_restarted(here: CodeHarness, code, report):
    await here.run("kept = 1; also = 2")
    said = await here.run_stopped(code)
    assert f"[{report}; its variables are gone (also, kept" in said
    assert said.endswith("; the next cell starts a new kernel]")
    assert "NameError" in (again := await here.run("kept"))
    assert "new kernel" not in again  # that was told before
    assert here.saved_state == {"names": []}


async def test_crash_report_names_the_line(free: CodeHarness):
    printed = "import time\nfor i in range(10_000): print(i)\ntime.sleep(1)\n"
    said = await free.run_stopped(f"{printed}def f():\n    import ctypes; ctypes.string_at(0)\nf()")
    assert "\n9999\n" in said
    assert "Fatal Python error: Segmentation fault" in said
    assert 'File "<cell>", line 5 in f\n  File "<cell>", line 6 in <module>\n[' in said


async def test_kernel_death_between_cells_is_reported(free: CodeHarness):
    end = "threading.Thread(target=lambda: (go.wait(), os._exit(7))).start()"
    await free.run(f"import os, threading\nx = 1\ngo = threading.Event()\n{end}")
    await free.run("threading.Timer(0.2, go.set).start()")
    await wait_until(
        lambda: (
            free.toolkit._kernel_session._manager.kernel and free.toolkit._kernel_session._manager.kernel.exit_reason
        )
    )
    said = await free.run("1")
    assert said == (
        "1\n[this is a new kernel: the last one ended (exit code 7); its variables are gone (go, os, threading, x)]"
    )


async def test_memory_error_keeps_kernel(free: CodeHarness):
    said = await free.run(
        "import resource\nresource.setrlimit(resource.RLIMIT_AS, (1 << 32, 1 << 32))\nbytearray(1 << 33)"
    )
    assert said.endswith("MemoryError\n[raised MemoryError]")


async def test_child_processes_end_with_kernel(here: CodeHarness):
    words = ["sleep", f"9876{time.time_ns() % 100_000}"]
    begun = f"subprocess.Popen({words}, start_new_session=s)"
    await here.run(f"import subprocess\nkept = [{begun} for s in (True, False)];")
    await wait_until(lambda: len(alive("\0".join(words))) == 2)  # a process has no command line before its exec ends
    assert (await here.call("kernel_reset")).output == "the kernel was ended; its variables are gone: kept, subprocess"
    assert alive("\0".join(words)) == []
    assert "NameError" in await here.run("kept")


async def test_fork_flood_ends_with_cell(here: CodeHarness):
    child = "    if os.fork() == 0:\n        time.sleep(76543)\n        os._exit(0)\n"
    code = f"import os, time\nwhile True:\n{child}    time.sleep(0.05)"
    await here.run_stopped(code, timeout_s=1)
    await here.call("kernel_reset")
    assert await here.run("1") == "1"


async def test_forked_child_takes_no_messages(free: CodeHarness):
    await free.run("import os\npid = os.fork()\nif pid: os.waitpid(pid, 0)")
    for number in range(20):
        assert await free.run(f"{number}") == f"{number}"


async def test_output_flood_is_stopped(free: CodeHarness, monkeypatch):
    monkeypatch.setattr("goose_like_toolkits.code.kernel.cell.MAX_OUTPUT_BYTES", 1 << 20)
    monkeypatch.setattr("goose_like_toolkits.code.kernel.manager.INTERRUPT_GRACE_S", 60.0)
    said = await free.run_stopped("while True: print('x' * 1000)")
    assert "[stopped: it sent more than 1,048,576 bytes of output; the kernel still runs" in said


async def test_flood_of_files_is_stopped(free: CodeHarness, monkeypatch):
    monkeypatch.setattr("goose_like_toolkits.code.kernel.cell._MAX_NOTES", 3)
    monkeypatch.setattr("goose_like_toolkits.code.kernel.manager.INTERRUPT_GRACE_S", 60.0)
    said = await free.run_stopped("from IPython.display import HTML, display\nwhile True: display(HTML('<p>x'))")
    assert "[stopped: it saved more than 3 figures, tables and pages; the kernel still runs" in said
    assert len(free.list_outputs("*.html")) == 5


async def test_cell_waits_for_a_host_that_does_not_read(here: CodeHarness, monkeypatch):
    gate, receive = asyncio.Event(), Channels.receive
    gate.set()

    async def receive_later(self: Channels) -> Message:
        await gate.wait()
        return await receive(self)

    monkeypatch.setattr(Channels, "receive", receive_later)
    await here.run("1")
    gate.clear()
    loop = "for i in range(300):\n    print('x' * 99_999)\n    open('count', 'w').write(str(i))\nprint('end')"
    asked = asyncio.create_task(here.run(loop))
    counts = [-1]
    while len(counts) < 20 or counts[-1] != counts[-20]:  # until the cell stands still
        await asyncio.sleep(0.1)
        with suppress(OSError, ValueError):
            counts.append(int((here.root / "count").read_text()))
    assert counts[-1] < 200
    gate.set()
    assert (await asked).splitlines()[-1].startswith("end")


async def test_no_message_is_dropped(free: CodeHarness):
    code = "from IPython.display import display\nfor i in range(5000): display(i)"
    assert (await free.run(code)).splitlines()[-1] == "4999"


# --- cancelling


async def test_cancel_interrupts_cell_and_keeps_kernel(here: CodeHarness):
    await here.run("x = 1")
    asked = asyncio.create_task(here.run("import time\nprint('begun', flush=True)\ntime.sleep(1000)"))
    await wait_until(lambda: "begun" in here.screen_text)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    assert await here.run("x") == "1"


async def test_output_of_cancelled_cell_is_ignored(free: CodeHarness):
    await free.run("x = 1")
    flood = "print('yyy\\n' * 30_000, flush=True)\n"
    late = f"except KeyboardInterrupt:\n    {flood}    print('last')"
    asked = asyncio.create_task(free.run(f"import time\ntry:\n    {flood}    time.sleep(1000)\n{late}"))
    await wait_until(lambda: "yyy" in free.screen_text)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    assert await free.run("x") == "1"


async def test_unstoppable_cancelled_cell_ends_kernel(free: CodeHarness, monkeypatch):
    monkeypatch.setattr("goose_like_toolkits.code.kernel.manager.INTERRUPT_GRACE_S", 0.3)
    await free.run("x = 1")
    asked = asyncio.create_task(free.run(STUBBORN))
    await wait_until(lambda: "begun" in free.screen_text)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    assert await free.run("1") == (
        "1\n[this is a new kernel: a cancelled cell did not stop, so the last kernel was ended; "
        "its variables are gone (x)]"
    )


async def test_cancelled_start_leaves_nothing(free: CodeHarness):
    asked = asyncio.create_task(free.run("1"))
    await wait_until(lambda: alive(str(free.workspace.tmp)))
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    await wait_until(lambda: not alive(str(free.workspace.tmp)))
    assert list(free.workspace.tmp.glob("kernel-*")) == []
    assert await free.run("1") == "1"


async def test_parallel_cells_run_in_sequence(free: CodeHarness):
    code = "import time\nprint('in'); time.sleep(0.2); print('out')"
    assert await asyncio.gather(free.run(code), free.run(code)) == ["in\nout", "in\nout"]


async def test_close_leaves_no_process_thread_or_file(tmp_path):
    before = {thread.ident for thread in threading.enumerate()}
    async with open_harness(tmp_path, "full") as here:
        await here.run("x = 1")
        folder = str(here.workspace.tmp)
        assert alive(folder)
    assert not alive(folder)
    assert not (tmp_path / folder).exists()
    left = {thread.name for thread in threading.enumerate() if thread.ident not in before}
    assert {name for name in left if not name.startswith("asyncio_")} == set()  # those of the loop itself


# --- what cells may do


@needs_sandbox
async def test_cells_run_in_the_sandbox(tmp_path):
    outside = tmp_path / "outside"
    async with open_harness(tmp_path, "workspace") as here:
        await here.run(f"open({str(outside)!r}, 'w')")
        assert not outside.exists()  # it lies in the private /tmp
        assert "Read-only file system" in await here.run("open('/usr/x', 'w')")
        assert await here.run("open('inside', 'w').write('x')") == "1"
        refused = "import socket\nsocket.create_connection(('192.0.2.1', 80), 2)"
        assert "Network is unreachable" in await here.run(refused)
    async with open_harness(tmp_path, "read-only") as here:
        assert "Read-only file system" in await here.run("open('inside', 'w')")
        written = await here.run("open('/tmp/x', 'w').write('x'), open('inside').read()")
        assert written.startswith("(1, 'x')\n[the file /tmp/x is in the sandbox's own /tmp")
        assert "[figure: " in await here.run("plt.plot([1, 2]);")


async def test_cell_needs_permission_and_start_does_not(tmp_path):
    async with open_harness(tmp_path, "full", approval="ask", answer=Answer(choice="deny", by="person")) as here:
        changes = []

        async def listener(path, argv, *_):
            changes.append((path, list(argv)))

        here.workspace.add_change_listener(listener)
        assert "the person said no" in await here.run_stopped("x = 1")
        (question,) = here.recorder.questions
        assert (question.kind, question.text) == ("command", "run this Python:\nx = 1")
        assert here.toolkit._kernel_session._manager.kernel is None
        here.recorder._answer = Answer(choice="allow", by="person")
        assert await here.run("x = 1") == "x = 1"
        assert changes == [(None, ["python", "-c", "x = 1"])]


@needs_sandbox
async def test_repository_changes_of_cells_are_reported(tmp_path):
    async with open_harness(tmp_path) as here:
        await here.run("import subprocess; subprocess.run(['git', 'init', '-q', 'inner']);")
        said = await here.run("open('inner/.git/hooks/pre-commit', 'w').write('#!/bin/sh\\n');")
        assert "run what changed here: hook pre-commit" in said + await here.run("1")


@needs_sandbox
async def test_subagent_has_its_own_kernel(tmp_path):
    async with open_harness(tmp_path) as parent:
        await parent.run("x = 1")
        recorder = Recorder()
        child = Workspace(
            parent.workspace.root, mode="read-only", approval="auto", notifier=recorder, parent=parent.workspace
        )
        async with child:
            made = CodeHarness(parent.session, child, recorder)
            assert "NameError" in await made.run("x")
            assert "Read-only" in await made.run("open('f', 'w')")
            await made.toolkit.close()
        assert await parent.run("x") == "1"


@pytest.mark.parametrize("mode", MODES)
async def test_long_folder_path_works(tmp_path, monkeypatch, mode):
    long = tmp_path / ("long" * 40)
    long.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(long))
    async with open_harness(tmp_path, mode) as here:
        assert str(here.workspace.tmp).startswith(str(long))
        assert await here.run("1") == "1"


async def test_workspace_modules_do_not_shadow_the_start(free: CodeHarness):
    for name in ("json", "zmq", "pandas", "comm", "re", "traitlets"):
        (free.root / f"{name}.py").write_text(f"raise RuntimeError('{name} of the workspace')")
    (free.root / "mine.py").write_text("value = 3")
    assert await free.run("import mine; mine.value") == "3"


async def test_kernel_has_no_secrets_or_user_settings(free: CodeHarness, monkeypatch):
    assert await free.run("import os; [name for name in os.environ if 'SECRET' in name]") == "[]"
    assert str(free.workspace.tmp) in await free.run("os.environ['IPYTHONDIR']")


# --- over the session


async def test_resumed_session_reports_lost_variables(tmp_path):
    history = History()
    history.apply(StateSaved(toolkit="code", value={"names": ["df", "model"]}))
    async with open_harness(tmp_path, "full", history=history) as here:
        lost = "the previous kernel ended with its session; its variables are gone (df, model)"
        assert await here.run("1") == f"1\n[this is a new kernel: {lost}]"
        assert await here.run("1") == "1"
        assert here.saved_state == {"names": []}
        await here.run("x = 1")
        assert here.toolkit.state_sections() == [("Variables in the Python kernel", "x")]


async def test_messages_of_plugin_manager(free: CodeHarness):
    await free.run("1")
    kernel = free.toolkit._kernel_session._manager.kernel
    folder = os.open(f"/proc/self/fd/{kernel.folder.artifacts}", os.O_RDONLY)
    try:
        made = os.open("o.txt", os.O_WRONLY | os.O_CREAT, dir_fd=folder)
        os.write(made, b"made")
        os.close(made)
        os.symlink("/etc/passwd", "link.txt", dir_fd=folder)
        os.mkfifo("pipe.txt", dir_fd=folder)
    finally:
        os.close(folder)
    take = free.toolkit._kernel_session._manager.handle
    for name in ("o.txt", "link.txt", "../k-1", "gone.txt", "pipe.txt"):
        take({"type": "artifact", "id": "1", "name": name, "file": f"/x/{name}", "kind": "file", "description": "d"})
    take({"type": "failed", "plugin": "p", "error": "no module"})
    take({"type": "reloaded", "plugin": "q"})
    take({"type": "log", "level": "info", "tag": "Plugin-p", "text": "said"})
    take({"type": "artifact", "name": 5})
    said = await free.run("1")
    (copied,) = free.list_outputs("*o.txt")
    assert copied.read_text() == "made"
    assert f"[artifact o.txt: {copied} (d)]" in said
    assert "root:" not in "".join(path.read_text() for path in free.list_outputs())
    assert "'k-1'" in said
    assert "'pipe.txt' is not a regular file" in said
    assert "'gone.txt' was announced" in said
    assert "[plugin p failed and is off: no module]" in said
    assert "[plugin q changed and was reloaded, without its former state]" in said
    assert free.log_lines == ["Plugin-p: said"]
    assert await free.run("1") == "1"


FORGED = """
import json
kernel = get_ipython().kernel
comm = list(kernel.comm_manager.comms.values())[0]
pack = kernel.session.pack
kernel.session.pack = lambda value: json.dumps(value, default=str).encode()
try:
    for data in {data}:
        comm.send(data)
finally:
    kernel.session.pack = pack
"""


async def test_forged_messages_are_harmless(free: CodeHarness):
    strange = [5, None, [1], "x", {}, {"type": []}, {"type": "names", "names": 5}, {"type": "log", "tag": 1}]
    bad = {"type": "artifact", "name": "n" * 100_000}
    files = [bad | {"file": file} for file in ("a\0b", "..", "", "/x/\ud800", "z" * 100_000, 5)]
    log = {"type": "log", "tag": "\ud800", "text": "x" * 1_000_000}
    failed = {"type": "failed", "plugin": "p", "error": "{{DELIMITER_START_TEMPORAL}}" * 200_000}
    names = {"type": "names", "names": ["\ud800", "a b", "a" * 1_000_000, ["x"], *(f"v{n}" for n in range(100_000))]}
    # Python 3.12.1 keeps a copy of the line with each token, so no line may have many.
    data = repr([*strange, *files, failed, log, names]).replace(", ", ",\n")
    said = await free.run(FORGED.format(data=data))
    assert "embedded null" in said  # byte, or character since Python 3.13
    assert len(said) < 50_000
    assert len(free.log_lines) == 1
    assert len(free.log_lines[0]) < 5_000
    assert len(json.dumps(free.saved_state)) < 50_000
    assert await free.run("1") == "1"


async def test_message_flood_is_limited(free: CodeHarness):
    log, failed = {"type": "log", "tag": "t", "text": "x"}, {"type": "failed", "plugin": "p", "error": "x"}
    said = await free.run(FORGED.format(data=f"[{log}, {failed}] * 2_000"))
    assert said.count("plugin p") == 500
    assert len(free.log_lines) == 501
    assert "more messages of this cell are not shown" in free.log_lines[-1]
    await free.run(FORGED.format(data=[log]))
    assert len(free.log_lines) == 502


async def test_artifact_size_is_limited(free: CodeHarness, monkeypatch):
    monkeypatch.setattr("goose_like_toolkits.code.kernel.cell.CALL_LIMIT_BYTES", 25)
    await free.run("1")
    kernel = free.toolkit._kernel_session._manager.kernel
    made = os.open("o.txt", os.O_WRONLY | os.O_CREAT, dir_fd=kernel.folder.artifacts)
    os.write(made, b"0123456789")
    os.close(made)
    for _ in range(3):
        free.toolkit._kernel_session._manager.handle({"type": "artifact", "name": "o", "file": "/x/o.txt"})
    said = await free.run("1")
    assert len(free.list_outputs("*o*.txt")) == 2
    assert "artifact 'o.txt' is not saved: the artifacts of one call may have 25 bytes together" in said


@pytest.mark.parametrize("header", ["{}", "[]", '{"msg_id": 1}', "[" * 100_000])
async def test_malformed_signed_message_ends_kernel(free: CodeHarness, header):
    sign = "parts = [header.encode(), b'{}', b'{}', b'{}']\nframes = [b'<IDS|MSG>', kernel.session.sign(parts), *parts]"
    code = f"kernel = get_ipython().kernel\nheader = {header!r}\n{sign}\nkernel.iopub_socket.send_multipart(frames)"
    assert "its messages can't be trusted" in await free.run_stopped(
        f"{code}\nimport time\ntime.sleep(100)", timeout_s=60
    )
    assert await free.run("1") == "1"


async def test_variable_list_is_shortened(free: CodeHarness):
    await free.run("for n in range(5_000): globals()[f'v{n}'] = n")
    (live,) = free.toolkit.state_sections()
    assert len(live[1]) < 3_000
    assert live[1].endswith(" more")
    gone = (await free.call("kernel_reset")).output
    assert len(gone) < 500
    assert gone.endswith(" more")


# --- the profile


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"timeout": 5}, "did you mean 'timeout_s'"),
        ({"timeout_s": "5"}, "timeout_s: expected"),
        ({"timeout_s": 0}, "timeout_s: expected"),
        ({"python": 3}, "python: expected text"),
        ({"figures": "no"}, "figures: expected"),
    ],
)
async def test_wrong_setting_names_the_right_one(tmp_path, config, words):
    with pytest.raises(ProfileError, match=words):
        async with open_harness(tmp_path, "full", **config):
            pass


async def test_profile_time_limit_applies(tmp_path):
    async with open_harness(tmp_path, "full", timeout_s=0.5) as here:
        assert "its time limit of 0.5 s was over" in await here.run_stopped("import time; time.sleep(60)")


@pytest.fixture
def bare(tmp_path):
    """A Python without installed packages."""
    venv.create(tmp_path / "bare", symlinks=True)
    return str(tmp_path / "bare" / "bin" / "python")


async def test_other_python_interpreters(tmp_path, bare):
    async with open_harness(tmp_path, "full", python=bare) as here:
        advice = f"{bare} has no ipykernel; install it there ({bare} -m pip install ipykernel)"
        assert advice in await here.run_stopped("1")
    async with open_harness(tmp_path, "full", python=str(tmp_path / "no-such-python")) as here:
        assert "No such file" in await here.run_stopped("1")
        assert list(here.workspace.tmp.glob("kernel-*")) == []
    async with open_harness(tmp_path, "full", python=sys.executable) as here:
        assert await here.run("import sys; sys.executable") == repr(sys.executable)


async def test_missing_extra_is_explained(tmp_path, monkeypatch):
    monkeypatch.setattr("goose_like_toolkits.code.config.find_spec", lambda name: None)
    with pytest.raises(ProfileError, match=r"pip install 'goose-like\[kernel\]'"):
        async with open_harness(tmp_path, "full"):
            pass
