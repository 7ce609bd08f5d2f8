"""The documents: links lead somewhere, named files exist, and each document stays as short as it should be."""

import re
from pathlib import Path

import pytest

from tests import ROOT

PAGES = [*ROOT.glob("*.md"), *sorted((ROOT / "docs").rglob("*.md"))]
DECISIONS = sorted((ROOT / "docs/decisions").glob("*.md"))


def find_anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith(("http://", "https://")):
            continue
        name, _, anchor = target.partition("#")
        file = page.parent / name if name else page
        assert file.exists(), target
        assert not anchor or anchor in find_anchors(file), target


def test_the_architecture_names_files_that_exist():
    text = (ROOT / "ARCHITECTURE.md").read_text()
    folders = [ROOT, ROOT / "goose_like", ROOT / "goose_like/serve/openbb"]
    for name in re.findall(r"`([\w./-]+(?:\.py|/))`", text):
        assert any((folder / name).exists() for folder in folders), name


MAX_PAGE_WORDS = 1_500


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda page: page.name)
def test_a_page_is_short(page):
    assert len(page.read_text().split()) <= MAX_PAGE_WORDS


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 120


@pytest.mark.parametrize("number", range(1, len(DECISIONS) + 1))
def test_a_decision_fits_on_a_screen(number):
    page = DECISIONS[number - 1]
    text = page.read_text()
    assert page.name.startswith(f"{number:04}-")
    assert text.startswith(f"# {number}. ")
    assert re.findall(r"^\*\*(\w+)\.\*\*", text, re.MULTILINE) == ["Context", "Decision", "Consequence"]
    assert len(text.splitlines()) <= 30
