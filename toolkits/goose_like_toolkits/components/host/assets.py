"""The assets of a session: values that components share, one JSON file each, which outlast their worker."""

import json
import os
import re
from base64 import b64decode
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import uuid4

from pydantic import ValidationError

from goose_like.core.errors import SessionError
from goose_like.core.message import FrozenModel
from goose_like.core.spelling import did_you_mean, find_nearest_name
from goose_like.sessions.session import Session
from goose_like.toolkit import ToolError

from ..definition.references import Reference

MAX_BYTES = 64 << 20

_MAX_KEYS = 8
_QUOTED = re.compile(r"\$\$+base64")
_MAX_PART_CHARACTERS = 4_000
_MAX_BEGINNING_CHARACTERS = 600


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
        self._live: dict[str, dict[str, Any]] = {}
        self._lost: set[str] = set()
        self._in_worker: dict[str, str] = {}

    def add(self, content: Any, asset_type: str, description: str) -> str:
        """Save a new asset and return its id."""
        asset_id = str(uuid4())
        kind = "application/octet-stream" if _is_bytes(content) else "text/plain"
        kind = kind if _is_bytes(content) or isinstance(content, str) else str(type(content))
        fields = {"asset_type": asset_type, "asset_id": asset_id, "description": description, "content_type": kind}
        self._save(asset_id, {**fields, "content": content})
        return asset_id

    def list_lines(self) -> list[str]:
        """Return a line for each asset: id, type, shape and description."""
        lines = []
        for asset_id, fields in [*self._load_all().items(), *self._live.items()]:
            shape = describe_shape(fields.get("content"))
            if asset_id in self._live:
                shape = f"{fields.get('content_type')}, in the components' process"
            about = f"; {fields['description']}" if fields.get("description") else ""
            lines.append(f"{asset_id}: {fields.get('asset_type')}, {shape}{about}")
        return lines

    def is_live(self, reference: Reference) -> bool:
        """Check whether only the worker has the value of a reference."""
        return reference.asset_id in self._live

    def retrieve(self, reference: Reference) -> Any:
        """Return the value of a reference. Raise ToolError if there is none, with what there is."""
        asset_id, path = reference.asset_id, reference.field_path
        if asset_id in self._lost:
            raise ToolError(f"{reference} was held by the components' process, which has ended; create it again")
        if asset_id in self._live:
            raise ToolError(f"{reference} is in the components' process alone; give the reference to a command")
        fields = self._load(asset_id)
        if not path:
            return fields.get("content")
        if path[0] not in fields:
            inner = Reference(asset_id, ("content", *path))
            raise ToolError(
                f"{Reference(asset_id)} has no {path[0]!r}, only {', '.join(fields)}; its content is at {inner}"
            )
        value: Any = fields
        for level, key in enumerate(path):
            value = _step(value, key, Reference(asset_id, path[:level]))
        return value

    def shorten(self, value: Any, description: str, limit: int) -> str:
        """Return a response as a model reads it. Bytes become assets, and so does a long response."""
        value = self._extract_bytes(value, description)
        text = format_text(value)
        if len(text) <= limit:
            return text
        asset_id = self.add(_parse(value) if isinstance(value, str) else value, "response", description)
        content = self._load(asset_id)["content"]
        inner = Reference(asset_id, ("content", _first_key(content)))
        return (
            f"[too long to show: kept as the asset {asset_id} of type 'response', {describe_shape(content)}. It "
            f"begins:]\n{text[:_MAX_BEGINNING_CHARACTERS]}…\n[to read it: `get_asset` with {Reference(asset_id)}, or "
            f"for a part of it with a path such as {inner}]"
        )

    # --- the worker

    def take_changes(self) -> tuple[dict[str, Any], list[str]]:
        """Return the assets that the worker does not have as they are now, and the ids of removed ones."""
        known = {**self._load_all()}
        digests = {asset_id: _digest(fields) for asset_id, fields in known.items()}
        put = {each: known[each] for each, digest in digests.items() if self._in_worker.get(each) != digest}
        removed = [each for each in self._in_worker if each not in digests and each not in self._live]
        self._in_worker = digests
        return put, removed

    def apply(self, changes: AssetChanges) -> list[str]:
        """Save the changes of a command. Return what could not be saved."""
        problems = []
        for change in changes.put:
            fields = {**change.asset, "asset_id": change.id}
            if change.live:
                self._live[change.id] = fields
                continue
            self._live.pop(change.id, None)
            try:
                self._save(change.id, fields)
                self._in_worker[change.id] = _digest(fields)
            except (ToolError, SessionError) as error:
                problems.append(f"the asset {change.id} was not kept: {error}")
        for asset_id in changes.removed:
            if self._live.pop(asset_id, None) is None:
                self._file(asset_id).unlink(missing_ok=True)
                self._in_worker.pop(asset_id, None)
        return problems

    def lose_worker(self) -> None:
        """Note that the worker has ended: its live assets are lost."""
        self._lost |= self._live.keys()
        self._live.clear()
        self._in_worker.clear()

    # --- files

    def _file(self, asset_id: str) -> Path:
        is_name = re.fullmatch(r"[\w-]{1,80}", asset_id, re.ASCII)
        name = asset_id if is_name else sha256(asset_id.encode("utf-8", "surrogatepass")).hexdigest()
        return self._folder / f"{name}.json"

    def _save(self, asset_id: str, fields: Mapping[str, Any]) -> None:
        data = _encode(fields)
        if len(data) > MAX_BYTES:
            raise ToolError(f"the asset has {len(data):,} bytes, more than {MAX_BYTES:,}; write it to a file instead")
        file = self._file(asset_id)
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            new = file.with_name(f".{file.name}")
            new.write_bytes(data)
            os.replace(new, file)
        except OSError as error:
            raise SessionError(f"{file} can't be written: {error.strerror or error}; free some space") from error

    def _load(self, asset_id: str) -> dict[str, Any]:
        try:
            return _decode(self._file(asset_id))
        except FileNotFoundError:
            known = [*self._load_all(), *self._live]
            near = did_you_mean(asset_id, known) if known else "there are none"
            raise ToolError(f"no asset {asset_id!r}; {near}") from None
        except (OSError, ValueError) as error:
            raise ToolError(f"the asset {asset_id!r} is damaged ({error}); create it again") from error

    def _load_all(self) -> dict[str, dict[str, Any]]:
        """Return all assets that can be read, the oldest first."""
        found = {}
        for file in sorted(self._folder.glob("[!.]*.json"), key=lambda each: each.stat().st_mtime_ns):
            try:
                fields = _decode(file)
                found[str(fields["asset_id"])] = fields
            except (OSError, ValueError, KeyError):
                continue
        return found

    def _extract_bytes(self, value: Any, description: str) -> Any:
        if _is_bytes(value):
            asset_id = self.add(value, "bytes", description)
            return f"{Reference(asset_id, ('content',))} ({describe_shape(value)})"
        if isinstance(value, list):
            return [self._extract_bytes(each, description) for each in value]
        if isinstance(value, dict):
            plain = {key: self._extract_bytes(each, description) for key, each in value.items()}
            return {key[1:] if _QUOTED.fullmatch(key) else key: each for key, each in plain.items()}
        return value


