"""Export of a session as Markdown."""

import re
from collections.abc import Iterator, Sequence

from markdown_it import MarkdownIt
from markdown_it.token import Token

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
    title = _escape(transcript.info.name)
    facts = _render_list(transcript.list_facts())
    return f"# {title}\n\n{facts}"


def render_entry(entry: Entry) -> Iterator[str]:
    """Yield the blocks of an entry."""
    match entry.kind:
        case "person":
            yield f"## {entry.title.capitalize()}"
            yield _quote(entry)
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
            yield _render_list(entry.text.split("\n"))
        case "note" | "end":
            yield _render_note(entry.text)


def _quote(entry: Entry) -> str:
    text = entry.text
    for image in entry.images:
        text += f"\n[{image.kind} {image.source}]"
    lines = [f"> {line}".rstrip() for line in text.split("\n")]
    return _disarm("\n".join(lines))


def _render_list(lines: Sequence[str]) -> str:
    return "\n".join(f"- {_escape(line)}" for line in lines)


def _render_note(text: str) -> str:
    if "\n" in text:
        return _fence(text)
    return f"*{_escape(text)}*"


def _fence(text: str, language: str = "") -> str:
    """Fence a text, with a longer fence than any inside the text."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    body = text.rstrip("\n")
    return f"{fence}{language}\n{body}\n{fence}"


def _escape(text: str) -> str:
    return re.sub(r"([\\`*_\[\]<>&])", r"\\\1", text)


def _disarm(text: str) -> str:
    """Turn HTML, images and script links of Markdown into text, except in code. Close a fence that was left open."""
    lines = escape_controls(text).split("\n")
    ready: dict[int, str] = {}  # by the number of the line
    tokens = MarkdownIt("commonmark", {"html": False}).parse("\n".join(lines))
    for token in tokens:
        if not token.map or token.type not in ("inline", "fence", "code_block"):
            continue
        start, end = token.map
        block = "\n".join(lines[start:end])
        if token.type == "inline":
            block = _disarm_inline(block)
        elif "|" in token.info:  # some viewers read a table there, and no fence
            block = block.replace(token.info, "", 1)
        ready.update(enumerate(block.split("\n"), start))
    safe = []
    for number, line in enumerate(lines):
        safe.append(ready.get(number, _disarm_plain(line)))
    if tokens and _is_open_fence(tokens[-1], lines):
        safe.append(tokens[-1].markup)
    return "\n".join(safe)


def _is_open_fence(token: Token, lines: Sequence[str]) -> bool:
    """Check whether the last block of a text is a fence without its end."""
    if not token.map or token.type != "fence":
        return False
    start, end = token.map
    body = lines[start + 1 : end]
    if not body:
        return True
    closing = f" {{0,3}}{token.markup}{token.markup[0]}*[ \t]*"
    return re.fullmatch(closing, body[-1]) is None


def _disarm_inline(text: str) -> str:
    if "|" in text:  # a cell of a table ends code
        return _disarm_plain(text)
    parts: list[str] = []
    start = 0
    position = 0
    while found := _BACKTICKS.search(text, position):
        position = found.end()
        ticks = found[1]
        if not ticks:  # an escaped character
            continue
        end = re.compile(f"(?<!`){ticks}(?!`)").search(text, position)
        if end is None:
            continue
        position = end.end()
        code = text[found.start() : position]
        if "\n" in code:  # a line of it may start a block of HTML
            continue
        before = text[start : found.start()]
        parts += [_disarm_plain(before), code]
        start = position
    parts.append(_disarm_plain(text[start:]))
    return "".join(parts)


def _disarm_plain(text: str) -> str:
    text = _ENTITY.sub("&amp;", text)
    text = text.replace("<", "&lt;")
    text = text.replace("![", "!\\[")
    return _SCRIPT_LINK.sub(r"\1%3A", text)
