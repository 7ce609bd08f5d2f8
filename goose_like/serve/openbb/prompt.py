"""Client data as the model reads it: the dashboard around the user's message, and the results of client calls."""

import base64
from collections.abc import Iterable, Sequence
from contextlib import suppress

from pydantic import JsonValue

from goose_like.core.errors import GooseLikeError
from goose_like.core.images import create_image
from goose_like.core.message import Image, ToolResult
from goose_like.serve.turn import ImageData

from .query import AddedContext, DataItem, Outcome, Query, Widget, WidgetParam, to_text

NO_DATA = "no data came for this call; ask for it again, or go on without it"

MAX_RESULT_CHARACTERS = 200_000
"""The most characters of one result that the model reads."""

_MAX_WIDGETS_CHARACTERS = 16_000
_MAX_CONTEXT_CHARACTERS = 60_000
_MAX_OTHER_CHARACTERS = 8_000
_MAX_ENTRY_CHARACTERS = 2_000
_MAX_OPTIONS = 20

_IMAGE_KINDS = ("png", "jpg", "jpeg")
_TEXT_KINDS = ("txt", "md", "html", "csv")


# --- the dashboard and everything else around the messages


def format_client_context(query: Query) -> str:
    """Format everything that came beside the messages, at most about 130,000 characters; empty if nothing came.

    The same dashboard gives the same text, so that providers can cache the conversation.
    """
    widgets, urls = query.widgets, (f"- {_format_line(url)}" for url in query.urls)
    skill = (f"{_format_head(each.slug, each.description, {})}\n{each.content}" for each in query.selected_skills[:1])
    catalog = (_format_head(each.slug, each.description, {}) for each in query.offered_skills)
    sections = (
        ("Widgets that the person picked", map(_format_widget, widgets.primary), _MAX_WIDGETS_CHARACTERS),
        ("Widgets on the dashboard", map(_format_widget, widgets.secondary), _MAX_WIDGETS_CHARACTERS),
        ("Widgets that could be added to the dashboard", map(_format_widget, widgets.extra), _MAX_WIDGETS_CHARACTERS),
        ("The person's instructions (a skill); follow them where they fit", skill, _MAX_CONTEXT_CHARACTERS),
        ("Skills; read one that fits with get_skill_content", catalog, _MAX_OTHER_CHARACTERS),
        ("Data that the person added", map(_format_context, query.context), _MAX_CONTEXT_CHARACTERS),
        ("Addresses that the person added", urls, _MAX_OTHER_CHARACTERS),
        ("The person's time zone", [_format_line(query.timezone)], _MAX_OTHER_CHARACTERS),
        ("Options that the person set", [to_text(query.workspace_options or None)], _MAX_OTHER_CHARACTERS),
        ("The workspace", [to_text(query.workspace_state or None)], _MAX_OTHER_CHARACTERS),
    )
    return "\n\n".join(filter(None, (_format_section(*section) for section in sections)))


def _format_section(title: str, texts: Iterable[str], max_characters: int) -> str:
    entries, lines, room = [*filter(None, texts)], list[str](), max_characters
    for entry in entries:
        if lines and len(entry) > room:
            lines.append(f"[{len(entries) - len(lines)} more are left out here]")
            break
        lines.append(_truncate(entry, room))
        room -= len(lines[-1])
    return "\n".join([f"[{title}]", *lines]) if lines else ""


def _format_widget(widget: Widget) -> str:
    description = "" if widget.description == widget.name else widget.description
    head = _format_head(f"{widget.uuid} {widget.name}", description, widget.metadata)
    return "\n".join([head, *map(_format_param, widget.params)])


def _format_context(context: AddedContext) -> str:
    head = _format_head(context.name or "context", context.description, context.metadata)
    items = (f"[picture {item.filename}]" if _decode_image(item) else format_item(item) for item in context.items)
    return "\n".join([head, *items])


def decode_context_images(query: Query) -> list[ImageData]:
    """Decode the pictures among the data that the user added; broken ones are left out."""
    decoded = (_decode_image(item) for context in query.context for item in context.items)
    images = []
    for image in filter(None, decoded):
        with suppress(GooseLikeError):
            create_image(*image)
            images.append(image)
    return images


