"""A hook of mkdocs: adds the pages above docs/ and those that are written from the code to the site."""

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from goose_like.cli.app import add_groups, app
from goose_like.cli.reference import REFERENCE_PAGES

_TOP = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "architecture.md",
    "AGENTS.md": "rules.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
    "bench/README.md": "benchmarks.md",
}
"""Pages of the checkout, and their places in the site."""
_TARGET = re.compile(r"(?<=\]\()[^)#\s]+")
_DECISION = re.compile(r"^# (\d+)\. (.*)$", re.MULTILINE)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages."""
    root = Path(config.config_file_path).parent
    for name, place in _TOP.items():
        text = (root / name).read_text(encoding="utf-8")
        files.append(File.generated(config, place, content=_TARGET.sub(_move_link, text)))
    add_groups()
    for name, write in REFERENCE_PAGES.items():
        files.append(File.generated(config, f"{name}.md", content=write(app)))
    files.append(File.generated(config, "decisions.md", content=_list_decisions(root / "docs/decisions")))
    return files


def _move_link(link: re.Match[str]) -> str:
    target = link[0].removeprefix("../")
    return _TOP.get(target, target.removeprefix("docs/"))


def _list_decisions(folder: Path) -> str:
    lines = ["# Decisions", "Why the parts are as they are, in the order of time.", ""]
    for file in sorted(folder.glob("*.md")):
        title = _DECISION.search(file.read_text(encoding="utf-8"))
        if title:
            lines.append(f"{int(title[1])}. [{title[2]}](decisions/{file.name})")
    return "\n".join(lines) + "\n"
