"""Reading of config.yaml files, cached by content."""

from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from goose_like.config.paths import kept_folder
from goose_like.core.gc_pause import pause_gc
from goose_like.sdk.diagnostics import ParseResult
from goose_like.sdk.parse_cache import ParseCache

from .config_file import Definition


def read_definition(file: Path) -> ParseResult[Definition]:
    """Read a config.yaml. Never raise; with a diagnostic that is no warning there is no value."""
    from .document import read_document  # a start with unchanged files needs no parser
    from .parser import parse_definition

    result = read_document(file)
    if result.value is None:
        return ParseResult[Definition](diagnostics=result.diagnostics)
    return parse_definition(result.value)


def read_definitions(files: Iterable[Path]) -> dict[Path, ParseResult[Definition]]:
    """Read several files like `read_definition`, from the cache if their content was parsed before."""
    with pause_gc(), closing(ParseCache(kept_folder() / "components.sqlite")) as cache:
        return dict(cache.parse_files(ParseResult[Definition], files, read_definition))
