"""The work of `toolkit list` and `toolkit show`."""

import re

import pytest

from goose_like.cli.commands.doctor import run_doctor
from goose_like.cli.commands.toolkit_actions import print_toolkit, print_toolkits
from goose_like.config.entry_points import list_entry_points
from goose_like.core.errors import GooseLikeError, ProfileError
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
def needy(offer_toolkits):
    """A package that offers the toolkit `needy`."""
    offer_toolkits(needy=Needy)


def test_a_toolkits_tools_are_shown_without_a_model(capsys):
    print_toolkit("developer")
    out = capsys.readouterr().out
    assert out.startswith("The tools of a developer.")
    assert "\nprompt:\n    (made in a session)\n" in out
    assert "\nshell: Run a bash command that ends by itself." in out
    assert "\nweb_search: Search the web. Gives pages with their URLs.\n    needs BRAVE_API_KEY or " in out
    assert '\n    access ("workspace"|"network", optional)\n' in out
    assert "\n    patches ([{before: string, after: string, replace_all?: boolean}])\n" in out


def test_a_toolkit_that_requires_others_is_shown(needy, capsys):
    with pytest.raises(ProfileError):
        Needy(None, Requirements("needy", {}))
    print_toolkit("needy")
    assert capsys.readouterr().out == (
        "Books rooms.\n\nbook: Book a room.\n"
        "    room (string) its name\n    hours ([integer])\n    kind (string, optional)\n"
    )


class Plain(Toolkit):
    def prompt(self):
        return "Think.\nThen act."


def test_the_prompt_is_shown_and_no_docstring_of_the_base_class(offer_toolkits, capsys):
    offer_toolkits(plain=Plain)
    print_toolkit("plain")
    out = capsys.readouterr().out
    assert out.partition("\nwarning: ")[0].strip() == "prompt:\n    Think.\n    Then act."


def test_what_an_author_forgot_is_warned_of(offer_toolkits, capsys):
    offer_toolkits(hasty=Hasty)
    print_toolkit("hasty")
    assert capsys.readouterr().out.partition("\n\nwarning: ")[2].splitlines() == [
        "tool 'roll': argument 'sides' has no type hint, so a model may send anything; write e.g. `sides: str`",
        "warning: tool 'roll': its docstring describes 'side', which is none of its arguments; did you mean 'sides'?",
        "warning: tool 'bare': it has no docstring that says what it does, so a model knows its name only; write one",
    ]


def test_a_toolkit_without_a_tool_is_warned_of(offer_toolkits, capsys):
    offer_toolkits(unmarked=Unmarked, guide=Guide, needy=Needy)
    print_toolkit("unmarked")
    words = "no method is marked with @tool, so a model gets none; mark those that it may call: roll"
    assert capsys.readouterr().out == f"Rolls.\n\nprompt:\n    Roll.\n\nwarning: {words}\n"
    for name in ("guide", "needy"):
        print_toolkit(name)
        assert "warning" not in capsys.readouterr().out


@pytest.mark.parametrize("name", list_entry_points("goose_like.toolkit"))
def test_our_toolkits_have_no_oversights(name, capsys):
    print_toolkit(name)
    assert "warning" not in capsys.readouterr().out


def test_a_toolkit_that_can_not_be_shown_is_one_sentence(offer_toolkits):
    offer_toolkits(varied=Varied)
    words = (
        r"^toolkit 'varied' can't be used: TypeError: tool 'add': parameter \*values: int has no JSON form; name each"
    )
    with pytest.raises(GooseLikeError, match=words):
        print_toolkit("varied")


def test_two_packages_with_one_name_are_told(tmp_path, monkeypatch, capsys):
    for package in ("first", "second"):
        info = tmp_path / f"{package}-1.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1\n")
        (info / "entry_points.txt").write_text(f"[goose_like.toolkit]\nunits = {__name__}:Needy\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    print_toolkits()
    text = r"'units' of the package '(first|second)', because the package '(first|second)' has the same name; uninstall"
    both = re.search(rf"^not used: {text}", capsys.readouterr().out, re.MULTILINE)
    assert both
    assert {both[1], both[2]} == {"first", "second"}
    run_doctor(None)
    assert re.search(rf"^not used +{text}", capsys.readouterr().out, re.MULTILINE)


def test_a_misspelt_toolkit_is_told(capsys):
    with pytest.raises(ProfileError, match="did you mean 'developer'"):
        print_toolkit("developr")
