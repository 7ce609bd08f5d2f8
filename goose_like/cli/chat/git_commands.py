"""Slash commands about git: review changes, commit them with a drafted message, and work in a worktree."""

import asyncio
import shlex

from rich.text import Text as StyledText

from goose_like.agent.slash_command import command
from goose_like.agent.slash_context import SlashContext
from goose_like.agent.turn_request import TurnRequest
from goose_like.cli.launch import close_on_error
from goose_like.cli.worktree import create_worktree
from goose_like.core.errors import GooseLikeError, UsageError
from goose_like.core.masking import mask_text
from goose_like.core.message import Message, Text
from goose_like.sessions.output_limit import limit_text
from goose_like.sessions.session import Session
from goose_like.terminal.escape import escape_controls
from goose_like.workspace.workspace import Workspace

from .shell_escape import run_shell_escape

_REVIEW_BYTES = 60_000
_DRAFT_BYTES = 24_000
_SUBJECTS = 12

_REVIEW = """
The diff follows; read the code around it where that matters.

Look for what breaks: wrong results, lost data, security holes, races, errors that nobody handles, callers that were not
adapted, tests that are missing or test nothing. Do not comment on style, and do not repeat what the change does. Check
each finding in the code before you name it; leave out what you cannot back.

Answer with a list, the most serious first. Each finding begins with `path/to/file:line`, then severity (high, medium or
low), then what goes wrong with which input, and how to mend it, in at most three sentences. Without findings, say so in
one line, and name what you could not check.

Change nothing: in this turn you can only read.
"""

_DRAFT = """Write the message of a git commit with this diff.

First line: imperative, at most 72 characters, in the style of the earlier subjects below. If the reason is not plain
from the first line, add an empty line and then why, in at most four lines of at most 72 characters. Answer with the
message alone, without quotes or code fences.

Earlier subjects:
{subjects}

The diff:
{diff}"""


@command(usage="[REF | A..B]", in_run=True)
async def review(context: SlashContext, words: str) -> TurnRequest:
    """Review the working tree, a commit, or one branch against another. Nothing is changed."""
    workspace = context.exchange.workspace
    await _require_repository(workspace)
    subject, diff = await _find_changes(workspace, words)
    if not diff.strip():
        raise UsageError(f"there is nothing to review: {subject} changes nothing")
    file = context.exchange.session.outputs / f"review-{len(context.exchange.history.messages)}.diff"
    shown = limit_text(mask_text(diff), file, _REVIEW_BYTES)
    # Screens show only the first part, and an `@word` in the diff names no file.
    texts = (f"Review {subject}.", _REVIEW, f"\n{shown}")
    parts = tuple(Text(text=text) for text in texts)
    return TurnRequest(Message(role="user", parts=parts), is_read_only=True)


async def _find_changes(workspace: Workspace, words: str) -> tuple[str, str]:
    """Return the name and the diff of the changes that the words mean."""
    if not words:
        diff = await _diff_working_tree(workspace)
        new = (await _git(workspace, "ls-files", "--others", "--exclude-standard")).splitlines()
        listed = "\n".join(["New files, which git does not know yet; read them:", *new, ""]) if new else ""
        return "the uncommitted changes of the working tree", f"{listed}{diff}"
    if ".." in words:
        first, _, last = words.replace("...", "..").partition("..")
        first, last = first.strip() or "HEAD", last.strip() or "HEAD"
    elif await _is_branch(workspace, words):
        first, last = words, "HEAD"
    else:
        await _require_commit(workspace, words)
        diff = await _git(workspace, "show", "--no-color", "--no-ext-diff", "--format=medium", words, "--")
        return f"commit {words}", diff
    for name in (first, last):
        await _require_commit(workspace, name)
    diff = await _diff(workspace, f"{first}...{last}")
    return f"the changes of {last} since it left {first}", diff


