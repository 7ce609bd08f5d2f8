"""The status line: mode, model, context, cost, tokens, branch, profile."""

from rich.cells import cell_len

from goose_like.agent.slash_context import SlashContext
from goose_like.providers.prices import compute_cost_usd, find_context_window
from goose_like.terminal.escape import escape_controls
from goose_like.workspace.permissions.policy import effective_sandbox


def format_status(context: SlashContext, width: int) -> str:
    """Return a line about an exchange with ANSI colours, without the last parts if it is too long.

    The approval and the sandbox mode come first. They are there at any width. A mode that a key has chosen counts as
    soon as no turn runs.
    """
    exchange, profile = context.exchange, context.profile
    history, model = exchange.history, exchange.models.processor
    tokens = history.context.tokens
    usage = history.usage.total
    cost = compute_cost_usd(history.usage.by_model)
    # With usage, the cost has read the price table already.
    window = model.window or (find_context_window(model.label) if usage.total_tokens else None)
    used = f"{tokens / window:.0%} of {_shorten(window)}" if window else _shorten(tokens)
    effort = profile.processor.effort if profile.processor else None
    task_count = len(exchange.hooks.list_running_tasks())
    parts = (
        f"{task_count} running (/tasks)" if task_count else "",
        f"{model.label} {effort}" if effort else model.label,
        f"context {used}",
        "cost unknown" if cost is None else f"${cost:.4f}" if cost else "",
        f"{_shorten(usage.total_tokens)} tokens",
        f"{usage.cache_read_tokens / usage.input_tokens:.0%} cached" if usage.cache_read_tokens else "",
        exchange.workspace.branch,
        profile.name,
    )
    workspace, wanted = exchange.workspace, context.wanted_approval
    approval, sandbox = workspace.approval, workspace.mode
    if wanted and not context.is_in_turn():
        approval, sandbox = wanted, effective_sandbox(profile.sandbox, wanted)
    mode, rest = f"{approval} · {sandbox}", f" · then {wanted}" if wanted and wanted != approval else ""
    for part in filter(None, parts):
        longer = f"{rest} · {part}"
        if cell_len(mode + longer) > width - 1:
            break
        rest = longer
    colour = "1;33" if approval == "yolo" or sandbox == "full" else "1;36" if approval == "plan" else "22"
    return f"\x1b[{colour}m{mode}\x1b[0;2m{escape_controls(rest)}\x1b[0m"


def _shorten(count: int) -> str:
    if count < 1000:
        return str(count)
    number, unit = (count / 1_000_000, "M") if count >= 999_950 else (count / 1000, "k")
    return f"{number:.1f}".removesuffix(".0") + unit
