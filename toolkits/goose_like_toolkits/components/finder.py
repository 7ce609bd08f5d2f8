"""Finder: from what is said of a component to its configuration, and to the files that are its own."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from goose_like.core.errors import GooseLikeError
from goose_like.sdk.diagnostics import ParseResult
from goose_like.workspace.workspace import Workspace
from goose_like_toolkits.components.described.entry import Entry, read_entries
from goose_like_toolkits.components.described.overriding import Layer, overlaid
from goose_like_toolkits.components.repositories.runtime import Instance, Repository, Runtime
from goose_like_toolkits.components.repositories.sources import config_file_at

from .member import Member


class Finder:
    """Finds components and reads their configuration, by what a profile or another component says of them."""

    def __init__(self, workspace: Workspace, repository: Repository, dot_folders: Iterable[str] = ()) -> None:
        """Relative paths begin in the working directory; components may use `dot_folders` there."""
        self.folder = workspace.root
        self._workspace = workspace
        self._repository = repository
        self._runtime = Runtime(self.folder, repository, dot_folders)
        self._readings: dict[Path, ParseResult[Entry]] = {}
        self._given: dict[str, Member] = {}

    def file(self, used: Mapping[str, Any]) -> Path:
        """The config.yaml that counts for what the person names: group_id, artifact_id, version, or path.

        Raises:
            GooseLikeError: there is none.
        """
        if path := used.get("path"):
            if file := config_file_at(self.folder / os.path.expanduser(str(path))):
                return file
            raise GooseLikeError("there is no component at this path; give the folder with its .config/config.yaml")
        return self._runtime.source(Instance.of(used))

    def chosen(self, used: Mapping[str, Any], file: Path | None = None) -> Member:
        """The component that the person's profile names, with its `instance_id` and `config`; `file` is its, if known.

        Raises:
            GooseLikeError: there is none, or its config.yaml can't be used.
        """
        instance = None if used.get("path") else Instance.of(used)
        return self._configured(file or self.file(used), used, "profile", instance)

    def member(self, named: Mapping[str, Any], source: str) -> Member:
        """The component that another one names. It is a stranger's word: no path of ours comes of it.

        Raises:
            GooseLikeError: there is none, or its config.yaml can't be used.
        """
        instance = Instance.of(named)
        return self._configured(self._runtime.source(instance), named, source, instance)

    def own(self, file: str) -> Member:
        """The component of a file in the working directory that another one names.

        Raises:
            GooseLikeError: it lies elsewhere or in a folder with a leading dot, or can't be used.
        """
        root = Path(os.path.realpath(self.folder))
        place = Path(os.path.realpath(root / file.replace("\0", "?")))
        if not place.is_relative_to(root) or not self._runtime.is_open(place.relative_to(root)):
            raise GooseLikeError(f"{file!r} is not in the working directory {root}, or hidden there; put it there")
        return self.read(place, {})

    def _configured(self, file: Path, named: Mapping[str, Any], source: str, instance: Instance | None) -> Member:
        config = named.get("config")
        if not isinstance(config, Mapping | None):
            raise GooseLikeError(f"config: expected a mapping, not {str(config)[:80]!r}; it is in {source}")
        return replace(self.read(file, config or {}, named.get("instance_id"), source), instance=instance)

    def look_at(self, files: Iterable[Path]) -> None:
        """Reads several at once; as they are now, they count for the session."""
        self._readings |= read_entries(files)

    def read(self, file: Path, config: Mapping[str, Any], instance: object = None, source: str = "") -> Member:
        """The component of a config.yaml, with `config` laid over its own.

        Raises:
            GooseLikeError: it can't be used.
        """
        reading = self._readings.get(file) or read_entries([file])[file]
        if reading.value is None:
            faults = [fault for fault in reading.diagnostics if not fault.is_warning]
            told = "\n".join(str(fault.model_copy(update={"file": self._shown(fault.file)})) for fault in faults)
            raise GooseLikeError(f"{told}\nmend it; `goose-like component check {self._shown(file)}` tells all")
        entry = reading.value
        effective = overlaid(Layer(entry.config, str(file)), Layer(config, source))
        return Member(f"{entry.coordinates}#{0 if instance is None else instance}", entry, effective, file)

    def given(self, member: Member) -> dict[str, Any]:
        """All of its config.yaml with its effective `config`, as its constructor takes it.

        The file that this names is its own: where it is used for the first time, the repository's are copied there. In
        sandbox `read-only` that is a folder of the session's.

        Raises:
            GooseLikeError: they can't be.
        """
        file = self.own_file(member)
        self._given[str(file)] = member
        info = {"config_folder": str(file.parent), "config_file": file.name}
        return {**member.entry.data, "config": member.effective.value, "_config_info": info}

    def own_file(self, member: Member) -> Path:
        """The config file of a component, as it sees it: that of its copy, which is there by then.

        Raises:
            GooseLikeError: it can't be made.
        """
        if member.instance is None:
            return member.file
        if self._workspace.mode != "read-only":
            return self._runtime.place(member.instance)
        file = self._runtime.source(member.instance)
        if file.is_relative_to(self.folder):
            return file
        aside = Runtime(self._workspace.tmp / "components", self._repository)
        return Path(self._workspace.path_in_sandbox(aside.place(replace(member.instance, config_folder=None))))

    def given_as(self, file: str) -> Member | None:
        """The component to which this config file was given."""
        return self._given.get(file)

    def _shown(self, file: Path) -> Path:
        """As a person who is in this folder would name it."""
        return file.relative_to(self.folder) if file.is_relative_to(self.folder) else file