def _format_head(name: str, description: str, metadata: dict[str, JsonValue]) -> str:
    # `lastUpdated` changes while the dashboard stays the same, and would make the prompt cache useless.
    stable = {key: value for key, value in metadata.items() if key.lower() != "lastupdated"}
    text = _truncate(to_text(stable or None), _MAX_ENTRY_CHARACTERS)
    line = f"- {_format_line(name)}: {_format_line(description)}" if description else f"- {_format_line(name)}"
    return f"{line} {text}" if text else line


def _format_param(param: WidgetParam) -> str:
    value = param.default_value if param.current_value is None else param.current_value
    line = f"  - {_format_line(param.name)} ({_format_line(param.type)}{', several' if param.is_multiple else ''})"
    if value is not None:
        line += f" = {_truncate(to_text(value), _MAX_ENTRY_CHARACTERS)}"
    if param.options:
        more = f" and {len(param.options) - _MAX_OPTIONS} more" if len(param.options) > _MAX_OPTIONS else ""
        options = _truncate(to_text(list(param.options[:_MAX_OPTIONS])), _MAX_ENTRY_CHARACTERS)
        line += f", one of {options}{more}"
    elif param.has_options_endpoint:
        line += ", its options can be asked for"
    return f"{line}: {_format_line(param.description)}" if param.description else line


def _format_line(text: str) -> str:
    return _truncate(" ".join(text.split()), _MAX_ENTRY_CHARACTERS)


def _truncate(text: str, max_characters: int) -> str:
    if len(text) <= max_characters:
        return text
    return f"{text[:max_characters]}\n[{len(text) - max_characters:,} more characters are left out here]"


# --- results of client calls


def build_tool_result(call_id: str, outcomes: Sequence[Outcome]) -> tuple[ToolResult, list[ImageData]]:
    """Build the result of a call from the client's outcomes; the images' bytes must be stored in the session."""
    image_data: list[ImageData] = []
    images: list[Image] = []
    texts: list[str] = []
    for outcome in outcomes:
        texts += [outcome.message] if outcome.message else []
        for item in outcome.items:
            if image := _decode_image(item):
                try:
                    images.append(create_image(*image))
                    image_data.append(image)
                except GooseLikeError as error:
                    texts.append(f"[{error}]")
            else:
                texts.append(format_item(item))
    output = "\n\n".join(filter(None, texts))
    is_empty = not output and not images
    result = ToolResult(
        call_id=call_id,
        output=NO_DATA if is_empty else _truncate(output, MAX_RESULT_CHARACTERS),
        is_error=is_empty or all(outcome.is_error for outcome in outcomes),
        images=tuple(images),
    )
    return result, image_data


def format_item(item: DataItem) -> str:
    """Return the text of a data item, or a description of a file that is not text."""
    is_data = item.kind in ("object", "")
    name = f"{'data' if is_data else item.kind} {item.filename}".rstrip()
    if item.document:
        problem = f", which can't be read here: {item.document.problem}" * bool(item.document.problem)
        return f"[{name}{problem}]\n{item.document.text}".rstrip()
    if item.url:
        return f"[{name} at {item.url}, not fetched]"
    if is_data:
        return item.content
    if item.kind in _TEXT_KINDS:
        title = f"[{item.filename}]\n" if item.filename else ""
        return title + _decode_text(item.content)
    size = len(item.content) * 3 // 4 - item.content[-2:].count("=")
    return f"[{name}, {size:,} bytes, which can't be read here]"


def _decode_text(content: str) -> str:
    """Decode a base64 text file. Plain text, which the protocol does not mark, stays as it is."""
    text = (_decode_base64(content) or b"").decode(errors="replace")
    is_text = (text.isprintable() or {"\n", "\t"} & set(text)) and "\ufffd" not in text
    return text if text and is_text else content


def _decode_base64(content: str) -> bytes | None:
    try:
        return base64.b64decode(content, validate=True)
    except ValueError:
        return None


def _decode_image(item: DataItem) -> ImageData | None:
    if item.kind not in _IMAGE_KINDS or item.url:
        return None
    head, _, tail = item.content.partition(",")
    data = _decode_base64(tail if head.startswith("data:") else item.content)
    return (data, item.filename or f"picture.{item.kind}") if data else None
