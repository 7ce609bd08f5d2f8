"""The front matter of Markdown files: YAML between two lines `---`, also as other agents write it."""

import json
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from goose_like.core.errors import GooseLikeError

from .yaml_source import YamlSource, read_yaml

_BLANKS = " \t"
_LIST_KEYS = ("allowed-tools", "tools")


def split_front_matter(file: Path, text: str, plain_keys: Collection[str]) -> tuple[YamlSource | None, str]:
    """Split a text into its front matter, None without one, and the text after it.

    Other agents read the values of `plain_keys` as plain text: `argument-hint: [FILE] [WHO]` is no YAML.

    Raises:
        GooseLikeError: the front matter has no end, or is invalid.
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    first, *lines = text.split("\n")
    if first.rstrip(_BLANKS) != "---":
        return None, text
    end = next((number for number, line in enumerate(lines) if line.rstrip(_BLANKS) == "---"), None)
    if end is None:
        raise GooseLikeError(f"{file}, line 1: the front matter has no end; add a line --- after it")
    front = ["", *_quote_values(lines[:end], plain_keys), ""]  # line 1 of the front matter is line 2 of the file
    return read_yaml(file, {file: "\n".join(front)}), "\n".join(lines[end + 1 :])


def _quote_values(lines: Sequence[str], plain_keys: Collection[str]) -> Iterator[str]:
    for line, following in zip(lines, [*lines[1:], ""], strict=False):
        key, _, value = line.partition(":")
        text = value.strip(_BLANKS)
        is_yaml = not text or text[0] in "\"'|>" or (text[0] == "[" and key in _LIST_KEYS)
        is_continued = following[:1] in tuple(_BLANKS) and following.strip() != ""
        is_plain = key in plain_keys and value[:1] in tuple(_BLANKS) and not is_yaml and not is_continued
        yield f"{key}: {json.dumps(text, ensure_ascii=False)}" if is_plain else line
