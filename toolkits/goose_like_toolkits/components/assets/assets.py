"""Assets: values that a session keeps for its components and models, each as files of its own.

Of an asset `NAME.json` tells what it is, and `NAME.DIGEST` holds its content: bytes and text as they are, anything else
as JSON. The former names the latter and is replaced last, so that an asset is there as it was or as it shall be.
"""

import hashlib
import json
import os
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal
from uuid import UUID, uuid4

from pydantic import Field, ValidationError

from goose_like.core.errors import SessionError
from goose_like.core.message import FrozenModel, Utf8Text
from goose_like.core.spelling import did_you_mean, find_nearest_name
from goose_like.core.tool import ToolError
from goose_like.sessions.session import Session
from goose_like_toolkits.components.described.references import Reference, read_reference

from .packed import packed, unpacked
from .words import as_text, shape, told

LIMIT_BYTES = 64 << 20
LIMIT_CHARACTERS = 4_000
"""A longer result becomes an asset."""

_KEYS_TOLD = 12
_Kind = Literal["text", "bytes", "json"]


class Asset(FrozenModel):
    """What is known of an asset, without its content. `more` are further fields, as its component gave them."""

    asset_id: Utf8Text
    asset_type: Utf8Text
    asset_name: Utf8Text | None = None
    description: Utf8Text | None = None
    content_type: Utf8Text | None = None
    more: dict[str, Any] = {}
    kind: _Kind
    size_bytes: int
    shape: Utf8Text
    digest: str = Field(pattern="^[0-9a-f]{64}$")
    number: int

    @property
    def fields(self) -> dict[str, Any]:
        """What a component finds in it, but for the content."""
        own = self.model_dump(include={"asset_id", "asset_type", "asset_name", "description", "content_type"})
        return own | {key: unpacked(value) for key, value in self.more.items()}

    def meta(self) -> dict[str, Any]:
        """What a model is told of it, as JSON: the fields that are there, the content's size and shape."""
        own = {key: value for key, value in (self.fields | self.more).items() if value is not None}
        return own | {"size_bytes": self.size_bytes, "shape": self.shape}


