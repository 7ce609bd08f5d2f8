"""Tests of agent files: their front matter, and whose files count."""

from pathlib import Path

import pytest

from goose_like.config import trust
from goose_like.config.agent_file import AgentFile, load_agent_files, parse_agent_file
from goose_like.config.paths import config_folder
from goose_like.config.trust import load_trusted_project
from goose_like.core.errors import GooseLikeError

FILE = Path("/p/finder.md")


@pytest.mark.parametrize(
    ("front", "expected"),
    [
        ("description: finds things", AgentFile(name="finder", description="finds things")),
        (
            "name: seeker\ndescription: Use it: <example>\\nuser: 'x'\ntools: Read, Bash\nmodel: haiku\neffort: none\n"
            "color: 1",
            AgentFile(
                name="seeker",
                description="Use it: <example>\\nuser: 'x'",
                tools=("Read", "Bash"),
                model="haiku",
                effort="none",
            ),
        ),
        (
            "description: |\n  two\n  lines\ntools: [Read, Grep]\nmodel:",
            AgentFile(name="finder", description="two\nlines\n", tools=("Read", "Grep")),
        ),
    ],
)
def test_front_matter_of_this_and_other_agents(front, expected):
    parsed = parse_agent_file(FILE, f"---\n{front}\n---\n\nLook around.\n")
    assert parsed == expected.model_copy(update={"prompt": "Look around."})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Just a prompt.", "an agent file starts with ---"),
        ("---\nname: x\n---\nHi.", "description: this key is missing"),
        ("---\ndescription: x\neffort: hihg\n---\nHi.", "line 3: effort: expected 'none', 'minimal'"),
        ("---\ndescription: x\ntools: [\n---\nHi.", "line 3: this is not valid YAML"),
    ],
)
def test_a_wrong_file_is_named(text, words):
    with pytest.raises(GooseLikeError) as caught:
        parse_agent_file(FILE, text)
    assert str(FILE) in str(caught.value)
    assert words in str(caught.value)


def test_files_of_a_project_count_once_they_are_trusted(home, tmp_path, monkeypatch):
    root = tmp_path / "project"
    (root / ".git").mkdir(parents=True)
    monkeypatch.chdir(root)
    texts = {".goose-like/agents/one.md": "ours", ".claude/agents/one.md": "theirs", ".claude/agents/two.md": "two"}
    for name, description in texts.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"---\ndescription: {description}\n---\nWork.")
    (root / ".claude/agents/bad.md").write_text("no front matter")
    assert load_agent_files(load_trusted_project(root)) == ({}, [])
    project = trust.read_project_config(root)
    trust.trust_project(project)
    found, problems = load_agent_files(load_trusted_project(root))
    assert {name: agent.description for name, agent in found.items()} == {"one": "ours", "two": "two"}
    assert [f"{root}/.claude/agents/bad.md" in problem for problem in problems] == [True]
    (config_folder() / "agents").mkdir(parents=True, exist_ok=True)
    (config_folder() / "agents/one.md").write_text("---\ndescription: mine\n---\nWork.")
    assert load_agent_files(load_trusted_project(root))[0]["one"].description == "mine"
    (root / ".claude/agents/two.md").write_text("---\ndescription: changed\n---\nWork.")
    assert list(load_agent_files(load_trusted_project(root))[0]) == ["one"]
