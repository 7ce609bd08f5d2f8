"""The receipt of a turn: what was done, and which checks ran on the files as they are now."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from goose_like import __version__
from goose_like.core.errors import GooseLikeError
from goose_like.core.events import (
    Answered,
    CommandFinished,
    FileChanged,
    Refused,
    SavedEvent,
    TurnFinished,
    TurnStarted,
)
from goose_like.core.message import FrozenModel, Usage
from goose_like.providers.prices import compute_cost_usd
from goose_like.sessions.jsonl import read_lines
from goose_like.workspace.evidence.tree_hash import get_files_hash
from goose_like.workspace.workspace import Workspace

from .claims import Outcome, find_check, is_about_other_files
from .exchange import Exchange


class FileReceipt(FrozenModel):
    """A file that differs from its state before the turn."""

    path: str = Field(description="from the folder of the session, if the file is in it")
    diff: str = Field(description="a unified diff, or a sentence where there is none to show")


class CommandReceipt(FrozenModel):
    """A command of the model. A tree is a hash of the files, and after a colon one of git's index; empty if unknown."""

    command: str
    folder: str
    exit_code: int | None = Field(description="null: it was stopped, or still runs")
    pipe_codes: tuple[int, ...] = Field(description="the exit codes of the parts of its last pipe")
    tree_before: str
    tree_after: str


class CheckReceipt(FrozenModel):
    """A command that checks the work, such as tests or a linter."""

    command: str
    folder: str
    outcome: Outcome = Field(description="unknown: the rest of the line hides the exit code, or it was stopped")
    exit_code: int | None
    tree: str = Field(description="the tree after the check")
    is_current: bool = Field(description="the check was one of the files as they are now, in their folder")
    is_required: bool = Field(description="the profile or AGENTS.md demands it as `verify`")


class DenialReceipt(FrozenModel):
    """An action that a person, a rule, the mode or the sandbox did not allow."""

    kind: str
    subject: str
    by: str


class ModelReceipt(FrozenModel):
    """A model that worked in the turn. A cost of null is unknown."""

    model: str
    input_tokens: int
    output_tokens: int
    cost_usd: float | None


class Receipt(FrozenModel):
    """What one turn did. `goose-like run --receipt FILE.json` and `/receipt FILE.json` write it."""

    format: Literal[1] = 1
    version: str = Field(description="the version of goose-like")
    session: str
    folder: str
    task: str
    reason: str = Field(description="how the turn ended: stop, step_limit, budget, cancelled, error, handed_off")
    exit_code: int
    detail: str
    is_tree_equal: bool | None = Field(description="no file differs from before the turn; null: nobody knows")
    tree: str = Field(description="the tree as the receipt was made; empty if unknown")
    files: tuple[FileReceipt, ...]
    commands: tuple[CommandReceipt, ...]
    checks: tuple[CheckReceipt, ...]
    hosts: tuple[str, ...] = Field(description="hosts that commands, tools and the server of the model reached")
    has_open_network: bool = Field(description="commands could reach any host unseen, so `hosts` may lack some")
    denials: tuple[DenialReceipt, ...]
    models: tuple[ModelReceipt, ...]
    cost_usd: float | None = Field(description="null: the price of a model is unknown")


async def make_receipt(exchange: Exchange) -> Receipt:
    """Make the receipt of the newest turn, from the events of the session and the record of undo.

    Raises:
        GooseLikeError: the record of undo cannot be read.
    """
    history = exchange.history
    workspace = exchange.workspace
    await workspace.ledger.settle()
    events = _read_turn(exchange)
    has_changes = await workspace.ledger.has_changes()
    files = await _list_files(exchange, events, has_changes=has_changes)
    tree = await workspace.ledger.look_again()
    commands = [event for event in events if isinstance(event, CommandFinished)]
    usage = history.usage.turn_by_model
    end = history.last_turn or TurnFinished(reason="cancelled", exit_code=1)
    is_tree_equal: bool | None = not files and not has_changes
    if not files and exchange.undo is None and commands:
        is_tree_equal = None
    return Receipt(
        version=__version__,
        session=exchange.session.name,
        folder=str(workspace.root),
        task=_find_task(events),
        reason=end.reason,
        exit_code=end.exit_code,
        detail=end.detail,
        is_tree_equal=is_tree_equal,
        tree=tree,
        files=tuple(files),
        commands=tuple(map(_describe_command, commands)),
        checks=tuple(_list_checks(commands, tree, workspace, files)),
        hosts=tuple(sorted(workspace.hosts.reached)),
        has_open_network=workspace.has_network,
        denials=tuple(_list_denials(events)),
        models=tuple(_describe_model(model, used) for model, used in usage.items() if used.total_tokens),
        cost_usd=compute_cost_usd(usage),
    )


