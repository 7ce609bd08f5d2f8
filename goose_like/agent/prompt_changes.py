"""Changes of the prompt within a session: a message tells the model, and the recorded prompt stays as it is."""

import json
from collections.abc import Iterable, Iterator, Mapping

from goose_like.core.context import KnownPrompt
from goose_like.core.events import PromptChanged
from goose_like.core.message import ToolSpec

_SHOWN_CHARACTERS = 100


def find_prompt_change(
    known: KnownPrompt, system: str, tools: Mapping[str, ToolSpec], effort: str | None
) -> PromptChanged | None:
    """Return the event about everything that should be different from what the model knows, or None.

    `effort` is None for a model whose effort is not part of the conversation.
    """
    new_tools: list[ToolSpec] = []
    changed_tools: list[ToolSpec] = []
    for name, tool in tools.items():
        if name not in known.tools:
            new_tools.append(tool)
        elif known.tools[name] != tool:
            changed_tools.append(tool)
    unavailable = {name for name in known.tools if name not in tools}
    new_effort = None if effort == known.effort else effort
    is_same_system = system == known.system and unavailable == known.unavailable
    if is_same_system and not new_tools and not changed_tools and new_effort is None:
        return None
    lines = [
        *_describe_system(known.system, system),
        *map(_describe_tool, changed_tools),
        *_describe_availability(known.unavailable, unavailable, tools),
    ]
    return PromptChanged(
        text="\n\n".join(lines),
        system=system,
        tools=tuple(new_tools),
        changed_tools=tuple(changed_tools),
        unavailable=tuple(sorted(unavailable)),
        effort=new_effort,
    )


def _describe_system(before: str, after: str) -> Iterator[str]:
    """Describe which paragraphs of the instructions are gone and which are new."""
    old_paragraphs = before.split("\n\n")
    new_paragraphs = after.split("\n\n")
    gone = [paragraph for paragraph in old_paragraphs if paragraph not in new_paragraphs]
    added = [paragraph for paragraph in new_paragraphs if paragraph not in old_paragraphs]
    if gone:
        lines = "\n".join(f"- {_clip(paragraph)}" for paragraph in gone)
        yield f"Your instructions have changed. The parts that begin like this no longer hold:\n{lines}"
    if added:
        yield "These instructions hold from now on:"
        yield from added


def _describe_tool(tool: ToolSpec) -> str:
    schema = json.dumps(tool.schema, ensure_ascii=False)
    return f"The tool {tool.name} has changed. {tool.description}\nIts arguments: {schema}"


def _describe_availability(before: Iterable[str], now: Iterable[str], tools: Mapping[str, ToolSpec]) -> Iterator[str]:
    refused = sorted(set(now) - set(before))
    returned = set(before) - set(now)
    allowed = sorted(returned & tools.keys())
    if refused:
        names = ", ".join(refused)
        yield f"These tools cannot be used now, and a call fails: {names}."
    if allowed:
        names = ", ".join(allowed)
        yield f"These tools can be used again: {names}."


def _clip(paragraph: str) -> str:
    line = " ".join(paragraph.split()).removeprefix("- ")
    if len(line) <= _SHOWN_CHARACTERS:
        return line
    return f"{line[:_SHOWN_CHARACTERS]}..."
