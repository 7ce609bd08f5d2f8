"""Personal files of other agents: the question, what is remembered, and what is read."""

import pytest
from goose_like_toolkits.developer.agents_md import describe_hints, load_hints

from goose_like.cli.commands.trust_actions import add_trust, print_permissions, revoke_permissions
from goose_like.config.agent_file import load_agent_files
from goose_like.config.personal_files import list_personal_files, may_ask_about_places
from goose_like.config.trust import ProjectConfig
from goose_like.core.errors import UsageError
from goose_like.core.events import Answer, Logged
from goose_like.core.notifier import Recorder
from goose_like.launch.personal_files import settle_personal_files
from goose_like.launch.slash_registry import collect_commands

ALWAYS = Answer(choice="allow_always", by="person")
ONCE = Answer(choice="allow", by="person")
NO = Answer(by="person")

FILES = {
    ".claude/CLAUDE.md": "Answer in French.",
    ".claude/commands/git/log.md": "Sum up the log.",
    ".claude/agents/seeker.md": "---\ndescription: finds\n---\nFind.",
    ".codex/AGENTS.md": "Use uv.",
    ".agents/AGENTS.md": "Use tabs.",
    ".agents/commands/greet.md": "Greet $1.",
    ".agents/agents/writer.md": "---\ndescription: writes\n---\nWrite.",
}


@pytest.fixture
def person(tmp_path, monkeypatch):
    """The home folder of a person who uses other agents."""
    folder = tmp_path / "person"
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    monkeypatch.setenv("HOME", str(folder))
    return folder


def list_logged(recorder: Recorder) -> list[str]:
    return [event.text for event in recorder.events if isinstance(event, Logged)]


async def settle(answer: Answer = NO) -> tuple[list[str], Recorder]:
    """Return the names of the places that may be read, and what the person saw."""
    recorder = Recorder(answer)
    places = await settle_personal_files(recorder)
    return [place.path.name for place in places], recorder


async def test_one_question_shows_the_list_and_its_answer_is_remembered(person, home):
    assert may_ask_about_places()
    read, recorder = await settle(ALWAYS)
    [question] = recorder.questions
    for name in ("~/.claude/CLAUDE.md (17 bytes)", "~/.claude/commands (git/log.md)", "~/.codex/AGENTS.md"):
        assert name in question.text
    assert "~/.agents/commands/greet.md:\nGreet $1." in question.detail
    assert read == ["AGENTS.md", "AGENTS.md", "CLAUDE.md", "commands", "commands", "agents", "agents"]
    assert not may_ask_about_places()
    (person / ".claude/commands/new.md").write_text("New.")  # of a kind that is allowed
    (person / ".claude/CLAUDE.md").write_text("Answer in German.")
    again, recorder = await settle()
    assert (again, recorder.questions) == (read, [])


async def test_all_kinds_are_read_and_own_files_win(person, home):
    own = home / "config/agents/seeker.md"
    own.parent.mkdir(parents=True)
    own.write_text("---\ndescription: mine\n---\nFind.")
    project = ProjectConfig(person / "project", {}, personal=await settle_personal_files(Recorder(ONCE)))
    commands, problems = collect_commands({}, project)
    assert {"git:log", "greet"} < commands.keys()
    agents, more_problems = load_agent_files(project)
    assert {name: agent.description for name, agent in agents.items()} == {"seeker": "mine", "writer": "writes"}
    assert problems + more_problems == []
    files = [file for _, file in list_personal_files(project.personal, "instructions")]
    hints = load_hints(person / "project", personal=files)
    assert [hint.text for hint in hints] == ["Use uv.", "Use tabs.", "Answer in French."]
    assert load_hints(person / "project") == []


async def test_an_answer_for_this_time_is_not_stored(person, home):
    read, _ = await settle(ONCE)
    assert len(read) == len(FILES)
    read, recorder = await settle(NO)
    assert len(recorder.questions) == 1
    assert read == []
    assert list_logged(recorder) == [
        "they are not read, and you are not asked again; to change that: goose-like trust list"
    ]
    read, recorder = await settle(ALWAYS)
    assert (read, recorder.questions) == ([], [])


async def test_nothing_is_read_without_a_person(person, home):
    read, recorder = await settle(Answer())
    assert read == []
    [warning] = list_logged(recorder)
    assert warning.endswith("to use them: goose-like trust add ~/.codex ~/.agents ~/.claude")
    assert may_ask_about_places()


async def test_a_person_decides_beforehand_and_changes_the_mind(person, home, capsys):
    add_trust("~/.codex")
    add_trust("~/.claude/CLAUDE.md")
    assert "~/.claude/CLAUDE.md (17 bytes)" in capsys.readouterr().out
    read, _ = await settle(NO)  # about the other places
    assert read == ["AGENTS.md", "CLAUDE.md"]
    print_permissions()
    rows = [line.split(maxsplit=3)[1:3] for line in capsys.readouterr().out.splitlines()]
    assert [str(person / ".claude/CLAUDE.md"), "allow"] in rows
    assert [str(person / ".claude/agents"), "deny"] in rows
    revoke_permissions("~/.claude/CLAUDE.md")
    read, recorder = await settle(NO)
    assert read == ["AGENTS.md"]
    assert "CLAUDE.md" in recorder.questions[0].text
    with pytest.raises(UsageError, match="nothing to trust"):
        add_trust(str(person / ".codex/other"))


async def test_links_lead_to_files_elsewhere(person, home, tmp_path):
    dotfiles = tmp_path / "dotfiles"
    (person / ".claude").rename(dotfiles)
    (person / ".claude").symlink_to(dotfiles)
    (dotfiles / "CLAUDE.md").write_text("See @more.md and @../secret.md.")
    (dotfiles / "more.md").write_text("More.")
    (tmp_path / "secret.md").write_text("Secret.")
    add_trust("~/.claude")
    hints = load_hints(tmp_path / "project", personal=[person / ".claude/CLAUDE.md"])
    assert [hint.text for hint in hints] == ["See @more.md and @../secret.md.", "More."]
    assert "@../secret.md is not imported" in describe_hints(hints)


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"AGENTS.md": "a", "CLAUDE.md": "b"}, "not read: {folder}/CLAUDE.md, since AGENTS.md beside it comes first"),
        ({"AGENTS.md": "a", "CLAUDE.md": "b", "GEMINI.md": "c"}, "not read: {folder}/GEMINI.md"),
        ({"AGENTS.md": "a", "CLAUDE.md": "a"}, ""),
        ({"AGENTS.md": "a", "CLAUDE.md": "@AGENTS.md\n"}, ""),
        ({"AGENTS.md": "see @CLAUDE.md", "CLAUDE.md": "b"}, ""),
        ({"CLAUDE.md": "a"}, ""),
    ],
)
def test_a_file_beside_the_one_that_is_read_gets_a_word(home, tmp_path, files, words):
    folder = tmp_path / "repository"
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)
    said = describe_hints(load_hints(folder))
    assert ("not read" in said) == bool(words)
    assert words.format(folder=folder) in said