def _read_turn(exchange: Exchange) -> Sequence[SavedEvent]:
    """Read the events of the newest turn."""
    file = exchange.session.file
    events: list[SavedEvent] = []
    for _, event in read_lines(file.read_bytes(), file, []):
        if isinstance(event, TurnStarted):
            events.clear()
        events.append(event)
    return events


def _find_task(events: Sequence[SavedEvent]) -> str:
    for event in events:
        if isinstance(event, TurnStarted):
            return event.message.first_text
    return ""


async def _list_files(exchange: Exchange, events: Sequence[SavedEvent], *, has_changes: bool) -> list[FileReceipt]:
    """List the files that differ from before the turn; without undo, those that tools have written."""
    root = exchange.workspace.root
    files = []
    if exchange.undo is None:
        changed = [event for event in events if isinstance(event, FileChanged)]
        return [FileReceipt(path=_shorten(Path(event.path), root), diff=event.diff) for event in changed]
    plan = await exchange.undo.plan_restore(exchange.history.turn_count)
    for change in plan.changes:
        if change.is_of_git:
            continue
        if not has_changes and exchange.undo.is_hashed(change.path):
            continue  # the turn has made and deleted it: undo kept it all the same
        done = replace(change, now=change.target, target=change.now)  # the plan describes the way back
        diff = await plan.format_diff(done)
        files.append(FileReceipt(path=_shorten(change.path, root), diff=diff))
    return files


def _shorten(path: Path, root: Path) -> str:
    if path.is_relative_to(root):
        path = path.relative_to(root)
    return str(path)


def _describe_command(event: CommandFinished) -> CommandReceipt:
    return CommandReceipt(
        command=event.command,
        folder=event.folder,
        exit_code=event.exit_code,
        pipe_codes=event.pipe_codes,
        tree_before=event.before,
        tree_after=event.after,
    )


def _list_checks(
    commands: Sequence[CommandFinished], tree: str, workspace: Workspace, files: Sequence[FileReceipt]
) -> Iterator[CheckReceipt]:
    changed = [workspace.root / file.path for file in files]
    for event in commands:
        check = find_check(event)
        if check is None:
            continue
        is_known = tree != "" and event.after != ""
        is_of_these = is_known and get_files_hash(event.after) == get_files_hash(tree)
        is_elsewhere = is_about_other_files(check, workspace.folders, changed)
        yield CheckReceipt(
            command=event.command,
            folder=event.folder,
            outcome=check.outcome,
            exit_code=event.exit_code,
            tree=event.after,
            is_current=is_of_these and check.is_last and not is_elsewhere,
            is_required=event.is_verification,
        )


def _list_denials(events: Sequence[SavedEvent]) -> Iterator[DenialReceipt]:
    for event in events:
        if isinstance(event, Refused):
            yield DenialReceipt(kind=event.kind, subject=event.subject, by=event.by)
        elif isinstance(event, Answered) and event.question.kind != "text" and not event.answer.is_allowed:
            yield DenialReceipt(kind=event.question.kind, subject=event.question.subject, by=event.answer.by)


def _describe_model(model: str, used: Usage) -> ModelReceipt:
    return ModelReceipt(
        model=model,
        input_tokens=used.input_tokens,
        output_tokens=used.output_tokens,
        cost_usd=compute_cost_usd({model: used}),
    )


def write_receipt(file: Path, receipt: Receipt) -> None:
    """Write a receipt to a file, as JSON or as Markdown, by its ending.

    Raises:
        GooseLikeError: the file cannot be written.
    """
    text = format_receipt(receipt, is_json=file.suffix == ".json")
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise GooseLikeError(f"the receipt cannot be written to {file}: {error.strerror}") from error


