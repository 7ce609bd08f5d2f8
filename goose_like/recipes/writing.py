"""New recipes: written from the messages of a session, or to fill in."""

import os
import re
from collections.abc import Sequence
from pathlib import Path
from textwrap import indent

from goose_like.config.paths import config_folder
from goose_like.config.yaml_reader import format_document
from goose_like.core.errors import GooseLikeError, UsageError
from goose_like.workspace.files import write_file

from .recipe import load_recipe
from .trust import trust_recipe

_NAME = re.compile(r"\w[\w-]*")
_EXAMPLE = "Write the notes for version {{ version }} into NOTES.md, from the commits since the last tag."
_PARAMETERS = """\
parameters:
  - key: version
    input_type: string  # or number, boolean, date, file, select, object, array
    requirement: required  # or optional (with a default), user_prompt
    description: the version, such as 2.1.0
"""
_CHECKS = """\
# The work is done when these commands succeed:
# retry:
#   max_retries: 2
#   checks:
#     - type: shell
#       command: test -s NOTES.md
"""
_ADVICE = "# Replace what differs from time to time by a name in double braces, and declare it under `parameters`.\n"


def write_recipe(folder: Path, name: str, messages: Sequence[str], checks: Sequence[str] = ()) -> Path:
    """Write a recipe that sends these messages of a person, or without any an example. The person trusts it.

    Raises:
        UsageError: the name is wrong, there is such a recipe, or a link leads elsewhere: a repository may have links.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(f"{name!r} is no name for a recipe; use letters, digits, - and _")
    file = folder / f"{name}.yaml"
    if os.path.lexists(file):
        raise UsageError(f"{file} already exists; choose another name")
    real = folder.resolve()
    is_personal = folder.is_relative_to(config_folder())  # whose links are the person's own
    if real != folder and not is_personal:
        raise UsageError(f"{folder} is a link, or lies behind one, to {real}; remove the link")
    text = _format_example(name)
    if messages:
        text = _format_recipe(name, messages, checks)
    try:
        write_file(real / file.name, text.encode())  # follows no link
    except OSError as error:
        raise GooseLikeError(f"{file} can't be written: {error.strerror}") from error
    trust_recipe(load_recipe(file).fill({}, keeps_missing=True))
    return file


def _format_example(name: str) -> str:
    head = _format_head(name, "Writes release notes.")
    return f"{head}{_PARAMETERS}{_format_prompt(_EXAMPLE)}{_CHECKS}"


def _format_recipe(name: str, messages: Sequence[str], checks: Sequence[str]) -> str:
    first, *others = map(_escape_template, messages)
    text = first
    if others:
        wishes = "\n- ".join(["", *others])
        text = f"{first}\n\nAlso:{wishes}"
    end = _CHECKS
    if checks:
        commands = [{"type": "shell", "command": _escape_template(check)} for check in checks]
        end = format_document({"retry": {"max_retries": 3, "checks": commands}})
    description = first.strip().partition("\n")[0]
    return f"{_ADVICE}{_format_head(name, description)}{_format_prompt(text)}{end}"


def _format_head(name: str, description: str) -> str:
    title = name.replace("-", " ").replace("_", " ").capitalize()
    return format_document({"version": "1.0.0", "title": title, "description": description})


def _format_prompt(text: str) -> str:
    """Return a prompt as a block of YAML, or in quotes if it has characters that a block cannot have."""
    is_printable = all(character.isprintable() or character == "\n" for character in text)
    if not is_printable:
        return format_document({"prompt": text})
    block = indent(text.strip("\n"), "  ", bool).rstrip()
    opening = "prompt: |2" if text.startswith(" ") else "prompt: |"  # the first line tells the indentation
    return f"{opening}\n{block}\n"


def _escape_template(text: str) -> str:
    """Return a text in which nothing is a template."""
    return re.sub(r"\{[{%#]", lambda match: f"{{{{ '{match[0]}' }}}}", text)
