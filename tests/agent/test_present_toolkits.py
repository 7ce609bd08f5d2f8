"""Toolkits that are active without a line in the profile, because their files exist."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import override

from goose_like.agent.build import build_exchange
from goose_like.agent.present_toolkits import describe_effects, find_present_toolkits
from goose_like.cli.commands.toolkit_actions import print_toolkits
from goose_like.cli.commands.trust_actions import add_trust
from goose_like.config import trust
from goose_like.config.entry_points import BUILTIN_ENTRY_POINTS
from goose_like.config.profile import Profile
from goose_like.config.project_files import has_project_files
from goose_like.config.trust import ProjectConfig, load_trusted_project, read_project_config
from goose_like.core.events import Logged
from goose_like.core.notifier import Recorder
from goose_like.launch.trust import settle_project_trust
from goose_like.providers.base import Model, ModelPair
from goose_like.toolkit import Toolkit, tool
from tests.fakes import FakeProvider


class Notes(Toolkit):
    """Notes of a team."""

    has_failed = False

    @classmethod
    @override
    def is_present(cls, folder: Path, project: ProjectConfig | None) -> bool:
        if cls.has_failed:
            raise LookupError("nowhere")
        return project is not None and "notes.json" in project.files

    @classmethod
    @override
    def describe_files(cls, project: ProjectConfig) -> list[str]:
        if cls.has_failed:
            raise LookupError("nowhere")
        return [f"reads {name}" for name in project.files if name.startswith("notes")]

    @tool
    def read_notes(self) -> str:
        """Read the notes."""
        assert self.project
        return self.project.files["notes.json"]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "repo"
    (folder / ".git").mkdir(parents=True)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(tmp_path))
    return folder


@pytest.fixture(params=["built-in", "package"])
def notes(request: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install the toolkit `notes` as a part of ours, or as a package."""
    value = f"{__name__}:Notes"
    monkeypatch.setitem(sys.modules, __name__, sys.modules[__name__])
    monkeypatch.setattr(Notes, "has_failed", False)
    patterns = (".goose-like/notes.json", ".notes/*.md")
    if request.param == "built-in":
        monkeypatch.setitem(BUILTIN_ENTRY_POINTS["goose_like.toolkit"], "notes", value)
        for pattern in patterns:
            monkeypatch.setitem(BUILTIN_ENTRY_POINTS["goose_like.toolkit_files"], pattern, value)
        return
    info = tmp_path / "site" / "team-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: team\nVersion: 1\n")
    lines = "".join(f"{pattern} = {value}\n" for pattern in patterns)
    text = f"[goose_like.toolkit]\nnotes = {value}\n[goose_like.toolkit_files]\n{lines}"
    (info / "entry_points.txt").write_text(text)
    monkeypatch.syspath_prepend(str(info.parent))


def bring(root: Path, name: str = ".goose-like/notes.json", text: str = "[]") -> None:
    file = root / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def trust_files(root: Path) -> ProjectConfig:
    project = read_project_config(root)
    assert project
    trust.trust_project(project)
    return project


async def list_tools(project: ProjectConfig | None, **profile: Any) -> tuple[list[str], list[str]]:
    model = Model(FakeProvider(), "x", "scripted:x")
    recorder = Recorder()
    chosen = Profile.model_validate({"toolkits": (), "sandbox": "full", **profile})
    async with build_exchange(chosen, recorder, models=ModelPair(model, model), project=project) as exchange:
        logged = [event.text for event in recorder.events if isinstance(event, Logged)]
        return list(exchange.tools), logged


async def test_trusted_files_make_a_toolkit_active_and_others_do_not(root: Path, notes: None) -> None:
    assert await list_tools(load_trusted_project(root)) == ([], [])
    assert not has_project_files(root)
    bring(root)
    assert has_project_files(root)
    assert await list_tools(load_trusted_project(root)) == ([], [])
    trust_files(root)
    assert await list_tools(load_trusted_project(root)) == (["read_notes"], [])
    bring(root, text="[1]")
    assert await list_tools(load_trusted_project(root)) == ([], []), "other contents need new trust"


async def test_a_file_without_the_word_of_its_pattern_raises_no_question(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, __name__, sys.modules[__name__])
    monkeypatch.setitem(BUILTIN_ENTRY_POINTS["goose_like.toolkit"], "notes", f"{__name__}:Notes")
    monkeypatch.setitem(BUILTIN_ENTRY_POINTS["goose_like.toolkit_files"], ".other.json#notes", f"{__name__}:Notes")
    bring(root, ".other.json", '{"model": "x"}')
    assert not has_project_files(root)
    assert read_project_config(root) is None
    bring(root, ".other.json", '{"notes": []}')
    assert has_project_files(root)
    project = trust_files(root)
    assert list(project.files) == [".other.json"]
    assert project.get_path(".other.json") == root / ".other.json"


