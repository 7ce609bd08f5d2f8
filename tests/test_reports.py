"""What the commands that list, show and check print."""

import importlib.metadata

import pytest

from goose_like import plugins
from goose_like.build import default_profile
from goose_like.cli import reports
from goose_like.errors import GooseLikeError, ProfileError
from goose_like.profile import find_profile
from goose_like.toolkit import Requirements, Toolkit, tool


class Needy(Toolkit):
    """Books rooms."""

    def __init__(self, notifier, requires, **kwargs):
        super().__init__(notifier, requires, **kwargs)
        self.calendar = requires["calendar"]

    @tool
    def book(self, room: str, hours: list[int], kind: str | None = None) -> str:
        """Book a room.

        Args:
            room: its name
        """
        return room


@pytest.fixture
def profiles(home):
    """Writes the person's own profiles."""

    def write(text: str) -> None:
        (home / "config").mkdir(parents=True, exist_ok=True)
        (home / "config" / "profiles.yaml").write_text(text)

    return write


@pytest.fixture
def needy(monkeypatch):
    """A package that offers the toolkit `needy`."""
    point = importlib.metadata.EntryPoint("needy", f"{__name__}:Needy", "goose_like.toolkit")
    monkeypatch.setattr(plugins, "_installed", lambda path: dict.fromkeys(plugins.GROUPS, (point,)))


async def test_a_toolkits_tools_are_shown_without_a_model(capsys):
    assert await reports.show_toolkit("developer") == 0
    out = capsys.readouterr().out
    assert out.startswith("Shell, files and plan.")
    assert "\nshell: Run a bash command." in out
    assert '\n    access ("workspace" | "network", optional) "network" asks for the internet\n' in out
    assert "\n    patches (list of {before, after})\n" in out


async def test_a_toolkit_that_requires_others_is_shown(needy, capsys):
    with pytest.raises(ProfileError):
        Needy(None, Requirements("needy", {}))
    assert await reports.show_toolkit("needy") == 0
    assert capsys.readouterr().out == (
        "Books rooms.\n\nbook: Book a room.\n"
        "    room (string) its name\n    hours (list of integer)\n    kind (string | null, optional)\n"
    )


async def test_a_misspelt_toolkit_is_told(capsys):
    with pytest.raises(ProfileError, match="did you mean 'developer'"):
        await reports.show_toolkit("developr")


def test_tables_are_not_cut_in_a_pipe(profiles, capsys):
    name = "n" * 150
    profiles(f"{name}: {{processor: scripted:{'x' * 150}}}")
    reports.show_profiles()
    row = next(line for line in capsys.readouterr().out.splitlines() if line.startswith(name))
    assert "x" * 150 in row
    assert row.endswith("profiles.yaml")


def test_a_profile_of_ones_own_hides_the_shipped_one(profiles, capsys):
    profiles("default: {extends: default, processor: 'openai:mine'}")
    reports.show_profiles()
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if line.startswith("default")]
    assert [row[1] for row in rows] == ["openai:mine", "(overridden)"]


def test_only_what_is_broken_is_called_broken(profiles, capsys):
    profiles("mine: {procesor: x}\ngood: {processor: local}")
    reports.show_profiles()
    broken = [line for line in capsys.readouterr().out.splitlines() if "broken:" in line]
    assert [line.split()[0] for line in broken] == ["mine"]
    assert "line 1" in broken[0]


async def test_a_check_says_when_the_profile_is_used(home, capsys, tmp_path, monkeypatch, profiles):
    monkeypatch.chdir(tmp_path)
    script = tmp_path / "script.yaml"
    script.write_text("- hi")
    profiles(f"mine: {{processor: 'scripted:{script}', sandbox: full}}")
    assert await reports.check_profile(*find_profile("mine")) == 0
    assert "with --profile mine; when none is named, 'local' is, since no key is set" in capsys.readouterr().out
    profiles(f"default: {{processor: 'scripted:{script}', sandbox: full}}")
    assert await reports.check_profile(*default_profile()) == 0
    assert "used     when no profile is named\n" in capsys.readouterr().out


def test_without_a_name_the_profile_that_run_uses_is_shown(monkeypatch, capsys):
    reports.show_profile()
    assert capsys.readouterr().out.startswith("# local: ")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted")
    reports.show_profile()
    assert capsys.readouterr().out.startswith("# default: ")


def test_an_unknown_profile_is_told():
    with pytest.raises(GooseLikeError, match="did you mean 'local'"):
        reports.show_profile("locl")


async def test_the_doctor_names_the_next_step(home, capsys):
    await reports.show_doctor(None)
    out = capsys.readouterr().out
    assert out.splitlines()[-2].startswith("next: ")
    assert f"{home / 'config'}" in out


async def test_the_doctor_says_what_is_wrong_with_a_profile(profiles, capsys):
    profiles("mine: {procesor: x}")
    assert await reports.show_doctor("mine") == 2
    assert "did you mean 'processor'" in capsys.readouterr().out.splitlines()[-1]