class Assets:
    """The assets of a session, which outlast the process and come along with a fork.

    An asset whose files are damaged is told in `damage`, and stands in nobody's way.
    """

    def __init__(self, session: Session) -> None:
        self._folder = session.assets

    def add(
        self,
        content: Any,
        *,
        asset_type: str,
        content_type: str | None = None,
        asset_name: str | None = None,
        description: str | None = None,
        asset_id: str | int | UUID | None = None,
        more: Mapping[str, Any] | None = None,
    ) -> Asset:
        """Keeps a value, in the place of the one of that id; without an id it gets a new one.

        Without a `content_type` it has that of its kind: `text/plain`, `application/octet-stream`, or the type's name
        as in `<class 'dict'>`.

        Raises:
            ToolError: a field is of a wrong type, or the content is no JSON, text or bytes, or larger than 64 MB.
            SessionError: it can't be written.
        """
        texts = {"asset_name": asset_name, "description": description, "content_type": content_type}
        for name, text in {"asset_type": asset_type, **texts}.items():
            if not isinstance(text, str) and (text is not None or name == "asset_type"):
                raise ToolError(f"{name} of an asset is a text, not {text!r}")
        kind, data = _encoded(content)
        if len(data) > LIMIT_BYTES:
            raise ToolError(f"the asset has {len(data):,} bytes, more than {LIMIT_BYTES:,}; write it to a file instead")
        key = _id(asset_id)
        asset = Asset(
            asset_id=key,
            asset_type=asset_type,
            asset_name=asset_name,
            description=description,
            content_type=_default_type(content) if content_type is None else content_type,
            more=packed(dict(more or {}), "asset"),
            kind=kind,
            size_bytes=len(data),
            shape=shape(content),
            digest=hashlib.sha256(data).hexdigest(),
            number=self._number(key),
        )
        self._write(asset, data)
        return asset

    def get(self, asset_id: str | int | UUID) -> Asset:
        """What is known of an asset. Raises: ToolError: there is none, or it is damaged."""
        key = str(asset_id)
        file = self._file(key)
        try:
            return _read(file)
        except FileNotFoundError:
            known = [asset.asset_id for asset in self.all()]
            raise ToolError(f"no asset {key!r}; {did_you_mean(key, known)}") from None
        except (OSError, ValueError) as error:
            raise ToolError(f"the asset {key!r} is damaged ({_why(error)}); add it anew, or remove it") from error

    def content(self, asset_id: str | int | UUID) -> Any:
        """An asset's content. Raises: ToolError: as `get`."""
        asset = self.get(asset_id)
        try:
            return _decoded(asset.kind, _checked(self._content_file(asset), asset.digest))
        except (OSError, ValueError, RecursionError) as error:
            why = f"its content {_why(error)}"
            raise ToolError(f"the asset {asset.asset_id!r} is damaged ({why}); add it anew, or remove it") from error

    def fields(self, asset_id: str | int | UUID) -> dict[str, Any]:
        """An asset as a component has it, the content among the rest. Raises: ToolError: as `get`."""
        return {**self.get(asset_id).fields, "content": self.content(asset_id)}

    def all(self) -> list[Asset]:
        """What is known of each that can be read, the oldest first."""
        return self._look()[0]

    @property
    def damage(self) -> list[str]:
        """What can't be read, a sentence each."""
        return self._look()[1]

    def remove(self, asset_id: str | int | UUID) -> None:
        """Forgets an asset, damaged or not. Raises: ToolError: there is none; SessionError: it stays."""
        file = self._file(str(asset_id))
        if not file.exists():
            self.get(asset_id)
        try:
            file.unlink(missing_ok=True)
            self._sweep(file.stem, "")
        except OSError as error:
            raise _unwritable(file, error) from error

    def retrieve(self, reference: Any) -> Any:
        """The value that is meant: an asset's content, or where its `field_path` leads, which starts at its fields.

        `asset://ID` is the content, and `asset://ID/content/rows/0` what stands in it.

        Raises:
            ToolError: it is no reference, there is no such asset, or the path leads nowhere; the text says how far it
                leads and what there is.
        """
        read = reference if isinstance(reference, Reference) else read_reference(reference)
        if read is None:
            given = str(reference)[:80]
            raise ToolError(f"{given!r} is no reference to an asset; write asset://ID, or asset://ID/content/KEY")
        if not read.field_path:
            return self.content(read.asset_id)
        first, *rest = read.field_path
        fields = self.get(read.asset_id).fields
        if first != "content" and first not in fields:
            inner = Reference(read.asset_id, ("content", *read.field_path))
            names = ", ".join([*fields, "content"])
            raise ToolError(f"{Reference(read.asset_id)} has no {first!r}, only {names}; what it holds is at {inner}")
        value = self.content(read.asset_id) if first == "content" else fields[first]
        for level, key in enumerate(rest, 1):
            value = _step(value, key, Reference(read.asset_id, read.field_path[:level]))
        return value

    def as_asset(
        self, result: Any, *, asset_type: str, description: str | None = None, limit: int = LIMIT_CHARACTERS
    ) -> str:
        """What a model reads of a result: itself, or where it has more than `limit` characters what stands for it.

        A text that is JSON is kept as such, so that its parts can be read.

        Raises:
            ToolError: as `add`.
            SessionError: it can't be written.
        """
        text = as_text(packed(result, "result") if not isinstance(result, str | bytes) else result)
        if len(text) <= limit and not isinstance(result, bytes):
            return text
        content = _parsed(result) if isinstance(result, str) else result
        asset = self.add(content, asset_type=asset_type, description=description)
        return told(asset.asset_id, asset_type, asset.size_bytes, content)

    # --- files

    def _file(self, asset_id: str) -> Path:
        is_name = re.fullmatch(r"[\w-]{1,80}", asset_id, re.ASCII)
        name = asset_id if is_name else hashlib.sha256(_encodable(asset_id)).hexdigest()
        return self._folder / f"{name}.json"

    def _content_file(self, asset: Asset) -> Path:
        return self._file(asset.asset_id).with_suffix(f".{asset.digest}")

    def _number(self, asset_id: str) -> int:
        try:
            return _read(self._file(asset_id)).number
        except (OSError, ValueError):
            return time.time_ns()

    def _look(self) -> tuple[list[Asset], list[str]]:
        found: list[Asset] = []
        damage: list[str] = []
        for file in sorted(self._folder.glob("*.json")):
            try:
                asset = _read(file)
                if not self._content_file(asset).is_file():
                    raise FileNotFoundError(f"the content of the asset {asset.asset_id!r} is gone")
                found.append(asset)
            except (OSError, ValueError) as error:
                damage.append(f"{file}: {_why(error)}; this asset is left out")
        return sorted(found, key=lambda asset: (asset.number, asset.asset_id)), damage

    def _write(self, asset: Asset, data: bytes) -> None:
        file, content = self._file(asset.asset_id), self._content_file(asset)
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            _replace(content, data)
            _replace(file, asset.model_dump_json().encode())
            self._sweep(file.stem, asset.digest)
        except OSError as error:
            raise _unwritable(file, error) from error

    def _sweep(self, name: str, digest: str) -> None:
        """Removes the contents that an asset had before."""
        for file in self._folder.glob(f"{name}.*"):
            if file.suffix not in (".json", f".{digest}"):
                file.unlink(missing_ok=True)


