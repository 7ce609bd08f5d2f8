"""Storage: what outlives a run; and DiskStorage, which keeps it in files."""

import abc
import copy
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .asset import Asset
from .class_dict import ClassDict
from .disk import Disk
from .kept import from_text, to_text
from .plugin import AbstractPlugin, expect, told
from .settings import Settings

_INFO = ".info"  # beside each value: what it is


class Storage(AbstractPlugin):
    """Values by keys."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        """
        Raises:
            ValueError: when the type is not "storage".
        """
        super().__init__(config)
        expect(self, "storage")

    @abc.abstractmethod
    def get(self, key: str) -> Any:
        """The value, None if there is none."""

    def get_or_default(self, key: str, default: Any) -> Any:
        """The value, the default if there is none."""
        value = self.get(key)
        return default if value is None else value

    @abc.abstractmethod
    def put(self, key: str, value: Any) -> None:
        """Keeps the value, in place of the one before."""

    @abc.abstractmethod
    def remove(self, key: str) -> Any:
        """Forgets the value and gives it; None if there is none."""

    @abc.abstractmethod
    def get_sub_storage(self, key: str) -> "Storage":
        """A storage of its own within this one."""

    @abc.abstractmethod
    def remove_sub_storage(self, key: str) -> bool:
        """Forgets it with all that is in it; whether it was there."""

    def command(self, command_name: str, param: Any, **kwargs: Any) -> Any:
        return {}


class DiskStorage(Storage):
    """Text, bytes and plain values in files of a Disk. A key is a path below the storage's own folder."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__(config)
        own = self.config.config
        self.root: str = os.path.realpath(Path(Settings().working_directory, own.root_directory or "."))
        self.sub_root: str = os.path.join(self.root, own.sub_root_key or "_sub")
        self.asset_key: Any = own.asset_key
        self.disk: Any = None
        self._sub: dict[str, DiskStorage] = {}

    def config_resources(self, resource_manager: Any) -> None:
        """
        Raises:
            ValueError: when it is given no Disk, or its folder is outside the Disk's.
        """
        super().config_resources(resource_manager)
        disk = next((resource for resource in self.resources if isinstance(resource, Disk)), None)
        if disk is None:
            raise ValueError(f"{told(self)} needs a resource of type 'disk': name one in its config.resources")
        if not Path(self.root).is_relative_to(disk.root):
            raise ValueError(f"{told(self)}: its folder {self.root} must be below the disk's, {disk.root}")
        self.disk = disk
        for sub in self._sub.values():
            sub.disk = disk

    def get(self, key: str) -> Any:
        """
        Raises:
            ValueError: when it was written by another program in a form that is not read.
        """
        path = self._path(key)
        try:
            info = self._disk().read_file(path + _INFO)
            content = self._disk().read_file(path, binary=True)
        except FileNotFoundError:
            return None
        if info == "binary":
            return content
        if info == "pickle":
            raise ValueError(f"{told(self)}: {key!r} was pickled; reading it could run any code, so put it anew")
        text = content.decode("utf8")
        return from_text(text) if info == "json" else text

    def put(self, key: str, value: Any) -> None:
        """
        Raises:
            TypeError: when there is something in the value that can't be kept.
        """
        path = self._path(key)
        if isinstance(value, str):
            info, content = "text", value.encode("utf8")
        elif isinstance(value, bytes):
            info, content = "binary", value
        else:
            info, content = "json", to_text(value, key).encode("utf8")
        self._disk().write_file(path, content)
        self._disk().write_file(path + _INFO, info)

    def remove(self, key: str) -> Any:
        path = self._path(key)
        try:
            value = self.get(key)
            self._disk().delete_file(path)
            self._disk().delete_file(path + _INFO)
        except FileNotFoundError:
            return None
        folder = os.path.dirname(path)
        while folder != self.root and not os.listdir(folder):
            self._disk().delete_folder(folder)
            folder = os.path.dirname(folder)
        return value

    def get_sub_storage(self, key: str) -> Storage:
        if key not in self._sub:
            config = copy.deepcopy(self.config)
            config.config.root_directory = self._sub_path(key)
            made = DiskStorage(config)
            made.disk = self.disk
            made.config_context(self.context)
            self._sub[key] = made
        return self._sub[key]

    def remove_sub_storage(self, key: str) -> bool:
        path = self._sub_path(key)
        is_known = self._sub.pop(key, None) is not None
        if os.path.isdir(path):
            self._disk().delete_folder(path)
            return True
        return is_known

    def command(self, command_name: str, param: Any, **kwargs: Any) -> Any:
        """The commands `read`, `write` and `delete`.

        Raises:
            ValueError: when there is no such command, or the path is not relative and plain.
        """
        if command_name not in ("read", "write", "delete"):
            raise ValueError(f"{told(self)} has no command {command_name!r}; there are read, write and delete")
        path = _file_path(param)
        if command_name == "read":
            return ClassDict(content=self.get(path))
        if command_name == "write":
            if "content" not in param:
                raise ValueError("content is missing: say what is to be written")
            self.put(path, param["content"])
        else:
            self.remove(path)
        self._note(path, is_there=command_name == "write")
        return ClassDict(status=True)

    def _note(self, path: str, is_there: bool) -> None:
        """Keeps the asset that lists what was written."""
        if not self.asset_key or self.context is None:
            return
        assets = self.context.assets
        listed = list(assets[self.asset_key].content) if self.asset_key in assets else []
        listed = [other for other in listed if other != path] + [path] * is_there
        if not listed:
            assets.pop(self.asset_key, None)
        elif self.asset_key in assets:
            assets[self.asset_key].content = listed
        else:
            kind = "storage location"
            assets[self.asset_key] = Asset(asset_type=kind, content_type=str(type(listed)), content=listed)

    def _disk(self) -> Any:
        if self.disk is None:
            raise ValueError(f"{told(self)} has no disk yet: its resources are configured first")
        return self.disk

    def _path(self, key: str) -> str:
        name = _key(key)
        place = os.path.normpath(os.path.join(self.root, name))
        if name.endswith(_INFO):
            raise ValueError(f"{told(self)}: the key {key!r} must not end in {_INFO}: such files tell what values are")
        _check_below(self, key, place, self.root)
        if Path(place).is_relative_to(self.sub_root):
            raise ValueError(
                f"{told(self)}: the key {key!r} is in a storage below this one: ask get_sub_storage for it"
            )
        return place

    def _sub_path(self, key: str) -> str:
        place = os.path.normpath(os.path.join(self.sub_root, _key(key)))
        _check_below(self, key, place, self.sub_root)
        return place


def _key(key: str) -> str:
    if not isinstance(key, str) or not key.strip():
        raise ValueError(f"a key is text that is not empty, not {key!r}")
    return key.strip()


def _check_below(storage: Storage, key: str, place: str, root: str) -> None:
    if place == root or not Path(place).is_relative_to(root):
        raise ValueError(f"{told(storage)}: the key {key!r} leads out of the storage: use a relative one without '..'")


def _file_path(param: Any) -> str:
    path = param.get("file_path") if isinstance(param, Mapping) else None
    if not path or not isinstance(path, str):
        raise ValueError(f"file_path must be text, not {path!r}")
    if os.path.isabs(path) or "." in os.path.splitext(path)[0]:
        raise ValueError(f"file_path must be relative, with no '.' but the one before its extension, not {path!r}")
    return path
