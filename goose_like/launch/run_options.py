"""The options of a one-shot run, and its task."""

import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from goose_like.config.foreign_text import parse_json
from goose_like.config.profile import Limits, Profile
from goose_like.core.dataclass import dataclass
from goose_like.core.errors import UsageError
from goose_like.core.text_file import TextFile
from goose_like.terminal.escape import escape_controls
from goose_like.terminal.interaction import is_terminal

from .command_line import OutputFormat, TaskOptions
from .piped_input import MAX_TASK_BYTES, has_piped_text, read_standard_input

if TYPE_CHECKING:
    from goose_like.providers.json_answer import AnswerSchema

_FILE_NAME = re.compile(r"\S+\.(md|txt|prompt)")


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options of a one-shot run: its task, limits and output.

    With `is_plain` the task attaches no files: its author is not the person. `change` changes the profile.
    `limits` has values for fields of `Limits`; None stands for the limit of the profile. Only a text that `is_typed`,
    on the command line, can be a slash command. The answer fits the `answer_schema`, and the `answer_file`, an absolute
    path, gets it too. The `receipt_file` is an absolute path, too.
    """

    text: str
    limits: Mapping[str, float | None]
    output_format: OutputFormat = "text"
    is_quiet: bool = False
    is_typed: bool = False
    answer_schema: "AnswerSchema | None" = None
    answer_file: Path | None = None
    receipt_file: Path | None = None
    is_plain: bool = False
    change: Callable[[Profile], Profile] | None = None

    def limit(self, profile: Profile) -> Limits:
        """Return the limits of a profile with those that the options set instead."""
        given = {name: value for name, value in self.limits.items() if value is not None}
        return profile.limits.model_copy(update=given)


def list_limits(wanted: TaskOptions) -> dict[str, float | None]:
    """Return the limits of the command line by the names of the fields of `Limits`."""
    return {
        "steps": wanted.max_steps,
        "cost_usd": wanted.max_cost,
        "tokens": wanted.max_tokens,
        "time_s": wanted.timeout,
    }


def read_schema(text: str) -> "AnswerSchema":
    """Read the JSON schema of an answer: a text that begins with `{`, else the name of a file.

    Raises:
        UsageError: it cannot be read, or is no JSON schema.
    """
    from goose_like.providers.json_answer import AnswerSchema  # imported here: few runs have a schema

    if not text.lstrip().startswith("{"):
        text = _read_schema_file(text)
    try:
        return AnswerSchema.read(parse_json(text))
    except ValueError as error:
        raise UsageError(f"--json-schema is no JSON: {error}; name a file with a JSON schema, or write one") from error


def _read_schema_file(name: str) -> str:
    try:
        return Path(name).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise UsageError(f"--json-schema {name}: {error.strerror}; name a file, or write a schema") from error


def find_output_file(option: str, name: str | None) -> Path | None:
    """Return the absolute path of a file that a run will write, before anything is spent on it.

    Raises:
        UsageError: no file can be there.
    """
    if name is None:
        return None
    file = Path.cwd() / name
    if file.is_dir() or not file.parent.is_dir():
        raise UsageError(f"{option} {name}: no file can be written there; name a file in a folder that exists")
    return file


def find_receipt_file(name: str | None) -> Path | None:
    """Return the absolute path of the file for the receipt.

    Raises:
        UsageError: no file can be there, or its name has another ending than those of the two formats.
    """
    file = find_output_file("--receipt", name)
    if file and file.suffix not in (".json", ".md"):
        raise UsageError(f"--receipt {name}: the name must end with .json or .md")
    return file


def read_task(words: Sequence[str], file: str | None, example: str) -> tuple[str, bool]:
    """Return the task from the command line, a file, or standard input, and whether it begins with typed words.

    `example` appears in the error message.

    A single word that names a file stands for its text, as in goose 0.9. Text that comes through standard input follows
    the words or the file. `-` waits for such text.
    """
    if words and file is not None:
        raise UsageError("give the task as TEXT or with -i FILE, not both")
    if file is None and len(words) == 1:
        word = words[0]
        if os.path.isfile(word):
            words = []
            file = word
            print(f"goose-like: the task is the text of the file {escape_controls(file)}", file=sys.stderr)
        elif _FILE_NAME.fullmatch(word) and not word.startswith("@"):
            raise UsageError(f"there is no file {word!r}; a task has more than one word")
    is_nothing_given = not words and file is None
    if is_nothing_given and is_terminal(sys.stdin):
        raise UsageError(f"give a task: goose-like {example}, or -i FILE, or - for standard input")
    is_dash = words[-1:] == ["-"]
    if is_dash:
        words = words[:-1]
    typed = " ".join(words)
    parts = [typed, *_read_texts(file, is_asked_for=is_dash or is_nothing_given)]
    task = "\n\n".join(filter(None, parts))
    if not task.strip():
        raise UsageError(f"the task is empty; say what to do: goose-like {example}")
    return task, typed != ""


def _read_texts(file: str | None, *, is_asked_for: bool) -> list[str]:
    """Read the texts of a task from a file and from standard input, which may be a pipe that nobody asked for."""
    texts = []
    try:
        if file is not None:
            with Path(file).open("rb") as source:
                data = source.read(MAX_TASK_BYTES + 1)
            texts.append(_decode_task(data, file))
        if is_asked_for or has_piped_text():
            data = read_standard_input(is_asked_for=is_asked_for)
            texts.append(_decode_task(data, "standard input"))
    except OSError as error:
        raise UsageError(f"cannot read the task from {error.filename!r}: {error.strerror}") from error
    return texts


def _decode_task(data: bytes, source: str) -> str:
    """Decode the text of a task. Tell the model and the person if the bytes do not tell the encoding."""
    if len(data) > MAX_TASK_BYTES:
        raise UsageError(f"{source} has more than {MAX_TASK_BYTES:,} bytes; name a file with it in the task instead")
    text = TextFile.decode(data)
    if text is None:
        raise UsageError(f"{source} is binary, not text; name the file in the task instead")
    if not text.is_guess:
        return text.exact
    print(f"goose-like: {escape_controls(source)}: {text.encoding_note}", file=sys.stderr)
    return f"[{source}: {text.encoding_note}]\n{text.exact}"
