"""web_table: a table of an HTML page as a data frame, with nothing but the standard library to read the page."""

import re
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from difflib import get_close_matches
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from taskweaver.plugin import Plugin, register_plugin, test_plugin

ABSENT = {"", "-", "–", "—", "n/a", "na", "?"}  # noqa: RUF001
NUMBER = re.compile(r"[-+−]?(\d{1,3}(,\d{3})+|\d+)(\.\d+)?")  # noqa: RUF001
NOTE = re.compile(r"\s*\[\w{1,3}\]")
"""A footnote's mark, as in `1,234[a]`."""


@dataclass
class Cell:
    """A cell, or a caption: its text grows while the page is read."""

    is_head: bool
    across: int
    down: int
    text: str = ""


@dataclass
class Table:
    """A table as it is read: `cell` is the one that is open."""

    rows: list[list[Cell]] = field(default_factory=list)
    caption: Cell | None = None
    cell: Cell | None = None


@register_plugin
class WebTable(Plugin):
    """Tables of pages, whether they come from the web, a file, or a variable."""

    def __call__(self, source: str, contains: str = "", number: int | None = None) -> Any:
        """The largest table of a page, or the one that is meant; which others there are is printed.

        Raises:
            FileNotFoundError: the source is no address, no HTML and no file.
            ConnectionError: the page can't be fetched.
            ValueError: there is no such table.
        """
        try:
            import pandas
        except ImportError:
            raise RuntimeError("web_table needs pandas, which this Python has not: pip install pandas") from None
        reader = Reader()
        reader.feed(self._page(str(source)))
        reader.close()
        tables = [table for table in reader.tables if any(table.rows)]
        if not tables:
            raise ValueError("there is no table on the page; perhaps a script makes it, in the reader's browser")
        fitting = [at for at, table in enumerate(tables) if contains.casefold() in _words(table).casefold()]
        listed = "\n".join(f"{at}: {_told(table)}" for at, table in enumerate(tables))
        if number is not None and not 0 <= number < len(tables):
            raise ValueError(f"there is no table {number}; these are there:\n{listed}")
        if not fitting:
            raise ValueError(f"no table contains {contains!r}; these are there:\n{listed}")
        chosen = max(fitting, key=lambda at: len(tables[at].rows)) if number is None else number
        if len(tables) > 1:
            print(f"table {chosen} of {len(tables)}:\n{listed}")
        header, rows = _grid(tables[chosen])
        frame = pandas.DataFrame(rows, columns=header)
        for at in range(len(header)):
            values = [NOTE.sub("", row[at] or "") for row in rows]
            held = [value for value in values if value.casefold() not in ABSENT]
            if held and all(map(NUMBER.fullmatch, held)):
                plain = [value.replace(",", "").replace("−", "-") for value in values]  # noqa: RUF001
                frame.isetitem(at, pandas.to_numeric(pandas.Series(plain, index=frame.index), errors="coerce"))
        return frame

    def _page(self, source: str) -> str:
        if re.match(r"https?://", source):
            return self._fetched(source)
        if "<" in source:
            return source
        file = Path(source)
        if not file.is_file():
            names = [each.name for each in file.parent.iterdir()] if file.parent.is_dir() else []
            near = get_close_matches(file.name, names, 3)
            raise FileNotFoundError(f"no file {source!r}{'; near it: ' + ', '.join(near) if near else ''}")
        return _decoded(file.read_bytes(), None)

    def _fetched(self, url: str) -> str:
        limit = int(self.config.get("limit_mb", 20)) * 1_000_000
        request = urllib.request.Request(url, headers={"User-Agent": "Mozilla/5.0 (web_table)"})
        try:
            with urllib.request.urlopen(request, timeout=float(self.config.get("timeout_s", 20))) as answer:
                data, charset = answer.read(limit + 1), answer.headers.get_content_charset()
        except urllib.error.HTTPError as error:
            raise ConnectionError(f"{url!r} answered {error.code} ({error.reason})") from None
        except OSError as error:
            reason = getattr(error, "reason", error)
            hint = "where there is no network, save the page by another tool and name its file"
            raise ConnectionError(f"{url!r} can't be fetched ({reason}); {hint}") from None
        if len(data) > limit:
            raise ValueError(f"{url!r} has more than {limit // 1_000_000} MB")
        return _decoded(data, charset)


