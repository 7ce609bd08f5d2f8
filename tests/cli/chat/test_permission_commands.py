"""`/permissions` in a session: what it lists, adds and removes holds at once."""

from contextlib import asynccontextmanager
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from goose_like.agent.build import build_exchange
from goose_like.agent.slash_context import SlashContext
from goose_like.agent.tool_call import call_tool
from goose_like.cli.chat.permission_commands import permissions
from goose_like.config.profile import ModelChoice, PermissionLists, Profile, ToolkitChoice
from goose_like.config.trust import StoredApproval, load_folder_trust, store_approval
from goose_like.core.errors import DeniedError, UsageError
from goose_like.core.notifier import Recorder
from tests.fakes import call
from tests.workspace.workspace_harness import SESSION, needs_sandbox

pytestmark = needs_sandbox


@pytest.fixture
def root(tmp_path, monkeypatch) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


class Screen:
    """What a session showed, as text."""

    def __init__(self) -> None:
        self._console = Console(width=100, record=True, markup=False, file=StringIO())

    def show(self, shown: object) -> None:
        self._console.print(shown)

    def take(self) -> list[str]:
        return [" ".join(line.split()) for line in self._console.export_text().splitlines() if line.strip()]


@asynccontextmanager
async def open_context(tmp_path: Path, recorder: Recorder | None = None, **lists: tuple[str, ...]):
    (tmp_path / "script").write_text("- text: hello\n")
    toolkits = (ToolkitChoice(name="developer", config={"hints": False}),)
    model = ModelChoice(model=f"scripted:{tmp_path}/script")
    profile = Profile(name="mine", processor=model, toolkits=toolkits, permissions=PermissionLists(**lists))
    screen = Screen()

    async def ask(label: str) -> str:
        raise AssertionError(label)

    async with build_exchange(profile, recorder or Recorder()) as exchange:
        yield SlashContext(exchange, profile, {}, screen.show, ask, print, print, ()), screen


async def run(context: SlashContext, command: str) -> str:
    return (await call_tool(context.exchange.tools, call("shell", f'{{"command": "{command}"}}'))).output


async def test_it_lists_rules_and_answers_by_place(tmp_path, root):
    store_approval(root, StoredApproval(kind="command", subject="make all"))
    async with open_context(tmp_path, Recorder(SESSION), deny=("git push --force",)) as (context, screen):
        await permissions(context, "")
        assert screen.take() == [
            "mode: auto · workspace",
            "1 folder, command allow make all",
            "2 profile, rule deny git push --force",
        ]
        await context.exchange.workspace.require_permission("outside", "/srv/a", "x")
        await permissions(context, 'ask "npm test"')
        screen.take()
        await permissions(context, "")
        assert screen.take()[1:] == [
            "1 session, outside allow /srv/a",
            "2 folder, command allow make all",
            "3 folder, rule ask npm test",
            "4 profile, rule deny git push --force",
        ]


async def test_a_rule_holds_at_once_and_until_it_is_removed(tmp_path, root):
    async with open_context(tmp_path) as (context, screen):
        assert "hi" in await run(context, "echo hi")
        await permissions(context, "deny echo")
        assert "a rule forbids it" in await run(context, "echo hi")
        assert load_folder_trust(root).permissions.deny == ("echo",)
        await permissions(context, "allow echo")  # instead of the other rule
        assert "hi" in await run(context, "echo hi")
        assert load_folder_trust(root).permissions == PermissionLists(allow=("echo",))
        await permissions(context, "remove echo")
        assert load_folder_trust(root).permissions == PermissionLists()
        assert screen.take() == [
            "from now on in this folder, refused: echo",
            "from now on in this folder, allowed, inside the sandbox: echo",
            "removed: allow echo",
        ]


async def test_the_log_has_what_was_refused_and_what_would_allow_it(tmp_path, root):
    async with open_context(tmp_path, deny=("git push",)) as (context, screen):
        await permissions(context, "log")
        assert screen.take() == ["nothing was refused in this session"]
        for command in ("git push", "git push", "touch /etc/no"):
            await run(context, command)
        with pytest.raises(DeniedError):
            await context.exchange.workspace.write_bytes("/srv/no.txt", b"x")
        await permissions(context, "log")
        assert screen.take() == [
            "✗ command: git push (2 times)",
            "refused by the rule: `git push` matches `deny: git push` of the profile",
            "allowed by a change of the rule",
            "✗ outside: touch /etc/no",
            "refused by the sandbox: touch: cannot touch '/etc/no': Read-only file system",
            "allowed by sandbox full",
            "✗ outside: /srv/no.txt",
            "refused by nobody's answer",
            "allowed by the rule path:/srv/no.txt",
        ]


async def test_a_rule_about_a_tool_holds_for_the_next_call(tmp_path, root):
    async with open_context(tmp_path) as (context, _):
        await permissions(context, "deny tool:shell")
        assert "a rule forbids it" in await run(context, "echo hi")
        await permissions(context, "remove 1")
        assert "hi" in await run(context, "echo hi")


async def test_a_removed_answer_is_asked_for_again(tmp_path, root):
    store_approval(root, StoredApproval(kind="outside", subject="/srv/b"))
    recorder = Recorder(SESSION)
    async with open_context(tmp_path, recorder) as (context, _):

        async def require() -> list[str]:
            for path in ("/srv/a", "/srv/b"):
                await context.exchange.workspace.require_permission("outside", path, "x")
            return [question.subject for question in recorder.questions]

        await require()
        assert await require() == ["/srv/a"]
        await permissions(context, "remove 1")
        await permissions(context, "remove allow /srv/b")
        assert await require() == ["/srv/a", "/srv/a", "/srv/b"]
        assert load_folder_trust(root).approvals == ()


async def test_no_rule_loosens_the_mode(tmp_path, root):
    async with open_context(tmp_path) as (context, _):
        await permissions(context, "allow curl")
        for kind in ("network", "sandbox", "deletion"):
            with pytest.raises(DeniedError):
                await context.exchange.workspace.require_permission(kind, "curl x", "x")


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("allow", "which rule"),
        ("allow 'a | b'", "the start of a command without quotes, pipes"),
        ("deny tol:shell", "did you mean 'tool'"),
        ("forbid x", "unknown: 'forbid'"),
        ("remove 7", "no permissions are '7'"),
        ("remove git push --force", "a rule of the profile; change it with: goose-like profile edit mine"),
    ],
)
async def test_a_mistake_names_the_next_step(tmp_path, root, words, problem):
    async with open_context(tmp_path, deny=("git push --force",)) as (context, _):
        with pytest.raises(UsageError, match=problem):
            await permissions(context, words)
    assert load_folder_trust(root).permissions == PermissionLists()


async def test_markup_in_a_rule_is_plain_text(tmp_path, root):
    async with open_context(tmp_path) as (context, screen):
        await permissions(context, "deny path:[red]*")
        await permissions(context, "")
        assert screen.take()[-1] == "1 folder, rule deny path:[red]*"
