"""All slash commands of a session: from packages, from the toolkits in use, and from Markdown files."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Any, cast

from goose_like.agent.slash_command import SlashCommand, make_command
from goose_like.config.bundles import list_broken_bundles, list_bundles
from goose_like.config.entry_points import (
    describe_unused_entry_point,
    list_names,
    list_unused_entry_points,
    load_entry_point,
)
from goose_like.config.paths import COMMANDS, OTHER_COMMANDS, config_folder
from goose_like.config.personal_files import list_personal_files
from goose_like.config.project_files import list_below
from goose_like.config.trust import ProjectConfig
from goose_like.core.errors import GooseLikeError
from goose_like.core.spelling import did_you_mean

from .command_files import parse_command

COMMAND_LINE = re.compile(r"/([\w-]+)(?:[:\s]\s*(.*))?", re.DOTALL)
"""A line with the name of a slash command and the text after it."""
_SHIPPED = Path(__file__).parent / "markdown_commands"
REPLACEABLE = ("commit", "init", "review")
"""Commands of ours that a file with the same name replaces."""

_OTHER_NAMES = {
    **dict.fromkeys(("new", "reset"), "/clear"),
    **dict.fromkeys(("quit", "q", "bye"), "/exit"),
    **dict.fromkeys(("continue", "sessions"), "/resume"),
    **dict.fromkeys(("usage", "stats"), "/cost"),
    **dict.fromkeys(("status", "config", "settings"), "/context, /profile and /model"),
    **dict.fromkeys(("approvals", "allowed-tools", "sandbox"), "/permissions and /mode"),
    **dict.fromkeys(("ps", "bashes"), "/tasks"),
    **dict.fromkeys(("memory", "hints"), "AGENTS.md; /init writes one"),
    "tools": "/toolkits",
    "mcp": "goose-like mcp add: goose-like help mcp",
    **dict.fromkeys(("login", "logout"), "goose-like setup"),
    "agents": "files in .goose-like/agents: goose-like help more-toolkits",
}
"""Commands of other agents, and what does the same here."""

_LONG_NAME = re.compile(r"/([\w-]+(?::[\w-]+)+)(?:\s+(.*))?", re.DOTALL)
_NAME = re.compile(r"\w[\w-]*(:\w[\w-]*)*")


def is_command_line(line: str) -> bool:
    """Check whether a line is a slash command or a `!command`, which goes neither to the model nor to a question."""
    if line.startswith("!"):
        return line[1:].strip() != ""
    return COMMAND_LINE.fullmatch(line) is not None


def split_command_line(line: str, commands: Mapping[str, SlashCommand]) -> tuple[str, str] | None:
    """Return the name of a command and the text after it, or None for a message.

    The name of a command in a folder is `/git:log`, or `/git-log`.
    """
    match = COMMAND_LINE.fullmatch(line)
    if not match:
        return None
    long = _LONG_NAME.fullmatch(line)
    if long and long[1] in commands:
        match = long
    name = _find_name(match[1], commands)
    words = match[2] or ""
    return name, words.strip()


def _find_name(name: str, commands: Mapping[str, SlashCommand]) -> str:
    """Find the name of a command in a folder that is typed with hyphens; return any other name as it is."""
    if name in commands:
        return name
    for each in commands:
        if ":" in each and each.replace(":", "-") == name:
            return each
    return name


def complete_name(name: str, commands: Mapping[str, SlashCommand]) -> str:
    """Return the only command that begins with these letters, as the menu shows it, else the name as it is."""
    if name in commands or name in _OTHER_NAMES or len(name) < 2:
        return name
    longer = [each for each in commands if each.startswith(name)]
    return longer[0] if len(longer) == 1 else name


def describe_unknown(name: str, commands: Mapping[str, SlashCommand]) -> str:
    """Format the error text for an unknown command, with what other agents mean by it, or the nearest names."""
    longer = [f"/{each}" for each in sorted(commands) if each.startswith(name)]
    if name in _OTHER_NAMES:
        hint = f"here it is {_OTHER_NAMES[name]}"
    elif longer:
        hint = f"did you mean {' or '.join(longer)}?"
    else:
        hint = did_you_mean(name, commands)
    return f"no command /{name} (to send it as a message, put a space before the /); {hint}"


def collect_commands(
    toolkit_commands: Mapping[str, SlashCommand],
    project: ProjectConfig | None,
    yielding_commands: Sequence[SlashCommand] = (),
) -> tuple[dict[str, SlashCommand], list[str]]:
    """Return all commands by name, and a sentence for each one that cannot be used.

    Of commands with one name a toolkit's wins, then a package's. A file replaces only those of `REPLACEABLE`, and the
    person's file wins over a project's. `project` holds the trusted files of the project. All others win over the
    `yielding_commands` of toolkits.
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
    texts: dict[str, str] = {}
    for path, file, brought in _list_files(project):
        name = ":".join(path.with_suffix("").parts)
        try:
            if not _NAME.fullmatch(name):
                raise GooseLikeError(f"{file}: use only letters, digits, '-' and '_' in the file name")
            text = _read_file(file) if brought is None else brought
            if texts.get(name) == text:
                continue  # a copy for another agent
            if (other := commands.get(name)) and (other.source or name not in REPLACEABLE):
                owner = other.source or "a command of a package or toolkit"
                raise GooseLikeError(f"{file}: the name /{name} is taken by {owner}; rename the file")
            commands[name], notes = parse_command(name, file, text, is_project=brought is not None)
            texts[name] = text
            problems += notes
        except GooseLikeError as error:
            problems.append(f"skipped: {error}")
    for file in sorted(_SHIPPED.glob("*.md")):
        if file.stem not in commands:
            shipped, _ = parse_command(file.stem, file, file.read_text(encoding="utf-8"))
            commands[file.stem] = replace(shipped, source="")
    problems += map("skipped: {}".format, list_broken_bundles())
    problems += _add_yielding(yielding_commands, commands)
    return commands, problems


