"""The site of the documentation: it builds without a warning, has all pages, and loads nothing from elsewhere."""

import re
from pathlib import Path

import pytest
from mkdocs.commands.build import build
from mkdocs.config import load_config

from tests import ROOT

_LOADED = re.compile(r"""<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)=["']?(?:https?:)?//""")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    # A warning, such as a link that leads nowhere or a page that the navigation lacks, ends a strict build.
    build(load_config(str(ROOT / "mkdocs.yml"), site_dir=str(folder), strict=True))
    return folder


def test_each_page_is_there(site: Path) -> None:
    pages = {page.parent.name for page in site.glob("*/index.html")}
    assert {page.stem for page in (ROOT / "docs").glob("*.md")} < pages
    assert {"all-commands", "profile-keys", "events", "decisions", "changelog", "architecture", "security"} < pages
    assert "A developer agent for the shell" in (site / "index.html").read_text()


def test_no_page_loads_anything_from_another_host(site: Path) -> None:
    loading = {page.parent.name: _LOADED.findall(page.read_text()) for page in site.rglob("*.html")}
    assert {name: found for name, found in loading.items() if found} == {}


def test_pages_in_the_making_are_no_part_of_it(site: Path) -> None:
    assert list(site.rglob("*.py")) == []