def format_receipt(receipt: Receipt, *, is_json: bool) -> str:
    """Format a receipt as JSON, or as Markdown for people."""
    if is_json:
        return receipt.model_dump_json(indent=2) + "\n"
    return "\n".join(_list_lines(receipt)) + "\n"


def _list_lines(receipt: Receipt) -> Iterator[str]:
    yield f"# Receipt of {receipt.session}"
    yield f"\n{receipt.task.strip()}\n"
    end = receipt.reason.replace("_", " ")
    if receipt.detail:
        end += f": {receipt.detail}"
    yield f"- end: {end} (exit code {receipt.exit_code})"
    yield f"- files: {_describe_tree(receipt)}"
    yield from map(_format_check, receipt.checks)
    if receipt.hosts or receipt.has_open_network:
        hosts = ", ".join(receipt.hosts) or "none that is known"
        note = " (commands could reach others unseen)" if receipt.has_open_network else ""
        yield f"- hosts: {hosts}{note}"
    for denial in receipt.denials:
        yield f"- denied by {denial.by}: {denial.kind}: {denial.subject}"
    for model in receipt.models:
        tokens = f"{model.input_tokens:,} tokens in, {model.output_tokens:,} out"
        yield f"- model: {model.model}: {tokens}, {_format_cost(model.cost_usd)}"
    if receipt.commands:
        yield "\n## Commands\n"
        yield "| command | folder | exit code | tree after |"
        yield "|---|---|---|---|"
    for command in receipt.commands:
        code = "none" if command.exit_code is None else str(command.exit_code)
        cells = [_format_code(command.command), _format_code(command.folder), code, command.tree_after[:12]]
        escaped = [cell.replace("|", "\\|") for cell in cells]
        yield f"| {' | '.join(escaped)} |"
    if receipt.files:
        yield "\n## Files"
    for file in receipt.files:
        fence = "`" * max(3, 1 + _count_longest_fence(file.diff))
        yield f"\n### {file.path}\n\n{fence}diff\n{file.diff}\n{fence}"


def format_summary(receipt: Receipt) -> str:
    """Format what the message of a commit says: the tree, and each check as it ran last."""
    lines = ["goose-like before this commit:", ""]
    if receipt.tree:
        lines.append(f"- tree: `{_shorten_hash(receipt.tree)}`")
    newest = {(check.command, check.folder): check for check in receipt.checks}
    lines += map(_format_check, newest.values())
    if not newest:
        lines.append("- checks: none ran in the last turn")
    return "\n".join(lines)


def _format_check(check: CheckReceipt) -> str:
    kind = "required check" if check.is_required else "check"
    return f"- {kind}: {_format_code(check.command)}: {_describe_check(check)}"


def _describe_tree(receipt: Receipt) -> str:
    if receipt.is_tree_equal is None:
        return "nobody knows whether commands changed some"
    if receipt.is_tree_equal:
        return "none changed; the tree is equal"
    text = f"{len(receipt.files)} changed"
    if receipt.tree:
        text += f"; the tree is now `{_shorten_hash(receipt.tree)}`"
    return text


def _shorten_hash(tree: str) -> str:
    return get_files_hash(tree)[:12]


def _describe_check(check: CheckReceipt) -> str:
    when = "on other files than those of now"
    if check.is_current:
        when = "on the files as they are now"
    elif not check.tree:
        when = "nobody knows on which files"
    if check.outcome == "unknown":
        return f"its result is hidden, {when}"
    return f"{check.outcome}, {when}"


def _format_cost(cost_usd: float | None) -> str:
    if cost_usd is None:
        return "cost unknown"
    return f"${cost_usd:.4f}"


def _format_code(text: str) -> str:
    """Format a text as code in one line."""
    line = " ".join(text.split())
    if "`" in line:
        return f"``{line}``"
    return f"`{line}`"


def _count_longest_fence(text: str) -> int:
    """Count the backticks of the longest fence in a diff, whose lines begin with one more character."""
    counts = [0]
    for line in text.split("\n"):
        content = line[1:]
        counts.append(len(content) - len(content.lstrip("`")))
    return max(counts)


def build_receipt_schema() -> dict[str, Any]:
    """Build the JSON schema of a receipt."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **Receipt.model_json_schema()}
