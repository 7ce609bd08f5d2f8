"""The components' environment, with a real one, real pip, and wheels that are made here; no network."""

import asyncio
import fcntl
import io
import json
import os
import subprocess
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from goose_like_toolkits.components.environments.environment import Environment, default_folder

from goose_like.config.profile import ApprovalMode, SandboxMode
from goose_like.config.trust import StoredApproval, store_approval
from goose_like.core.errors import DeniedError, GooseLikeError
from goose_like.core.events import Answer, Logged, Status
from goose_like.core.notifier import Recorder
from goose_like.workspace.sandbox import bubblewrap
from goose_like.workspace.sandbox.scope import SandboxScope
from goose_like.workspace.workspace import Workspace

needs_sandbox = pytest.mark.skipif(
    bubblewrap.find_sandbox_problem() is not None, reason=str(bubblewrap.find_sandbox_problem())
)
ONCE = Answer(choice="allow", by="person")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A home with secrets, and folders of ours; one for all, since pip takes seconds to be put into an environment."""
    folder = tmp_path_factory.mktemp("environments")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(folder / "home"))
        patch.setenv("GOOSE_LIKE_HOME", str(folder / "goose"))
        for name in [name for name in os.environ if name.startswith("PIP_")]:
            patch.delenv(name)
        (folder / "home").mkdir()
        (folder / "home/diary.txt").write_text("DIARY")
        yield folder / "home"


@pytest.fixture(scope="module")
def wheels(home: Path) -> Path:
    folder = home.parent / "wheels"
    folder.mkdir()
    wheel(folder, "pony", "1.5", requires=["stable; extra == 'herd'", "absent; extra == 'wild'"])
    wheel(folder, "stable", "2.0")
    return folder


@pytest.fixture
def root(home: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "mine.txt").write_text("MINE")
    return folder


@pytest.fixture(scope="module")
def shared(home: Path) -> Path:
    return home.parent / "goose/state/environments/shared"


def wheel(folder: Path, name: str, version: str, requires: list[str] | None = None) -> Path:
    about = f"{name}-{version}.dist-info"
    metadata = [f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}"]
    metadata += [f"Requires-Dist: {line}" for line in requires or []]
    metadata += [f"Provides-Extra: {extra}" for extra in ("herd", "wild")]
    file = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(f"{name}.py", f"VERSION = {version!r}\n")
        archive.writestr(f"{about}/METADATA", "\n".join(metadata) + "\n")
        archive.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{about}/RECORD", f"{name}.py,,\n{about}/METADATA,,\n{about}/WHEEL,,\n{about}/RECORD,,\n")
    return file


def made(
    root: Path, answer: Answer = ONCE, mode: SandboxMode = "workspace", approval: ApprovalMode = "auto"
) -> tuple[Workspace, Recorder]:
    recorder = Recorder(answer)
    return Workspace(root, mode=mode, approval=approval, notifier=recorder), recorder


def offline(wheels: Path) -> list[str]:
    return ["--no-index", "--find-links", str(wheels)]


async def said(python: Path, code: str) -> str:
    done = await asyncio.to_thread(subprocess.run, [python, "-I", "-c", code], capture_output=True, text=True)
    return done.stdout.strip() or done.stderr


def test_it_lies_below_our_state_and_apart_from_others(home: Path, root: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(root)
    folder = default_folder(root)
    assert folder.parent == home.parent / "goose/state/environments"
    assert default_folder(tmp_path / "link") == folder
    assert default_folder(tmp_path) != folder
    assert default_folder(Path("/")).parent == folder.parent
    assert default_folder(tmp_path / "--a b\nc").name[0] not in "-."


async def test_made_once_and_again_when_it_is_broken(root: Path) -> None:
    workspace, _ = made(root)
    async with workspace:
        python = await Environment(workspace).python()
        assert await said(python, "import sys; print(sys.prefix != sys.base_prefix)") == "True"
        assert await said(python, "import pip") != ""  # without it
        (mark := python.parent / "mark").touch()
        assert await Environment(workspace).python() == python
        assert mark.exists()
        record = python.parents[1].with_name(f"{python.parents[1].name}.json")
        for damage in ("", "{", "[]", json.dumps({"python": "another", "installed": []}), "\0" * 100):
            mark.touch()
            record.write_text(damage)
            await Environment(workspace).python()
            assert not mark.exists(), damage
        python.unlink()
        assert await said(await Environment(workspace).python(), "print(1)") == "1"


async def test_sessions_that_make_it_at_once(root: Path) -> None:
    workspace, _ = made(root)
    async with workspace:
        found = await asyncio.gather(*(Environment(workspace).python() for _ in range(5)))
        assert len(set(found)) == 1
        assert await said(found[0], "print(1)") == "1"


async def test_a_place_that_cannot_be_made(root: Path, home: Path) -> None:
    (home.parent / "goose/state").mkdir(parents=True, exist_ok=True)
    (file := home.parent / "goose/state/taken").write_text("")
    workspace, _ = made(root)
    async with workspace:
        with pytest.raises(GooseLikeError, match=r"environment can't be used: .*taken"):
            await Environment(workspace, file / "x").python()


@needs_sandbox
async def test_installed_after_asking(root: Path, wheels: Path, shared: Path) -> None:
    workspace, recorder = made(root)
    async with workspace:
        environment = Environment(workspace, shared, notifier=recorder, pip_params=offline(wheels))
        wanted = ["pony>=1", "concopilot>=0.0.4"]
        assert environment.missing(wanted) == ["'pony>=1'"]
        await environment.install(wanted, "Stables")
        (question,) = recorder.questions
        assert question.kind == "install"
        assert question.subject == f"pip install 'pony>=1' --no-index --find-links {wheels}"
        assert question.text.startswith("install packages for the component Stables: pip install")
        assert "in the sandbox, with network" in question.detail
        assert await said(await environment.python(), "import pony; print(pony.VERSION)") == "1.5"
        assert environment.missing(wanted) == []
        await environment.install(wanted, "Stables")
        assert len(recorder.questions) == 1  # nothing to do, nothing to ask
        logged = [event.text for event in recorder.events if isinstance(event, Logged)]
        assert logged == ["Stables: successfully installed pony-1.5"]
        assert any("installing 'pony>=1' for Stables" in e.text for e in recorder.events if isinstance(e, Status))
        process = await workspace.spawn(
            [str(await environment.python()), "-I", "-c", "import os, pony; os.write(1, pony.VERSION.encode())"],
            scope=SandboxScope(readable=(environment.folder,)),
        )
        assert await process.read() == b"1.5"  # as components find it
        _, output = await workspace.run_internal(["sh", "-c", f"ls {shared}; echo x > {shared}/bin/python"])
        assert b"bin" not in output.splitlines()  # a command neither sees nor changes it
    assert await said(shared / "bin/python", "print(1)") == "1"


@needs_sandbox
async def test_what_is_there_is_told_from_what_is_not(root: Path, wheels: Path, shared: Path) -> None:
    workspace, _ = made(root)
    async with workspace:
        environment = Environment(workspace, shared, pip_params=offline(wheels))
        await environment.install(["pony", "stable"], "x")
        there = [
            *("pony", "PONY", "pony==1.5", "pony<2,>=1", "pony; python_version < '3'", "nix; python_version < '3'"),
            *(
                ["pony", "--pre"],
                ["-i", "https://example.org/simple", "pony"],
                "pony[herd]",
                "Concopilot[x]==9",
            ),
        ]
        assert environment.missing(there) == []
        gone = ["pony>=2", "nix", "pony[wild]", ["pony", "nix"], "pony @ https://example.org/p.whl", ["-e", "."]]
        assert len(environment.missing(gone)) == len(gone)
        assert Environment(workspace, shared, is_real=True).missing(["concopilot>=0.0.4"]) == ["'concopilot>=0.0.4'"]
        about = Path(await said(await environment.python(), "import pony; print(pony.__file__)"))
        about = about.with_name("pony-1.5.dist-info")
        (about / "RECORD").rename(about / "RECORD.gone")  # as an installation leaves it that was killed
        assert environment.missing(["pony"]) == ["pony"]
        (about / "RECORD.gone").rename(about / "RECORD")


@pytest.mark.parametrize(
    "entry",
    [
        *("-r requirements.txt", "--requirement=r.txt", ["-r", "r.txt"], ["-rr.txt"], ["pony", "--req", "r.txt"]),
        *(["pony", "--target", "/home"], ["pony", "--prefix=/x"], ["pony", "--user"], ["--python", "/x", "pony"]),
        *(["pony", "--log", "x"], ["pony", "--config-settings", "a=b"], ["-c", "x", "pony"], ["pony", "--cert", "x"]),
        *(["pony", "--global-option=x"], ["pony", "--report", "x"], ["pony", "--pre=1"], "--pre pony", "-", "--"),
        *(
            "",
            " ",
            "pony stable",
            "pony\n-r x",
            "pony\x1b[2K",
            [],
            ["--pre"],
            ["pony", "-i"],
            ["pony", "-ihttps://x"],
            "pony=>1",
            "🐴",
        ),
        *(["--find-links"], ["-e"], ["pony", "-f", "a\nb"]),
    ],
)
async def test_words_that_are_not_taken(root: Path, entry: str | list[str]) -> None:
    workspace, recorder = made(root)
    async with workspace:
        with pytest.raises(GooseLikeError, match=r"^setup\.pip: .*; |^setup\.pip: .* is not taken"):
            await Environment(workspace).install(["pony", entry], "x")
    assert recorder.questions == []


async def test_nobody_there_and_no(root: Path) -> None:
    for answer, why in ((Answer(), "nobody is there"), (Answer(by="person"), "the person said no")):
        for mode in ("workspace", "workspace+network", "full", "read-only"):
            workspace, recorder = made(root, answer, mode)  # type: ignore[arg-type]
            async with workspace:
                with pytest.raises(
                    DeniedError, match=rf"install packages for .* Bard: pip install nix: {why}.*; do without"
                ):
                    await Environment(workspace).install(["nix"], "Bard")
            assert len(recorder.questions) == 1
            assert ("all your rights" in recorder.questions[0].detail) == (mode == "full")
    workspace, recorder = made(root, ONCE, approval="plan")
    async with workspace:
        with pytest.raises(DeniedError, match="this session forbids it"):
            await Environment(workspace).install(["nix"], "Bard")
    assert not Environment(workspace).folder.exists()  # nothing is made for what may not be


@needs_sandbox
async def test_a_standing_leave_counts(root: Path, wheels: Path, shared: Path) -> None:
    workspace, recorder = made(root, Answer())
    async with workspace:
        environment = Environment(workspace, shared, pip_params=["--force-reinstall", *offline(wheels)])
        file = str(wheels / "stable-2.0-py3-none-any.whl")
        store_approval(
            root,
            StoredApproval(
                kind="install", subject=f"pip install {file} --force-reinstall --no-index --find-links {wheels}"
            ),
        )
        await environment.install([file], "x")
        assert environment.missing([file]) == []  # by the same words
        with pytest.raises(DeniedError):
            await environment.install(["nix"], "x")
    assert [question.subject.split()[2] for question in recorder.questions] == ["nix"]


@needs_sandbox
async def test_a_failure_tells_pips_own_reason(root: Path, wheels: Path, shared: Path) -> None:
    workspace, _ = made(root)
    async with workspace:
        environment = Environment(workspace, shared, pip_params=offline(wheels))
        with pytest.raises(GooseLikeError, match="nix for Bard: No matching distribution found for nix;"):
            await environment.install(["nix"], "Bard")
        assert environment.missing(["nix"]) == ["nix"]
        with pytest.raises(GooseLikeError, match=r"could not install \./none\.whl for Bard: .*none"):
            await environment.install(["./none.whl"], "Bard")


_PROJECT = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
_BACKEND = """
import os, pathlib, zipfile
def build_wheel(folder, config_settings=None, metadata_directory=None):
    seen = []
    for path in {reads!r}:
        try:
            seen.append(open(path).read())
        except OSError:
            pass
    for path in {writes!r}:
        try:
            open(path, "w").write("MARK")
        except OSError:
            pass
    name = "sly-1.0-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(folder, name), "w") as archive:
        archive.writestr("sly.py", "SEEN = " + repr(seen))
        archive.writestr("sly-1.0.dist-info/METADATA", "Metadata-Version: 2.1\\nName: sly\\nVersion: 1.0\\n")
        archive.writestr("sly-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        archive.writestr("sly-1.0.dist-info/RECORD", "")
    return name
"""


@needs_sandbox
async def test_what_is_built_is_confined(root: Path, home: Path, wheels: Path, shared: Path) -> None:
    record = shared.with_name("shared.json")
    reads = [str(home / "diary.txt"), str(record), str(root / "mine.txt")]
    writes = [str(root / "new"), str(root / "mine.txt"), str(home / "new"), str(record)]
    with tarfile.open(wheels / "sly-1.0.tar.gz", "w:gz") as archive:
        for name, text in (
            ("pyproject.toml", _PROJECT),
            ("backend.py", _BACKEND.format(reads=reads, writes=writes)),
            ("PKG-INFO", "Metadata-Version: 2.1\nName: sly\nVersion: 1.0\n"),
        ):
            member = tarfile.TarInfo(f"sly-1.0/{name}")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    workspace, _ = made(root)
    async with workspace:
        environment = Environment(workspace, shared, pip_params=offline(wheels))
        await environment.install(["sly"], "x")
        assert await said(await environment.python(), "import sly; print(sly.SEEN)") == "['MINE']"
    assert (root / "mine.txt").read_text() == "MINE"
    assert not (root / "new").exists()
    assert not (home / "new").exists()
    assert "MARK" not in record.read_text()


@needs_sandbox
async def test_two_sessions_that_install_at_once(root: Path, wheels: Path, shared: Path) -> None:
    wheel(wheels, "twin", "1.0")
    one, recorder = made(root)
    other, _ = made(root)
    async with one, other:
        await asyncio.gather(
            *(
                Environment(each, shared, notifier=recorder, pip_params=offline(wheels)).install(["twin"], "x")
                for each in (one, other)
            )
        )
    logged = [event.text for event in recorder.events if isinstance(event, Logged)]
    assert logged == ["x: successfully installed twin-1.0"]  # the second one found it there


@needs_sandbox
async def test_cancelled(root: Path, shared: Path) -> None:
    workspace, _ = made(root)
    (root / "slow").mkdir()
    (root / "slow/pyproject.toml").write_text(_PROJECT)
    (root / "slow/backend.py").write_text("import time\ntime.sleep(1000)")
    async with workspace:
        environment = Environment(workspace, shared)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(3):
                await environment.install(["./slow"], "x")
        async with asyncio.timeout(10):
            assert await environment.python()
        assert environment.missing(["./slow"]) == ["./slow"]


async def test_without_a_sandbox(root: Path, wheels: Path, shared: Path) -> None:
    workspace, _ = made(root, mode="full")
    async with workspace:
        environment = Environment(workspace, shared, pip_params=["--force-reinstall", *offline(wheels)])
        await environment.install(["stable"], "x")
        assert await said(await environment.python(), "import stable; print(stable.VERSION)") == "2.0"


@pytest.fixture
def apart(home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder of environments that no other test has."""
    monkeypatch.setenv("GOOSE_LIKE_HOME", str(tmp_path / "goose"))
    return tmp_path / "goose/state/environments"


def names_in(folder: Path) -> set[str]:
    return {file.name for file in folder.iterdir()}


def record_of(environment: Environment) -> Path:
    return Path(f"{environment.folder}.json")


def noted(environment: Environment) -> dict[str, object]:
    found = json.loads(record_of(environment).read_text())
    assert isinstance(found, dict)
    return found


def note(environment: Environment, record: dict[str, object]) -> None:
    record_of(environment).write_text(json.dumps(record))


@contextmanager
def locked(environment: Environment) -> Iterator[None]:
    with open(f"{environment.folder}.lock", "rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


async def made_in(root: Path) -> Environment:
    """The environment of a running directory, made and left."""
    await asyncio.to_thread(root.mkdir)
    workspace, _ = made(root)
    async with workspace:
        environment = Environment(workspace)
        await environment.python()
        environment.close()
    return environment


async def test_those_of_folders_that_are_gone_go_when_another_is_made(apart: Path, tmp_path: Path) -> None:
    gone, moved, stays = [await made_in(tmp_path / name) for name in ("gone", "moved", "stays")]
    (tmp_path / "gone").rmdir()
    (tmp_path / "moved").rename(tmp_path / "elsewhere")
    (apart / "another").mkdir()
    (apart / "another.json").write_text('{"root": "/nowhere"}')
    (apart / "former.json").write_text(json.dumps({"python": "x", "installed": []}))
    kept = {"another", "another.json", "former.json"}
    new = await made_in(tmp_path / "new")
    for each in (stays, new):
        kept |= {each.folder.name, f"{each.folder.name}.json", f"{each.folder.name}.lock"}
    assert names_in(apart) == kept, (gone, moved)


async def test_one_that_is_in_use_stays_until_it_is_not(apart: Path, tmp_path: Path) -> None:
    (root := tmp_path / "work").mkdir()
    workspace, _ = made(root)
    async with workspace:
        environment = Environment(workspace)
        python = await environment.python()
        root.rename(tmp_path / "moved")
        await made_in(tmp_path / "one")
        assert await said(python, "print(1)") == "1"
        environment.close()
        await made_in(tmp_path / "two")
        assert not environment.folder.exists()


async def test_one_that_is_being_changed_stays(apart: Path, tmp_path: Path) -> None:
    environment = await made_in(tmp_path / "work")
    (tmp_path / "work").rmdir()
    with locked(environment):
        await made_in(tmp_path / "one")
        assert environment.folder.exists()


async def test_one_whose_making_was_cut_off_goes_too(apart: Path, tmp_path: Path) -> None:
    environment = await made_in(tmp_path / "work")
    note(environment, noted(environment) | {"python": ""})
    (tmp_path / "work").rmdir()
    await made_in(tmp_path / "one")
    assert not environment.folder.exists()
    assert record_of(environment).name not in names_in(apart)


async def test_one_of_a_former_version_learns_whose_it_is(apart: Path, tmp_path: Path) -> None:
    environment = await made_in(tmp_path / "work")
    written = noted(environment)
    note(environment, {key: value for key, value in written.items() if key != "root"})
    (mark := environment.folder / "mark").touch()
    workspace, _ = made(tmp_path / "work")
    async with workspace:
        again = Environment(workspace)
        await again.python()
        again.close()
    assert noted(environment) == written
    assert mark.exists()


async def test_a_folder_that_can_not_be_looked_at_is_not_gone(apart: Path, tmp_path: Path) -> None:
    (tmp_path / "share").mkdir()
    environment = await made_in(tmp_path / "share/work")
    (tmp_path / "share/work").rmdir()
    (tmp_path / "share").rmdir()
    (tmp_path / "share").symlink_to("share")  # as a share that gives nothing but errors
    await made_in(tmp_path / "one")
    assert environment.folder.exists()
