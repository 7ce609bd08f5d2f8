"""The smaller toolkits that come along, each on a real workspace; models play the answers of a test."""

import json
import os
from pathlib import Path

import pytest
from goose_like_toolkits.github import GitHubToolkit
from goose_like_toolkits.jira import JiraToolkit
from goose_like_toolkits.reasoner import ReasonerToolkit
from goose_like_toolkits.repo_context import RepoContextToolkit
from goose_like_toolkits.screen import ScreenToolkit

from goose_like.agent.tool_call import call_tool
from goose_like.core.errors import GooseLikeError, ProfileError
from goose_like.core.events import MessageCompleted, TurnStarted, UsageRecorded
from goose_like.core.message import Message, ToolCall
from goose_like.testing import trial
from goose_like.toolkit import ImageResult, ToolError

# --- github, jira


@pytest.mark.parametrize(("kind", "command"), [(GitHubToolkit, "`gh auth status`"), (JiraToolkit, "`jira me`")])
async def test_the_guidance_says_how_to_begin_and_that_it_needs_the_network(kind, command):
    async with trial(kind) as guide:
        assert command in guide.toolkit.prompt()
        assert 'access="network"' in guide.toolkit.prompt()


@pytest.mark.parametrize(
    ("text", "is_one"),
    [("ABC-123", True), (" AB_2-1\n", True), ("abc-1", False), ("A-1", False), ("ABC-0", False), ("see ABC-1", False)],
)
async def test_is_jira_issue(text, is_one):
    async with trial(JiraToolkit) as jira:
        assert json.loads(await jira.call("is_jira_issue", text=text)) is is_one


# --- reasoner


def asked_about(reasoner):
    """List the side questions that were counted, by model."""
    return [(event.model, event.purpose) for event in reasoner.recorder.events if isinstance(event, UsageRecorded)]


async def test_the_processor_thinks():
    async with trial(ReasonerToolkit, answers=["It is the cache.", "print(1)"]) as reasoner:
        assert await reasoner.call("deep_reason", problem="why?") == "It is the cache."
        assert await reasoner.call("generate_code", instructions="print one") == "print(1)"
        assert asked_about(reasoner) == [
            ("scripted:answers", "deep_reason"),
            ("scripted:answers", "generate_code"),
        ]


async def test_a_named_model_thinks_and_reads_what_was_said(tmp_path):
    script = tmp_path / "think.yaml"
    script.write_text(r"- {text: deeply, expect: 'user: it fails\n\nassistant: I look.*---\n\nwhy\?$'}")
    async with trial(ReasonerToolkit, config={"model": f"scripted:{script}"}) as reasoner:
        reasoner.toolkit.session.history.apply(TurnStarted(message=Message.user("it fails")))
        reasoner.toolkit.session.history.apply(MessageCompleted(message=Message.assistant("I look.")))
        assert await reasoner.call("deep_reason", problem="why?") == "deeply"
        assert asked_about(reasoner) == [(f"scripted:{script}", "deep_reason")]


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (7, "`model` takes PROVIDER:MODEL, not 7"),
        ("scriptd:x", "did you mean 'scripted'"),
        ("scripted:none.yaml", "no script"),
    ],
)
async def test_a_named_model_that_there_is_not(model, words):
    with pytest.raises(GooseLikeError, match=words) as caught:
        async with trial(ReasonerToolkit, config={"model": model}):
            pass
    assert model != 7 or (isinstance(caught.value, ProfileError) and caught.value.path == ("config", "model"))


# --- repo_context


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    (folder / "src").mkdir(parents=True)
    (folder / "src/main.py").write_text("print('one')\n")
    (folder / "README.md").write_text("# One\n")
    (folder / "logo.png").write_bytes(b"\x89PNG\xff\xfe")
    (folder / ".env").write_text("KEY=1")
    return folder


async def summary(project, *answers):
    async with trial(RepoContextToolkit, project, answers=answers) as context:
        return json.loads(await context.call("summarize_current_project"))


PICK = "- `src/main.py`\nREADME.md\nnowhere.py\n.env\nlogo.png\nREADME.md"


async def test_chosen_files_are_summed_up(project):
    assert await summary(project, PICK, "prints one", "its front page") == {
        "src/main.py": "prints one",
        "README.md": "its front page",
        "logo.png": "(no text, or too long to be summed up)",
    }


async def test_nothing_is_asked_twice(project):
    first = await summary(project, PICK, "prints one", "its front page")
    assert await summary(project) == first  # a model that has no answers left
    (project / "README.md").write_text("# Two\n")
    assert await summary(project, "a new front page") == first | {"README.md": "a new front page"}


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        (["I would read main."], "named no file that there is; it said: 'I would read main.'"),
        ([PICK, "prints one"], "the fast model failed: the script "),
    ],
)
async def test_a_model_that_does_not_help(project, answers, words):
    with pytest.raises(ToolError, match=words):
        await summary(project, *answers)


async def test_an_empty_project(tmp_path):
    with pytest.raises(ToolError, match="no files here"):
        await summary(tmp_path)


# --- screen


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """Makes programs of a PATH that has nothing else to take a picture with."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("bash", "sh", "cp", "env"):
        (folder / name).symlink_to(f"/bin/{name}")
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(folder))

    def make(name, script):
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)

    return make


PICTURE = 'for last; do :; done; printf "\\211PNG\\r\\n\\032\\n%s" "$0 $* $XAUTHORITY" > "$last"'


@pytest.mark.parametrize(
    ("program", "variable", "words"),
    [
        ("grim", "WAYLAND_DISPLAY", ""),
        ("scrot", "DISPLAY", ""),
        ("gnome-screenshot", "DISPLAY", "-f "),
        ("import", "DISPLAY", "-window root "),
    ],
)
async def test_a_picture_is_taken(programs, monkeypatch, program, variable, words):
    programs(program, PICTURE)
    monkeypatch.setenv(variable, ":7")
    monkeypatch.setenv("XAUTHORITY", "/key")
    async with trial(ScreenToolkit) as screen:
        for number in (1, 2):
            file = screen.toolkit.session.outputs / f"screenshot-{number}.png"
            outcome = await call_tool(screen.tools, ToolCall(id="1", name="take_screenshot", arguments="{}"))
            taken = f"{Path(os.environ['PATH']) / program} {words}{file} /key"
            assert outcome.image == ImageResult(b"\x89PNG\r\n\x1a\n" + taken.encode(), str(file))


async def test_no_screen_or_no_program(programs, monkeypatch):
    programs("grim", PICTURE)
    monkeypatch.setenv("DISPLAY", ":7")  # no Wayland, which grim needs
    async with trial(ScreenToolkit) as screen:
        with pytest.raises(ToolError, match="no picture of the screen can be taken here"):
            await screen.call("take_screenshot")


async def test_a_picture_that_is_none(programs, monkeypatch):
    programs("scrot", 'for last; do :; done; echo "no picture" > "$last"')
    monkeypatch.setenv("DISPLAY", ":7")
    async with trial(ScreenToolkit) as screen:
        with pytest.raises(ToolError, match=r"screenshot-1\.png is not a PNG"):
            await screen.call("take_screenshot")


async def test_a_program_that_fails(programs, monkeypatch):
    programs("scrot", "echo 'no such display' >&2; exit 2")
    monkeypatch.setenv("DISPLAY", ":7")
    async with trial(ScreenToolkit) as screen:
        with pytest.raises(ToolError, match="scrot took no picture: no such display"):
            await screen.call("take_screenshot")
