"""Plugin `web_table`: read a table of an HTML page as a data frame, with the standard library only."""

import re
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

from taskweaver.plugin import Plugin, register_plugin, test_plugin

from ._errors import check_file, import_library

MISSING = {"", "-", "–", "—", "n/a", "na", "?"}  # noqa: RUF001
NUMBER = re.compile(r"[-+−]?(\d{1,3}(,\d{3})+|\d+)(\.\d+)?")  # noqa: RUF001
FOOTNOTE = re.compile(r"\s*\[\w{1,3}\]")
"""The mark of a footnote, as in `1,234[a]`."""


@dataclass
class Cell:
    """A cell or a caption; its text grows while the page is parsed."""

    is_header: bool
    columns: int
    rows: int
    text: str = ""


@dataclass
class Table:
    """A table; `cell` is the open cell while the page is parsed."""

    rows: list[list[Cell]] = field(default_factory=list)
    caption: Cell | None = None
    cell: Cell | None = None


@register_plugin
class WebTable(Plugin):
    """A reader for tables of pages from the web, a file or a text."""

    def __call__(self, source: str, contains: str = "", number: int | None = None) -> Any:
        """Return the chosen table, by default the largest; if there are several, print a list of them.

        Raises:
            FileNotFoundError: The source is no address, no HTML and no file.
            ConnectionError: The page cannot be fetched.
            ValueError: There is no such table.
        """
        pandas = import_library("pandas", "web_table")
        parser = TableParser()
        parser.feed(self._read_page(str(source)))
        parser.close()
        tables = [table for table in parser.tables if any(table.rows)]
        if not tables:
            raise ValueError("there is no table on the page; perhaps a script creates it in the browser")
        fitting = [at for at, table in enumerate(tables) if contains.casefold() in _join_text(table).casefold()]
        listed = "\n".join(f"{at}: {_describe_table(table)}" for at, table in enumerate(tables))
        if number is not None and not 0 <= number < len(tables):
            raise ValueError(f"there is no table {number}; the tables are:\n{listed}")
        if not fitting:
            raise ValueError(f"no table contains {contains!r}; the tables are:\n{listed}")
        chosen = max(fitting, key=lambda at: len(tables[at].rows)) if number is None else number
        if len(tables) > 1:
            print(f"table {chosen} of {len(tables)}:\n{listed}")
        header, rows = _make_grid(tables[chosen])
        frame = pandas.DataFrame(rows, columns=header)
        for at in range(len(header)):
            values = [FOOTNOTE.sub("", row[at] or "") for row in rows]
            present = [value for value in values if value.casefold() not in MISSING]
            if present and all(map(NUMBER.fullmatch, present)):
                plain = [value.replace(",", "").replace("−", "-") for value in values]  # noqa: RUF001
                frame.isetitem(at, pandas.to_numeric(pandas.Series(plain, index=frame.index), errors="coerce"))
        return frame

    def _read_page(self, source: str) -> str:
        if re.match(r"https?://", source):
            return self._fetch(source)
        return source if "<" in source else _decode(check_file(source).read_bytes(), None)

    def _fetch(self, url: str) -> str:
        limit = int(self.config.get("limit_mb", 20)) * 1_000_000
        request = urllib.request.Request(url, headers={"User-Agent": "Mozilla/5.0 (web_table)"})
        try:
            with urllib.request.urlopen(request, timeout=float(self.config.get("timeout_s", 20))) as answer:
                data, charset = answer.read(limit + 1), answer.headers.get_content_charset()
        except urllib.error.HTTPError as error:
            raise ConnectionError(f"{url!r} answered {error.code} ({error.reason})") from None
        except OSError as error:
            reason = getattr(error, "reason", error)
            hint = "without network access, save the page with another tool and give its path"
            raise ConnectionError(f"{url!r} can't be fetched ({reason}); {hint}") from None
        if len(data) > limit:
            raise ValueError(f"{url!r} has more than {limit // 1_000_000} MB")
        return _decode(data, charset)


