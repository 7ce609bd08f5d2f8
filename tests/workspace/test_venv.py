"""Virtual environments, with real ones, real pip, and wheels that are made here; no network."""

import asyncio
import json
import os
import subprocess
from pathlib import Path

import pytest

from goose_like.config.profile import ApprovalMode, SandboxMode
from goose_like.core.errors import DeniedError, GooseLikeError
from goose_like.core.events import Answer
from goose_like.core.notifier import Recorder
from goose_like.workspace.venv import VirtualEnvironment
from goose_like.workspace.workspace import Workspace
from tests.workspace.workspace_harness import ONCE, needs_sandbox, write_wheel

pytestmark = needs_sandbox


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("GOOSE_LIKE_HOME", str(tmp_path / "goose"))
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    for folder in ("home", "work", "wheels"):
        (tmp_path / folder).mkdir()
    write_wheel(tmp_path / "wheels", "pony", "1.5", ["stable; extra == 'herd'", "absent; extra == 'wild'"])
    write_wheel(tmp_path / "wheels", "stable", "2.0")
    return tmp_path / "work"


def create(
    root: Path,
    answer: Answer = ONCE,
    approval: ApprovalMode = "auto",
    mode: SandboxMode = "workspace",
    **options: object,
) -> tuple[VirtualEnvironment, Recorder]:
    recorder = Recorder(answer)
    workspace = Workspace(root, mode=mode, approval=approval, notifier=recorder)
    folder = root.parent / "goose/state/environments/one"
    return VirtualEnvironment(workspace, folder, notifier=recorder, **options), recorder  # type: ignore[arg-type]


def list_offline(root: Path) -> list[str]:
    return ["--no-index", "--find-links", str(root.parent / "wheels")]


async def evaluate(python: Path, code: str) -> str:
    done = await asyncio.to_thread(subprocess.run, [python, "-I", "-c", code], capture_output=True, text=True)
    return done.stdout.strip() or done.stderr


async def test_packages_are_installed_after_one_question(root: Path) -> None:
    environment, recorder = create(root)
    assert environment.find_missing(["pony>=1", "stable"]) == ["pony>=1", "stable"]
    said = await environment.install([["pony>=1", "stable"]], "the test", list_offline(root))
    assert said == ["Successfully installed pony-1.5 stable-2.0"]
    (question,) = recorder.questions
    assert question.kind == "install"
    assert question.text.startswith(
        "install packages for the test, with the network: pip install 'pony>=1' stable --no-"
    )
    assert str(environment.folder) in question.detail
    assert await evaluate(environment.python, "import pony; print(pony.VERSION)") == "1.5"
    assert await evaluate(environment.python, "import pytest") != ""  # the packages that run us stay unseen

    there = ["PONY", "pony<2,>=1", "nix; python_version < '3'", "pony[herd]"]
    assert environment.find_missing(there) == []
    gone = ["pony>=2", "nix", "pony[wild]", "pony @ https://example.org/p.whl", "./folder", "--pre"]
    assert environment.find_missing(gone) == gone
    again, _ = create(root)
    assert again.is_made
    assert again.find_missing(there) == []


async def test_packages_of_the_interpreter_are_seen(root: Path) -> None:
    environment, _ = create(root, sees_packages=True)
    assert environment.find_missing(["pytest", "pytest>999", "pony"]) == ["pytest>999", "pony"]
    await environment.make()
    assert await evaluate(environment.python, "import pytest, sys; print(sys.prefix)") == str(
        environment.python.parents[1]
    )


async def test_failures_leave_everything_as_it_was(root: Path) -> None:
    environment, _ = create(root, mode="workspace+network")  # its commands share a sandbox
    await environment.install([["pony"]], "the test", list_offline(root))
    with pytest.raises(
        GooseLikeError, match=r"can't install absent .*pip's last lines:\n(.*\n)*ERROR: No matching .*absent$"
    ):
        await environment.install([["stable"], ["absent"]], "the test", list_offline(root))
    assert environment.find_missing(["pony", "stable"]) == ["stable"]
    options = ["-i", "http://127.0.0.1:9/simple", "--retries", "1"]
    with pytest.raises(GooseLikeError, match="no way to the package index"):
        await environment.install([["absent"]], "the test", options)

    # A process that was killed leaves the copy of the former state and half of a package.
    (environment.folder / "venv").rename(environment.folder / "before")
    (environment.folder / "venv").mkdir()
    assert environment.find_missing(["pony"]) == ["pony"]
    await environment.make()
    assert environment.find_missing(["pony", "stable"]) == ["stable"]
    assert await evaluate(environment.python, "import pony; print(pony.VERSION)") == "1.5"


async def test_refusals_install_nothing(root: Path) -> None:
    environment, _ = create(root, Answer())
    with pytest.raises(
        DeniedError, match="not allowed: install packages for the test, with the network: pip install x"
    ):
        await environment.install([["x"]], "the test")
    planning, _ = create(root, approval="plan")
    with pytest.raises(DeniedError, match="this session forbids it"):
        await planning.install([["x"]], "the test")
    assert not environment.folder.exists()


@pytest.mark.parametrize("damage", ["[]", json.dumps({"python": "another"})])
async def test_a_damaged_environment_is_made_again(root: Path, damage: str) -> None:
    environment, _ = create(root)
    (environment.folder / "venv/bin").mkdir(parents=True)
    (environment.folder / "record.json").write_text(damage)
    assert not environment.is_made
    assert await evaluate(await environment.make(), "print(1)") == "1"


async def test_sessions_that_install_at_once(root: Path) -> None:
    names = ["pony", "stable"]
    environments = [create(root)[0] for _ in names]
    installing = (
        one.install([[name]], name, list_offline(root)) for one, name in zip(environments, names, strict=True)
    )
    await asyncio.gather(*installing)
    assert create(root)[0].find_missing(names) == []