class Reader(HTMLParser):
    """Collects tables, those within tables too; end tags may be missing, as HTML allows."""

    def __init__(self) -> None:
        super().__init__()
        self.tables: list[Table] = []
        self._open: list[Table] = []
        self._unseen = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Opens a table, row or cell; a cell that is open ends where the next one or a row begins."""
        if tag in ("script", "style"):
            self._unseen = tag
        elif tag == "table":
            self._open.append(Table())
            self.tables.append(self._open[-1])
        elif self._open and tag == "tr":
            self._open[-1].rows.append([])
            self._open[-1].cell = None
        elif self._open and tag in ("td", "th", "caption"):
            spans = (re.match(r"\d+", dict(attrs).get(key) or "") for key in ("colspan", "rowspan"))
            across, down = (min(int(span[0]) or 1, 500) if span else 1 for span in spans)
            table = self._open[-1]
            table.cell = Cell(tag == "th", across, down)
            if tag == "caption":
                table.caption = table.cell
                return
            if not table.rows:
                table.rows.append([])
            table.rows[-1].append(table.cell)
        elif tag in ("br", "p", "li", "div"):
            self.handle_data(" ")

    def handle_endtag(self, tag: str) -> None:
        """Closes a table or a cell."""
        if tag == self._unseen:
            self._unseen = ""
        elif self._open and tag == "table":
            self._open.pop()
        elif self._open and tag in ("td", "th", "caption"):
            self._open[-1].cell = None

    def handle_data(self, data: str) -> None:
        """Adds to the cell that is open."""
        if self._open and self._open[-1].cell and not self._unseen:
            self._open[-1].cell.text += data


def _decoded(data: bytes, charset: str | None) -> str:
    """By what the server says, else the page itself, else as UTF-8, else as browsers do."""
    told = re.search(rb"""<meta[^>]+charset=["']?([\w-]+)""", data[:4096], re.IGNORECASE)
    for encoding in (charset, told and told[1].decode(), "utf-8"):
        try:
            return data.decode(encoding or "utf-8")
        except (UnicodeDecodeError, LookupError):
            continue
    return data.decode("cp1252", "replace")


def _clean(text: str) -> str:
    return " ".join(text.split())


def _words(table: Table) -> str:
    cells = [table.caption, *(cell for row in table.rows for cell in row)]
    return " ".join(_clean(cell.text) for cell in cells if cell)


def _told(table: Table) -> str:
    name = _clean(table.caption.text) if table.caption else ""
    header, rows = _grid(table)
    return f"{name + ', ' if name else ''}rows: {len(rows)}, columns: {', '.join(header)[:100]}"


def _grid(table: Table) -> tuple[list[str], list[list[str | None]]]:
    """The columns' names and the rows, each cell in every place that it spans."""
    places: dict[tuple[int, int], Cell] = {}
    for y, row in enumerate(table.rows):
        x = 0
        for cell in row:
            while (y, x) in places:
                x += 1
            places |= {(y + j, x + i): cell for j in range(cell.down) for i in range(cell.across)}
    height, width = len(table.rows), 1 + max(x for _, x in places)
    rows = [[places.get((y, x)) for x in range(width)] for y in range(height)]
    rows = [row for row in rows if any(row)]
    heads = 0
    while heads < len(rows) and all(cell.is_head for cell in rows[heads] if cell):
        heads += 1
    if heads in (0, len(rows)):
        heads = min(1, len(rows) - 1)  # nothing, or all, is marked as a head: then the first row is it
    names: list[str] = []
    for column in zip(*rows[:heads], strict=True) if heads else [[]] * width:
        parts = dict.fromkeys(NOTE.sub("", _clean(cell.text)) for cell in column if cell)
        name = " ".join(filter(None, parts)) or f"column_{len(names) + 1}"
        names.append(name if name not in names else f"{name}_{len(names) + 1}")
    return names, [[_clean(cell.text) if cell else None for cell in row] for row in rows[heads:]]


@test_plugin(name="a page")
def test_a_page(call: Any) -> None:
    """Spans, numbers and the table that is meant."""
    page = """<table><tr><td>menu</table><table><caption>Towns</caption><tr><th>town<th>people[1]
        <tr><td rowspan=2>Kiel<td>1,234<tr><td>5[a]</table>"""
    frame = call(page, contains="towns")
    assert frame.to_dict("list") == {"town": ["Kiel", "Kiel"], "people": [1234, 5]}
