"""A session as Markdown."""

import re
from collections.abc import Iterator

from .transcript import Entry, Transcript, shown, when


def markdown(transcript: Transcript) -> str:
    """The document: calls and what is long as fenced blocks, so that nothing in them is Markdown."""
    listed, usage = transcript.listed, transcript.usage
    facts = [f"- folder: `{listed.cwd}`", f"- last used: {when(listed.changed)}"]
    facts += [
        f"- {model}: {spent.input_tokens:,} tokens in, {spent.output_tokens:,} out" for model, spent in usage.items()
    ]
    blocks = [f"# {listed.name}", "\n".join(facts)]
    for entry in transcript.entries():
        blocks += _blocks(entry)
    return shown("\n\n".join(blocks)) + "\n"


def _blocks(entry: Entry) -> Iterator[str]:
    match entry.kind:
        case "person":
            yield f"## {entry.title.capitalize()}"
            said = [entry.text, *(f"[image {image.source}]" for image in entry.images)]
            yield "\n".join(f"> {line}".rstrip() for line in "\n".join(said).split("\n"))
        case "model":
            yield _closed(entry.text.strip())
        case "call":
            yield f"**{_plain(entry.title)}**"
            if entry.text.strip():
                yield _fenced(entry.text)
            if entry.result:
                yield "failed:" if entry.result.is_error else "gave:"
                yield _fenced(entry.result.output)
        case "diff":
            yield _fenced(entry.text, "diff")
        case "thinking" | "folded":
            yield f"*{entry.title}:*"
            yield _fenced(entry.text)
        case "plan":
            yield "\n".join(f"- {_plain(line)}" for line in entry.text.split("\n"))
        case "note" | "end":
            yield _fenced(entry.text) if "\n" in entry.text else f"*{_plain(entry.text)}*"


def _fenced(text: str, language: str = "") -> str:
    """A block that ends where the text does, whatever fences are in it."""
    longest = max((len(found) for found in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.rstrip(chr(10))}\n{fence}"


def _plain(text: str) -> str:
    return re.sub(r"([\\`*_\[\]<>&])", r"\\\1", text)


def _closed(text: str) -> str:
    """The model's Markdown; a fence that it left open (it was cut off) would swallow all that follows."""
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
