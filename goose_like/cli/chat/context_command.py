"""The slash command `/context`: what fills the window of the model."""

from itertools import cycle

from rich.text import Text

from goose_like.agent.exchange import Exchange
from goose_like.agent.slash_command import command
from goose_like.agent.slash_context import SlashContext
from goose_like.core.context import estimate_tokens
from goose_like.providers.prices import find_context_window

from .slash_commands import show_rows

_BAR_CELLS = 60
_CHARACTERS_PER_TOKEN = 4
_COLOURS = ("cyan", "blue", "magenta", "green", "yellow", "red", "bright_cyan", "bright_blue", "bright_magenta")
_MESSAGE_KINDS = {
    "user": "your messages",
    "assistant": "answers and calls",
    "tool": "tool results",
    "system": "reminders",
}


@command(anytime=True)
def draw_context(context: SlashContext, words: str) -> None:
    """Draw what fills the model's context window."""
    model = context.exchange.models.processor
    window = model.window or find_context_window(model.label)
    counts = _estimate_context(context.exchange)
    total = sum(counts.values())
    whole = window or max(total, 1)
    context.show(_draw_bar(counts, whole))
    rows: list[tuple[str | Text, ...]] = []
    for (kind, tokens), colour in zip(counts.items(), cycle(_COLOURS), strict=False):
        rows.append(_make_row(Text("█", colour), kind, tokens, whole))
    if window:
        free = max(window - total, 0)
        rows.append(_make_row(Text("░", "dim"), "free", free, whole))
    show_rows(context, rows)
    note = "the size of the window is unknown"
    if window:
        note = f"the window has {window:,}"
    context.show(f"about {total:,} tokens; {note}")


def _make_row(cell: Text, kind: str, tokens: int, whole: int) -> tuple[str | Text, ...]:
    count = Text(f"{tokens:,}", justify="right")
    share = Text(f"{tokens / whole:.1%}", justify="right")
    return cell, kind, count, share


def _draw_bar(counts: dict[str, int], whole: int) -> Text:
    """Draw one bar for the window. Each kind that has text has at least one cell."""
    bar = Text()
    for tokens, colour in zip(counts.values(), cycle(_COLOURS), strict=False):
        wanted = max(round(tokens / whole * _BAR_CELLS), min(tokens, 1))
        cells = min(wanted, _BAR_CELLS - len(bar))
        bar.append("█" * cells, colour)
    bar.append("░" * (_BAR_CELLS - len(bar)), "dim")
    return bar


def _estimate_context(exchange: Exchange) -> dict[str, int]:
    """Estimate the tokens of the next request by the kind of text."""
    sent = exchange.history.context
    system = exchange.system
    tools = [tool.spec for tool in exchange.tools.values()]
    if sent.prompt:
        # Each request begins with the recorded prompt, whatever holds now.
        system = sent.prompt.system
        tools = list(sent.prompt.tools)
    tool_characters = 0
    for tool in tools:
        if tool.deferred_group:  # the model gets it when it looks for it
            continue
        tool_characters += len(f"{tool.schema}{tool.description}")
    counts = {
        "system prompt": _count_tokens(system),
        "tools": tool_characters // _CHARACTERS_PER_TOKEN,
    }
    for toolkit in exchange.hooks.toolkits.values():
        for kind, text in toolkit.prompt_parts().items():
            if text and text in system:
                tokens = _count_tokens(text)
                counts["system prompt"] -= tokens
                counts[kind] = counts.get(kind, 0) + tokens
    for message in sent.messages:
        kind = "summary" if message is sent.summary else _MESSAGE_KINDS[message.role]
        counts[kind] = counts.get(kind, 0) + estimate_tokens(message)
    return counts


def _count_tokens(text: str) -> int:
    return len(text.encode()) // _CHARACTERS_PER_TOKEN
