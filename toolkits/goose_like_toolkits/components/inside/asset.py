"""Asset: a value that is kept for others; and AssetRef, which names one or a field of it."""

import json
import os
import re
import urllib.parse
import uuid
from collections.abc import Mapping, Sequence
from numbers import Number
from typing import Any

from .class_dict import ClassDict
from .message import Id

asset_ref_url_pattern = re.compile(r"^\s*(?:<\|)?\s*(asset://[^/\s<|>][^\n<|>]*?)\s*(?:\|>)?\s*$", re.IGNORECASE)
asset_ref_common_embedding_pattern = re.compile(r"\s*<\|\s*(.*?)\s*\|>\s*")
asset_ref_img_markdown_embedding_pattern = re.compile(r"(!\[.*?\])\(\s*(?:<\|)?\s*(.*?)\s*(?:\|>)?\s*\)")

_PLAIN = (str, Number)  # a bool is a Number
_AS_TEXT = (uuid.UUID, os.PathLike)
_SCHEME = "asset://"
_FIELDS = {"asset_id", "field_path"}
_NEXT = "Correct the reference's `field_path`"


class Asset(ClassDict):
    """A value with what is to be known of it. Its `asset_id` is a new UUID if none is given."""

    def __init__(
        self,
        /,
        *,
        asset_type: str,
        asset_id: Id | None = None,
        asset_name: str | None = None,
        description: str | None = None,
        content_type: str | None = None,
        content: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.asset_type = asset_type
        self.asset_id = uuid.uuid4() if asset_id in (None, "") else asset_id
        self.asset_name = asset_name
        self.description = description
        self.content_type = content_type
        self.content = content

    @staticmethod
    def convert_assets(assets: Mapping[str, Any] | None) -> ClassDict:
        """Assets by their ids; mappings in it become Assets. A ClassDict is changed in place and stays itself.

        Raises:
            ValueError: when one is no mapping, or has no `asset_type`.
        """
        made = assets if isinstance(assets, ClassDict) else ClassDict()
        for key, value in list((assets or {}).items()):
            if not isinstance(value, Mapping):
                raise ValueError(f"the asset {key!r} must be a mapping with asset_type and content, not {value!r}")
            if "asset_type" not in value:
                raise ValueError(f"the asset {key!r} has no asset_type")
            made[key] = value if isinstance(value, Asset) else Asset(**ClassDict.convert(value))
        return made

    @staticmethod
    def get_meta(obj: Any, keep_none: bool = False) -> Any:
        """The value with every part that is not plain replaced by its type's name; None in a mapping is left out."""
        if isinstance(obj, Mapping):
            kept = {key: value for key, value in obj.items() if keep_none or value is not None}
            return ClassDict(**{str(key): Asset.get_meta(value, keep_none) for key, value in kept.items()})
        if isinstance(obj, list):
            return [Asset.get_meta(item, keep_none) for item in obj]
        if isinstance(obj, tuple):
            return tuple(Asset.get_meta(item, keep_none) for item in obj)
        if isinstance(obj, _PLAIN):
            return obj
        return str(obj) if isinstance(obj, _AS_TEXT) else str(type(obj))

    def meta(self) -> Any:
        """This asset as `get_meta` tells it."""
        return Asset.get_meta(self)

    @staticmethod
    def is_trivial(obj: Any) -> bool:
        """Whether it is made of mappings, lists, tuples, text, numbers, ids and paths alone."""
        if isinstance(obj, Mapping):
            return all(Asset.is_trivial(key) and Asset.is_trivial(value) for key, value in obj.items())
        if isinstance(obj, list | tuple):
            return all(Asset.is_trivial(item) for item in obj)
        return isinstance(obj, (*_PLAIN, *_AS_TEXT))

    def trivial(self) -> bool:
        """Whether this asset is."""
        return Asset.is_trivial(self)


class AssetRef(ClassDict):
    """The name of an asset, or of the field of it to which the keys and places in `field_path` lead."""

    def __init__(self, /, *, asset_id: Id, field_path: list[str] | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.asset_id = asset_id
        self.field_path = field_path

    @staticmethod
    def convert(asset_ref: Any) -> "AssetRef":
        """The reference that a mapping, or an object with these attributes, is."""
        if isinstance(asset_ref, Mapping):
            return AssetRef(**ClassDict.convert(asset_ref))
        return AssetRef(asset_id=asset_ref.asset_id, field_path=ClassDict.convert(asset_ref.field_path))

    @staticmethod
    def convert_url(asset_ref_url: str) -> "AssetRef":
        """The reference that `asset://id` or `asset://id/key/0` is.

        Raises:
            ValueError: when it is neither.
        """
        within = _within(asset_ref_url)
        if not within:
            raise ValueError(f"{asset_ref_url!r} is no reference to an asset: write asset://id or asset://id/key/0")
        asset_id, *path = within.rstrip("/").split("/")
        unquote = urllib.parse.unquote_plus
        return AssetRef(asset_id=unquote(asset_id), field_path=[unquote(key) for key in path])

    @staticmethod
    def asset_ref_like(obj: Any) -> bool:
        """Whether it is a mapping, or an object, with an `asset_id` and a `field_path` that is a list or None."""
        if isinstance(obj, Mapping):
            is_whole = "field_path" in obj or set(obj) == {"asset_id"}
            return is_whole and _is_id(obj.get("asset_id")) and isinstance(obj.get("field_path"), list | None)
        if not all(hasattr(obj, name) for name in _FIELDS):
            return False
        return _is_id(obj.asset_id) and isinstance(obj.field_path, list | None)

    @staticmethod
    def asset_ref_url_like(obj: Any) -> bool:
        """Whether it is the text of a reference."""
        return isinstance(obj, str) and _within(obj) != ""

    @staticmethod
    def asset_ref_embedding_like(obj: Any) -> bool:
        """Whether it is text between `<|` and `|>`."""
        return isinstance(obj, str) and _embedded(obj) is not None

    @staticmethod
    def try_convert_embedding(asset_ref_embedding: str) -> "AssetRef | None":
        """The reference, as text or as JSON, between `<|` and `|>`; None if there is none."""
        inner = _embedded(asset_ref_embedding) or ""
        if AssetRef.asset_ref_url_like(inner):
            return AssetRef.convert_url(inner)
        try:
            data = json.loads(inner)
        except ValueError:
            return None
        return AssetRef.convert(data) if AssetRef.asset_ref_like(data) else None

    @staticmethod
    def try_convert(obj: Any) -> "AssetRef | None":
        """The reference that the value is in any of its forms; None if it is none."""
        if AssetRef.asset_ref_like(obj):
            return AssetRef.convert(obj)
        if AssetRef.asset_ref_url_like(obj):
            return AssetRef.convert_url(obj)
        return AssetRef.try_convert_embedding(obj) if AssetRef.asset_ref_embedding_like(obj) else None

    @staticmethod
    def try_retrieve(obj: Any, assets: Mapping[str, Asset]) -> Any:
        """What the reference names; the value itself if it is no reference.

        Raises:
            ValueError: when there is no such asset, or no such field in it.
        """
        reference = AssetRef.try_convert(obj)
        return obj if reference is None else reference.retrieve(assets)

    def retrieve(self, assets: Mapping[str, Asset]) -> Any:
        """The asset, or the field of it.

        Raises:
            ValueError: when there is no such asset, or no such field in it; it tells how far the path leads.
        """
        asset_id = str(self.asset_id)
        known = {} if assets is None else assets
        key = asset_id if asset_id in known else next((key for key in known if str(key) == asset_id), None)
        if key is None:
            there = ", ".join(f"`{key}`" for key in known) or "none"
            raise ValueError(f"No such asset found with asset_id `{asset_id}`: there are {there}")
        value: Any = known[key]
        for level, key in enumerate(self.field_path or []):
            value = self._step(value, key, level)
        return value

    def _step(self, value: Any, key: Any, level: int) -> Any:
        url = self.to_asset_ref_url(level)
        if isinstance(value, Mapping):
            if key in value:
                return value[key]
            raise ValueError(f"What `{url}` names has no key `{key}`, only {[*value]}. {_NEXT}.")
        if isinstance(key, str) and not key.startswith("_") and hasattr(value, key):
            return getattr(value, key)
        if not isinstance(value, Sequence):
            raise ValueError(
                f"What `{url}` names is a `{type(value)}` without `{key}`: neither a mapping nor a sequence, and not "
                f"an object with such an attribute. {_NEXT}."
            )
        try:
            return value[int(key)]
        except (TypeError, ValueError):
            raise ValueError(
                f"`{key}` is no whole number, and `{url}` names a sequence of {len(value)}. {_NEXT}."
            ) from None
        except IndexError:
            raise ValueError(
                f"Place `{key}` is out of range: `{url}` names a sequence of {len(value)}. {_NEXT}."
            ) from None

    def to_asset_ref_url(self, level: int = -1) -> str:
        """The reference as text, with the first `level` keys of its path; with all of them if that is below 0."""
        path = self.field_path or []
        keys = [self.asset_id, *(path if level < 0 else path[:level])]
        return "asset://" + "/".join(urllib.parse.quote(str(key), safe="") for key in keys)

    def __str__(self) -> str:
        return self.to_asset_ref_url()


def _is_id(value: Any) -> bool:
    return isinstance(value, str | uuid.UUID | int) and not isinstance(value, bool) and value != ""


# Every text that a component is given may be looked at by these: they take no longer than the text is long.


def _within(text: str) -> str:
    """What follows `asset://` in a reference, "" if the text is none."""
    url = text.strip().removeprefix("<|").removesuffix("|>").strip()
    rest = url[len(_SCHEME) :] if url[: len(_SCHEME)].lower() == _SCHEME else ""
    return "" if rest[:1] in ("/", " ") or any(letter in rest for letter in "<|>\n") else rest


def _embedded(text: str) -> str | None:
    """What stands between `<|` and `|>`."""
    inner = text.strip()
    if len(inner) < 4 or not inner.startswith("<|") or not inner.endswith("|>"):
        return None
    return inner[2:-2].strip()
