"""Client data as the model reads it: the dashboard around the user's message, and the results of client calls."""

import base64
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import chain

from pydantic import JsonValue

from goose_like.core.errors import GooseLikeError
from goose_like.core.images import create_image
from goose_like.core.message import Image, ToolResult
from goose_like.serve.turn import ImageData

from .query import AddedContext, DataItem, Outcome, Query, Skill, Widget, WidgetParam, to_text

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
    picked = map(_format_widget, query.widgets.primary)
    shown = map(_format_widget, query.widgets.secondary)
    available = map(_format_widget, query.widgets.extra)
    skill = map(_format_skill, query.selected_skills[:1])
    catalog = map(_format_skill_head, query.offered_skills)
    data = map(_format_context, query.context)
    urls = [f"- {_format_line(url)}" for url in query.urls]
    timezone = _format_line(query.timezone)
    options = to_text(query.workspace_options or None)
    state = to_text(query.workspace_state or None)
    sections = (
        _format_section("Widgets that the person picked", picked, _MAX_WIDGETS_CHARACTERS),
        _format_section("Widgets on the dashboard", shown, _MAX_WIDGETS_CHARACTERS),
        _format_section("Widgets that could be added to the dashboard", available, _MAX_WIDGETS_CHARACTERS),
        _format_section(
            "The person's instructions (a skill); follow them where they fit", skill, _MAX_CONTEXT_CHARACTERS
        ),
        _format_section("Skills; read one that fits with get_skill_content", catalog, _MAX_OTHER_CHARACTERS),
        _format_section("Data that the person added", data, _MAX_CONTEXT_CHARACTERS),
        _format_section("Addresses that the person added", urls, _MAX_OTHER_CHARACTERS),
        _format_section("The person's time zone", [timezone], _MAX_OTHER_CHARACTERS),
        _format_section("Options that the person set", [options], _MAX_OTHER_CHARACTERS),
        _format_section("The workspace", [state], _MAX_OTHER_CHARACTERS),
    )
    return "\n\n".join(filter(None, sections))


def _format_section(title: str, texts: Iterable[str], max_characters: int) -> str:
    entries = list(filter(None, texts))
    lines: list[str] = []
    room = max_characters
    for entry in entries:
        if lines and len(entry) > room:
            lines.append(f"[{len(entries) - len(lines)} more are left out here]")
            break
        line = _truncate(entry, room)
        lines.append(line)
        room -= len(line)
    if not lines:
        return ""
    return "\n".join([f"[{title}]", *lines])


def _format_widget(widget: Widget) -> str:
    description = "" if widget.description == widget.name else widget.description
    head = _format_head(f"{widget.uuid} {widget.name}", description, widget.metadata)
    return "\n".join([head, *map(_format_param, widget.params)])


def _format_context(context: AddedContext) -> str:
    head = _format_head(context.name or "context", context.description, context.metadata)
    lines = [head]
    for item in context.items:
        if _decode_image(item):
            lines.append(f"[picture {item.filename}]")
        else:
            lines.append(format_item(item))
    return "\n".join(lines)


def _format_skill(skill: Skill) -> str:
    return f"{_format_skill_head(skill)}\n{skill.content}"


def _format_skill_head(skill: Skill) -> str:
    return _format_head(skill.slug, skill.description, {})


def decode_context_images(query: Query) -> list[ImageData]:
    """Decode the pictures among the data that the user added; broken ones are left out."""
    images = []
    for item in chain.from_iterable(context.items for context in query.context):
        image = _decode_image(item)
        if image is None:
            continue
        with suppress(GooseLikeError):
            create_image(*image)
            images.append(image)
    return images


def _format_head(name: str, description: str, metadata: dict[str, JsonValue]) -> str:
    # `lastUpdated` changes while the dashboard stays the same, and would make the prompt cache useless.
    stable = {}
    for key, value in metadata.items():
        if key.lower() != "lastupdated":
            stable[key] = value
    text = _truncate(to_text(stable or None), _MAX_ENTRY_CHARACTERS)
    line = f"- {_format_line(name)}"
    if description:
        line += f": {_format_line(description)}"
    if text:
        line += f" {text}"
    return line