class TableParser(HTMLParser):
    """A parser that collects tables, also nested ones and those with missing end tags."""

    def __init__(self) -> None:
        super().__init__()
        self.tables: list[Table] = []
        self._open: list[Table] = []
        self._ignored_tag = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Open a table, row or cell; a new cell or row ends the open cell."""
        if tag in ("script", "style"):
            self._ignored_tag = tag
        elif tag == "table":
            self._open.append(Table())
            self.tables.append(self._open[-1])
        elif self._open and tag == "tr":
            self._open[-1].rows.append([])
            self._open[-1].cell = None
        elif self._open and tag in ("td", "th", "caption"):
            spans = (re.match(r"\d+", dict(attrs).get(key) or "") for key in ("colspan", "rowspan"))
            columns, rows = (min(int(span[0]) or 1, 500) if span else 1 for span in spans)
            table = self._open[-1]
            table.cell = Cell(tag == "th", columns, rows)
            if tag == "caption":
                table.caption = table.cell
                return
            if not table.rows:
                table.rows.append([])
            table.rows[-1].append(table.cell)
        elif tag in ("br", "p", "li", "div"):
            self.handle_data(" ")

    def handle_endtag(self, tag: str) -> None:
        """Close a table or a cell."""
        if tag == self._ignored_tag:
            self._ignored_tag = ""
        elif self._open and tag == "table":
            self._open.pop()
        elif self._open and tag in ("td", "th", "caption"):
            self._open[-1].cell = None

    def handle_data(self, data: str) -> None:
        """Append text to the open cell."""
        if self._open and self._open[-1].cell and not self._ignored_tag:
            self._open[-1].cell.text += data


def _decode(data: bytes, charset: str | None) -> str:
    """Decode a page with the encoding of the server, of the page itself, UTF-8, or cp1252 as browsers do."""
    declared = re.search(rb"""<meta[^>]+charset=["']?([\w-]+)""", data[:4096], re.IGNORECASE)
    for encoding in (charset, declared and declared[1].decode(), "utf-8"):
        try:
            return data.decode(encoding or "utf-8")
        except (UnicodeDecodeError, LookupError):
            continue
    return data.decode("cp1252", "replace")


def _clean(text: str) -> str:
    return " ".join(text.split())


def _join_text(table: Table) -> str:
    cells = [table.caption, *(cell for row in table.rows for cell in row)]
    return " ".join(_clean(cell.text) for cell in cells if cell)


def _describe_table(table: Table) -> str:
    name = _clean(table.caption.text) if table.caption else ""
    header, rows = _make_grid(table)
    return f"{name + ', ' if name else ''}rows: {len(rows)}, columns: {', '.join(header)[:100]}"


def _make_grid(table: Table) -> tuple[list[str], list[list[str | None]]]:
    """Return the names of the columns and the rows; a spanning cell is repeated in each place."""
    places: dict[tuple[int, int], Cell] = {}
    for y, row in enumerate(table.rows):
        x = 0
        for cell in row:
            while (y, x) in places:
                x += 1
            places |= {(y + j, x + i): cell for j in range(cell.rows) for i in range(cell.columns)}
    height, width = len(table.rows), 1 + max(x for _, x in places)
    rows = [[places.get((y, x)) for x in range(width)] for y in range(height)]
    rows = [row for row in rows if any(row)]
    heads = 0
    while heads < len(rows) and all(cell.is_header for cell in rows[heads] if cell):
        heads += 1
    if heads in (0, len(rows)):
        heads = min(1, len(rows) - 1)  # no row or every row is a header, so take the first one
    names: list[str] = []
    for column in zip(*rows[:heads], strict=True) if heads else [[]] * width:
        parts = dict.fromkeys(FOOTNOTE.sub("", _clean(cell.text)) for cell in column if cell)
        name = " ".join(filter(None, parts)) or f"column_{len(names) + 1}"
        names.append(name if name not in names else f"{name}_{len(names) + 1}")
    return names, [[_clean(cell.text) if cell else None for cell in row] for row in rows[heads:]]


@test_plugin(name="a page")
def test_a_page(call: Any) -> None:
    """Spans, numbers and the choice of a table work."""
    page = """<table><tr><td>menu</table><table><caption>Towns</caption><tr><th>town<th>people[1]
        <tr><td rowspan=2>Kiel<td>1,234<tr><td>5[a]</table>"""
    frame = call(page, contains="towns")
    assert frame.to_dict("list") == {"town": ["Kiel", "Kiel"], "people": [1234, 5]}
