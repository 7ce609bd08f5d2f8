"""The question about a project's files: what it names, and a front-end that fails to ask it."""

import json

import pytest

from goose_like.config.trust import is_refused, is_trusted, read_project_config
from goose_like.core.events import Answer
from goose_like.core.notifier import Notifier
from goose_like.launch.trust import settle_project_trust


class FailingOnce(Notifier):
    """A front-end that fails to ask the first question, and allows the others."""

    def __init__(self):
        self.asked = 0
        self.logged = []

    def log(self, content):
        self.logged.append(content)

    async def ask(self, question):
        self.asked += 1
        if self.asked == 1:
            raise ConnectionError("the editor is gone")
        return Answer(choice="allow", by="person")


async def test_a_front_end_that_fails_skips_the_files_this_time_only(home, tmp_path):
    root = tmp_path / "repo"
    (root / ".git").mkdir(parents=True)
    (root / ".goose-like").mkdir()
    (root / ".goose-like/profiles.yaml").write_text("review: {limits: {steps: 5}}")
    front = FailingOnce()
    first = await settle_project_trust(root, front, is_trusted_now=False)
    assert first.files == {}
    assert front.logged[0].startswith("denied, as the front-end failed to ask: ConnectionError: the editor is gone")
    assert front.logged[1].startswith("skipped untrusted files: ")
    project = read_project_config(root)
    assert not is_refused(project)
    assert not is_trusted(project)
    second = await settle_project_trust(root, front, is_trusted_now=False)
    assert list(second.files) == ["profiles.yaml"]


class Declining(Notifier):
    """A front-end whose person says no. It keeps the questions."""

    def __init__(self):
        self.questions = []

    async def ask(self, question):
        self.questions.append(question)
        return Answer(choice="deny", by="person")


async def ask_about(root, files):
    (root / ".git").mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    front = Declining()
    await settle_project_trust(root, front, is_trusted_now=False)
    (question,) = front.questions
    return question.text


HOOKS = {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "sh guard.sh"}]}]}
SKILL = "---\nname: pdf\ndescription: Reads PDF files.\n---\nDo it."
BROUGHT = {
    "settings": {".goose-like/profiles.yaml": "review: {}"},
    "commands": {".claude/commands/fix.md": "fix it"},
    "agents": {".claude/agents/one.md": "---\nname: one\n---\nwork"},
    "skills": {".claude/skills/pdf/SKILL.md": SKILL},
    "hooks": {".claude/settings.json": json.dumps({"hooks": HOOKS})},
    "MCP servers": {".mcp.json": '{"mcpServers": {"git": {"command": "mcp-server-git"}}}'},
}


@pytest.mark.parametrize("kind", BROUGHT)
async def test_the_question_names_what_is_there(home, tmp_path, kind):
    text = await ask_about(tmp_path, BROUGHT[kind])
    assert text.startswith(f"this project brings {kind}: ")


async def test_the_question_names_all_and_what_runs(home, tmp_path):
    files = {name: text for kind in BROUGHT.values() for name, text in kind.items()}
    text = await ask_about(tmp_path, files)
    assert text.startswith("this project brings settings, commands, agents, hooks, MCP servers and skills: ")
    assert "hook PreToolUse (Bash): sh guard.sh" in text
    assert "mcp-server-git" in text


async def test_the_question_stays_short_with_many_files(home, tmp_path):
    handlers = [{"type": "command", "command": f"sh guard.sh {number}"} for number in range(30)]
    files = {f".claude/skills/skill-{number}/SKILL.md": SKILL for number in range(30)}
    files[".claude/settings.json"] = json.dumps({"hooks": {"Stop": [{"hooks": handlers}]}})
    text = await ask_about(tmp_path, files)
    assert "; and 11 more. " in text
    assert "; 10 more hooks. " in text
