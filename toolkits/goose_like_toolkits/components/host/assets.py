"""The assets of a session: values that components share, one JSON file each, which outlast their worker."""

import json
import os
import re
from base64 import b64decode
from collections.abc import Mapping
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any
from uuid import uuid4

from pydantic import ValidationError

from goose_like.core.errors import SessionError
from goose_like.core.message import FrozenModel
from goose_like.core.spelling import did_you_mean
from goose_like.sessions.session import Session
from goose_like.toolkit import ToolError

from ..definition.references import Reference

MAX_BYTES = 64 << 20

_MAX_PART_CHARACTERS = 4_000
_MAX_BEGINNING_CHARACTERS = 600
_MAX_KEYS = 8


class AssetChange(FrozenModel):
    """An asset that a command changed. `live` has the types of values that only the worker can hold."""

    id: str
    asset: dict[str, Any]
    live: tuple[str, ...] = ()


class AssetChanges(FrozenModel):
    """The changes of assets by one command."""

    put: tuple[AssetChange, ...] = ()
    removed: tuple[str, ...] = ()


class AssetStore:
    """The assets of a session. Content is JSON in which `{"$base64": text}` stands for bytes.

    Assets with values that only the worker can hold are known here, and lost with the worker.
    """

    def __init__(self, session: Session) -> None:
        self._folder = session.assets
        self._assets = _load(session.assets)
        self._live: dict[str, dict[str, Any]] = {}
        self._lost: set[str] = set()
        self._unsent = {*self._assets}

    def add(self, content: Any, asset_type: str, description: str) -> str:
        """Save a new asset and return its id."""
        asset_id = str(uuid4())
        fields = {
            "asset_type": asset_type,
            "asset_id": asset_id,
            "description": description,
            "content_type": _name_content_type(content),
            "content": content,
        }
        self._save(asset_id, fields)
        self._unsent.add(asset_id)
        return asset_id

    def list_lines(self) -> list[str]:
        """Return a line for each asset: id, type, shape and description."""
        lines = []
        for asset_id, fields in [*self._assets.items(), *self._live.items()]:
            shape = describe_shape(fields.get("content"))
            if asset_id in self._live:
                shape = f"{fields.get('content_type')}, in the components' process"
            line = f"{asset_id}: {fields.get('asset_type')}, {shape}"
            if fields.get("description"):
                line += f"; {fields['description']}"
            lines.append(line)
        return lines

    def is_live(self, reference: Reference) -> bool:
        """Check whether only the worker has the value of a reference."""
        return reference.asset_id in self._live

    def retrieve(self, reference: Reference) -> Any:
        """Return the value of a reference. Raise ToolError if there is none, with what there is."""
        asset_id = reference.asset_id
        path = reference.field_path
        if asset_id in self._lost:
            raise ToolError(f"{reference} was held by the components' process, which has ended; create it again")
        if asset_id in self._live:
            raise ToolError(f"{reference} is in the components' process alone; give the reference to a command")
        if asset_id not in self._assets:
            hint = did_you_mean(asset_id, [*self._assets, *self._live])
            raise ToolError(f"no asset {asset_id!r}; {hint}")
        value: Any = self._assets[asset_id]
        for level, key in enumerate(path or ("content",)):
            value = _step(value, key, Reference(asset_id, path[:level]))
        return value

    def shorten(self, value: Any, description: str, limit: int) -> str:
        """Return a response as a model reads it. Bytes become assets, and so does a long response."""
        value = self._extract_bytes(value, description)
        text = format_text(value)
        if len(text) <= limit:
            return text
        content = value
        if isinstance(value, str):
            content = _parse(value)
        asset_id = self.add(content, "response", description)
        key = "0"
        if isinstance(content, Mapping):
            key = str(next(iter(content), "0"))
        return (
            f"[too long to show: kept as the asset {asset_id} of type 'response', {describe_shape(content)}. It "
            f"begins:]\n{text[:_MAX_BEGINNING_CHARACTERS]}…\n[to read it: `get_asset` with {Reference(asset_id)}, or "
            f"for a part of it with a path such as {Reference(asset_id, ('content', key))}]"
        )

    # --- the worker

    def take_unsent(self) -> dict[str, Any]:
        """Return the assets that the worker does not have."""
        ids = self._unsent & self._assets.keys()
        unsent = {asset_id: self._assets[asset_id] for asset_id in ids}
        self._unsent.clear()
        return unsent

    def apply(self, changes: AssetChanges) -> list[str]:
        """Save the changes of a command. Return what could not be saved."""
        problems = []
        for asset_id in changes.removed:
            self._live.pop(asset_id, None)
            if self._assets.pop(asset_id, None) is not None:
                self._find_file(asset_id).unlink(missing_ok=True)
        for change in changes.put:
            fields = {**change.asset, "asset_id": change.id}
            if change.live:
                self._live[change.id] = fields
                continue
            self._live.pop(change.id, None)
            try:
                self._save(change.id, fields)
            except (ToolError, SessionError) as error:
                problems.append(f"the asset {change.id} was not kept: {error}")
        return problems

    def lose_worker(self) -> None:
        """Note that the worker has ended: its live assets are lost."""
        self._lost |= self._live.keys()
        self._live.clear()
        self._unsent = {*self._assets}

    def _find_file(self, asset_id: str) -> Path:
        name = asset_id
        if not re.fullmatch(r"[\w-]{1,80}", asset_id, re.ASCII):
            name = sha256(asset_id.encode("utf-8", "surrogatepass")).hexdigest()
        return self._folder / f"{name}.json"

    def _save(self, asset_id: str, fields: dict[str, Any]) -> None:
        data = json.dumps(fields, separators=(",", ":")).encode()
        if len(data) > MAX_BYTES:
            raise ToolError(f"the asset has {len(data):,} bytes, more than {MAX_BYTES:,}; write it to a file instead")
        file = self._find_file(asset_id)
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            new = file.with_name(f".{file.name}")
            new.write_bytes(data)
            os.replace(new, file)
        except OSError as error:
            raise SessionError(f"{file} can't be written: {error.strerror or error}; free some space") from error
        self._assets[asset_id] = fields

    def _extract_bytes(self, value: Any, description: str) -> Any:
        if _is_bytes(value):
            asset_id = self.add(value, "bytes", description)
            return f"{Reference(asset_id, ('content',))} ({describe_shape(value)})"
        if isinstance(value, list):
            return [self._extract_bytes(each, description) for each in value]
        if isinstance(value, dict):
            return {key: self._extract_bytes(each, description) for key, each in value.items()}
        return value


