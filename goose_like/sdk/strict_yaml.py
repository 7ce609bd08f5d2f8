"""Strict reading of YAML files that come with plugins and components: every problem becomes a diagnostic."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import yaml

from goose_like.config.yaml_reader import StandardLoader, YamlError, compose_document, convert_yaml_errors

from .diagnostics import MAX_FILE_BYTES, Diagnostic, ParseResult

T = TypeVar("T")


def read_yaml_nodes(
    file: Path,
    kind: str,
    hint: str,
    parse: Callable[[Any, yaml.Node], ParseResult[T]],
) -> ParseResult[T]:
    """Read a YAML file as PyYAML does and parse its nodes. Never raise an exception.

    Args:
        file: The file to read.
        kind: The kind of file, for error messages: "plugin".
        hint: The end of the message about an empty file: "a plugin begins with `name: NAME`".
        parse: Builds the result from PyYAML's loader and the top node, or raises `YamlError`.
    """
    try:
        if file.is_dir():
            return build_failure(file, "this is a folder; name the file in it")
        if not file.is_file():
            return build_failure(file, "this is no file that can be read")
        if file.stat().st_size > MAX_FILE_BYTES:
            return build_failure(file, f"this is larger than {MAX_FILE_BYTES:,} bytes, and no {kind}")
        text = file.read_bytes().decode("utf-8-sig")
        loader, node = compose_document(text, StandardLoader)
        if node is None:
            return build_failure(file, f"this file is empty; {hint}", 1)
        with convert_yaml_errors(text):
            return parse(loader, node)
    except YamlError as error:
        if error.line:
            return build_failure(file, str(error), error.line)
        return build_failure(file, f"this is not valid YAML: {error}", 1)
    except UnicodeDecodeError as error:
        line = 1 + error.object.count(b"\n", 0, error.start)
        return build_failure(file, "this is no text in UTF-8; save it as such", line)
    except (OSError, ValueError, RuntimeError) as error:  # RuntimeError: a circle of links, up to Python 3.12
        reason = " ".join(str(error).split())
        return build_failure(file, f"can't be read: {reason}")


def build_failure(file: Path, text: str, line: int | None = None) -> ParseResult[Any]:
    """Build the result of a file that cannot be parsed, with one diagnostic."""
    diagnostic = Diagnostic(file=file, line=line, text=text)
    return ParseResult(diagnostics=(diagnostic,))
