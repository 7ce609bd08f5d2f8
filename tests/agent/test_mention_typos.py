"""A typo in `@path` is told, and other words with an @ are left alone."""

import asyncio
from pathlib import Path

import pytest

from goose_like.agent import mentions
from goose_like.core.notifier import Notifier
from goose_like.providers.base import Model
from goose_like.workspace.workspace import Workspace
from tests.fakes import FakeProvider


@pytest.fixture
def explain(tmp_path: Path):
    """Return the notes about a message in a folder with some files."""
    root = tmp_path / "work"
    for name in ("README.md", "src/main.py", "src/app.py", "src/deep/settings.toml", "docs/a b.md", "types/index.ts"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("text\n")
    workspace = Workspace(root, mode="workspace", approval="auto", notifier=Notifier())
    model = Model(FakeProvider(), "x", "scripted:x")

    def explain(text: str) -> list[str]:
        _, notes = asyncio.run(mentions.build_message(text, workspace, tmp_path / "outputs", model))
        return notes

    return explain


@pytest.mark.parametrize(
    ("text", "word", "nearest"),
    [
        ("sum up @READM.md", "READM.md", "README.md"),
        ("sum up @REDME, please", "REDME", "README.md"),
        ("@readme.md", "readme.md", "README.md"),
        ("look at @src/mian.py.", "src/mian.py", "src/main.py"),
        ("look at (@main.py)", "main.py", "src/main.py"),
        ("read /file:setings.toml now", "setings.toml", "src/deep/settings.toml"),
        ('read @"a  b.md" now', "a  b.md", "docs/a b.md"),
        ("list @scr/deep/", "scr/deep/", "src/deep/"),
    ],
)
def test_the_nearest_file_is_named(explain, text, word, nearest):
    assert explain(text) == [f"@{word} is no file and was sent as a word; did you mean @{nearest}?"]


def test_a_name_like_no_other_is_said_to_be_no_file(explain):
    assert explain("read @notes/plan.txt first") == ["@notes/plan.txt is no file and was sent as a word"]


@pytest.mark.parametrize(
    "text",
    [
        "write to ada.main@example.org or main@app.py.org",
        "what does @dataclass do?",
        "@dataclass(frozen=True)\nclass Main:\n    pass",
        "@app\n@main.command()\ndef main(): ...",
        "    @property\n    def settings(self): ...",
        "install @types/node and @angular/core@17.0.1",
        "ask @ada about @ and @: or @/",
        "`@pytest.mark.parametrize` twice",
        "look at @README.md and @src/",
    ],
)
def test_other_words_are_left_alone(explain, text):
    assert explain(text) == []


def test_only_a_few_words_are_looked_up(explain):
    """Pasted code can have many words with an @, and each look-up reads folders."""
    text = " ".join(f"@missing{number}.py @missing{number}.py" for number in range(50))
    assert explain(text) == [f"@missing{number}.py is no file and was sent as a word" for number in range(5)]
