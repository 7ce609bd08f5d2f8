"""The check of AGENTS.md: which line counts, the question about it, and what is remembered."""

import os

import pytest

from goose_like.cli.commands.trust_actions import add_trust, print_permissions, revoke_permissions
from goose_like.config.project_check import find_project_check, may_ask_about_check
from goose_like.core.errors import UsageError
from goose_like.core.events import Answer, Logged
from goose_like.core.notifier import Recorder
from goose_like.launch.project_check import settle_project_check

ALWAYS = Answer(choice="allow_always", by="person")
ONCE = Answer(choice="allow", by="person")
NO = Answer(by="person")
NOBODY = Answer()


@pytest.fixture
def folder(home, tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "AGENTS.md").write_text("# Rules\n\nverify: pytest -q\n")
    return folder


async def settle(folder, answer: Answer = NO, *, is_trusted_now: bool = False) -> tuple[str, int, list[str]]:
    """Return the check that may run, the number of questions, and what the person saw."""
    recorder = Recorder(answer)
    check = await settle_project_check(folder, recorder, is_trusted_now=is_trusted_now)
    logged = [event.text for event in recorder.events if isinstance(event, Logged)]
    return check, len(recorder.questions), logged


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("verify: pytest -q", "pytest -q"),
        ("# Rules\r\nverify:  make check \r\nverify: other\r\n", "make check"),
        ("- verify: x", None),
        ("Always verify: x", None),
        ("verify:\npytest", None),
        ("verify: a\0b", None),
        ("verify: true \u202e hidden", None),
        ("", None),
    ],
)
def test_the_first_line_that_begins_with_the_word_counts(folder, text, command):
    (folder / "AGENTS.md").write_text(text)
    found = find_project_check(folder)
    assert (found and found.command) == command


def test_what_is_no_readable_file_has_no_check(folder):
    (folder / "AGENTS.md").unlink()
    assert find_project_check(folder) is None
    os.mkfifo(folder / "AGENTS.md")
    assert find_project_check(folder) is None


async def test_the_person_is_asked_once_and_again_about_another_line(folder):
    assert may_ask_about_check(folder)
    assert await settle(folder, ALWAYS) == ("pytest -q", 1, [])
    assert not may_ask_about_check(folder)
    (folder / "AGENTS.md").write_text("# Other rules\n\nverify: pytest -q\n")
    assert await settle(folder) == ("pytest -q", 0, [])
    (folder / "AGENTS.md").write_text("verify: pytest -q; curl evil\n")
    assert may_ask_about_check(folder)
    assert await settle(folder, ONCE) == ("pytest -q; curl evil", 1, [])
    other = folder.parent / "other"
    other.mkdir()
    (other / "AGENTS.md").write_text("verify: pytest -q\n")
    assert may_ask_about_check(other)
    assert await settle(other, ONCE) == ("pytest -q", 1, [])


async def test_a_no_is_remembered_and_nobody_is_asked_twice(folder):
    text = "it does not run, and you are not asked again; to change that: goose-like trust add"
    assert await settle(folder, NO) == ("", 1, [text])
    assert await settle(folder, ALWAYS) == ("", 0, [])
    assert await settle(folder, is_trusted_now=True) == ("pytest -q", 0, [])


async def test_without_an_answer_it_does_not_run(folder, monkeypatch, capsys):
    text = "the check of AGENTS.md does not run, as you did not decide: pytest -q"
    assert await settle(folder, NOBODY) == ("", 1, [f"{text}; to run it: --trust, or goose-like trust add"])
    monkeypatch.chdir(folder)
    add_trust(".")
    assert await settle(folder, NOBODY) == ("pytest -q", 0, [])
    print_permissions()
    shown = capsys.readouterr().out
    assert "after turns with changes: pytest -q\n" in shown
    assert f"trusted as it is now: the check of {folder}/AGENTS.md\n" in shown
    assert "check of AGENTS.md: pytest -q" in shown
    revoke_permissions("1")
    assert (await settle(folder, NOBODY))[0] == ""
    (folder / "AGENTS.md").unlink()
    with pytest.raises(UsageError, match="there is nothing to trust"):
        add_trust(".")
