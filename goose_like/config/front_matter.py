"""The front matter of Markdown files: YAML between two lines `---`, also as other agents write it."""

import json
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from goose_like.core.errors import GooseLikeError

from .yaml_source import YamlSource, read_yaml

_BLANKS = (" ", "\t")
_LIST_KEYS = ("allowed-tools", "tools")


def split_front_matter(file: Path, text: str, plain_keys: Collection[str]) -> tuple[YamlSource | None, str]:
    """Split a text into its front matter, None without one, and the text after it.

    Other agents read the values of `plain_keys` as plain text: `argument-hint: [FILE] [WHO]` is no YAML.

    Raises:
        GooseLikeError: the front matter has no end, or is invalid.
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    first, *lines = text.split("\n")
    if not _is_border(first):
        return None, text
    for index, line in enumerate(lines):
        if _is_border(line):
            # The border counts as a line, so that line 1 of the front matter is line 2 of the file.
            front = ["", *_quote_values(lines[:index], plain_keys), ""]
            source = read_yaml(file, {file: "\n".join(front)})
            return source, "\n".join(lines[index + 1 :])
    raise GooseLikeError(f"{file}, line 1: the front matter has no end; add a line --- after it")


def _is_border(line: str) -> bool:
    return line.rstrip(" \t") == "---"


def _quote_values(lines: Sequence[str], plain_keys: Collection[str]) -> Iterator[str]:
    """Yield the lines, with quotes around the values that other agents read as plain text."""
    following_lines = [*lines[1:], ""]
    for line, following in zip(lines, following_lines, strict=False):
        key, _, value = line.partition(":")
        is_plain = key in plain_keys and value.startswith(_BLANKS)
        text = value.strip(" \t")
        if is_plain and not _is_yaml(key, text) and not _is_continuation(following):
            quoted = json.dumps(text, ensure_ascii=False)
            line = f"{key}: {quoted}"
        yield line


def _is_yaml(key: str, text: str) -> bool:
    """Return whether a value must stay as it is: an empty one, a quoted or block text, or the list of a list key."""
    if text.startswith("["):
        return key in _LIST_KEYS
    return not text or text.startswith(('"', "'", "|", ">"))


def _is_continuation(line: str) -> bool:
    return line.startswith(_BLANKS) and line.strip() != ""
