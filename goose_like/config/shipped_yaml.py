"""YAML files that packages ship: their values are kept, because the import of the parser takes 15 ms of a start."""

from typing import Any

from .kept_values import compute_once


def parse_shipped(text: str) -> Any:
    """Return the values of a YAML text, an empty mapping if it has none. An equal text is parsed once on each machine.

    Raises:
        YamlError: the text is invalid.
    """
    return compute_once("shipped-yaml", text, _parse)


def _parse(text: str) -> Any:
    from .yaml_reader import parse_document

    data, node = parse_document(text)
    if node is None:
        return {}
    return data
