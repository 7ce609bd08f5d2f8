"""The reports of commands that list, show and check."""

import importlib.metadata
import re

import pytest

from goose_like.cli.commands import inspect as reports
from goose_like.config.profile_loader import load_profile
from goose_like.core import entry_points
from goose_like.core.entry_points import list_entry_points
from goose_like.core.errors import CredentialError, GooseLikeError, ModelUnavailableError, ProfileError
from goose_like.providers.local import LocalProvider
from goose_like.providers.registry import load_default_profile
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


class Hasty(Toolkit):
    """Rolls."""

    @tool
    def roll(self, sides) -> str:
        """Roll.

        Args:
            side: how many
        """
        return "1"

    @tool
    def bare(self, sides: int) -> str:
        return "1"


class Unmarked(Toolkit):
    """Rolls."""

    def prompt(self):
        return "Roll."

    def roll(self) -> str:
        """Roll."""
        return self._one()

    def _one(self) -> str:
        return "1"


class Guide(Toolkit):
    """Guidance."""

    def prompt(self):
        return "Think."


class Varied(Toolkit):
    """Adds."""

    @tool
    def add(self, *values: int) -> int:
        """Add."""
        return sum(values)


@pytest.fixture
def profiles(home):
    """Writes the person's own profiles."""

    def write(text: str) -> None:
        (home / "config").mkdir(parents=True, exist_ok=True)
        (home / "config" / "profiles.yaml").write_text(text)

    return write


@pytest.fixture
def offer_toolkits(monkeypatch):
    """Makes these classes the toolkits of a package, beside what is installed."""

    def offer(**kinds: type) -> None:
        group, scan = "goose_like.toolkit", entry_points._scan_packages
        points = [
            importlib.metadata.EntryPoint(name, f"{__name__}:{kind.__name__}", group) for name, kind in kinds.items()
        ]
        monkeypatch.setattr(
            entry_points, "_scan_packages", lambda path: (every := scan(path)) | {group: (*every[group], *points)}
        )

    return offer


@pytest.fixture
def needy(offer_toolkits):
    """A package that offers the toolkit `needy`."""
    offer_toolkits(needy=Needy)


async def test_a_toolkits_tools_are_shown_without_a_model(capsys):
    assert await reports.print_toolkit("developer") == 0
    out = capsys.readouterr().out
    assert out.startswith("The tools of a developer.")
    assert "\nshell: Run a bash command." in out
    assert '\n    access ("workspace" | "network", optional) "network" asks for the internet\n' in out
    assert "\n    patches (list of {before, after})\n" in out


async def test_a_toolkit_that_requires_others_is_shown(needy, capsys):
    with pytest.raises(ProfileError):
        Needy(None, Requirements("needy", {}))
    assert await reports.print_toolkit("needy") == 0
    assert capsys.readouterr().out == (
        "Books rooms.\n\nbook: Book a room.\n"
        "    room (string) its name\n    hours (list of integer)\n    kind (string | null, optional)\n"
    )


async def test_what_an_author_forgot_is_warned_of(offer_toolkits, capsys):
    offer_toolkits(hasty=Hasty)
    assert await reports.print_toolkit("hasty") == 0
    assert capsys.readouterr().out.partition("\n\nwarning: ")[2].splitlines() == [
        "tool 'roll': argument 'sides' has no type hint, so a model may send anything; write e.g. `sides: str`",
        "warning: tool 'roll': its docstring describes 'side', which is none of its arguments; did you mean 'sides'?",
        "warning: tool 'bare': it has no docstring that says what it does, so a model knows its name only; write one",
    ]


async def test_a_toolkit_without_a_tool_is_warned_of(offer_toolkits, capsys):
    offer_toolkits(unmarked=Unmarked, guide=Guide, needy=Needy)
    assert await reports.print_toolkit("unmarked") == 0
    words = "no method is marked with @tool, so a model gets none; mark those that it may call: roll"
    assert capsys.readouterr().out == f"Rolls.\n\nwarning: {words}\n"
    for name in ("guide", "needy"):
        assert await reports.print_toolkit(name) == 0
        assert "warning" not in capsys.readouterr().out


@pytest.mark.parametrize("name", list_entry_points("goose_like.toolkit"))
async def test_our_toolkits_have_no_oversights(name, capsys):
    assert await reports.print_toolkit(name) == 0
    assert "warning" not in capsys.readouterr().out


async def test_a_toolkit_that_can_not_be_shown_is_one_sentence(offer_toolkits):
    offer_toolkits(varied=Varied)
    words = (
        r"^toolkit 'varied' can't be used: TypeError: tool 'add': parameter \*values: int has no JSON form; name each"
    )
    with pytest.raises(GooseLikeError, match=words):
        await reports.print_toolkit("varied")