def read_changes(data: Any) -> AssetChanges:
    """Read what a worker sends. Raise ToolError if it is no such message."""
    try:
        return AssetChanges.model_validate(data)
    except ValidationError as error:
        raise ToolError("the components' process sent assets that can't be read") from error


def format_text(value: Any) -> str:
    """Format a value for a model: text as it is, bytes as base64, anything else as JSON."""
    if isinstance(value, str):
        return value
    if _is_bytes(value):
        return str(value["$base64"])
    return json.dumps(value, ensure_ascii=False, default=str)


def format_part(value: Any, start: int = 0) -> str:
    """Format the characters of a value from `start` on, with a note of what follows."""
    text = format_text(value)
    first = max(start, 0)
    part = text[first : first + _MAX_PART_CHARACTERS]
    if len(part) == len(text):
        return text
    end = first + len(part)
    more = f"; go on with start={end}" if end < len(text) else ""
    span = f"{start:,} to {end:,} of {len(text):,}"
    return f"{part}\n[characters {span}{more}]"


def describe_shape(value: Any) -> str:
    """Describe a value in a few words: `list of 200 mappings with name, size`."""
    if _is_bytes(value):
        return f"{len(b64decode(value['$base64'])):,} bytes"
    match value:
        case str():
            return f"text of {len(value):,} characters"
        case Mapping():
            return _describe_mapping(value)
        case list():
            kind = "values"
            if value and all(isinstance(each, Mapping) for each in value):
                kind = describe_shape(value[0]).replace("mapping", "mappings")
            return f"list of {len(value):,} {kind}"
    return f"the value {json.dumps(value)}"


def _describe_mapping(value: Mapping[str, Any]) -> str:
    if not value:
        return "empty mapping"
    names = map(str, islice(value, _MAX_KEYS))
    text = f"mapping with {', '.join(names)}"
    if len(value) > _MAX_KEYS:
        text += " and more"
    return text


def to_content(value: Any) -> Any:
    """Convert bytes in a value of a component to text, for a parameter that wants text."""
    if _is_bytes(value):
        return b64decode(value["$base64"]).decode("latin-1")
    if isinstance(value, list):
        return [to_content(each) for each in value]
    if isinstance(value, dict):
        return {key: to_content(each) for key, each in value.items()}
    return value


def _is_bytes(value: Any) -> bool:
    if not isinstance(value, dict) or value.keys() != {"$base64"}:
        return False
    return isinstance(value["$base64"], str)


def _name_content_type(content: Any) -> str:
    if _is_bytes(content):
        return "application/octet-stream"
    if isinstance(content, str):
        return "text/plain"
    return str(type(content))


def _load(folder: Path) -> dict[str, dict[str, Any]]:
    """Return all assets that can be read, the oldest first."""
    found = {}
    files = sorted(folder.glob("[!.]*.json"), key=lambda each: each.stat().st_mtime_ns)
    for file in files:
        try:
            fields = dict(json.loads(file.read_bytes()))
            found[str(fields["asset_id"])] = fields
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return found


def _parse(text: str) -> Any:
    """Return the list or mapping that a text is as JSON, else the text."""
    if not text.lstrip().startswith(("{", "[")):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _step(value: Any, key: str, place: Reference) -> Any:
    """Return the part of a value at a key or index. Raise ToolError if there is none."""
    if isinstance(value, Mapping):
        if key in value:
            return value[key]
        hint = did_you_mean(key, map(str, value))
        raise ToolError(f"{place} has no key {key!r}; {hint}")
    if not isinstance(value, list):
        raise ToolError(f"{place} is {describe_shape(value)} and has no parts; leave {key!r} and what follows it out")
    try:
        return value[int(key)]
    except (ValueError, IndexError):
        raise ToolError(f"{place} is a {describe_shape(value)}; its places count from 0, not {key!r}") from None
