"""Slash commands about git: review changes, commit them with a drafted message, and work in a worktree."""

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.text import Text as StyledText

from goose_like.agent.slash_command import command
from goose_like.agent.slash_context import SlashContext
from goose_like.agent.turn_request import TurnRequest
from goose_like.core.errors import GooseLikeError, UsageError
from goose_like.core.masking import mask_text
from goose_like.core.message import Message, Text
from goose_like.core.threads import run_in_thread
from goose_like.launch.worktree import create_worktree
from goose_like.sessions.output_limit import limit_text
from goose_like.sessions.session import Session
from goose_like.terminal.escape import escape_controls
from goose_like.workspace.processes.process import MAX_OUTPUT_BYTES
from goose_like.workspace.workspace import Workspace

from .shell_escape import run_shell_escape

_REVIEW_BYTES = 60_000
_DRAFT_BYTES = 24_000
_MAX_DIFF_BYTES = 2_000_000
_MAX_STAT_LINES = 200
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
    """Review the working tree, a commit, or one branch against another. Nothing is changed.

    The reviewer does not see the conversation, which would make it believe the author.
    """
    repository = await _open_repository(context)
    subject, diff = await _find_changes(repository, words)
    if not diff.strip():
        raise UsageError(f"there is nothing to review: {subject} changes nothing")
    file = context.exchange.session.outputs / f"review-{len(context.exchange.history.messages)}.diff"
    shown = limit_text(mask_text(diff), file, _REVIEW_BYTES)
    # Screens show only the first part, and an `@word` in the diff names no file.
    texts = (f"Review {subject}.", _REVIEW, f"\n{repository.note}{shown}")
    parts = tuple(Text(text=text) for text in texts)
    return TurnRequest(Message(role="user", parts=parts), is_read_only=True, is_fresh=True)


async def _find_changes(repository: "_Repository", words: str) -> tuple[str, str]:
    """Return the name and the diff of the changes that the words mean."""
    if not words:
        diff = await repository.diff_working_tree()
        new = (await repository.run("ls-files", "--others", "--exclude-standard", *repository.visible)).splitlines()
        listed = "\n".join(["New files, which git does not know yet; read them:", *new, ""]) if new else ""
        return "the uncommitted changes of the working tree", f"{listed}{diff}"
    if ".." in words:
        first, _, last = words.replace("...", "..").partition("..")
        first, last = first.strip() or "HEAD", last.strip() or "HEAD"
    elif await repository.is_branch(words):
        first, last = words, "HEAD"
    else:
        await repository.require_commit(words)
        return f"commit {words}", await repository.diff("show", "--format=medium", words)
    for name in (first, last):
        await repository.require_commit(name)
    return f"the changes of {last} since it left {first}", await repository.diff("diff", f"{first}...{last}")


@command(usage="[--all] [MESSAGE]")
async def commit(context: SlashContext, words: str) -> None:
    """Commit with a drafted message that you confirm or edit, or with MESSAGE. Your own git runs hooks and signs."""
    repository = await _open_repository(context)
    first, _, rest = words.partition(" ")
    takes_all = first == "--all"
    words = rest if takes_all else words
    add, diff = "", await repository.diff("diff", "--cached")
    if takes_all or not diff.strip():
        changed = (await repository.run("status", "--short", *repository.visible)).rstrip("\n")
        if not changed:
            raise UsageError("there is nothing to commit")
        if not takes_all:
            context.show(escape_controls(changed))
            typed = await context.ask("  nothing is staged; commit all of this? [y]es  [N]o: ")
            if typed.strip().lower() not in ("y", "yes"):
                context.show("nothing was committed; stage files with !git add FILE")
                return
        add = f"{shlex.join(('git', 'add', '--all', *repository.visible))} && "
        diff = f"{changed}\n{await repository.diff_working_tree()}"
    message = words or await _draft_message(context, repository, diff)
    if not words:
        context.show(StyledText(escape_controls(message), "bold"))
        typed = (await context.ask("  commit with this message? [y]es  [e]dit  [N]o: ")).strip().lower()
        if typed in ("e", "edit"):
            context.set_input(f"/commit {'--all ' if add else ''}{message}")
            return
        if typed not in ("y", "yes"):
            context.show("nothing was committed")
            return
    await run_shell_escape(context, f"{add}git commit -m {shlex.quote(message)}")


@command(usage="[NAME]")
async def worktree(context: SlashContext, words: str) -> None:
    """Continue in a new session and a new git worktree, on the new branch worktree-NAME from HEAD."""
    left, session = context.exchange.session, Session.create()
    try:
        folder, notes = await run_in_thread(create_worktree, words or session.name, context.exchange.workspace.root)
    except BaseException:
        session.close()
        raise
    back = [f"back to this session: /resume {left.name}"] if left.history.messages else []
    for note in (*notes, *back):
        context.show(escape_controls(note))
    context.switch_session(session=session, folder=folder)


