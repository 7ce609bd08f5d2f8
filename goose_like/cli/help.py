"""Help pages: for commands from their options, for topics from the documentation."""

import re
from importlib.resources import files
from pathlib import Path

from typer import Typer
from typer.main import get_command

from goose_like.core.errors import UsageError
from goose_like.core.spelling import did_you_mean

from .reference import REFERENCE_PAGES

_TABLES = {"Exit codes": "exit-codes", "Files": "files", "Environment": "environment"}
"""Sections on the page of every command, with the documentation pages of their tables."""
_LINK = re.compile(r"(?P<image>!)?\[(?P<label>[^\]\n]+)\]\((?P<target>[^)\s]+)\)(?(image)\n*)")
_PAGE = re.compile(r"([\w-]+)\.md(?:#.*)?")


def find_docs_folder() -> Path:
    """Find the folder of the documentation pages: in the package, or in the checkout (editable install)."""
    package = Path(str(files("goose_like")))
    docs = package / "docs"
    if docs.is_dir():
        return docs
    return package.parent / "docs"


def list_topics() -> list[str]:
    """Return the names of the documentation pages."""
    files = [file.stem for file in find_docs_folder().glob("*.md")]
    return sorted([*files, *REFERENCE_PAGES])


def list_topics_below(app: Typer, words: list[str]) -> list[str]:
    """Return the words that can follow these words after `help`."""
    commands = getattr(get_command(app), "commands", {})
    for word in words:
        commands = getattr(commands.get(word), "commands", {})
    names = [name for name, command in commands.items() if not command.hidden]
    if not words:
        names += list_topics()
    return names


def find_page(app: Typer, words: list[str]) -> str:
    """Return the page of a command or topic, or all sections of the documentation with a word in their headings.

    A word that names a command and a topic gets both.
    """
    context = get_command(app).make_context("goose-like", [], resilient_parsing=True)
    for number, word in enumerate(words):
        commands = getattr(context.command, "commands", {})
        if word not in commands:
            if len(words) == 1 and (text := _find_topic(app, word)):
                return text
            hint = did_you_mean(word, list_topics_below(app, words[:number]))
            raise UsageError(f"no help for {' '.join(words)!r}; {hint}")
        context = commands[word].make_context(word, [], parent=context, resilient_parsing=True)
    topics = _read_topics()
    formatter = context.make_formatter()
    for title, name in _TABLES.items():
        with formatter.section(title):
            formatter.write_dl(_read_table(topics[name]))
    with formatter.section("See also"):
        formatter.write_text(", ".join(f"goose-like help {name}" for name in topics))
    parts = [context.get_help(), formatter.getvalue()]
    if len(words) == 1:
        parts.append(topics.get(words[0], ""))
    return "\n\n".join(filter(None, parts))


def _read_topics() -> dict[str, str]:
    """Read the documentation pages by name, with links as words."""
    topics = {}
    for file in sorted(find_docs_folder().glob("*.md")):
        text = file.read_text(encoding="utf-8")
        topics[file.stem] = _LINK.sub(_write_link, text)
    return topics


def _write_link(link: re.Match[str]) -> str:
    """Return a link as words for a terminal: a page by the command that shows it, and no image."""
    label = link["label"]
    target = link["target"]
    if link["image"]:
        return ""
    if target.startswith("#"):
        return label
    file, _, _ = target.partition("#")
    page = _PAGE.fullmatch(target)
    place = f"`goose-like help {page[1]}`" if page else target
    if label.strip("`") in (file, place):
        return place
    return f"{label} ({place})"


def _find_topic(app: Typer, word: str) -> str:
    """Return the page of a topic, or all sections with the word in their headings; empty if there is none."""
    if word in REFERENCE_PAGES:
        return _LINK.sub(_write_link, REFERENCE_PAGES[word](app))
    topics = _read_topics()
    if word in topics:
        return topics[word]
    singular = re.escape(word.removesuffix("s"))
    heading = re.compile(rf"\b{singular}s?\b", re.IGNORECASE)
    found = []
    for text in topics.values():
        for section in re.split(r"^(?=## )", text, flags=re.MULTILINE):
            first_line, _, _ = section.partition("\n")
            if heading.search(first_line):
                found.append(section.strip("\n") + "\n")
    return "\n".join(found)


def _read_table(text: str) -> list[tuple[str, str]]:
    """Return the first two columns of the table on a page, without its head."""
    plain = text.replace("`", "")
    rows: list[tuple[str, str]] = re.findall(r"^\| *(.+?) *\| *(.+?) *\|.*$", plain, re.MULTILINE)
    return rows[2:]