@command(usage="[MESSAGE]")
async def commit(context: SlashContext, words: str) -> None:
    """Commit with a drafted message that you confirm or edit, or with MESSAGE. Your own git runs hooks and signs."""
    workspace = context.exchange.workspace
    await _require_repository(workspace)
    add, diff = "", await _diff(workspace, "--cached")
    if not diff.strip():
        changed = (await _git(workspace, "status", "--short")).rstrip("\n")
        if not changed:
            raise UsageError("there is nothing to commit")
        context.show(escape_controls(changed))
        typed = await context.ask("  nothing is staged; commit all of this? [y]es  [N]o: ")
        if typed.strip().lower() not in ("y", "yes"):
            context.show("nothing was committed; stage files with !git add FILE")
            return
        add = "git add --all && "
        diff = f"{changed}\n{await _diff_working_tree(workspace)}"
    message = words or await _draft_message(context, diff)
    if not words:
        context.show(StyledText(escape_controls(message), "bold"))
        typed = (await context.ask("  commit with this message? [y]es  [e]dit  [N]o: ")).strip().lower()
        if typed in ("e", "edit"):
            context.set_input(f"/commit {message}")
            return
        if typed not in ("y", "yes"):
            context.show("nothing was committed")
            return
    await run_shell_escape(context, f"{add}git commit -m {shlex.quote(message)}")


@command(usage="[NAME]")
async def worktree(context: SlashContext, words: str) -> None:
    """Continue in a new session and a new git worktree, on the new branch worktree-NAME from HEAD."""
    left, session = context.exchange.session, Session.create()
    with close_on_error(session):
        folder, notes = await asyncio.to_thread(create_worktree, words or session.name, context.exchange.workspace.root)
    back = [f"back to this session: /resume {left.name}"] if left.history.messages else []
    for note in (*notes, *back):
        context.show(escape_controls(note))
    context.switch_session(session=session, folder=folder)


async def _draft_message(context: SlashContext, diff: str) -> str:
    exchange = context.exchange
    subjects = ""
    if await _is_commit(exchange.workspace, "HEAD"):
        subjects = await _git(exchange.workspace, "log", f"-{_SUBJECTS}", "--format=%s")
    context.show(f"{exchange.models.accelerator.label} drafts the message")
    file = exchange.session.outputs / f"commit-{len(exchange.history.messages)}.diff"
    shown = limit_text(mask_text(diff), file, _DRAFT_BYTES)
    answer = await exchange.view.accelerator.ask(_DRAFT.format(subjects=subjects, diff=shown), purpose="commit message")
    lines = [line.rstrip() for line in answer.strip().splitlines() if not line.startswith("```")]
    if not (message := "\n".join(lines).strip().strip('"')):
        raise GooseLikeError("the model wrote no message; give one: /commit MESSAGE")
    return message


async def _diff(workspace: Workspace, *arguments: str) -> str:
    return await _git(workspace, "diff", "--no-color", "--no-ext-diff", *arguments, "--")


async def _diff_working_tree(workspace: Workspace) -> str:
    """Return the difference to the last commit, or to nothing if there is none."""
    has_commit = await _is_commit(workspace, "HEAD")
    base = "HEAD" if has_commit else (await _git(workspace, "hash-object", "-t", "tree", "/dev/null")).strip()
    return await _diff(workspace, base)


async def _require_repository(workspace: Workspace) -> None:
    if not await _succeeds(workspace, "rev-parse", "--is-inside-work-tree"):
        raise UsageError("this folder is in no git repository")


async def _is_commit(workspace: Workspace, name: str) -> bool:
    return await _succeeds(workspace, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")


async def _is_branch(workspace: Workspace, name: str) -> bool:
    places = [f"refs/heads/{name}", f"refs/remotes/{name}"]
    return any([await _succeeds(workspace, "show-ref", "--verify", "--quiet", place) for place in places])


async def _require_commit(workspace: Workspace, name: str) -> None:
    if name.startswith("-") or not await _is_commit(workspace, name):
        raise UsageError(f"git knows no commit or branch {name!r}; see git log and git branch -a")


async def _succeeds(workspace: Workspace, *arguments: str) -> bool:
    return (await _run_git(workspace, *arguments))[0] == 0


async def _git(workspace: Workspace, *arguments: str) -> str:
    code, output = await _run_git(workspace, *arguments)
    if code:
        lines = output.decode(errors="replace").strip().splitlines() or [f"exit code {code}"]
        raise GooseLikeError(f"git {arguments[0]}: {lines[0]}")
    return output.decode(errors="replace")


async def _run_git(workspace: Workspace, *arguments: str) -> tuple[int, bytes]:
    """Run git in the sandbox. It reads only, so nobody is asked."""
    options = ("--no-optional-locks", "--no-pager", "-c", "core.fsmonitor=false", "-c", "core.quotePath=false")
    return await workspace.run_internal(["git", *options, "-C", str(workspace.root), *arguments])
