"""Help pages: for commands from their options, for topics from the documentation."""

import re
from importlib.resources import files
from pathlib import Path

from typer import Typer
from typer.main import get_command

from goose_like.core.errors import UsageError
from goose_like.core.spelling import did_you_mean

_TABLES = {"Exit codes": "exit-codes", "Files": "files", "Environment": "environment"}
"""Sections on the page of every command, with the documentation pages of their tables."""
_LINK = re.compile(r"(?P<image>!)?\[(?P<label>[^\]\n]+)\]\((?P<target>[^)\s]+)\)(?(image)\n*)")
_PAGE = re.compile(r"([\w-]+)\.md(?:#.*)?")


def find_docs_folder() -> Path:
    """Find the folder of the documentation pages: in the package, or in the checkout (editable install)."""
    package = Path(str(files("goose_like")))
    return package / "docs" if (package / "docs").is_dir() else package.parent / "docs"


def list_topics() -> list[str]:
    """Return the names of the documentation pages."""
    return sorted(file.stem for file in find_docs_folder().glob("*.md"))


def list_topics_below(app: Typer, words: list[str]) -> list[str]:
    """Return the words that can follow these words after `help`."""
    commands = getattr(get_command(app), "commands", {})
    for word in words:
        commands = getattr(commands.get(word), "commands", {})
    names = [name for name, command in commands.items() if not command.hidden]
    return names if words else [*names, *list_topics()]


def find_page(app: Typer, words: list[str]) -> str:
    """Return the page of a command or topic, or all sections of the documentation with a word in their headings.

    A word that names a command and a topic gets both.
    """
    context = get_command(app).make_context("goose-like", [], resilient_parsing=True)
    for number, word in enumerate(words):
        commands = getattr(context.command, "commands", {})
        if word not in commands:
            if len(words) == 1 and (text := _find_topic(word)):
                return text
            hint = did_you_mean(word, list_topics_below(app, words[:number]))
            raise UsageError(f"no help for {' '.join(words)!r}; {hint}")
        context = commands[word].make_context(word, [], parent=context, resilient_parsing=True)
    formatter, topics = context.make_formatter(), _read_topics()
    for title, name in _TABLES.items():
        with formatter.section(title):
            formatter.write_dl(_read_table(topics[name]))
    with formatter.section("See also"):
        formatter.write_text(", ".join(f"goose-like help {name}" for name in topics))
    topic = topics[words[0]] if len(words) == 1 and words[0] in topics else ""
    return "\n\n".join(filter(None, (context.get_help(), formatter.getvalue(), topic)))


def _read_topics() -> dict[str, str]:
    files = sorted(find_docs_folder().glob("*.md"))
    return {file.stem: _LINK.sub(_write_link, file.read_text(encoding="utf-8")) for file in files}


def _write_link(link: re.Match[str]) -> str:
    """Return a link as words for a terminal: a page by the command that shows it, and no image."""
    label, target = link["label"], link["target"]
    if link["image"] or target.startswith("#"):
        return "" if link["image"] else label
    page = _PAGE.fullmatch(target)
    place = f"`goose-like help {page[1]}`" if page else target
    return place if label.strip("`") in (target.partition("#")[0], place) else f"{label} ({place})"


def _find_topic(word: str) -> str | None:
    topics = _read_topics()
    if word in topics:
        return topics[word]
    heading = re.compile(rf"\b{re.escape(word.removesuffix('s'))}s?\b", re.IGNORECASE)
    sections = [part for text in topics.values() for part in re.split(r"^(?=## )", text, flags=re.MULTILINE)]
    return "\n".join(part.strip("\n") + "\n" for part in sections if heading.search(part.partition("\n")[0])) or None


def _read_table(text: str) -> list[tuple[str, str]]:
    """Return the first two columns of the table on a page, without its head."""
    rows = re.findall(r"^\| *(.+?) *\| *(.+?) *\|.*$", text, re.MULTILINE)[2:]
    return [(first.replace("`", ""), second.replace("`", "")) for first, second in rows]