def _format_param(param: WidgetParam) -> str:
    kind = _format_line(param.type)
    if param.is_multiple:
        kind += ", several"
    line = f"  - {_format_line(param.name)} ({kind})"
    if param.value is not None:
        line += f" = {_truncate(to_text(param.value), _MAX_ENTRY_CHARACTERS)}"
    if param.options:
        options = list(param.options[:_MAX_OPTIONS])
        line += f", one of {_truncate(to_text(options), _MAX_ENTRY_CHARACTERS)}"
        if len(param.options) > _MAX_OPTIONS:
            line += f" and {len(param.options) - _MAX_OPTIONS} more"
    elif param.has_options_endpoint:
        line += ", its options can be asked for"
    if param.description:
        line += f": {_format_line(param.description)}"
    return line


def _format_line(text: str) -> str:
    return _truncate(" ".join(text.split()), _MAX_ENTRY_CHARACTERS)


def _truncate(text: str, max_characters: int) -> str:
    if len(text) <= max_characters:
        return text
    left_out = len(text) - max_characters
    return f"{text[:max_characters]}\n[{left_out:,} more characters are left out here]"


# --- results of client calls


def build_tool_result(call_id: str, outcomes: Sequence[Outcome]) -> tuple[ToolResult, list[ImageData]]:
    """Build the result of a call from the client's outcomes; the images' bytes must be stored in the session."""
    image_data: list[ImageData] = []
    images: list[Image] = []
    texts: list[str] = []
    for outcome in outcomes:
        texts.append(outcome.message)
        for item in outcome.items:
            image = _decode_image(item)
            if image is None:
                texts.append(format_item(item))
                continue
            try:
                images.append(create_image(*image))
                image_data.append(image)
            except GooseLikeError as error:
                texts.append(f"[{error}]")
    output = _truncate("\n\n".join(filter(None, texts)), MAX_RESULT_CHARACTERS)
    is_empty = not output and not images
    result = ToolResult(
        call_id=call_id,
        output=NO_DATA if is_empty else output,
        is_error=is_empty or all(outcome.is_error for outcome in outcomes),
        images=tuple(images),
    )
    return result, image_data


def format_item(item: DataItem) -> str:
    """Return the text of a data item, or a description of a file that is not text."""
    is_data = item.kind in ("object", "")
    kind = "data" if is_data else item.kind
    name = f"{kind} {item.filename}".rstrip()
    if item.document:
        problem = ""
        if item.document.problem:
            problem = f", which can't be read here: {item.document.problem}"
        return f"[{name}{problem}]\n{item.document.text}".rstrip()
    if item.url:
        return f"[{name} at {item.url}, not fetched]"
    if is_data:
        return item.content
    if item.kind in _TEXT_KINDS:
        text = _decode_text(item.content)
        return f"[{item.filename}]\n{text}" if item.filename else text
    padding = item.content[-2:].count("=")
    size = len(item.content) * 3 // 4 - padding
    return f"[{name}, {size:,} bytes, which can't be read here]"


def _decode_text(content: str) -> str:
    """Decode a base64 text file. Plain text, which the protocol does not mark, stays as it is."""
    data = _decode_base64(content)
    if not data:
        return content
    text = data.decode(errors="replace")
    looks_like_text = text.isprintable() or "\n" in text or "\t" in text
    return text if looks_like_text and "\ufffd" not in text else content


def _decode_base64(content: str) -> bytes | None:
    try:
        return base64.b64decode(content, validate=True)
    except ValueError:
        return None


def _decode_image(item: DataItem) -> ImageData | None:
    if item.kind not in _IMAGE_KINDS or item.url:
        return None
    content = item.content
    if content.startswith("data:"):
        content = content.partition(",")[2]
    data = _decode_base64(content)
    if not data:
        return None
    return data, item.filename or f"picture.{item.kind}"
