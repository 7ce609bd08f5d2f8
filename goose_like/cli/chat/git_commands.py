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
from goose_like.workspace.programs import GIT_OPTIONS
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
        return "the uncommitted changes of the working tree", await _find_uncommitted(repository)
    if ".." in words:
        first, _, last = words.replace("...", "..").partition("..")
        first = first.strip() or "HEAD"
        last = last.strip() or "HEAD"
    elif await repository.is_branch(words):
        first = words
        last = "HEAD"
    else:
        await repository.require_commit(words)
        return f"commit {words}", await repository.diff("show", "--format=medium", words)
    for name in (first, last):
        await repository.require_commit(name)
    return f"the changes of {last} since it left {first}", await repository.diff("diff", f"{first}...{last}")


async def _find_uncommitted(repository: "_Repository") -> str:
    """Return the diff of the working tree, below the names of new files, which a diff does not have."""
    diff = await repository.diff_working_tree()
    listed = await repository.run("ls-files", "--others", "--exclude-standard", *repository.visible)
    new = listed.splitlines()
    if not new:
        return diff
    return "\n".join(["New files, which git does not know yet; read them:", *new, diff])


@command(usage="[--all] [--receipt] [MESSAGE]")
async def commit(context: SlashContext, words: str) -> None:
    """Commit with a drafted message that you confirm or edit, or with MESSAGE. Your own git runs hooks and signs.

    With `--receipt` the message ends with the checks of the last turn and the hash of the files.
    """
    repository = await _open_repository(context)
    options, message = _read_options(words)
    takes_all = "--all" in options
    has_receipt = "--receipt" in options
    diff = await repository.diff("diff", "--cached")
    if takes_all or not diff.strip():
        changed = await repository.list_changes()
        if not takes_all and not await _confirm_all(context, changed):
            return
        takes_all = True
        diff = f"{changed}\n{await repository.diff_working_tree()}"
    receipt = ""
    if has_receipt:
        receipt = await _summarize_receipt(context, repository, takes_all=takes_all)
    if not message:
        message = await _draft_message(context, repository, diff)
        if not await _confirm_message(context, message, receipt, takes_all=takes_all):
            return
    message += receipt
    line = f"git commit -m {shlex.quote(message)}"
    if takes_all:
        add = shlex.join(["git", "add", "--all", *repository.visible])
        line = f"{add} && {line}"
    await run_shell_escape(context, line)


def _read_options(words: str) -> tuple[set[str], str]:
    """Split the words behind `/commit` into options, which stand first, and a message."""
    options: set[str] = set()
    while True:
        first, _, rest = words.partition(" ")
        if first not in ("--all", "--receipt"):
            return options, words
        options.add(first)
        words = rest


async def _summarize_receipt(context: SlashContext, repository: "_Repository", *, takes_all: bool) -> str:
    """Return the end of a message with the checks of the last turn and the hash of the files."""
    from goose_like.agent.receipt import format_summary, make_receipt  # few commits have one

    if not context.exchange.history.turns:
        raise UsageError("no turn has ended yet, so there is no receipt; leave out --receipt")
    summary = format_summary(await make_receipt(context.exchange))
    if not takes_all and await repository.has_unstaged():
        summary += "\n- this commit has only a part of the changes"
    return f"\n\n{summary}"


async def _confirm_all(context: SlashContext, changed: str) -> bool:
    """Ask whether to commit all changed files, because none is staged."""
    context.show(escape_controls(changed))
    typed = await context.ask("  nothing is staged; commit all of this? [y]es  [N]o: ")
    if typed.strip().lower() in ("y", "yes"):
        return True
    context.show("nothing was committed; stage files with !git add FILE")
    return False


async def _confirm_message(context: SlashContext, message: str, receipt: str, *, takes_all: bool) -> bool:
    """Ask whether to commit with a drafted message. A message to edit becomes a command in the input line."""
    context.show(StyledText(escape_controls(message), "bold"))
    if receipt:
        context.show(escape_controls(receipt))
    typed = await context.ask("  commit with this message? [y]es  [e]dit  [N]o: ")
    match typed.strip().lower():
        case "y" | "yes":
            return True
        case "e" | "edit":
            options = "--all " if takes_all else ""
            if receipt:
                options += "--receipt "
            context.set_input(f"/commit {options}{message}")
        case _:
            context.show("nothing was committed")
    return False


@command(usage="[NAME]")
async def worktree(context: SlashContext, words: str) -> None:
    """Continue in a new session and a new git worktree, on the new branch worktree-NAME from HEAD."""
    root = context.exchange.workspace.root
    left = context.exchange.session
    session = Session.create()
    try:
        folder, notes = await run_in_thread(create_worktree, words or session.name, root)
    except BaseException:
        session.close()
        raise
    for note in notes:
        context.show(escape_controls(note))
    if left.history.messages:
        context.show(escape_controls(f"back to this session: /resume {left.name}"))
    context.switch_session(session=session, folder=folder)


