"""Code that runs with the library in real processes, with and without the sandbox."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from goose_like_toolkits.boss.library.runner import CodeResult, run_code

from goose_like.core.errors import DeniedError
from goose_like.core.events import Answer
from goose_like.core.notifier import Recorder
from goose_like.sessions.output_limit import LimitedOutput
from goose_like.sessions.session import Session
from goose_like.workspace.sandbox import bubblewrap
from goose_like.workspace.workspace import Workspace

IS_CONFINED = bubblewrap.find_sandbox_problem() is None


@pytest.fixture
def session() -> Iterator[Session]:
    session = Session.create()
    yield session
    session.close()


@pytest.fixture(
    params=["full", pytest.param("workspace", marks=pytest.mark.skipif(not IS_CONFINED, reason="no sandbox"))]
)
async def workspace(request: pytest.FixtureRequest, tmp_path: Path, session: Session) -> AsyncIterator[Workspace]:
    root = tmp_path / "work"
    root.mkdir()
    async with Workspace(
        root, mode=request.param, approval="auto", notifier=Recorder(), session_folder=session.folder
    ) as made:
        yield made


async def run(
    workspace: Workspace,
    code: str,
    source: str = "",
    library: Path | None = None,
    *,
    show: object = None,
    **more: object,
) -> CodeResult:
    output = LimitedOutput(workspace.root / "output.txt", 2_000)
    return await run_code(
        code,
        library or workspace.root / "library.py",
        source,
        workspace,
        output,
        show or (lambda *_: None),
        **{"time_limit_s": 60.0, **more},  # type: ignore[arg-type]
    )


async def test_library_and_files_beside_it_are_imported_and_no_files_remain(workspace: Workspace) -> None:
    library = workspace.root / "code" / "library.py"
    library.parent.mkdir()
    (library.parent / "beside.py").write_text("x = 1\n")
    library.write_text("def f(): return 'stale'\n")
    shown: list[str] = []
    code = "from library import f\nimport beside\nprint(f())"
    result = await run(workspace, code, "def f(): return 'é'\n", library, show=lambda text, _: shown.append(text))
    assert (result.text, result.is_success) == ("é", True)
    assert "".join(shown) == "é\n"
    assert sorted(path.name for path in workspace.root.rglob("*.py*")) == ["beside.py", "library.py"]
    assert list(workspace.tmp.glob("boss-*")) == []


async def test_result_names_the_exit_code(workspace: Workspace) -> None:
    failed = await run(workspace, "print('a')\nraise ValueError('b')")
    assert not failed.is_success
    assert failed.text.startswith("a\n")
    assert "_program.py" in failed.text
    assert "raise ValueError('b')" in failed.text  # the line itself, too
    assert failed.text.endswith("ValueError: b\n[exit code 1]")
    killed = await run(workspace, "import os\nos.kill(os.getpid(), 9)")
    assert killed == ("[no output]\n[killed by SIGKILL]", False)
    assert "in full" in (await run(workspace, "print('x' * 9000, 'in full')")).text


async def test_time_limit_kills_the_process_tree(workspace: Workspace) -> None:
    code = "import subprocess\nsubprocess.run(['sh', '-c', 'echo begun; exec sleep 1000'])"
    result = await run(workspace, code, time_limit_s=1.5)
    assert not result.is_success
    assert result.text.endswith("[stopped after the time limit of 1.5 s; do less at once]")


async def test_cancelling_kills_the_process_tree(workspace: Workspace) -> None:
    begun = asyncio.Event()
    code = "import os\nopen('pid', 'w').write(str(os.getpid()))\nos.mkfifo('pipe')\nprint('begun')\nopen('pipe')"
    task = asyncio.create_task(run(workspace, code, show=lambda *_: begun.set()))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    look = "import os, sys\npid = int(open('pid').read())\nprint(os.path.exists(f'/proc/{pid}'))"
    assert (await run(workspace, look)).text == "False"
    assert list(workspace.tmp.glob("boss-*")) == []


async def test_question_shows_the_code(tmp_path: Path) -> None:
    recorder = Recorder(Answer(choice="deny", by="person"))
    async with Workspace(tmp_path, mode="full", approval="ask", notifier=recorder) as workspace:
        with pytest.raises(DeniedError):
            await run(workspace, "print('never')")
        assert [question.subject for question in recorder.questions] == ["Python:\nprint('never')"]


async def test_same_code_gives_same_text(workspace: Workspace) -> None:
    code = "import library\nprint({str(n) for n in range(50)})\nlibrary.f()"
    one, two = [await run(workspace, code, "def f(): 1 / 0\n") for _ in range(2)]
    assert one == two
    assert 'File "_program.py", line 3, in <module>' in one.text
    assert 'File "library/library.py", line 1, in f' in one.text
