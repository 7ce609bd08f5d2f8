"""Export of a session as Markdown."""

import re
from collections.abc import Iterator

from markdown_it import MarkdownIt

from goose_like.terminal.escape import escape_controls

from .transcript import Entry, Transcript

_SCRIPT_LINK = re.compile(r"(script|data)\\?:(?=\S)", re.IGNORECASE)
_ENTITY = re.compile(r"&(?=#|\w+;)")
_BACKTICKS = re.compile(r"\\.|(`+)", re.DOTALL)


def export_markdown(transcript: Transcript) -> str:
    """Render the document. Nothing in it is HTML, a script or an image, so a viewer loads and runs nothing.

    Tool calls and long texts are fenced blocks, so their content is not read as Markdown.
    """
    blocks = [render_head(transcript)]
    for entry in transcript.iterate_entries():
        blocks += render_entry(entry)
    return escape_controls("\n\n".join(blocks)) + "\n"


def render_head(transcript: Transcript) -> str:
    """Render the title and the facts of a session."""
    facts = "\n".join(f"- {_escape(fact)}" for fact in transcript.list_facts())
    return f"# {_escape(transcript.info.name)}\n\n{facts}"


def render_entry(entry: Entry) -> Iterator[str]:
    """Yield the blocks of an entry."""
    match entry.kind:
        case "person":
            yield f"## {entry.title.capitalize()}"
            lines = [entry.text, *(f"[image {image.source}]" for image in entry.images)]
            yield _disarm("\n".join(f"> {line}".rstrip() for line in "\n".join(lines).split("\n")))
        case "model":
            yield _disarm(entry.text.strip())
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


def _disarm(text: str) -> str:
    """Turn HTML, images and script links of Markdown into text, except in code. Close a fence that was left open."""
    lines = escape_controls(text).split("\n")
    ready: dict[int, str] = {}  # by the number of the line
    tokens = MarkdownIt("commonmark", {"html": False}).parse("\n".join(lines))
    for token in tokens:
        if token.map and token.type in ("inline", "fence", "code_block"):
            block = "\n".join(lines[slice(*token.map)])
            if token.type == "inline":
                block = _disarm_inline(block)
            elif "|" in token.info:  # some viewers read a table there, and no fence
                block = block.replace(token.info, "", 1)
            ready.update(zip(range(*token.map), block.split("\n"), strict=True))
    safe = [ready.get(number, _disarm_plain(line)) for number, line in enumerate(lines)]
    if tokens and (last := tokens[-1]).map and last.type == "fence":
        body = lines[last.map[0] + 1 : last.map[1]]
        if not (body and re.fullmatch(f" {{0,3}}{last.markup}{last.markup[0]}*[ \t]*", body[-1])):
            safe.append(last.markup)
    return "\n".join(safe)


def _disarm_inline(text: str) -> str:
    parts: list[str] = []
    start = position = 0
    while "|" not in text and (found := _BACKTICKS.search(text, position)):  # a cell of a table ends code
        position = found.end()
        end = re.compile(f"(?<!`){found[1]}(?!`)").search(text, position) if found[1] else None
        if end:
            position = end.end()
            code = text[found.start() : position]
            if "\n" not in code:  # else a line of it may start a block of HTML
                parts += [_disarm_plain(text[start : found.start()]), code]
                start = position
    return "".join([*parts, _disarm_plain(text[start:])])


def _disarm_plain(text: str) -> str:
    text = _ENTITY.sub("&amp;", text).replace("<", "&lt;").replace("![", "!\\[")
    return _SCRIPT_LINK.sub(r"\1%3A", text)