async def _draft_message(context: SlashContext, repository: "_Repository", diff: str) -> str:
    exchange = context.exchange
    subjects = ""
    if await repository.is_commit("HEAD"):
        subjects = await repository.run("log", f"-{_SUBJECTS}", "--format=%s")
    context.show(f"{exchange.models.accelerator.label} drafts the message")
    file = exchange.session.outputs / f"commit-{len(exchange.history.messages)}.diff"
    shown = limit_text(mask_text(diff), file, _DRAFT_BYTES)
    prompt = _DRAFT.format(subjects=subjects, diff=shown)
    answer = await exchange.view.accelerator.ask(prompt, purpose="commit message")
    message = _clean_message(answer)
    if not message:
        raise GooseLikeError("the model wrote no message; give one: /commit MESSAGE")
    return message


def _clean_message(answer: str) -> str:
    """Return a message without the code fences and quotes around it, and without blanks at the ends of lines."""
    lines = [line.rstrip() for line in answer.strip().splitlines() if not line.startswith("```")]
    message = "\n".join(lines).strip()
    if message.startswith('"') and message.endswith('"'):
        message = message[1:-1].strip()
    return message


async def _open_repository(context: SlashContext) -> "_Repository":
    """Find the repository around the workspace, and say which of its files stay hidden."""
    workspace = context.exchange.workspace
    code, output = await _run_git(workspace, workspace.root, "rev-parse", "--show-toplevel")
    if code:
        raise UsageError("this folder is in no git repository")
    root = Path(os.fsdecode(output.removesuffix(b"\n")))
    note = ""
    if root != workspace.root:
        note = f"Paths start at {root}.\n"
    hidden = await _list_hidden(workspace, root)
    if not hidden:
        return _Repository(workspace, root, note=note)
    tracked = await _Repository(workspace, root).list_tracked(hidden)
    if tracked:
        left_out = f"Left out, since .gooseignore or the profile hides them: {', '.join(tracked)}."
        context.show(escape_controls(left_out))
        note += f"{left_out}\n"
    excluded = [f":(exclude,top,literal){name}" for name in hidden]
    return _Repository(workspace, root, ["--", ":/", *excluded], note)


async def _list_hidden(workspace: Workspace, root: Path) -> list[str]:
    """List the paths below the root that are hidden from commands, sorted."""
    hidden = []
    for place in await run_in_thread(workspace.find_ignored_paths):
        if place.is_relative_to(root):
            hidden.append(str(place.relative_to(root)))
    return sorted(hidden)


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
        if await self.is_commit("HEAD"):
            return await self.diff("diff", "HEAD")
        empty_tree = await self.run("hash-object", "-t", "tree", "/dev/null")
        return await self.diff("diff", empty_tree.strip())

    async def list_changes(self) -> str:
        """Return the changed files with their states, one a line.

        Raises:
            UsageError: there are none.
        """
        status = await self.run("status", "--short", *self.visible)
        changed = status.rstrip("\n")
        if not changed:
            raise UsageError("there is nothing to commit")
        return changed

    async def has_unstaged(self) -> bool:
        """Return whether files have changes that are not staged, or are unknown to git."""
        status = await self.run("status", "--short", *self.visible)
        return any(line[1] != " " for line in status.splitlines())

    async def list_tracked(self, names: Sequence[str]) -> list[str]:
        """Return those files and folders that git tracks, or that hold a file that it tracks."""
        literal = [f":(top,literal){name}" for name in names]
        output = await self.run("ls-files", "-z", "--", *literal)
        files = output.split("\0")
        tracked = []
        for name in names:
            start = f"{name}/"
            if any(f"{file}/".startswith(start) for file in files):
                tracked.append(name)
        return tracked

    async def is_commit(self, name: str) -> bool:
        """Check whether git knows a commit, branch or tag."""
        return await self._succeeds("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")

    async def is_branch(self, name: str) -> bool:
        """Check whether a name is a branch, here or of a remote."""
        for place in (f"refs/heads/{name}", f"refs/remotes/{name}"):
            if await self._succeeds("show-ref", "--verify", "--quiet", place):
                return True
        return False

    async def require_commit(self, name: str) -> None:
        """Raise UsageError if git knows no such commit."""
        if name.startswith("-") or not await self.is_commit(name):
            raise UsageError(f"git knows no commit or branch {name!r}; see git log and git branch -a")

    async def _succeeds(self, *arguments: str) -> bool:
        code, _ = await _run_git(self.workspace, self.root, *arguments)
        return code == 0

    async def run(self, *arguments: str, limit_bytes: int = MAX_OUTPUT_BYTES) -> str:
        """Run git, and return its output, or a part beyond `limit_bytes`. Raise GooseLikeError if git fails."""
        code, output = await _run_git(self.workspace, self.root, *arguments, limit_bytes=limit_bytes)
        text = output.decode(errors="replace")
        if code:
            lines = text.strip().splitlines() or [f"exit code {code}"]
            raise GooseLikeError(f"git {arguments[0]}: {lines[0]}")
        return text


async def _run_git(
    workspace: Workspace, folder: Path, *arguments: str, limit_bytes: int = MAX_OUTPUT_BYTES
) -> tuple[int, bytes]:
    """Run git in the sandbox. It reads only, so nobody is asked."""
    options = ("--no-optional-locks", "--no-pager", *GIT_OPTIONS, "-c", "core.quotePath=false")
    return await workspace.run_internal(["git", *options, "-C", str(folder), *arguments], limit_bytes)
