"""YAML files that packages ship: their values are kept, because the import of the parser takes 15 ms of a start."""

import json
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from .kept_values import KeptValues
from .paths import cache_folder


def parse_shipped(text: str) -> Any:
    """Return the values of a YAML text, an empty mapping if it has none. An equal text is parsed once on each machine.

    Raises:
        YamlError: the text is invalid.
    """
    kept = _open_kept(cache_folder())
    key = sha256(text.encode(errors="surrogatepass")).hexdigest()
    found = kept.get(key)
    if found is not None:
        return found
    from .yaml_reader import parse_document

    data, node = parse_document(text)
    if node is None:
        return {}
    if json.loads(json.dumps(data)) == data:  # else it has keys that JSON lacks
        kept.put(key, data)
        kept.save()
    return data


@cache
def _open_kept(folder: Path) -> KeptValues:
    return KeptValues("shipped-yaml")
