"""Slash commands from Markdown files: the text of the file, with the arguments filled in, is sent to the model."""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path, PurePath

from pydantic import ValidationError

from goose_like.agent.slash_command import SlashCommand
from goose_like.config.paths import config_folder
from goose_like.config.trust import COMMANDS, ProjectConfig
from goose_like.config.yaml_source import YamlSource, describe_validation_error, parse_yaml
from goose_like.core.entry_points import did_you_mean
from goose_like.core.errors import GooseLikeError
from goose_like.core.message import FrozenModel

LIMIT_BYTES = 256_000

_FRONT_MATTER = re.compile(r"---[ \t]*\n(?P<front>.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_NAME = re.compile(r"\w[\w-]*")
_ARGUMENT = re.compile(r"\"([^\"]*)\"|'([^']*)'|(\S+)")
_PLACEHOLDER = re.compile(
    r"\$(?:(?P<all>ARGUMENTS)\b|(?P<bare>[1-9])(?!\d)|\{(?P<number>[1-9])(?::-(?P<default>[^}]*))?\})"
)


class _FrontMatter(FrozenModel):
    description: str = ""
    usage: str = ""


def add_command_files(
    commands: Mapping[str, SlashCommand], project: ProjectConfig | None
) -> tuple[dict[str, SlashCommand], list[str]]:
    """Return the commands with those of the person's and the project's files, and a sentence for each bad file.

    `project` holds the trusted files of the project. A file never replaces a command of the same name.
    """
    result, problems = dict(commands), []
    for path, file, read in _list_files(project):
        name = "-".join(path.with_suffix("").parts)
        try:
            if not _NAME.fullmatch(name):
                raise GooseLikeError(f"{file}: use only letters, digits, '-' and '_' in the file name")
            if other := result.get(name):
                owner = other.source or "a command of a package or toolkit"
                raise GooseLikeError(f"{file}: the name /{name} is taken by {owner}; rename the file")
            result[name] = _parse_command(name, file, read())
        except GooseLikeError as error:
            problems.append(f"skipped: {error}")
    return result, problems


def _list_files(project: ProjectConfig | None) -> Iterator[tuple[PurePath, Path, Callable[[], str]]]:
    """Yield each file with its path below the folder of commands and a function that returns its text."""
    folder = config_folder() / COMMANDS
    for file in sorted(folder.rglob("*.md")):
        if file.is_file():
            yield file.relative_to(folder), file, partial(_read_file, file)
    if project:
        for name, text in sorted(project.files.items()):
            if name.startswith(f"{COMMANDS}/"):
                yield PurePath(name).relative_to(COMMANDS), project.get_path(name), partial(str, text)


def _read_file(file: Path) -> str:
    try:
        with file.open("rb") as source:
            data = source.read(LIMIT_BYTES + 1)
        if len(data) > LIMIT_BYTES:
            raise GooseLikeError(f"{file} has more than {LIMIT_BYTES:,} bytes; make it shorter")
        return data.decode("utf-8-sig")
    except OSError as error:
        raise GooseLikeError(f"cannot read {file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise GooseLikeError(f"{file}, line {line}: not UTF-8 text; save the file as UTF-8") from error


def _parse_command(name: str, file: Path, text: str) -> SlashCommand:
    text = text.replace("\r\n", "\n")
    front, body = _FrontMatter(), text
    if match := _FRONT_MATTER.match(text):
        front, body = _parse_front_matter(name, file, match["front"]), text[match.end() :]
    elif text.startswith("---\n"):
        raise GooseLikeError(f"{file}, line 1: the front matter has no end; add a line --- after it")
    body = body.strip()
    if not body:
        raise GooseLikeError(f"{file} is empty; write the message for the model")
    summary = front.description or body.partition("\n")[0].lstrip("# ")
    usage = front.usage or ("[ARGUMENTS]" if _PLACEHOLDER.search(body) else "")
    return SlashCommand(name, summary, lambda context, words: fill_arguments(body, words), usage, source=str(file))


def _parse_front_matter(name: str, file: Path, text: str) -> _FrontMatter:
    data = parse_yaml(file, f"\n{text}")  # line 1 of the text is line 2 of the file
    try:
        return _FrontMatter.model_validate(data)
    except ValidationError as error:
        source = YamlSource(name, file, data)
        hint = lambda path: did_you_mean(str(path[-1]), _FrontMatter.model_fields)  # noqa: E731
        raise GooseLikeError(describe_validation_error(error, source, hint, "the front matter")) from error


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
