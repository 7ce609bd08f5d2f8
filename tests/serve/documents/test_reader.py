"""Tests of documents that are read in a real sandboxed process."""

from contextlib import asynccontextmanager

import pytest

from goose_like.core.errors import GooseLikeError
from goose_like.core.notifier import Notifier
from goose_like.serve.documents.quotes import find_quotes
from goose_like.serve.documents.reader import DocumentReader
from goose_like.serve.service import EmptyWorkspace
from goose_like.workspace.documents.document import Line
from tests.loopback import Loopback, Response
from tests.serve.documents.sample_files import build_docx, build_pdf, build_xlsx, build_zip

PDF = build_pdf(["Annual report", "by Jane Doe"], ["Revenue rose to 1,234 million dollars", "Costs fell"])


@asynccontextmanager
async def reading(tmp_path, **options):
    workspace = EmptyWorkspace(tmp_path, mode="read-only", approval="auto", notifier=Notifier())
    try:
        yield DocumentReader(workspace, **options)
    finally:
        await workspace.close()


async def test_each_kind_is_read_as_text(tmp_path):
    sheet = build_xlsx("Prices", [["symbol", "close"], ["AAPL", 231], ["A|B", 1.5]])
    async with reading(tmp_path) as reader:
        pdf = await reader.read(PDF, "pdf")
        assert pdf.text.splitlines() == [
            *("[page 1]", "Annual report", "by Jane Doe"),
            *("[page 2]", "Revenue rose to 1,234 million dollars", "Costs fell"),
        ]
        line = pdf.lines[2]
        assert (line.page, line.x0, line.text) == (2, pytest.approx(73, abs=2), "Revenue rose to 1,234 million dollars")
        assert 55 < line.top < line.bottom < 80  # from the top: the text stands at 792 - 720 points
        assert 200 < line.x1 < 400
        assert (await reader.read(build_docx("Dear Jane,", "it is done."), "docx")).text.split() == (
            ["Dear", "Jane,", "it", "is", "done."]
        )
        assert (await reader.read(sheet, "xlsx")).text.splitlines() == [
            *("[sheet Prices]", "| symbol | close |", "| AAPL | 231 |", "| A\\|B | 1.5 |"),
        ]
        assert await reader.read(PDF, "pdf") is pdf  # each request brings the whole conversation


@pytest.mark.parametrize(
    ("data", "kind", "problem"),
    [
        (b"no file", "pdf", "damaged"),
        (b"no file", "xlsx", "damaged"),
        (b"no file", "docx", "damaged"),
        (build_pdf([]), "pdf", "it has no text"),
        (build_docx(), "docx", "it has no text"),
        (build_zip(**{"word/document.xml": "<" * 100_000}), "docx", "damaged"),
    ],
)
async def test_a_file_that_cannot_be_read_says_why(tmp_path, data, kind, problem):
    async with reading(tmp_path) as reader:
        assert problem in (await reader.read(data, kind)).problem


async def test_a_file_is_fetched_only_from_where_it_may_be(tmp_path):
    moved = Response(302, headers={"location": "/there.pdf"})
    async with (
        Loopback([moved, Response(pieces=[PDF]), Response(404)]) as server,
        reading(tmp_path) as stranger,
        reading(tmp_path, allowed_hosts=["127.0.0.1"]) as reader,
    ):
        url = f"http://127.0.0.1:{server.port}/a.pdf"
        for refused in (url, "file:///etc/passwd", "http://169.254.169.254/", "http://[::1", "nonsense"):
            with pytest.raises(GooseLikeError, match=r"open internet|its address|cannot be fetched"):
                await stranger.fetch(refused)
        assert not server.requests
        assert await reader.fetch(url) == PDF
        with pytest.raises(GooseLikeError, match="HTTP 404"):
            await reader.fetch(url)


def test_lines_that_an_answer_is_based_on_are_found():
    texts = ["Annual report of the company", "Revenue rose to 1,234 million dollars", "Costs fell", "Outlook: 2027"]
    lines = [Line(page=n, text=text, x0=0, top=0, x1=0, bottom=0) for n, text in enumerate(texts, 1)]
    assert [line.page for line in find_quotes(lines, "The revenue was 1234 million dollars.")] == [2]
    assert [line.page for line in find_quotes(lines, "As the costs fell, all is well.")] == [3]
    assert find_quotes(lines, "I do not know the company.") == []
    assert find_quotes(lines, "") == find_quotes([], "Revenue") == []


REPORT = [
    "Annual report of the company",
    "Revenue rose to 1,234 million dollars",
    "Costs fell",
    "Outlook: 2027",
    "The board proposes a dividend of 1.20 dollars per share",
    "No dividend was paid for the year 2020",
    "Revenue of services",
]


@pytest.mark.parametrize(
    ("answer", "pages"),
    [
        ("The revenue was 1234 million dollars.", [2]),
        ("Revenue rose to 1,234 million dollars, while costs fell.", [2, 3]),
        ("The board proposes a dividend of 1.20 dollars.", [5]),
        ("There was no dividend paid for the year 2020.", [6]),
        ("The report does not say anything about revenue of services or costs.", []),
        ("I could not find the dividend per share that the board proposes.", []),
        ("The document doesn't mention whether costs fell.", []),
        ("Nothing is known about the outlook for 2027.", []),
        ("Der Bericht nennt keine Revenue of services.", []),
        ("The document omits the revenue of services.", []),
        ("Revenue of services is missing from the report.", []),
        ("Dem Bericht fehlen Zahlen zu Revenue of services.", []),
        ("Costs are one thing. Prices fell elsewhere.", []),
        ("The company has an annual meeting, and its managers like to write a report.", []),
        ("Revenue and dividend are words, and so is company.", []),
        ("Costs do matter in many ways, as every manager knows who ever saw how the prices fell.", []),
    ],
)
def test_only_lines_that_are_quoted_closely_are_cited(answer: str, pages: list[int]):
    lines = [Line(page=n, text=text, x0=0, top=0, x1=0, bottom=0) for n, text in enumerate(REPORT, 1)]
    assert [line.page for line in find_quotes(lines, answer)] == pages
