"""What stands around the person's words, as a model reads it: the dashboard, added data, options."""

import json
from collections.abc import Iterator, Sequence

from pydantic import JsonValue

from .query import Context, Query, Widget, WidgetParam
from .results import in_words, shown

_WIDGETS_CHARACTERS = 16_000
_CONTEXT_CHARACTERS = 60_000
_MORE_CHARACTERS = 8_000
_ENTRY_CHARACTERS = 2_000
_OPTIONS = 20

_UNTOLD = ("lastupdated",)
"""Fields of metadata that change while the dashboard stays the same; told, they would make each request a new one."""


def surroundings(query: Query) -> str:
    """All that came beside the messages, an empty text if nothing did; about 130,000 characters at most.

    The same dashboard gives the same text, so that what a vendor has cached of a conversation holds.
    """
    return "\n\n".join(_sections(query))


def _sections(query: Query) -> Iterator[str]:
    on_it = [widget for widget in query.widgets if widget.tier != "extra"]
    picked_tiers = ("primary",) if query.dialect == "workspace" else ()
    picked = [widget for widget in on_it if widget.tier in picked_tiers]
    others = [widget for widget in on_it if widget.tier not in picked_tiers]
    extra = [widget for widget in query.widgets if widget.tier == "extra"]
    for title, widgets in (
        ("Widgets that the person picked", picked),
        ("Widgets on the dashboard", others),
        ("Widgets that are not on the dashboard, but have data too", extra),
    ):
        yield from _section(title, [_widget(widget) for widget in widgets], _WIDGETS_CHARACTERS)
    yield from _section("Data that the person added", list(map(_context, query.context)), _CONTEXT_CHARACTERS)
    yield from _section("Addresses that the person added", [f"- {_line(url)}" for url in query.urls], _MORE_CHARACTERS)
    if query.timezone:
        yield f"[The person's time zone] {_line(query.timezone)}"
    yield from _section("Options that the person set", [_json(query.options)] * bool(query.options), _MORE_CHARACTERS)
    yield from _section("The workspace", [_json(query.workspace)] * bool(query.workspace), _MORE_CHARACTERS)


def _section(title: str, entries: Sequence[str], limit_characters: int) -> Iterator[str]:
    kept: list[str] = []
    room = limit_characters
    for entry in entries:
        if kept and len(entry) > room:
            kept.append(f"[{len(entries) - len(kept)} more are left out here]")
            break
        kept.append(shown(entry, room))
        room -= len(kept[-1])
    if kept:
        yield "\n".join([f"[{title}]", *kept])


def _widget(widget: Widget) -> str:
    told = f"- {_line(widget.uuid)} {_line(widget.name)}"
    if widget.description and widget.description != widget.name:
        told += f": {_line(widget.description)}"
    if facts := {key: value for key, value in widget.metadata.items() if key.lower() not in _UNTOLD}:
        told += f" {shown(_json(facts), _ENTRY_CHARACTERS)}"
    return "\n".join([told, *map(_param, widget.params)])


def _param(param: WidgetParam) -> str:
    value = param.default_value if param.current_value is None else param.current_value
    told = f"  - {_line(param.name)} ({_line(param.type)}{', several' if param.is_multiple else ''})"
    if value is not None:
        told += f" = {shown(_json(value), _ENTRY_CHARACTERS)}"
    if param.options:
        more = f" and {len(param.options) - _OPTIONS} more" if len(param.options) > _OPTIONS else ""
        told += f", one of {shown(_json(list(param.options[:_OPTIONS])), _ENTRY_CHARACTERS)}{more}"
    elif param.has_options_endpoint:
        told += ", its options can be asked for"
    return f"{told}: {_line(param.description)}" if param.description else told


def _context(context: Context) -> str:
    told = f"- {_line(context.name)}"
    if context.description:
        told += f": {_line(context.description)}"
    if facts := {key: value for key, value in context.metadata.items() if key.lower() not in _UNTOLD}:
        told += f" {shown(_json(facts), _ENTRY_CHARACTERS)}"
    return "\n".join([told, *(in_words(item) for item in context.items)])


def _line(text: str) -> str:
    return shown(" ".join(text.split()), _ENTRY_CHARACTERS)


def _json(value: JsonValue) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