async def test_without_a_model_a_check_tells_of_the_toolkits_first(offer_toolkits, profiles, monkeypatch, capsys):
    monkeypatch.setattr(
        LocalProvider, "find_setup_error", staticmethod(lambda choice: ModelUnavailableError("not here"))
    )
    offer_toolkits(varied=Varied, hasty=Hasty)
    profiles("bad: {toolkits: [varied]}\nmisspelt: {toolkits: [hastie]}\nhasty: {toolkits: [hasty], sandbox: full}")
    for name, words in {"bad": "tool 'add'", "misspelt": "did you mean 'hasty'"}.items():
        with pytest.raises(GooseLikeError, match=words):
            await reports.check_profile(*load_profile(name))
    with pytest.raises(CredentialError, match="no model to work with"):
        await reports.check_profile(*load_profile("hasty"))
    out = capsys.readouterr().out
    assert "warning: toolkit 'hasty': tool 'bare': it has no docstring" in out
    assert "ready" not in out


async def test_two_packages_with_one_name_are_told(tmp_path, monkeypatch, capsys):
    for package in ("first", "second"):
        info = tmp_path / f"{package}-1.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1\n")
        (info / "entry_points.txt").write_text(f"[goose_like.toolkit]\nunits = {__name__}:Needy\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    reports.print_toolkits()
    told = r"'units' of the package '(first|second)', because the package '(first|second)' has the same name; uninstall"
    both = re.search(rf"^not used: {told}", capsys.readouterr().out, re.MULTILINE)
    assert both
    assert {both[1], both[2]} == {"first", "second"}
    await reports.run_doctor(None)
    assert re.search(rf"^not used +{told}", capsys.readouterr().out, re.MULTILINE)


async def test_a_misspelt_toolkit_is_told(capsys):
    with pytest.raises(ProfileError, match="did you mean 'developer'"):
        await reports.print_toolkit("developr")


def test_tables_are_not_cut_in_a_pipe(profiles, capsys):
    name = "n" * 150
    profiles(f"{name}: {{processor: scripted:{'x' * 150}}}")
    reports.print_profiles()
    row = next(line for line in capsys.readouterr().out.splitlines() if line.startswith(name))
    assert "x" * 150 in row
    assert row.endswith("profiles.yaml")


def test_a_profile_of_ones_own_hides_the_shipped_one(profiles, capsys):
    profiles("default: {extends: default, processor: 'openai:mine'}")
    reports.print_profiles()
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if line.startswith("default")]
    assert [row[1] for row in rows] == ["openai:mine", "(overridden)"]


def test_only_what_is_broken_is_called_broken(profiles, capsys):
    profiles("mine: {procesor: x}\ngood: {processor: local}")
    reports.print_profiles()
    broken = [line for line in capsys.readouterr().out.splitlines() if "broken:" in line]
    assert [line.split()[0] for line in broken] == ["mine"]
    assert "line 1" in broken[0]


async def test_a_check_says_when_the_profile_is_used(home, capsys, tmp_path, monkeypatch, profiles):
    monkeypatch.chdir(tmp_path)
    script = tmp_path / "script.yaml"
    script.write_text("- hi")
    profiles(f"mine: {{processor: 'scripted:{script}', sandbox: full}}")
    assert await reports.check_profile(*load_profile("mine")) == 0
    assert "with --profile mine; the default is 'local', because no API key is set" in capsys.readouterr().out
    profiles(f"default: {{processor: 'scripted:{script}', sandbox: full}}")
    assert await reports.check_profile(*load_default_profile()) == 0
    assert "used     by default\n" in capsys.readouterr().out


def test_without_a_name_the_profile_that_run_uses_is_shown(monkeypatch, capsys):
    reports.print_profile()
    assert capsys.readouterr().out.startswith("# local: ")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted")
    reports.print_profile()
    assert capsys.readouterr().out.startswith("# default: ")


def test_an_unknown_profile_is_told():
    with pytest.raises(GooseLikeError, match="did you mean 'local'"):
        reports.print_profile("locl")


async def test_the_doctor_names_the_next_step(home, capsys):
    await reports.run_doctor(None)
    out = capsys.readouterr().out
    assert out.splitlines()[-2].startswith("next: ")
    assert f"{home / 'config'}" in out


async def test_the_doctor_says_what_is_wrong_with_a_profile(profiles, capsys):
    profiles("mine: {procesor: x}")
    assert await reports.run_doctor("mine") == 2
    assert "did you mean 'processor'" in capsys.readouterr().out.splitlines()[-1]
