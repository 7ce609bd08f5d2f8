"""The script that runs in the sandbox: read a file from standard input, and write its parts as JSON.

`python -c SOURCE KIND`. The output is `{"parts": [{"title": ..., "lines": [[text, x0, top, x1, bottom], ...]}]}`: pages
with their lines and the lines' boxes in points from the top left, or sheets and texts whose lines have no boxes.
"""

import io
import json
import resource
import sys
from collections.abc import Iterator
from typing import Any

MAX_CHARACTERS = 1_000_000
_MAX_MEMORY_BYTES = 2_000_000_000
_MAX_CPU_S = 20

Part = tuple[str, list[list[Any]]]


def read_pdf(data: bytes) -> Iterator[Part]:
    """Read the pages of a PDF."""
    import pypdfium2

    document = pypdfium2.PdfDocument(data)
    for number, page in enumerate(document, 1):
        height = page.get_height()
        text_page = page.get_textpage()
        text = text_page.get_text_range()
        lines = []
        start = 0
        for line in text.split("\n"):
            if line.strip():
                box = _find_box(text_page, start, len(line), height)
                lines.append([line.strip(), *box])
            start += len(line) + 1
        yield f"page {number}", lines


def _find_box(text_page: Any, start: int, length: int, height: float) -> list[float]:
    """Find the box around some characters of a page of this height."""
    count = text_page.count_rects(start, length)
    boxes = [text_page.get_rect(index) for index in range(count)]
    if not boxes:
        boxes = [(0, 0, 0, 0)]
    lefts, bottoms, rights, tops = zip(*boxes, strict=True)
    # A PDF measures from the bottom.
    edges = (min(lefts), height - max(tops), max(rights), height - min(bottoms))
    return [round(edge, 1) for edge in edges]


def read_workbook(data: bytes) -> Iterator[Part]:
    """Read the sheets of a workbook as tables of Markdown."""
    import python_calamine

    workbook = python_calamine.load_workbook(io.BytesIO(data))
    for name in workbook.sheet_names:
        lines = []
        for row in workbook.get_sheet_by_name(name).to_python():
            if any(row):
                cells = " | ".join(map(_format_cell, row))
                lines.append([f"| {cells} |"])
        yield f"sheet {name}", lines


def _format_cell(cell: object) -> str:
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return " ".join(str(cell).split()).replace("|", "\\|")


def read_word(data: bytes) -> Iterator[Part]:
    """Read a Word document as Markdown."""
    import mammoth
    from html_to_markdown import ConversionOptions, convert

    html = mammoth.convert_to_html(io.BytesIO(data)).value
    options = ConversionOptions(skip_images=True, extract_metadata=False)
    text = convert(html, options).content or ""
    yield "", [[line] for line in text.splitlines()]


READERS = {"pdf": read_pdf, "xlsx": read_workbook, "xls": read_workbook, "docx": read_word}


def main() -> None:
    """Read the file; a file that cannot be read ends the process with a line on standard error."""
    resource.setrlimit(resource.RLIMIT_AS, (_MAX_MEMORY_BYTES, _MAX_MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (_MAX_CPU_S, _MAX_CPU_S))
    read = READERS[sys.argv[1]]
    data = sys.stdin.buffer.read()
    parts = []
    room = MAX_CHARACTERS
    for title, lines in read(data):
        parts.append({"title": title, "lines": lines})
        room -= sum(len(line[0]) for line in lines)
        if room < 0:
            break
    output = json.dumps({"parts": parts, "is_cut": room < 0})
    sys.stdout.buffer.write(output.encode())


if __name__ == "__main__":
    main()