def quote(value: Any) -> Any:
    """Quote mappings of a model that look like encoded bytes, as worker/values.py does."""
    if isinstance(value, list):
        return [quote(each) for each in value]
    if isinstance(value, dict):
        is_alike = len(value) == 1 and _QUOTED.fullmatch(f"${next(iter(value))}")
        return {f"${key}" if is_alike else key: quote(each) for key, each in value.items()}
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
    return str(value["$base64"]) if _is_bytes(value) else json.dumps(value, ensure_ascii=False, default=str)


def format_part(value: Any, start: int = 0) -> str:
    """Format the characters of a value from `start` on, with a note of what follows."""
    text = format_text(value)
    start = min(max(start, 0), len(text))
    end = min(start + _MAX_PART_CHARACTERS, len(text))
    if end - start == len(text):
        return text
    more = f"; go on with start={end}" if end < len(text) else ""
    return f"{text[start:end]}\n[characters {start:,} to {end:,} of {len(text):,}{more}]"


def describe_shape(value: Any) -> str:
    """Describe a value in a few words: `list of 200 mappings with name, size`."""
    if _is_bytes(value):
        return f"{len(b64decode(value['$base64'])):,} bytes"
    match value:
        case str():
            lines = value.count("\n") + 1
            return f"text of {len(value):,} characters{f' in {lines:,} lines' if lines > 1 else ''}"
        case Mapping():
            more = f" and {len(value) - _MAX_KEYS:,} more" if len(value) > _MAX_KEYS else ""
            return f"mapping with {', '.join(map(str, [*value][:_MAX_KEYS]))}{more}" if value else "empty mapping"
        case list():
            kind = describe_shape(value[0]).replace("mapping", "mappings") if value else ""
            are_mappings = bool(value) and all(isinstance(each, Mapping) for each in value)
            return f"list of {len(value):,} {kind if are_mappings else 'values'}"
        case None:
            return "nothing"
    return f"the value {json.dumps(value)}"


def to_content(value: Any) -> Any:
    """Convert bytes in a value of a component to text, for a parameter that wants text."""
    if _is_bytes(value):
        return b64decode(value["$base64"]).decode("latin-1")
    if isinstance(value, list):
        return [to_content(each) for each in value]
    return {key: to_content(each) for key, each in value.items()} if isinstance(value, dict) else value


def _is_bytes(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() == {"$base64"}


def _first_key(content: Any) -> str:
    return str(next(iter(content), "0")) if isinstance(content, Mapping) else "0"


def _encode(fields: Mapping[str, Any]) -> bytes:
    return json.dumps(fields, ensure_ascii=True, separators=(",", ":")).encode()


def _decode(file: Path) -> dict[str, Any]:
    data = json.loads(file.read_bytes())
    if not isinstance(data, dict):
        raise ValueError("it is no asset")
    return data


def _digest(fields: Mapping[str, Any]) -> str:
    return sha256(_encode(fields)).hexdigest()


def _parse(text: str) -> Any:
    """Return the list or mapping that a text is as JSON, else the text."""
    try:
        return json.loads(text) if text.lstrip()[:1] in ("{", "[") else text
    except (ValueError, RecursionError):
        return text


def _step(value: Any, key: str, place: Reference) -> Any:
    if isinstance(value, Mapping):
        if key in value:
            return value[key]
        names = [str(name) for name in value]
        near = f"did you mean {found!r}? " if (found := find_nearest_name(key, names)) else ""
        raise ToolError(f"{place} has no key {key!r}; {near}it has: {', '.join(names[:20]) or 'none'}")
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise ToolError(f"{place} is {describe_shape(value)} and has no parts; leave {key!r} and what follows it out")
    try:
        return value[int(key)]
    except (ValueError, IndexError):
        places = f"its places are 0 to {len(value) - 1}" if value else "it has no places"
        raise ToolError(f"{place} is a {describe_shape(value)}; {places}, not {key!r}") from None
