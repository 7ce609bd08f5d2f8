"""All problems of a config.yaml that can be found without running anything."""

import ast
import json
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from goose_like.core.errors import GooseLikeError, UsageError
from goose_like.core.spelling import find_nearest_name
from goose_like.sdk.diagnostics import MAX_FILE_BYTES, Diagnostic

from .config_file import Definition
from .config_parser import parse_definition
from .coordinates import Coordinates
from .document import Document, read_document

_RECOMMENDED = {
    "url": "where its project is",
    "developers": "who wrote it: a list of mappings with `name`",
    "licenses": "under which terms: a list of mappings with `name` and `url`",
}
_TYPES = {
    *("plugin", "resource", "storage", "cerebrum", "interactor", "copilot", "agent", "user_interface"),
    *("message_manager", "plugin_manager", "resource_manager", "plugin_prompt_generator"),
}
_MAX_COMPARED = 50
_FRAMEWORK = ("concopilot", "goose_like_worker")


@cache
def load_schema() -> dict[str, Any]:
    """Load the JSON schema of config.yaml, which editors can use too."""
    text = files(__package__).joinpath("component.schema.json").read_text(encoding="utf-8")
    return dict(json.loads(text))


def check_file(file: Path) -> tuple[Diagnostic, ...]:
    """Return all problems of a config.yaml by line. Never raise."""
    result = read_document(file)
    document = result.value
    if document is None:
        return result.diagnostics
    parsed = parse_definition(document)
    # Our own diagnostics of a line say more than those of the schema.
    lines = {each.line for each in parsed.diagnostics if not each.is_warning}
    found = [*parsed.diagnostics, *(each for each in _check_schema(document) if each.line not in lines)]
    found += [*_check_included(document), *_check_keys(document), *_recommend(document)]
    if definition := parsed.value:
        found += [*_check_prompt(document, definition), *_check_type(document, definition)]
        found += [*_check_code(document, definition), *_check_origin(document, definition)]
    return tuple(sorted(dict.fromkeys(found), key=lambda each: each.sort_key))


def list_included(
    value: Any, path: tuple[str | int, ...] = ()
) -> Iterator[tuple[tuple[str | int, ...], Mapping[str, Any]]]:
    """Yield the components that a configuration includes, at any depth, with their paths."""
    waiting = [(path, value)]
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
    names = {line[0].strip().lower() for line in definition.pip}
    own = definition.package.partition(".")[0]
    return own in _FRAMEWORK or any(not name.startswith("concopilot>") and name != "concopilot" for name in names)


def _check_schema(document: Document) -> Iterator[Diagnostic]:
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import best_match, relevance

    errors = Draft202012Validator(load_schema()).iter_errors(document.data)
    for error in sorted(errors, key=relevance):
        best = best_match([error]) or error
        path = tuple(best.absolute_path)
        place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
        text = best.message if len(best.message) <= 200 else f"{best.message[:200]}..."
        yield document.diagnose(path, f"{place.removeprefix('.') or 'the component'}: {text}")


def _check_included(document: Document) -> Iterator[Diagnostic]:
    for path, named in list_included(document.data.get("config"), ("config",)):
        try:
            coordinates = Coordinates(named["group_id"], named["artifact_id"], named.get("version", ""))
            coordinates.instance_folder(named.get("instance_id"))
        except UsageError as error:
            part = str(error).partition(":")[0]
            is_template = str(named.get(part)).startswith("<")
            place = ".".join(map(str, path))
            yield document.diagnose((*path, part), f"{place}.{error}", is_warning=is_template)


def _check_keys(document: Document) -> Iterator[Diagnostic]:
    known = {*load_schema()["properties"], "name", "id"}
    for key in [key for key in document.data if key not in known][:_MAX_COMPARED]:
        if near := find_nearest_name(key, known - set(document.data)):
            text = f"{key}: only the component knows this key; did you mean {near!r}?"
            yield document.diagnose((key,), text, is_warning=True)


def _check_type(document: Document, definition: Definition) -> Iterator[Diagnostic]:
    if definition.type not in _TYPES and (near := find_nearest_name(definition.type, _TYPES)):
        text = f"type: {definition.type!r} is none that ConCopilot knows; did you mean {near!r}?"
        yield document.diagnose(("type",), text, is_warning=True)


def _recommend(document: Document) -> Iterator[Diagnostic]:
    for key, what in _RECOMMENDED.items():
        if not document.data.get(key):
            yield document.diagnose((key,), f"{key}: it is better to say {what}", is_warning=True)


def _check_prompt(document: Document, definition: Definition) -> Iterator[Diagnostic]:
    try:
        definition.prompt.read(document.file.parent)
    except GooseLikeError as error:
        key = "prompt_file_name" if definition.prompt.file_name else "prompt_file_path"
        yield document.diagnose(("info", key), f"info.{key}: {error}")


def _check_origin(document: Document, definition: Definition) -> Iterator[Diagnostic]:
    if not provides_code(definition):
        name = definition.package.partition(".")[0].replace("_", "-")
        text = f"setup.pip: only your machine has the package {definition.package!r}; publish it, and name it: - {name}"
        yield document.diagnose(("setup", "package"), text, is_warning=True)


def _check_code(document: Document, definition: Definition) -> Iterator[Diagnostic]:
    """Check the code beside config.yaml, if it is there."""
    folder = document.file.absolute().parent.parent
    code = folder / "__init__.py"
    if document.file.parent.name != ".config" or not code.is_file():
        return
    names = tuple(definition.package.split("."))
    if folder.parts[-len(names) :] != names:
        text = (
            f"setup.package: {definition.package!r} is not the package in this folder, {folder.name!r}; unless pip or "
            "a `path` brings it, nothing can be loaded"
        )
        yield document.diagnose(("setup", "package"), text, is_warning=True)
        return
    code = document.file.parent.parent / code.name
    try:
        source = code.read_bytes()
        if len(source) > MAX_FILE_BYTES or _may_define("constructor", ast.parse(source)):
            return
        yield Diagnostic(file=code, text="there is no function `constructor`; add one that takes `config`")
    except SyntaxError as error:
        yield Diagnostic(file=code, line=error.lineno, text=f"this is no Python: {error.msg}")
    except (OSError, ValueError, RecursionError, MemoryError) as error:
        yield Diagnostic(file=code, text=f"can't be read: {error or type(error).__name__}")


def _may_define(name: str, tree: ast.Module) -> bool:
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=bound) | ast.AsyncFunctionDef(name=bound) | ast.ClassDef(name=bound):
                pass
            case ast.alias(name=whole, asname=other):
                bound = other or whole
            case ast.Name(id=bound, ctx=ctx) if isinstance(ctx, ast.Store) or bound in ("globals", "exec"):
                pass
            case _:
                continue
        if bound in (name, "*", "__getattr__", "globals", "exec"):
            return True
    return False
