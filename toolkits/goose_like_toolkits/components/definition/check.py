"""All problems of a config.yaml that can be found without running anything."""

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from goose_like.core.errors import GooseLikeError, UsageError
from goose_like.core.spelling import find_nearest_name
from goose_like.sdk.diagnostics import MAX_FILE_BYTES, Diagnostic

from .config_file import Definition
from .coordinates import Coordinates
from .document import Document, Place, format_place, read_document
from .parser import parse_definition

_RECOMMENDED = {
    "url": "where its project is",
    "developers": "who wrote it: a list of mappings with `name`",
    "licenses": "under which terms: a list of mappings with `name` and `url`",
}
_KEYS = {
    "group_id",
    "artifact_id",
    "version",
    "type",
    "as_plugin",
    "resource_type",
    "info",
    "commands",
    "setup",
    "config",
    "name",
    "id",
    *_RECOMMENDED,
}
_TYPES = {
    "plugin",
    "resource",
    "storage",
    "cerebrum",
    "interactor",
    "copilot",
    "agent",
    "user_interface",
    "message_manager",
    "plugin_manager",
    "resource_manager",
    "plugin_prompt_generator",
}
_MAX_COMPARED = 50
_FRAMEWORK = ("concopilot", "goose_like_worker")


def check_file(file: Path) -> tuple[Diagnostic, ...]:
    """Return all problems of a config.yaml by line. Never raise."""
    result = read_document(file)
    document = result.value
    if document is None:
        return result.diagnostics
    parsed = parse_definition(document)
    found = [*parsed.diagnostics, *_check_included(document), *_check_keys(document)]
    definition = parsed.value
    if definition:
        found += _check_prompt(document, definition)
        found += _check_code(document, definition)
    return tuple(sorted(dict.fromkeys(found), key=lambda each: each.sort_key))


def list_included(value: Any, place: Place = ()) -> Iterator[tuple[Place, Mapping[str, Any]]]:
    """Yield the components that a configuration includes, at any depth, with their places."""
    waiting = [(place, value)]
    while waiting:
        at, each = waiting.pop()
        if isinstance(each, list):
            waiting += [((*at, index), inner) for index, inner in enumerate(each)]
        elif isinstance(each, Mapping):
            waiting += [((*at, key), inner) for key, inner in each.items()]
            if "group_id" in each and "artifact_id" in each:
                yield at, each


def provides_code(definition: Definition) -> bool:
    """Check whether someone who only has the config.yaml can install the code."""
    own = definition.setup.package.partition(".")[0]
    if own in _FRAMEWORK:
        return True
    for line in definition.setup.pip:
        name = line[0].strip().lower()
        if name != "concopilot" and not name.startswith("concopilot>"):
            return True
    return False


def _check_included(document: Document) -> Iterator[Diagnostic]:
    for place, named in list_included(document.data.get("config"), ("config",)):
        try:
            coordinates = Coordinates(named["group_id"], named["artifact_id"], named.get("version", ""))
            coordinates.instance_folder(named.get("instance_id"))
        except UsageError as error:
            part = str(error).partition(":")[0]
            is_template = str(named.get(part)).startswith("<")
            yield document.diagnose((*place, part), f"{format_place(place)}.{error}", is_warning=is_template)


def _check_keys(document: Document) -> Iterator[Diagnostic]:
    """Warn about misspelt and missing keys."""
    unknown = [key for key in document.data if key not in _KEYS]
    for key in unknown[:_MAX_COMPARED]:
        near = find_nearest_name(key, _KEYS - set(document.data))
        if near:
            text = f"{key}: only the component knows this key; did you mean {near!r}?"
            yield document.diagnose((key,), text, is_warning=True)
    kind = str(document.data.get("type")).lower()
    if kind not in _TYPES and (near := find_nearest_name(kind, _TYPES)):
        text = f"type: {kind!r} is none that ConCopilot knows; did you mean {near!r}?"
        yield document.diagnose(("type",), text, is_warning=True)
    for key, what in _RECOMMENDED.items():
        if not document.data.get(key):
            yield document.diagnose((key,), f"{key}: it is better to say {what}", is_warning=True)


def _check_prompt(document: Document, definition: Definition) -> Iterator[Diagnostic]:
    try:
        definition.prompt.read(document.file.parent)
    except GooseLikeError as error:
        key = "prompt_file_name" if definition.prompt.file_name else "prompt_file_path"
        yield document.diagnose(("info", key), f"info.{key}: {error}")


def _check_code(document: Document, definition: Definition) -> Iterator[Diagnostic]:
    """Check where the code is, and the code beside config.yaml, if it is there."""
    package = definition.setup.package
    if not provides_code(definition):
        name = package.partition(".")[0].replace("_", "-")
        text = f"setup.pip: only your machine has the package {package!r}; publish it, and name it: - {name}"
        yield document.diagnose(("setup", "package"), text, is_warning=True)
    folder = document.file.absolute().parent.parent
    code = document.file.parent.parent / "__init__.py"
    if document.file.parent.name != ".config" or not code.is_file():
        return
    names = tuple(package.split("."))
    if folder.parts[-len(names) :] != names:
        text = (
            f"setup.package: {package!r} is not the package in this folder, {folder.name!r}; unless pip or a `path` "
            "brings it, nothing can be loaded"
        )
        yield document.diagnose(("setup", "package"), text, is_warning=True)
        return
    try:
        source = code.read_bytes()
        if len(source) <= MAX_FILE_BYTES:
            ast.parse(source)
        if not re.search(rb"\bconstructor\b|import \*|__getattr__|globals", source):
            yield Diagnostic(file=code, text="there is no function `constructor`; add one that takes `config`")
    except SyntaxError as error:
        yield Diagnostic(file=code, line=error.lineno, text=f"this is no Python: {error.msg}")
    except (OSError, ValueError, RecursionError, MemoryError) as error:
        yield Diagnostic(file=code, text=f"can't be read: {error or type(error).__name__}")
