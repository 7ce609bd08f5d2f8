"""The plugins of a session: which ones are on, which ones the model reads about, and which ones the kernel has."""

import os
from collections.abc import Iterable, Mapping
from contextlib import closing, nullcontext
from pathlib import Path

from goose_like.config.paths import cache_folder
from goose_like.core.errors import ProfileError
from goose_like.sdk.parse_cache import ParseCache
from goose_like.toolkit import ExchangeView, ToolError
from goose_like_toolkits.code.kernel.channels import Message

from .project import Project
from .selection import select_plugins
from .spec import PluginSpec

SHIPPED_PLUGINS = Path(__file__).parents[1] / "shipped_plugins"


class PluginRegistry:
    """The plugins of a project. `switched` are the user's choices in this session.

    Files are read again when they change, but never imported.
    """

    def __init__(self, folder: Path, chosen: Iterable[str] | None, switched: Mapping[str, bool]) -> None:
        """Read the plugins of a project. Raise ProfileError if `chosen`, the profile's list, has an unknown name."""
        self.project = Project.read(folder)
        self.switched = dict(switched)
        self._chosen = None if chosen is None else list(chosen)
        self._file_marks = self._mark_files()
        self._sent: dict[str, Message] = {}
        self._sent_state: object = None
        self._selection: tuple[object, tuple[PluginSpec, ...]] = None, ()
        names = {spec.name for spec in self.project.specs}
        for name in self._chosen or ():
            if name not in names:
                raise ProfileError(self.project.explain_missing(name))

    @property
    def enabled(self) -> tuple[PluginSpec, ...]:
        """The plugins that are on."""
        return tuple(spec for spec in self.project.usable if self.switched.get(spec.name, self._is_chosen(spec.name)))

    @property
    def offered_as_tools(self) -> tuple[PluginSpec, ...]:
        """The plugins that may be tools: chosen or switched on, or with `plugin_only: true`; if there are none, all."""
        wanted = {*(self._chosen or ()), *(name for name, is_on in self.switched.items() if is_on)}
        return tuple(spec for spec in self.enabled if spec.plugin_only or spec.name in wanted) or self.enabled

    @property
    def possible_tools(self) -> list[str]:
        """Names of the plugins that would be tools if they were on."""
        usable = self.project.usable
        return [spec.name for spec in usable if spec.plugin_only] or [spec.name for spec in usable]

    def explain_off(self, name: str) -> str | None:
        """Return why a plugin is off, or None if it is on or unknown."""
        if reason := self.project.off.get(name):
            return reason
        if name not in (spec.name for spec in self.project.specs):
            error = self.project.unreadable.get(self.project.plugins / f"{name}.yaml")
            return str(error) if error else None
        if name in self.switched:
            return None if self.switched[name] else "switched off in this session"
        return None if self._is_chosen(name) else "not among the profile's `plugins`"

    def find(self, name: str) -> PluginSpec:
        """Return the plugin with this name. Raise ToolError with the nearest name if there is none."""
        specs = {spec.name: spec for spec in self.project.specs}
        if name not in specs:
            raise ToolError(self.project.explain_missing(name))
        return specs[name]

    def switch(self, name: str, *, is_on: bool) -> None:
        """Switch a plugin on or off for this session. Raise ToolError if that is impossible."""
        self.find(name)
        if is_on and (reason := self.project.off.get(name)):
            raise ToolError(f"{name} stays off: {reason}")
        self.switched[name] = is_on

    async def select(
        self, specs: tuple[PluginSpec, ...], text: str, count: int, view: ExchangeView
    ) -> tuple[PluginSpec, ...]:
        """Return about `count` plugins that fit a text best; repeated calls with the same values use a cache."""
        key = specs, text, count
        if self._selection[0] != key:
            models = (view.accelerator, view.processor)
            model = next((each for each in models if each.embedding_model), None)
            needs_cache = model and len(specs) > count
            with closing(ParseCache(cache_folder() / "vectors.sqlite")) if needs_cache else nullcontext() as cache:
                self._selection = key, await select_plugins(specs, text, count, model, cache)
        return self._selection[1]

    def list_messages(self) -> list[Message]:
        """Return a message for each plugin that is on, for a new kernel."""
        self._reread_changed_files()
        self._sent = {spec.name: _make_message(spec) for spec in self.enabled}
        self._sent_state = self._get_state()
        return list(self._sent.values())

    def take_changes(self) -> Message | None:
        """Return a message with the changes since the last message to the kernel, or None."""
        self._reread_changed_files()
        if self._sent_state == (state := self._get_state()):
            return None
        self._sent_state = state
        current = {spec.name: _make_message(spec, self._sent.get(spec.name)) for spec in self.enabled}
        changed = [message for name, message in current.items() if self._sent.get(name) != message]
        removed = [name for name in self._sent if name not in current]
        self._sent = current
        return {"type": "plugins", "plugins": changed, "removed": removed} if changed or removed else None

    def _reread_changed_files(self) -> None:
        if (marks := self._mark_files()) != self._file_marks:
            self.project, self._file_marks = Project.read(self.project.folder), marks

    def _mark_files(self) -> list[object]:
        files = {self.project.plugins, *(file for spec in self.project.specs for file in (spec.file, spec.code))}
        files.update(each.file for each in self.project.diagnostics)  # broken files may be repaired
        return [_mark_file(file) for file in sorted(files)]

    def _get_state(self) -> object:
        return self._file_marks, tuple(sorted(self.switched.items()))

    def _is_chosen(self, name: str) -> bool:
        return self._chosen is None or name in self._chosen


def _mark_file(file: Path) -> object:
    """Return a value that changes with the file."""
    try:
        status = file.stat()
    except (OSError, ValueError):
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def _make_message(spec: PluginSpec, former: Message | None = None) -> Message:
    """Return a plugin as the kernel needs it; the source is read again only if its file changed."""
    prefix = f"PLUGIN_{spec.name}_"
    mark = str(_mark_file(spec.code))
    return {
        "name": spec.name,
        "source": former["source"] if former and former["mark"] == mark else _read_source(spec.code),
        "file": str(spec.code),
        "config": spec.configurations,
        "env": {name.removeprefix(prefix): value for name, value in os.environ.items() if name.startswith(prefix)},
        "mark": mark,
    }


def _read_source(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:  # the plugin fails with this error when a cell names it
        return f"raise ImportError({f'{file} can not be read: {error}'!r})"
