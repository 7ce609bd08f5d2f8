"""The pictures of docs/ show the screen as it is now."""

import html
import re
import subprocess
import sys
from collections import defaultdict

import pytest

from tests import ROOT

# The rows of a boss that works depend on the moment; those at its top do not.
PICTURES = [("terminal.svg", "terminal.yaml", None), ("boss.svg", "boss/picture.yaml", 3)]
VARIES = {
    r"session \w+": "session NAME",
    r"\d+(\.\d+)? s\b": "T",
    r"\b\d:\d\d\b": "T",
    r"/tmp\S*/": "/tmp/",
    r"Python [\d.]+": "Python",
    r"[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]": "*",
}


def read_rows(picture: str) -> list[str]:
    """Read the text of a picture, without times and names that differ each time, and without marks below code."""
    rows: dict[float, dict[float, str]] = defaultdict(dict)
    for x, y, text in re.findall(r'<text class="run-r\d+" x="([\d.]+)" y="([\d.]+)"[^>]*>(.*?)</text>', picture):
        rows[float(y)][float(x)] = html.unescape(text).replace("\xa0", " ")
    lines = []
    for _, parts in sorted(rows.items()):
        line = "".join(part for _, part in sorted(parts.items())).rstrip()
        for pattern, name in VARIES.items():
            line = re.sub(pattern, name, line)
        if not re.fullmatch(r"[\s│^~]*", line):
            lines.append(line)
    return lines


@pytest.mark.parametrize(("name", "file", "row_count"), PICTURES)
def test_a_picture_shows_the_screen_as_it_is(tmp_path, name, file, row_count):
    """After a change of the screen: python bench/picture.py all."""
    out = tmp_path / name
    command = [sys.executable, ROOT / "bench/picture.py", "session", ROOT / "docs" / file, out]
    subprocess.run(command, check=True, timeout=120)
    shown = read_rows((ROOT / "docs" / name).read_text())[:row_count]
    assert read_rows(out.read_text())[:row_count] == shown


def test_a_picture_has_text():
    rows = read_rows((ROOT / "docs/terminal.svg").read_text())
    assert "> test_calc.py fails, fix it" in rows
    assert rows[-1].startswith("auto · workspace · ")
