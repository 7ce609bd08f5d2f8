"""Rules about tools: denied ones are missing, and others ask or spare questions."""

from pathlib import Path

from goose_like.agent.tool_call import call_tool
from goose_like.agent.tool_rules import apply_tool_rules
from goose_like.config.profile import ApprovalMode, PermissionLists, WorkspaceSettings
from goose_like.config.trust import store_rule
from goose_like.core.events import Answer
from goose_like.core.notifier import Recorder
from goose_like.core.tool import Tool, make_tool
from goose_like.workspace.workspace import Workspace
from tests.fakes import call

NO = Answer(choice="deny", by="person")
SESSION = Answer(choice="allow_prefix", by="person")


def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


async def multiply(a: int) -> int:
    """Multiply a number."""
    return a * 2


def open_workspace(
    root: Path, answer: Answer, approval: ApprovalMode = "auto", **lists: tuple[str, ...]
) -> tuple[Workspace, Recorder]:
    recorder, settings = Recorder(answer), WorkspaceSettings(permissions=PermissionLists(**lists))
    return Workspace(root, mode="workspace", approval=approval, notifier=recorder, settings=settings), recorder


def make_tools() -> dict[str, Tool]:
    return {tool.name: tool for tool in (make_tool(add), make_tool(multiply))}


async def test_without_rules_about_tools_nothing_is_asked(tmp_path: Path) -> None:
    for lists in ({}, {"deny": ("git",)}, {"deny": ("tool:other",)}):
        workspace, recorder = open_workspace(tmp_path, NO, **lists)
        tools = apply_tool_rules(make_tools(), workspace)
        assert {name: tool.spec for name, tool in tools.items()} == {n: tool.spec for n, tool in make_tools().items()}
        assert (await call_tool(tools, call("add", '{"a": 2}'))).output == "3"
        assert recorder.questions == []


async def test_a_new_rule_holds_for_the_next_call_also_in_a_subagent(tmp_path: Path) -> None:
    workspace, _ = open_workspace(tmp_path, NO)
    child = Workspace(tmp_path, mode="workspace", approval="auto", notifier=Recorder(), parent=workspace)
    tools = [apply_tool_rules(make_tools(), place) for place in (workspace, child)]
    for verdict, output in (("deny", "not allowed: call add"), (None, "3")):
        store_rule(tmp_path, "tool:add", verdict)
        workspace.reload_rules()
        for offered in tools:
            assert (await call_tool(offered, call("add", '{"a": 2}'))).output.startswith(output)


def test_a_denied_tool_is_not_offered(tmp_path: Path) -> None:
    workspace, _ = open_workspace(tmp_path, NO, deny=("tool:mul*",), allow=("tool:*",))
    assert list(apply_tool_rules(make_tools(), workspace)) == ["add"]


async def test_a_call_is_asked_about_with_its_arguments(tmp_path: Path) -> None:
    for answer, expected in ((NO, ["not allowed"] * 2), (SESSION, ["3", "5"])):
        workspace, recorder = open_workspace(tmp_path, answer, "yolo", ask=("tool:add",))
        tools = apply_tool_rules(make_tools(), workspace)
        outcomes = [await call_tool(tools, call("add", arguments)) for arguments in ('{"a": 2}', '{"a": 2, "b": 3}')]
        assert [outcome.output[: len(text)] for outcome, text in zip(outcomes, expected, strict=True)] == expected
        assert recorder.questions[0].text == 'call add with {"a":2}'
        assert recorder.questions[0].prefix == "this tool"
        assert len(recorder.questions) == (2 if answer == NO else 1)
        assert (await call_tool(tools, call("multiply", '{"a": 2}'))).output == "4"


async def test_an_allowed_tool_changes_files_unasked(tmp_path: Path) -> None:
    workspace, recorder = open_workspace(tmp_path, NO, "ask", allow=("tool:write",), deny=("path:*.pem",))

    async def write(path: str) -> str:
        """Write a file."""
        return str(await workspace.write_bytes(path, b"x"))

    tools = apply_tool_rules({"write": make_tool(write)}, workspace)
    assert not (await call_tool(tools, call("write", '{"path": "a"}'))).is_error
    assert "a rule forbids it" in (await call_tool(tools, call("write", '{"path": "a.pem"}'))).output
    assert "not allowed" in (await call_tool({"write": make_tool(write)}, call("write", '{"path": "b"}'))).output
    assert [question.subject for question in recorder.questions] == [str(tmp_path / "b")]
