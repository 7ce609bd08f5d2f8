"""Client data as the model reads it: the dashboard around the user's message, and the results of client calls."""

import base64
import json
from collections.abc import Iterator, Sequence

from pydantic import JsonValue

from goose_like.core.errors import GooseLikeError
from goose_like.core.images import create_image
from goose_like.core.message import Image, ToolResult
from goose_like.serve.turn import ImageData

from .query import AddedContext, DataItem, Outcome, Query, Widget, WidgetParam

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

_VOLATILE_METADATA = ("lastupdated",)
"""Metadata that changes while the dashboard stays the same, and would make the prompt cache useless."""


# --- the dashboard and everything else around the messages


def format_client_context(query: Query) -> str:
    """Format everything that came beside the messages, at most about 130,000 characters; empty if nothing came.

    The same dashboard gives the same text, so that providers can cache the conversation.
    """
    return "\n\n".join(_list_sections(query))


def _list_sections(query: Query) -> Iterator[str]:
    on_dashboard = [widget for widget in query.widgets if widget.tier != "extra"]
    picked_tiers = ("primary",) if query.dialect == "workspace" else ()
    picked = [widget for widget in on_dashboard if widget.tier in picked_tiers]
    others = [widget for widget in on_dashboard if widget.tier not in picked_tiers]
    extra = [widget for widget in query.widgets if widget.tier == "extra"]
    for title, widgets in (
        ("Widgets that the person picked", picked),
        ("Widgets on the dashboard", others),
        ("Widgets that are not on the dashboard, but have data too", extra),
    ):
        yield from _format_section(title, [_format_widget(widget) for widget in widgets], _MAX_WIDGETS_CHARACTERS)
    contexts = [_format_context(context) for context in query.context]
    yield from _format_section("Data that the person added", contexts, _MAX_CONTEXT_CHARACTERS)
    urls = [f"- {_format_line(url)}" for url in query.urls]
    yield from _format_section("Addresses that the person added", urls, _MAX_OTHER_CHARACTERS)
    if query.timezone:
        yield f"[The person's time zone] {_format_line(query.timezone)}"
    options = [_format_json(query.options)] * bool(query.options)
    yield from _format_section("Options that the person set", options, _MAX_OTHER_CHARACTERS)
    workspace = [_format_json(query.workspace)] * bool(query.workspace)
    yield from _format_section("The workspace", workspace, _MAX_OTHER_CHARACTERS)


def _format_section(title: str, entries: Sequence[str], max_characters: int) -> Iterator[str]:
    lines: list[str] = []
    room = max_characters
    for entry in entries:
        if lines and len(entry) > room:
            lines.append(f"[{len(entries) - len(lines)} more are left out here]")
            break
        lines.append(truncate(entry, room))
        room -= len(lines[-1])
    if lines:
        yield "\n".join([f"[{title}]", *lines])


def _format_widget(widget: Widget) -> str:
    line = f"- {_format_line(widget.uuid)} {_format_line(widget.name)}"
    if widget.description and widget.description != widget.name:
        line += f": {_format_line(widget.description)}"
    return "\n".join([line + _format_metadata(widget.metadata), *map(_format_param, widget.params)])


def _format_param(param: WidgetParam) -> str:
    value = param.default_value if param.current_value is None else param.current_value
    line = f"  - {_format_line(param.name)} ({_format_line(param.type)}{', several' if param.is_multiple else ''})"
    if value is not None:
        line += f" = {truncate(_format_json(value), _MAX_ENTRY_CHARACTERS)}"
    if param.options:
        more = f" and {len(param.options) - _MAX_OPTIONS} more" if len(param.options) > _MAX_OPTIONS else ""
        options = truncate(_format_json(list(param.options[:_MAX_OPTIONS])), _MAX_ENTRY_CHARACTERS)
        line += f", one of {options}{more}"
    elif param.has_options_endpoint:
        line += ", its options can be asked for"
    return f"{line}: {_format_line(param.description)}" if param.description else line


def _format_context(context: AddedContext) -> str:
    line = f"- {_format_line(context.name)}"
    if context.description:
        line += f": {_format_line(context.description)}"
    return "\n".join([line + _format_metadata(context.metadata), *(format_item(item) for item in context.items)])


def _format_metadata(metadata: dict[str, JsonValue]) -> str:
    stable = {key: value for key, value in metadata.items() if key.lower() not in _VOLATILE_METADATA}
    return f" {truncate(_format_json(stable), _MAX_ENTRY_CHARACTERS)}" if stable else ""


def _format_line(text: str) -> str:
    return truncate(" ".join(text.split()), _MAX_ENTRY_CHARACTERS)


def _format_json(value: JsonValue) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def truncate(text: str, max_characters: int) -> str:
    """Shorten a text to its beginning and a note about the rest."""
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
        output=NO_DATA if is_empty else truncate(output, MAX_RESULT_CHARACTERS),
        is_error=is_empty or all(outcome.is_error for outcome in outcomes),
        images=tuple(images),
    )
    return result, image_data


def format_item(item: DataItem) -> str:
    """Return the text of a data item, or a description of a file that is not text."""
    name = f"{'data' if item.kind == 'object' else item.kind} {item.filename}".rstrip()
    if item.url:
        return f"[{name} at {item.url}, not fetched]"
    if item.kind == "object":
        return item.content
    if item.kind in _TEXT_KINDS:
        title = f"[{item.filename}]\n" if item.filename else ""
        return title + (_decode_text(item.content) or item.content)
    size = len(item.content) * 3 // 4 - item.content[-2:].count("=")
    return f"[{name}, {size:,} bytes, which can't be read here]"


def _decode_text(content: str) -> str | None:
    """Decode a base64 text file; return None if the content is plain text already, which the protocol does not mark."""
    data = _decode_base64(content)
    try:
        text = data.decode() if data else ""
    except UnicodeDecodeError:
        return None
    return text if text.isprintable() or {"\n", "\t"} & set(text) else None


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