async def _draft_message(context: SlashContext, repository: "_Repository", diff: str) -> str:
    exchange = context.exchange
    subjects = ""
    if await repository.is_commit("HEAD"):
        subjects = await repository.run("log", f"-{_SUBJECTS}", "--format=%s")
    context.show(f"{exchange.models.accelerator.label} drafts the message")
    file = exchange.session.outputs / f"commit-{len(exchange.history.messages)}.diff"
    shown = limit_text(mask_text(diff), file, _DRAFT_BYTES)
    answer = await exchange.view.accelerator.ask(_DRAFT.format(subjects=subjects, diff=shown), purpose="commit message")
    lines = [line.rstrip() for line in answer.strip().splitlines() if not line.startswith("```")]
    message = "\n".join(lines).strip()
    if message.startswith('"') and message.endswith('"'):
        message = message[1:-1].strip()
    if not message:
        raise GooseLikeError("the model wrote no message; give one: /commit MESSAGE")
    return message


async def _open_repository(context: SlashContext) -> "_Repository":
    """Find the repository around the workspace, and say which of its files stay hidden."""
    workspace = context.exchange.workspace
    code, output = await _run_git(workspace, workspace.root, "rev-parse", "--show-toplevel")
    if code:
        raise UsageError("this folder is in no git repository")
    root = Path(os.fsdecode(output.removesuffix(b"\n")))
    places = await run_in_thread(workspace.find_ignored_paths)
    hidden = sorted(str(place.relative_to(root)) for place in places if place.is_relative_to(root))
    notes = [f"Paths start at {root}."] if root != workspace.root else []
    visible = ["--", ":/", *(f":(exclude,top,literal){name}" for name in hidden)] if hidden else []
    if hidden:
        literal = [f":(top,literal){name}" for name in hidden]
        tracked = (await _Repository(workspace, root).run("ls-files", "-z", "--", *literal)).split("\0")
        named = [name for name in hidden if any(file == name or file.startswith(f"{name}/") for file in tracked)]
        if named:
            notes.append(f"Left out, since .gooseignore or the profile hides them: {', '.join(named)}.")
            context.show(escape_controls(notes[-1]))
    return _Repository(workspace, root, visible, "".join(f"{note}\n" for note in notes))


@dataclass(frozen=True, slots=True)
class _Repository:
    """A git repository, with all paths from its `root`. `note` says so to the model.

    `visible` are the arguments that leave out the files which are hidden from commands: git cannot read these, and
    takes them for changed.
    """

    workspace: Workspace
    root: Path
    visible: Sequence[str] = ()
    note: str = ""

    async def diff(self, command: str, *arguments: str) -> str:
        """Return the output of `git diff` or `git show`. Of a huge one, return the sizes by file and the beginning."""
        options = (command, "--no-color", "--no-ext-diff", *arguments)
        paths = self.visible or ("--",)
        diff = await self.run(*options, *paths, limit_bytes=_MAX_DIFF_BYTES)
        if len(diff.encode()) <= _MAX_DIFF_BYTES:
            return diff
        sizes = await self.run(*options, f"--stat=100,80,{_MAX_STAT_LINES}", *paths)
        return f"This is longer than {_MAX_DIFF_BYTES:,} bytes: the files, then the beginning.\n\n{sizes}\n{diff}"

    async def diff_working_tree(self) -> str:
        """Return the difference to the last commit, or to nothing if there is none."""
        has_commit = await self.is_commit("HEAD")
        base = "HEAD" if has_commit else (await self.run("hash-object", "-t", "tree", "/dev/null")).strip()
        return await self.diff("diff", base)

    async def is_commit(self, name: str) -> bool:
        """Check whether git knows a commit, branch or tag."""
        return await self._succeeds("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")

    async def is_branch(self, name: str) -> bool:
        """Check whether a name is a branch, here or of a remote."""
        places = [f"refs/heads/{name}", f"refs/remotes/{name}"]
        return any([await self._succeeds("show-ref", "--verify", "--quiet", place) for place in places])

    async def require_commit(self, name: str) -> None:
        """Raise UsageError if git knows no such commit."""
        if name.startswith("-") or not await self.is_commit(name):
            raise UsageError(f"git knows no commit or branch {name!r}; see git log and git branch -a")

    async def _succeeds(self, *arguments: str) -> bool:
        return (await _run_git(self.workspace, self.root, *arguments))[0] == 0

    async def run(self, *arguments: str, limit_bytes: int = MAX_OUTPUT_BYTES) -> str:
        """Run git, and return its output, or a part beyond `limit_bytes`. Raise GooseLikeError if git fails."""
        code, output = await _run_git(self.workspace, self.root, *arguments, limit_bytes=limit_bytes)
        if code:
            lines = output.decode(errors="replace").strip().splitlines() or [f"exit code {code}"]
            raise GooseLikeError(f"git {arguments[0]}: {lines[0]}")
        return output.decode(errors="replace")


async def _run_git(
    workspace: Workspace, folder: Path, *arguments: str, limit_bytes: int = MAX_OUTPUT_BYTES
) -> tuple[int, bytes]:
    """Run git in the sandbox. It reads only, so nobody is asked."""
    options = ("--no-optional-locks", "--no-pager", "-c", "core.fsmonitor=false", "-c", "core.quotePath=false")
    return await workspace.run_internal(["git", *options, "-C", str(folder), *arguments], limit_bytes)