def _encodable(asset_id: str) -> bytes:
    return asset_id.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()  # as `Words` holds it


def _id(given: Any) -> str:
    if given is None or given == "":
        return str(uuid4())
    if isinstance(given, bool) or not isinstance(given, str | int | UUID):
        raise ToolError(f"asset_id is a text or a whole number, not {given!r}")
    return str(given)


def _encoded(content: Any) -> tuple[_Kind, bytes]:
    if isinstance(content, bytes | bytearray):
        return "bytes", bytes(content)
    if isinstance(content, str):
        return "text", content.encode("utf-8", "surrogatepass")
    return "json", json.dumps(packed(content), ensure_ascii=True, separators=(",", ":")).encode()


def _decoded(kind: _Kind, data: bytes) -> Any:
    match kind:
        case "bytes":
            return data
        case "text":
            return data.decode("utf-8", "surrogatepass")
    return unpacked(json.loads(data))


def _default_type(content: Any) -> str:
    if isinstance(content, bytes | bytearray):
        return "application/octet-stream"
    return "text/plain" if isinstance(content, str) else str(type(content))


def _parsed(text: str) -> Any:
    """The list or mapping that a text is in JSON, else the text."""
    try:
        value = json.loads(text) if text.lstrip()[:1] in ("{", "[") else text
        packed(value)
    except (ValueError, RecursionError, ToolError):
        return text
    return value


def _read(file: Path) -> Asset:
    """Raises: OSError, ValueError."""
    return Asset.model_validate_json(file.read_bytes())


def _checked(file: Path, digest: str) -> bytes:
    data = file.read_bytes()
    if hashlib.sha256(data).hexdigest() != digest:
        raise ValueError("is not what was kept")
    return data


def _replace(file: Path, data: bytes) -> None:
    half = file.with_name(f".{file.name}")
    half.write_bytes(data)
    os.replace(half, file)


def _why(error: Exception) -> str:
    if isinstance(error, ValidationError):
        return "it can't be read"
    return str(error.strerror or error) if isinstance(error, OSError) else str(error)


def _unwritable(file: Path, error: OSError) -> SessionError:
    return SessionError(f"{file} can't be written: {error.strerror or error}; free some space")


def _step(value: Any, key: str, here: Reference) -> Any:
    if isinstance(value, Mapping):
        if key in value:
            return value[key]
        names = [str(name) for name in value]
        more = f" and {len(names) - _KEYS_TOLD} more" if len(names) > _KEYS_TOLD else ""
        near = f"did you mean {found!r}? " if (found := find_nearest_name(key, names)) else ""
        raise ToolError(f"{here} has no key {key!r}; {near}it has: {', '.join(names[:_KEYS_TOLD]) or 'none'}{more}")
    if not isinstance(value, list):
        raise ToolError(f"{here} is {shape(value)} and has no parts; leave {key!r} and what follows it out")
    try:
        return value[int(key)]
    except (ValueError, IndexError):
        places = f"its places are 0 to {len(value) - 1}" if value else "it has no places"
        raise ToolError(f"{here} is a {shape(value)}; {places}, not {key!r}") from None
