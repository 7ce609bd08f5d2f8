"""Checking: all that can be said of a config.yaml before anybody uses it."""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from goose_like.core.errors import GooseLikeError, UsageError
from goose_like.core.spelling import find_nearest_name
from goose_like.sdk.diagnostics import Diagnostic

from .coordinates import Coordinates
from .definition import Definition, read_definition
from .document import Document, read_document
from .package import package_faults

_RECOMMENDED = {
    "url": "where its project is",
    "developers": "who wrote it: a list of mappings with `name`",
    "licenses": "under which terms: a list of mappings with `name` and `url`",
}
_KEYS = {"name", "id"}
"""Known, and not in the schema: they are read where `config` does not say them."""

_TYPES = {
    *("plugin", "resource", "storage", "cerebrum", "interactor", "copilot", "agent", "user_interface"),
    *("message_manager", "plugin_manager", "resource_manager", "plugin_prompt_generator"),
}
"""Those of the framework; any other is a component's own affair."""

_LIMIT_COMPARED = 50

_WORDS = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "null": "nothing",
    "array": "a list",
    "object": "a mapping",
}


@cache
def component_schema() -> dict[str, Any]:
    """The JSON schema (draft 2020-12) of a config.yaml, for editors too."""
    text = files(__package__).joinpath("component.schema.json").read_text(encoding="utf-8")
    return dict(json.loads(text))


def check_file(file: Path) -> tuple[Diagnostic, ...]:
    """What is wrong with a config.yaml, by line, and as remarks what it had better have; never raises."""
    document = read_document(file).value
    if document is None:
        return read_definition(file).diagnostics
    reading = read_definition(file)
    # What was read says more of a line than a schema can.
    lines = {fault.line for fault in reading.diagnostics if not fault.is_warning}
    by_schema = [fault for fault in _against_schema(document) if fault.line not in lines]
    faults = [*reading.diagnostics, *by_schema, *_included(document), *_near_misses(document), *_recommended(document)]
    if reading.value:
        faults += [*_prompt(reading.value), *_near_type(reading.value), *package_faults(reading.value)]
    return tuple(sorted(dict.fromkeys(faults), key=lambda fault: fault.sort_key))


def _against_schema(document: Document) -> Iterator[Diagnostic]:
    for error in Draft202012Validator(component_schema()).iter_errors(document.data):
        meant = _meant(error)
        path = tuple(meant.absolute_path)
        if meant.validator == "required":
            missing = [key for key in meant.validator_value if key not in meant.instance]
            yield document.fault(path, f"{_place((*path, missing[0]))}: this is missing")
        else:
            yield document.fault(path, f"{_place(path)}: {_told(meant)}")


def _meant(error: ValidationError) -> ValidationError:
    """Of an error that no alternative fits, the one that came furthest."""
    while error.context:
        error = max(error.context, key=lambda inner: len(inner.absolute_path))
    return error


def _told(error: ValidationError) -> str:
    given = repr(error.instance)
    given = given if len(given) <= 60 else given[:57] + "..."
    if error.validator == "type":
        kinds = error.validator_value if isinstance(error.validator_value, list) else [error.validator_value]
        return f"expected {' or '.join(_WORDS[kind] for kind in kinds if kind != 'null')}, not {given}"
    if error.validator == "pattern" and error.validator_value == r"\S":
        return "expected text, and it is empty"
    return f"{given} can't be one"


def _included(document: Document) -> Iterator[Diagnostic]:
    """The components that it includes below `config`: whether their coordinates can be any."""
    waiting: list[tuple[tuple[str | int, ...], Any]] = [(("config",), document.data.get("config"))]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, list):
            waiting += [((*path, at), inner) for at, inner in enumerate(value)]
        if not isinstance(value, Mapping):
            continue
        waiting += [((*path, key), inner) for key, inner in value.items()]
        if "group_id" in value and "artifact_id" in value:
            try:
                Coordinates(value["group_id"], value["artifact_id"], value.get("version", "")).instance_folder(
                    value.get("instance_id")
                )
            except UsageError as error:
                part = str(error).partition(":")[0]
                is_open = str(value.get(part)).startswith("<")  # left for others to say
                yield document.fault((*path, part), f"{_place(path)}.{error}", is_remark=is_open)


def _near_misses(document: Document) -> Iterator[Diagnostic]:
    known = {*component_schema()["properties"], *_KEYS}
    missing = known - set(document.data)
    for key in [key for key in document.data if key not in known][:_LIMIT_COMPARED]:
        if near := find_nearest_name(key, missing):
            yield document.fault(
                (key,), f"{key}: only the component knows this key; did you mean {near!r}?", is_remark=True
            )


def _near_type(definition: Definition) -> Iterator[Diagnostic]:
    if definition.type not in _TYPES and (near := find_nearest_name(definition.type, _TYPES)):
        text = f"type: {definition.type!r} is none that ConCopilot knows; did you mean {near!r}?"
        yield definition.document.fault(("type",), text, is_remark=True)


def _recommended(document: Document) -> Iterator[Diagnostic]:
    for key, what in _RECOMMENDED.items():
        if not document.data.get(key):
            yield document.fault((key,), f"{key}: it is better to say {what}", is_remark=True)


def _prompt(definition: Definition) -> Iterator[Diagnostic]:
    try:
        definition.prompts.read(definition.file.parent)
    except GooseLikeError as error:
        key = "prompt_file_name" if definition.prompts.file_name else "prompt_file_path"
        yield definition.document.fault(("info", key), f"info.{key}: {error}")


def _place(path: tuple[str | int, ...]) -> str:
    said = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return said.removeprefix(".") or "the component"