def _add_yielding(yielding: Sequence[SlashCommand], commands: dict[str, SlashCommand]) -> list[str]:
    """Add commands whose names are free, and return a sentence for each other one."""
    problems: list[str] = []
    for command in yielding:
        other = commands.setdefault(command.name, command)
        if other is command:
            continue
        owner = other.source or "another command"
        problems.append(f"{command.source}: the name /{command.name} is taken by {owner}; the model can still use it")
    return problems


def _list_files(project: ProjectConfig | None) -> Iterator[tuple[PurePath, Path, str | None]]:
    """Yield the path below the folder of commands, the file, and its text. The text of a person's file is None."""
    folder = config_folder() / COMMANDS
    for file in sorted(folder.rglob("*.md")):
        if file.is_file():
            yield file.relative_to(folder), file, None
    yield from _list_bundle_files()
    if project is None:
        return
    for place, file in list_personal_files(project.personal, "commands"):
        yield file.relative_to(place), file, None
    for brought in (COMMANDS, *OTHER_COMMANDS):
        for name in list_below(project.files, brought):
            yield PurePath(name).relative_to(brought), project.get_path(name), project.files[name]


def _list_bundle_files() -> Iterator[tuple[PurePath, Path, str]]:
    """Yield the commands of bundles, in a folder with the name of the bundle."""
    for bundle in list_bundles():
        for name, path in bundle.commands.items():
            below = f"{name.replace(':', '/')}.md"
            for file, text in bundle.read_texts((path,)):
                yield PurePath(bundle.prefix, below), file, text


def _read_file(file: Path) -> str:
    try:
        return file.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise GooseLikeError(f"cannot read {file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise GooseLikeError(f"{file}, line {line}: not UTF-8 text; save the file as UTF-8") from error
