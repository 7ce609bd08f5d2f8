"""Tests of kinds of subagents: the tools and the sandbox that an agent file leads to, and what a person is told."""

import pytest
from goose_like_toolkits.delegate.kinds import load_kinds, make_kind

from goose_like.config.agent_file import parse_agent_file
from goose_like.config.paths import config_folder
from goose_like.config.profile import Profile, ToolkitChoice
from goose_like.core.errors import GooseLikeError

NAMES = ("developer", "delegate", "reasoner", "jira", "screen")
PARENT = Profile(toolkits=tuple(ToolkitChoice(name=name) for name in NAMES), sandbox="workspace")


def make(tools: str, parent: Profile = PARENT):
    """Make the kind of a file with these tools. Return its tools, its sandbox, and the notes."""
    agent = parse_agent_file(config_folder() / "a.md", f"---\ndescription: x\ntools: {tools}\n---\n")
    kind, notes = make_kind(agent, parent)
    picked = [tool for choice in kind.profile.toolkits for tool in choice.config.get("tools", ["all"])]
    return picked, kind.profile.sandbox, notes


@pytest.mark.parametrize(
    ("tools", "picked", "sandbox"),
    [
        ("Read", ["read_file"], "read-only"),
        ("Read, Grep, TodoWrite", ["shell", "read_file", "update_plan"], "read-only"),
        ("Read Glob LS", ["shell", "read_file"], "read-only"),
        ("Read, BashOutput, list_processes", ["process", "read_file"], "read-only"),
        ("WebFetch, deep_reason, is_jira_issue", ["fetch_web_content", "deep_reason", "is_jira_issue"], "read-only"),
        ("Grep, Task", ["shell", "delegate"], "read-only"),
        ("Bash", ["shell"], "workspace"),
        ("Grep, Bash", ["shell"], "workspace"),
        ("shell", ["shell"], "workspace"),
        ("Read, Edit", ["read_file", "patch_file"], "workspace"),
        ("NotebookEdit", ["patch_file"], "workspace"),
        ("start_process", ["process"], "workspace"),
        ("KillShell", ["process"], "read-only"),
        ("[read_file, write_file]", ["read_file", "write_file"], "workspace"),
        ("[]", [], "read-only"),
    ],
)
def test_tools_and_sandbox(tools, picked, sandbox):
    assert make(tools) == (picked, sandbox, [])


@pytest.mark.parametrize("tools", ["*", '"*"', '["*"]', "Read, *", ""])
def test_a_star_means_all_tools(tools):
    assert make(tools) == (["all"] * len(NAMES), "workspace", [])


@pytest.mark.parametrize(
    ("tools", "picked", "note"),
    [
        ("Read, mcp__x, Skill", ["read_file"], "works without mcp__x, Skill: no tool here matches"),
        ("Read, Bash(git log", ["read_file"], "works without Bash(git log: no tool here matches"),
        ("Read, Bash(a)(b), Grep(", ["read_file"], "works without Bash(a)(b), Grep(: no tool here matches"),
        ("Bash(git diff:*), Read", ["shell", "read_file"], "gets Bash(git diff:*) without the limit in parentheses"),
        ("Bash(git diff:*, git log:*)", ["shell"], "gets Bash(git diff:*, git log:*) without the limit in parentheses"),
        ("Read, mcp__*", ["read_file"], "works without mcp__*: no tool here matches"),
    ],
)
def test_entries_without_effect_are_reported(tools, picked, note):
    assert make(tools)[::2] == (picked, [f"the agent 'a' {note}"])


def test_a_tool_that_the_parent_lacks_is_reported():
    parent = PARENT.model_copy(update={"toolkits": (ToolkitChoice(name="developer", config={"tools": ["shell"]}),)})
    assert make("Write, Grep", parent) == (
        ["shell"],
        "read-only",
        ["the agent 'a' works without Write: no tool here matches"],
    )


@pytest.mark.parametrize("tools", ["mcp__x", "mcp__x, Skill(y)", "Bash(git log", "_, (x)"])
def test_a_file_without_any_tool_is_skipped(tools):
    with pytest.raises(GooseLikeError, match=r"the agent 'a': no tool here matches .*; name others in its file"):
        make(tools)


def test_files_that_can_not_be_used_do_not_hinder_the_others():
    (config_folder() / "agents").mkdir(parents=True)
    for name, tools in {"a": "mcp__x", "b": "Read, mcp__y", "c": "Read"}.items():
        (config_folder() / f"agents/{name}.md").write_text(f"---\ndescription: x\ntools: {tools}\n---\n")
    kinds, problems = load_kinds(None, PARENT)
    assert list(kinds) == ["b", "c"]
    assert problems == [
        "skipped: the agent 'a': no tool here matches mcp__x; name others in its file",
        "the agent 'b' works without mcp__y: no tool here matches",
    ]
