"""Export of a session as Markdown."""

import re
from collections.abc import Iterator

from .transcript import Entry, Transcript, escape_controls, format_time


def export_markdown(transcript: Transcript) -> str:
    """Render the document. Tool calls and long texts are fenced blocks, so their content is not read as Markdown."""
    info, usage = transcript.info, transcript.usage
    facts = [f"- folder: `{info.cwd}`", f"- last used: {format_time(info.changed_at)}"]
    facts += [
        f"- {model}: {spent.input_tokens:,} tokens in, {spent.output_tokens:,} out" for model, spent in usage.items()
    ]
    blocks = [f"# {info.name}", "\n".join(facts)]
    for entry in transcript.iterate_entries():
        blocks += _render_entry(entry)
    return escape_controls("\n\n".join(blocks)) + "\n"


def _render_entry(entry: Entry) -> Iterator[str]:
    match entry.kind:
        case "person":
            yield f"## {entry.title.capitalize()}"
            lines = [entry.text, *(f"[image {image.source}]" for image in entry.images)]
            yield "\n".join(f"> {line}".rstrip() for line in "\n".join(lines).split("\n"))
        case "model":
            yield _close_fence(entry.text.strip())
        case "call":
            yield f"**{_escape(entry.title)}**"
            if entry.text.strip():
                yield _fence(entry.text)
            if entry.result:
                yield "failed:" if entry.result.is_error else "result:"
                yield _fence(entry.result.output)
        case "diff":
            yield _fence(entry.text, "diff")
        case "thinking" | "folded":
            yield f"*{entry.title}:*"
            yield _fence(entry.text)
        case "plan":
            yield "\n".join(f"- {_escape(line)}" for line in entry.text.split("\n"))
        case "note" | "end":
            yield _fence(entry.text) if "\n" in entry.text else f"*{_escape(entry.text)}*"


def _fence(text: str, language: str = "") -> str:
    """Fence a text, with a longer fence than any inside the text."""
    longest = max((len(found) for found in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.rstrip(chr(10))}\n{fence}"


def _escape(text: str) -> str:
    return re.sub(r"([\\`*_\[\]<>&])", r"\\\1", text)


def _close_fence(text: str) -> str:
    """Close a fence that a truncated answer left open; otherwise the fence would include all later text."""
    fence = ""
    for line in text.split("\n"):
        found = re.match(r" {0,3}(`{3,}|~{3,})(.*)", line)
        if not found:
            continue
        if not fence:
            fence = found[1]
        elif found[1].startswith(fence) and not found[2].strip():
            fence = ""
    return f"{text}\n{fence}" if fence else text
