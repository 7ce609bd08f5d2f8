"""What is shown beside an answer, in the protocol's form, and as Markdown for clients that draw nothing."""

import json
import math
from collections.abc import Sequence
from html.parser import HTMLParser
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from ..events import Artifact, ArtifactShown, Chart

_ROWS, _COLUMNS, _CELL, _TEXT = 50, 12, 200, 20_000
"""How much of an artifact stands in a text: rows, columns, characters of a cell, characters of a page."""

_SAFE_INTEGER = 2**53
"""From here on JavaScript reads another number."""


def client_artifact(shown: ArtifactShown) -> dict[str, Any]:
    """The artifact as the Workspace takes it; the same call's same artifact has the same uuid."""
    artifact = shown.artifact
    uuid = uuid5(NAMESPACE_URL, f"artifact:{shown.call_id}:{artifact.model_dump_json()}")
    told: dict[str, Any] = {
        "type": artifact.kind,
        "name": artifact.name,
        "description": artifact.description,
        "uuid": str(uuid),
        "content": artifact.text,
    }
    if artifact.kind == "chart" and artifact.chart:
        return told | {"content": [_point(row) for row in artifact.rows], "chart_params": _chart_params(artifact.chart)}
    if artifact.kind in ("table", "chart"):  # a chart that says not how it is drawn is a table
        keys = _keys(artifact.rows)
        rows = [{key: _cell(row.get(key)) for key in keys} for row in artifact.rows]
        return told | {"type": "table", "content": rows}
    return told


def _chart_params(chart: Chart) -> dict[str, Any]:
    if chart.kind in ("pie", "donut"):
        return {"chartType": chart.kind, "angleKey": chart.y[0], "calloutLabelKey": chart.x}
    return {"chartType": chart.kind, "xKey": chart.x, "yKey": list(chart.y)}


def _keys(rows: Sequence[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(key for row in rows for key in row))


def _point(row: dict[str, Any]) -> dict[str, Any]:
    """A row for a chart, where a value that is not there is a gap."""
    return {key: cell for key, value in row.items() if (cell := _cell(value)) != ""}


def _cell(value: Any) -> str | int | float | bool:
    """A value that every table can show: no null, nothing nested, and no number that would become another."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, int) and abs(value) > _SAFE_INTEGER:
        return str(value)
    return value  # type: ignore[no-any-return]


def as_markdown(artifact: Artifact) -> str:
    """The artifact in the text of an answer, cut to a size that one reads, and told what is left out."""
    head = f"**{_line(artifact.name)}**"
    if artifact.description:
        head += f"\n\n{artifact.description.strip()}"
    match artifact.kind:
        case "table":
            body = _table(artifact.rows, _keys(artifact.rows))
        case "chart":
            keys, sentence = _keys(artifact.rows), "To be drawn as a chart:"
            if chart := artifact.chart:
                sentence = f"A {chart.kind} chart of {', '.join(chart.y)} by {chart.x}:"
                keys = [key for key in (chart.x, *chart.y) if key in keys] or keys
            body = f"{sentence}\n\n{_table(artifact.rows, keys)}"
        case "html":
            page = _Page()
            page.feed(artifact.text)
            page.close()
            body = _cut(page.text)
        case "text":
            body = _cut(artifact.text)
    return f"{head}\n\n{body}"


def _table(rows: Sequence[dict[str, Any]], keys: Sequence[str]) -> str:
    if not keys:
        return "(no rows)"
    shown = keys[:_COLUMNS]
    lines = [_row(shown), _row(["---"] * len(shown))]
    lines += [_row([_written(row.get(key)) for key in shown]) for row in rows[:_ROWS]]
    left = [
        f"{count:,} more {noun}{'s' * (count != 1)}"
        for count, noun in ((len(rows) - _ROWS, "row"), (len(keys) - _COLUMNS, "column"))
        if count > 0
    ]
    return "\n".join(lines) + (f"\n\n({' and '.join(left)} not shown)" if left else "")


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(_line(cell).replace('|', chr(92) + '|') for cell in cells)} |"


def _written(value: Any) -> str:
    cell = _cell(value)
    return str(cell).lower() if isinstance(cell, bool) else str(cell)


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _CELL else f"{line[:_CELL]}…"


def _cut(text: str) -> str:
    left = len(text) - _TEXT
    return text if left <= 0 else f"{text[:_TEXT]}…\n\n({left:,} more characters not shown)"


class _Page(HTMLParser):
    """A page's text: what a browser would show of it, without how."""

    _UNSEEN = ("script", "style", "template", "title")
    _INLINE = ("a", "abbr", "b", "code", "em", "i", "mark", "small", "span", "strong", "sub", "sup", "u")

    def __init__(self) -> None:
        super().__init__()
        self._said: list[str] = []
        self._unseen = 0

    @property
    def text(self) -> str:
        lines = (" ".join(line.split()) for line in "".join(self._said).split("\n"))
        return "\n\n".join(line for line in lines if line)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._unseen += tag in self._UNSEEN
        self._part(tag)

    def handle_endtag(self, tag: str) -> None:
        self._unseen -= tag in self._UNSEEN and self._unseen > 0
        self._part(tag)

    def handle_data(self, data: str) -> None:
        if not self._unseen:
            self._said.append(data.replace("\n", " "))

    def _part(self, tag: str) -> None:
        if tag in ("td", "th"):
            self._said.append(" ")
        elif tag not in self._INLINE:
            self._said.append("\n")
