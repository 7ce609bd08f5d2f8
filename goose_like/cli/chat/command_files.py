"""Commands as Markdown files: each says its text to the model, with the arguments in it."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePath

from pydantic import ValidationError

from goose_like.agent.slash_command import Command
from goose_like.config.paths import config_folder
from goose_like.config.trust import COMMANDS, Project
from goose_like.config.yaml_source import Source, explain, parsed
from goose_like.core.entry_points import did_you_mean
from goose_like.core.errors import GooseLikeError
from goose_like.core.message import Value

LIMIT_BYTES = 256_000

_FRONT = re.compile(r"---[ \t]*\n(?P<front>.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_NAME = re.compile(r"\w[\w-]*")
_ARGUMENT = re.compile(r"\"([^\"]*)\"|'([^']*)'|(\S+)")
_PLACE = re.compile(
    r"\$(?:(?P<all>ARGUMENTS)\b|(?P<bare>[1-9])(?!\d)|\{(?P<number>[1-9])(?::-(?P<otherwise>[^}]*))?\})"
)


class _Front(Value):
    description: str = ""
    usage: str = ""


@dataclass(frozen=True, slots=True)
class _Found:
    """A file's text by the command's name; `read` raises where it can't be read."""

    name: str
    file: Path
    read: Callable[[], str]


def with_files(known: Mapping[str, Command], project: Project | None) -> tuple[dict[str, Command], list[str]]:
    """The known commands, then those of the person's files, then the project's; and a sentence for each that is not.

    `project` is what of it is trusted. None takes the name of one before it.
    """
    commands, told = dict(known), []
    for found in [*_own(), *(_of(project) if project else ())]:
        try:
            if not _NAME.fullmatch(found.name):
                raise GooseLikeError(f"{found.file}: a command's name has letters, digits, '-' and '_' only; rename it")
            if taken := commands.get(found.name):
                by = taken.source or "a command that comes with a package or toolkit"
                raise GooseLikeError(f"{found.file}: the name /{found.name} is taken by {by}; rename the file")
            commands[found.name] = _command(found, found.read())
        except GooseLikeError as error:
            told.append(f"left out: {error}")
    return commands, told


def _own() -> Iterator[_Found]:
    folder = config_folder() / COMMANDS
    for file in sorted(folder.rglob("*.md")):
        if file.is_file():
            yield _Found(_name(file.relative_to(folder)), file, partial(_read, file))


def _of(project: Project) -> Iterator[_Found]:
    for name in sorted(project.files):
        path = PurePath(name)
        if path.parts[0] == COMMANDS:
            yield _Found(
                _name(path.relative_to(COMMANDS)), project.file(name), partial(project.files.__getitem__, name)
            )


def _name(path: PurePath) -> str:
    return "-".join(path.with_suffix("").parts)


def _read(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            data = opened.read(LIMIT_BYTES + 1)
        if len(data) > LIMIT_BYTES:
            raise GooseLikeError(f"{file} has more than {LIMIT_BYTES:,} bytes; make it shorter")
        return data.decode("utf-8-sig")
    except OSError as error:
        raise GooseLikeError(f"{file} can't be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise GooseLikeError(f"{file}, line {line}: this is no UTF-8 text; save it as UTF-8") from error


def _command(found: _Found, text: str) -> Command:
    """What the text of a file says.

    Raises:
        GooseLikeError: its front matter is wrong or there is nothing else; the text names the line.
    """
    text = text.replace("\r\n", "\n")
    front, body = _Front(), text
    if match := _FRONT.match(text):
        front, body = _front(found, match["front"]), text[match.end() :]
    elif text.startswith("---\n"):
        raise GooseLikeError(f"{found.file}, line 1: what begins here has no end; write a line --- after it")
    body = body.strip()
    if not body:
        raise GooseLikeError(f"{found.file} says nothing; write what is to be said to the model")
    about = front.description or body.partition("\n")[0].lstrip("# ")
    usage = front.usage or ("[ARGUMENTS]" if _PLACE.search(body) else "")
    return Command(found.name, about, lambda desk, words: filled(body, words), usage, source=str(found.file))


def _front(found: _Found, text: str) -> _Front:
    data = parsed(found.file, f"\n{text}")  # its first line is the file's second
    try:
        return _Front.model_validate(data)
    except ValidationError as error:
        source = Source(found.name, found.file, data)
        near = lambda path: did_you_mean(str(path[-1]), _Front.model_fields)  # noqa: E731
        raise GooseLikeError(explain(error, source, near, "what stands between ---")) from error


def filled(body: str, words: str) -> str:
    """The text with the words in the places of `$ARGUMENTS`, `$1` to `$9`, `${1:-default}`; else they follow it."""
    arguments = [next(filter(None, found.groups()), "") for found in _ARGUMENT.finditer(words)]

    def put(place: re.Match[str]) -> str:
        if place["all"]:
            return words
        number = int(place["bare"] or place["number"])
        given = arguments[number - 1] if number <= len(arguments) else ""
        return given or place["otherwise"] or ""

    if _PLACE.search(body):
        return _PLACE.sub(put, body)
    return f"{body}\n\n{words}" if words else body