async def test_a_toolkit_in_the_profile_is_there_once(root: Path, notes: None) -> None:
    bring(root)
    project = trust_files(root)
    assert await list_tools(project, toolkits=("notes",)) == (["read_notes"], [])


async def test_a_toolkit_that_fails_is_left_out_with_a_line(root: Path, notes: None) -> None:
    bring(root)
    project = trust_files(root)
    Notes.has_failed = True
    tools, (line,) = await list_tools(project)
    assert tools == []
    assert line.startswith("toolkit 'notes' can't be used: ")
    assert "nowhere" in line


def test_the_list_of_toolkits_names_it(root: Path, notes: None, capsys: pytest.CaptureFixture[str]) -> None:
    bring(root)
    print_toolkits()
    assert "active here" not in capsys.readouterr().out
    trust_files(root)
    print_toolkits()
    assert "active here without a line in the profile, as their files exist: notes\n" in capsys.readouterr().out


def test_the_path_of_a_file_is_that_in_the_project(root: Path, notes: None) -> None:
    bring(root)
    bring(root, ".notes/a.md")
    bring(root, ".notes/below/b.md")
    project = read_project_config(root)
    assert project
    assert list(project.files) == ["notes.json", ".notes/a.md"]
    assert [project.get_path(name).is_file() for name in project.files] == [True, True]


@pytest.mark.parametrize("place", ["home", "config"])
def test_files_of_the_person_need_no_trust(
    root: Path, home: Path, tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Always(Toolkit):
        """A toolkit that does not look closer."""

    monkeypatch.setattr(sys.modules[__name__], "Always", Always, raising=False)
    monkeypatch.setitem(sys.modules, __name__, sys.modules[__name__])
    value = f"{__name__}:Always"
    monkeypatch.setitem(BUILTIN_ENTRY_POINTS["goose_like.toolkit"], "always", value)
    for pattern in ("~/.other/*.json", "{config}/mine.json"):
        monkeypatch.setitem(BUILTIN_ENTRY_POINTS["goose_like.toolkit_files"], pattern, value)
    assert find_present_toolkits(root, None, Recorder()) == []
    bring(*((tmp_path, ".other/a.json") if place == "home" else (home / "config", "mine.json")))
    assert find_present_toolkits(root, None, Recorder()) == ["always"]
    assert not has_project_files(root)


def test_a_start_without_such_files_imports_no_toolkit(root: Path) -> None:
    code = (
        "import sys; from pathlib import Path\n"
        "from goose_like.config.entry_points import BUILTIN_ENTRY_POINTS as points\n"
        "from goose_like.agent.present_toolkits import find_present_toolkits\n"
        "from goose_like.core.notifier import Notifier\n"
        "kinds = points['goose_like.toolkit']\n"
        "points['goose_like.toolkit_files'].update({'.screen.json': kinds['screen'], '~/.boss.json': kinds['boss']})\n"
        "print(find_present_toolkits(Path.cwd(), None, Notifier()))\n"
        "print([name for name in sys.modules if name.startswith('goose_like_toolkits')])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n[]\n"


@pytest.mark.usefixtures("notes")
def test_a_toolkit_says_what_untrusted_files_would_do(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logged: list[str] = []
    bring(root)
    project = read_project_config(root)
    assert project
    assert describe_effects(project, logged.append) == ["reads notes.json"]
    monkeypatch.setattr(Notes, "has_failed", True)
    assert describe_effects(project, logged.append) == []
    assert len(logged) == 1
    assert "nowhere" in logged[0]


@pytest.mark.usefixtures("notes")
def test_trust_shows_what_the_files_would_do(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bring(root)
    add_trust(".")
    shown = capsys.readouterr().out
    assert shown.index("reads notes.json") < shown.index("trusted as it is now: ")


@pytest.mark.usefixtures("notes")
async def test_the_question_about_trust_says_what_the_files_would_do(root: Path) -> None:
    bring(root, text='["a"]')
    recorder = Recorder()
    await settle_project_trust(root, recorder, is_trusted_now=False)
    (question,) = recorder.questions
    assert "With these files, goose-like starts or asks: reads notes.json. Use them?" in question.text
    assert question.detail.endswith('["a"]\n\nwith these files, goose-like starts or asks:\nreads notes.json')
