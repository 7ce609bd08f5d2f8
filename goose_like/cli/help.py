"""What `help` prints: a command's page, of its own words and the tables of the docs, and the docs' pages themselves."""

import re
from importlib.resources import files
from pathlib import Path

from typer import Typer
from typer.main import get_command

from goose_like.core.entry_points import did_you_mean
from goose_like.core.errors import UsageError

_TABLES = {"Exit codes": "exit-codes", "Files": "files", "Environment": "environment"}
"""The sections that every command's page has, and the pages whose tables they are."""


def find_docs_folder() -> Path:
    """Find the folder of the documentation pages: in the package, or in the checkout (editable install)."""
    package = Path(str(files("goose_like")))
    return package / "docs" if (package / "docs").is_dir() else package.parent / "docs"


def topics() -> list[str]:
    """The pages of the docs by name."""
    return sorted(
        name.removesuffix(".md") for file in find_docs_folder().iterdir() if (name := file.name).endswith(".md")
    )


def names_below(app: Typer, words: list[str]) -> list[str]:
    """What `help` may be followed by after these words."""
    commands = getattr(get_command(app), "commands", {})
    for word in words:
        commands = getattr(commands.get(word), "commands", {})
    shown = [name for name, command in commands.items() if not command.hidden]
    return shown if words else [*shown, *topics()]


def page(app: Typer, words: list[str]) -> str:
    """The page of a command, else that of a topic: a page of the docs or, by a word of their headings, sections.

    Raises:
        UsageError: when there is neither; the text names the nearest.
    """
    command = get_command(app)
    context = command.make_context("goose-like", [], resilient_parsing=True)
    for number, word in enumerate(words):
        below = getattr(context.command, "commands", {})
        if word not in below:
            if len(words) == 1 and (text := _topic(word)):
                return text
            raise UsageError(f"no help for {' '.join(words)!r}; {did_you_mean(word, names_below(app, words[:number]))}")
        context = below[word].make_context(word, [], parent=context, resilient_parsing=True)
    command = context.command
    formatter = context.make_formatter()
    command.format_usage(context, formatter)
    command.format_help_text(context, formatter)
    command.format_options(context, formatter)
    for title, name in _TABLES.items():
        with formatter.section(title):
            formatter.write_dl(_rows(_text(name)))
    command.format_epilog(context, formatter)
    with formatter.section("See also"):
        formatter.write_text(", ".join(f"goose-like help {name}" for name in topics()))
    return formatter.getvalue()


def _text(name: str) -> str:
    return find_docs_folder().joinpath(f"{name}.md").read_text(encoding="utf-8")


def _topic(word: str) -> str | None:
    every = {name: _text(name) for name in topics()}
    if word in every:
        return every[word]
    named = re.compile(rf"\b{re.escape(word.removesuffix('s'))}s?\b", re.IGNORECASE)
    sections = [part for text in every.values() for part in re.split(r"^(?=## )", text, flags=re.MULTILINE)]
    return "\n".join(part.strip("\n") + "\n" for part in sections if named.search(part.partition("\n")[0])) or None


def _rows(text: str) -> list[tuple[str, str]]:
    """The first two columns of a page's table, without its head."""
    rows = re.findall(r"^\| *(.+?) *\| *(.+?) *\|.*$", text, re.MULTILINE)[2:]
    return [(first.replace("`", ""), second.replace("`", "")) for first, second in rows]
