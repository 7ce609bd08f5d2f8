"""Sharing: the session's assets between the host, which keeps them, and the stage, where some live only."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from goose_like.core.message import FrozenModel, Utf8Text
from goose_like.toolkit import ToolError
from goose_like_toolkits.components.assets.assets import Assets
from goose_like_toolkits.components.assets.packed import packed, unpacked
from goose_like_toolkits.components.assets.words import shape
from goose_like_toolkits.components.described.arguments import Checked, check
from goose_like_toolkits.components.described.kinds import Parameter
from goose_like_toolkits.components.described.references import Reference, read_reference

_OWN = ("asset_type", "asset_name", "description", "content_type")


class _Put(FrozenModel):
    """An asset that is new or different; `live` are the kinds of what only the stage can hold of it."""

    id: Utf8Text
    asset: dict[str, Any]
    live: list[str] = []


class _Changes(FrozenModel):
    put: list[_Put] = []
    removed: list[Utf8Text] = []


class _Answer(FrozenModel):
    """What a command gives."""

    response: Any = None
    assets: _Changes = _Changes()


class Sharing:
    """What of a call is an asset. Those whose value no JSON can hold are the stage's, and gone with it."""

    def __init__(self, assets: Assets) -> None:
        self.assets = assets
        self._live: dict[str, Mapping[str, Any]] = {}
        self._lost: set[str] = set()

    @property
    def ids(self) -> list[str]:
        """Of all that there are."""
        return [*(asset.asset_id for asset in self.assets.all()), *self._live]

    def fields(self, name: str) -> Any:
        """An asset for the stage. Raises: ToolError: it is not here."""
        return packed(self.assets.fields(name))

    def listed(self) -> list[str]:
        """A line for each."""
        kept = [(asset.asset_id, asset.asset_type, asset.shape, asset.description) for asset in self.assets.all()]
        live = [
            (key, str(fields.get("asset_type")), f"{fields.get('content_type')}, in the components' process", None)
            for key, fields in self._live.items()
        ]
        lines = [f"{key}: {kind}, {what}{f'; {about}' if about else ''}" for key, kind, what, about in (*kept, *live)]
        return [*lines, *self.assets.damage]

    def retrieve(self, reference: Reference) -> Any:
        """What it leads to here. Raises: ToolError: nowhere, or to what only the stage has or had."""
        if reference.asset_id in self._lost:
            raise ToolError(f"{reference} was held by the components' process, which has ended; make it anew")
        if reference.asset_id in self._live:
            raise ToolError(f"{reference} is in the components' process alone; give the reference to a command")
        return self.assets.retrieve(reference)

    def resolved(self, parameter: Parameter | None, checked: Checked) -> tuple[Any, list[Any]]:
        """The value with what its references mean, and the places where the stage puts in what only it has.

        Raises:
            ToolError: a reference leads nowhere, or to what is not wanted there.
        """
        value, live = checked.value, list[Any]()
        for path in checked.references:
            reference = read_reference(_at(value, path))
            assert reference is not None
            if reference.asset_id in self._live:
                live.append([path, {"asset_id": reference.asset_id, "field_path": list(reference.field_path)}])
            else:
                value = _put(value, path, self.retrieve(reference))
        if checked.references and (faults := check(parameter, _without_bytes(value)).faults):
            raise ToolError(f"what the references lead to does not fit: {'; '.join(faults)}")
        return packed(value, "the parameter"), live

    def taken(self, answer: Any) -> tuple[Any, list[str]]:
        """What a command gave, once what became of assets is kept; and what of that could not be.

        Raises:
            ToolError: it is no answer.
        """
        try:
            told = _Answer.model_validate(answer)
            response = unpacked(told.response)
            return response, [*self._add(told.assets.put), *self._remove(told.assets.removed)]
        except (ValidationError, RecursionError) as error:
            raise ToolError(
                f"the component gave what is no answer: {type(error).__name__}; mend the component"
            ) from error

    def _add(self, assets: Iterable[_Put]) -> Iterator[str]:
        for put in assets:
            fields = dict(put.asset)
            if put.live:
                self._live[put.id] = fields
                continue
            self._live.pop(put.id, None)
            kind, name, about, content_type = (_text(fields.pop(name, None)) for name in _OWN)
            content = unpacked(fields.pop("content", None))
            fields.pop("asset_id", None)
            try:
                self.assets.add(
                    content,
                    asset_type=kind or "value",
                    asset_name=name,
                    description=about,
                    content_type=content_type,
                    asset_id=put.id,
                    more=fields,
                )
            except ToolError as error:
                yield f"the asset {put.id} was not kept: {error}"

    def _remove(self, removed: Iterable[str]) -> Iterator[str]:
        for key in removed:
            if self._live.pop(key, None) is None:
                try:
                    self.assets.remove(key)
                except ToolError as error:
                    yield f"the asset {key} could not be removed: {error}"

    def lose(self) -> None:
        """The stage has ended, and with it what lived there."""
        self._lost |= self._live.keys()
        self._live.clear()

    def shown(self, response: Any, about: str, limit: int) -> str:
        """A response as a model reads it: bytes are assets, and so is all that is long."""
        value = self._kept(response, about)
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        return self.assets.as_asset(text, asset_type="response", description=about, limit=limit)

    def _kept(self, value: Any, about: str) -> Any:
        if isinstance(value, bytes):
            asset = self.assets.add(value, asset_type="bytes", description=about)
            return f"{Reference(asset.asset_id)} ({shape(value)})"
        if isinstance(value, list):
            return [self._kept(entry, about) for entry in value]
        if isinstance(value, dict):
            return {key: self._kept(entry, about) for key, entry in value.items()}
        return value


def _at(value: Any, path: Iterable[str | int]) -> Any:
    for step in path:
        value = value[step]
    return value


def _put(value: Any, path: tuple[str | int, ...], new: Any) -> Any:
    """The value with another at a place; what is not on the way is the same."""
    if not path:
        return new
    first, *rest = path
    copy: Any = dict(value) if isinstance(value, dict) else list(value)
    copy[first] = _put(copy[first], tuple(rest), new)
    return copy


def _without_bytes(value: Any) -> Any:
    """Bytes as text: a parameter of text may be given a file's."""
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if isinstance(value, list):
        return [_without_bytes(entry) for entry in value]
    if isinstance(value, dict):
        return {key: _without_bytes(entry) for key, entry in value.items()}
    return value


def _text(value: Any) -> str | None:
    return None if value is None else str(value)
