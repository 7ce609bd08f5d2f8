"""The status line: mode, model, context, cost, tokens, branch, profile."""

from collections.abc import Iterator

from rich.cells import cell_len

from goose_like.agent.exchange import Exchange
from goose_like.agent.slash_context import SlashContext
from goose_like.config.profile import ApprovalMode, SandboxMode
from goose_like.providers.prices import compute_cost_usd, find_context_window
from goose_like.terminal.escape import escape_controls
from goose_like.workspace.permissions.policy import effective_sandbox


def format_status(context: SlashContext, width: int) -> str:
    """Return a line about an exchange with ANSI colours, without the last parts if it is too long.

    The approval and the sandbox mode come first. They are there at any width. A mode that a key has chosen counts as
    soon as no turn runs.
    """
    approval, sandbox = _get_modes(context)
    mode = f"{approval} · {sandbox}"
    rest = ""
    wanted = context.wanted_approval
    if wanted and wanted != approval:
        rest = f" · then {wanted}"
    for fact in _iterate_facts(context):
        longer = f"{rest} · {fact}"
        if cell_len(mode + longer) > width - 1:
            break
        rest = longer
    colour = _choose_colour(approval, sandbox)
    return f"\x1b[{colour}m{mode}\x1b[0;2m{escape_controls(rest)}\x1b[0m"


def _get_modes(context: SlashContext) -> tuple[ApprovalMode, SandboxMode]:
    """Return the approval and the sandbox mode."""
    wanted = context.wanted_approval
    if wanted and not context.is_in_turn():
        return wanted, effective_sandbox(context.profile.sandbox, wanted)
    workspace = context.exchange.workspace
    return workspace.approval, workspace.mode


def _choose_colour(approval: ApprovalMode, sandbox: SandboxMode) -> str:
    """Return the parameters of an ANSI colour: one for dangerous modes, and one for the mode `plan`."""
    if approval == "yolo" or sandbox == "full":
        return "1;33"
    if approval == "plan":
        return "1;36"
    return "22"


def _iterate_facts(context: SlashContext) -> Iterator[str]:
    """Yield the other parts of the line, the most important first."""
    exchange = context.exchange
    usage = exchange.history.usage.total
    task_count = len(exchange.hooks.list_running_tasks())
    if task_count:
        yield f"{task_count} running (/tasks)"
    yield _describe_model(context)
    yield f"context {_describe_window(exchange)}"
    cost_usd = compute_cost_usd(exchange.history.usage.by_model)
    if cost_usd is None:
        yield "cost unknown"
    elif cost_usd:
        yield f"${cost_usd:.4f}"
    yield f"{_shorten(usage.total_tokens)} tokens"
    if usage.cache_read_tokens:
        share = usage.cache_read_tokens / usage.input_tokens
        yield f"{share:.0%} cached"
    if exchange.workspace.branch:
        yield exchange.workspace.branch
    if context.profile.name:
        yield context.profile.name


def _describe_model(context: SlashContext) -> str:
    label = context.exchange.models.processor.label
    processor = context.profile.processor
    if processor and processor.effort:
        return f"{label} {processor.effort}"
    return label


def _describe_window(exchange: Exchange) -> str:
    """Return the share of the context window that is used, or the number of tokens if nobody knows its size."""
    tokens = exchange.history.context.tokens
    model = exchange.models.processor
    window = model.window
    # Without usage, the cost reads no table of prices, and neither does this: it takes time at the start.
    if not window and exchange.history.usage.total.total_tokens:
        window = find_context_window(model.label)
    if not window:
        return _shorten(tokens)
    share = tokens / window
    return f"{share:.0%} of {_shorten(window)}"


def _shorten(count: int) -> str:
    """Return a count in thousands or millions, such as 1.5k, with at most one decimal."""
    if count < 1000:
        return str(count)
    number = count / 1000
    unit = "k"
    if count >= 999_950:  # as thousands, it would be rounded to 1000k
        number = count / 1_000_000
        unit = "M"
    return f"{number:.1f}".removesuffix(".0") + unit
