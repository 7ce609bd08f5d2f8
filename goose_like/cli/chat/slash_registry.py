"""All slash commands of a session: from packages, from the toolkits in use, and from Markdown files.

The command of a file sends the text of the file, with the arguments filled in, to the model.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path, PurePath
from typing import Any, cast

from goose_like.agent.slash_command import SlashCommand, make_command
from goose_like.config.entry_points import (
    describe_unused_entry_point,
    list_names,
    list_unused_entry_points,
    load_entry_point,
)
from goose_like.config.paths import config_folder
from goose_like.config.trust import COMMANDS, ProjectConfig
from goose_like.config.yaml_source import read_yaml, validate
from goose_like.core.errors import GooseLikeError
from goose_like.core.message import FrozenModel

COMMAND_LINE = re.compile(r"/([\w-]+)(?:[:\s]\s*(.*))?", re.DOTALL)
"""A line with the name of a slash command and the text after it."""
_FRONT_MATTER = re.compile(r"---[ \t]*\n(?P<front>.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_NAME = re.compile(r"\w[\w-]*")
_ARGUMENT = re.compile(r"\"([^\"]*)\"|'([^']*)'|(\S+)")
_PLACEHOLDER = re.compile(
    r"\$(?:(?P<all>ARGUMENTS)\b|(?P<bare>[1-9])(?!\d)|\{(?P<number>[1-9])(?::-(?P<default>[^}]*))?\})"
)


class _FrontMatter(FrozenModel):
    description: str = ""
    usage: str = ""


def is_command_line(line: str) -> bool:
    """Check whether a line is a slash command or a `!command`, which goes neither to the model nor to a question."""
    return COMMAND_LINE.fullmatch(line) is not None or (line.startswith("!") and bool(line[1:].strip()))


def collect_commands(
    toolkit_commands: Mapping[str, SlashCommand], project: ProjectConfig | None
) -> tuple[dict[str, SlashCommand], list[str]]:
    """Return all commands by name, and a sentence for each one that cannot be used.

    Of commands with one name a toolkit's wins, then a package's. A file never replaces another command. `project`
    holds the trusted files of the project.
    """
    commands: dict[str, SlashCommand] = {}
    problems = []
    for name in list_names("goose_like.command"):
        try:
            function = cast(Callable[..., Any], load_entry_point("goose_like.command", name))
            commands[name] = make_command(function, name)
        except GooseLikeError as error:
            problems.append(f"skipped: {error}")
    problems += [
        f"skipped: {describe_unused_entry_point(point)}" for point in list_unused_entry_points("goose.command")
    ]
    commands |= toolkit_commands
    for path, file, text in _list_files(project):
        name = "-".join(path.with_suffix("").parts)
        try:
            if not _NAME.fullmatch(name):
                raise GooseLikeError(f"{file}: use only letters, digits, '-' and '_' in the file name")
            if other := commands.get(name):
                owner = other.source or "a command of a package or toolkit"
                raise GooseLikeError(f"{file}: the name /{name} is taken by {owner}; rename the file")
            commands[name] = _parse_command(name, file, _read_file(file) if text is None else text)
        except GooseLikeError as error:
            problems.append(f"skipped: {error}")
    return commands, problems


def _list_files(project: ProjectConfig | None) -> Iterator[tuple[PurePath, Path, str | None]]:
    """Yield the path below the folder of commands, the file, and its text. The text of a person's file is None."""
    folder = config_folder() / COMMANDS
    for file in sorted(folder.rglob("*.md")):
        if file.is_file():
            yield file.relative_to(folder), file, None
    for name, text in sorted(project.files.items()) if project else ():
        if project and name.startswith(f"{COMMANDS}/"):
            yield PurePath(name).relative_to(COMMANDS), project.get_path(name), text


def _read_file(file: Path) -> str:
    try:
        return file.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise GooseLikeError(f"cannot read {file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise GooseLikeError(f"{file}, line {line}: not UTF-8 text; save the file as UTF-8") from error


def _parse_command(name: str, file: Path, text: str) -> SlashCommand:
    text = text.replace("\r\n", "\n")
    front, body = _FrontMatter(), text
    if match := _FRONT_MATTER.match(text):
        source = read_yaml(file, {file: f"\n{match['front']}"})  # line 1 of the front matter is line 2 of the file
        front, body = validate(_FrontMatter, source.data, source, "the front matter"), text[match.end() :]
    elif text.startswith("---\n"):
        raise GooseLikeError(f"{file}, line 1: the front matter has no end; add a line --- after it")
    body = body.strip()
    if not body:
        raise GooseLikeError(f"{file} is empty; write the message for the model")
    summary = front.description or body.partition("\n")[0].lstrip("# ")
    usage = front.usage or ("[ARGUMENTS]" if _PLACEHOLDER.search(body) else "")
    return SlashCommand(name, summary, lambda context, words: fill_arguments(body, words), usage, source=str(file))


def fill_arguments(body: str, words: str) -> str:
    """Replace `$ARGUMENTS`, `$1` to `$9` and `${1:-default}` in a text; without any of these, append the words."""
    arguments = [next(filter(None, match.groups()), "") for match in _ARGUMENT.finditer(words)]

    def fill(placeholder: re.Match[str]) -> str:
        if placeholder["all"]:
            return words
        number = int(placeholder["bare"] or placeholder["number"])
        argument = arguments[number - 1] if number <= len(arguments) else ""
        return argument or placeholder["default"] or ""

    if _PLACEHOLDER.search(body):
        return _PLACEHOLDER.sub(fill, body)
    return f"{body}\n\n{words}" if words else body
