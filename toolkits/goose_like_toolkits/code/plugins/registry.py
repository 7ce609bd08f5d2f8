"""The plugins of a session: which ones are on, which ones the model reads about, and which ones the kernel has."""

import os
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from goose_like.agent.view import ModelView
from goose_like.config.paths import cache_folder
from goose_like.core.errors import ProfileError
from goose_like.sdk.parse_cache import ParseCache
from goose_like.toolkit import ExchangeView, ToolError
from goose_like_toolkits.code.kernel.channels import Message

from .project import Project
from .selection import select_plugins
from .spec import PluginSpec

SHIPPED_PLUGINS = Path(__file__).parents[1] / "shipped_plugins"


@dataclass(frozen=True, slots=True)
class _Selection:
    """The plugins that were selected last. `key` holds all that decided about them."""

    key: object
    specs: tuple[PluginSpec, ...]


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
        self._selection = _Selection(None, ())
        known = self.project.by_name
        for name in self._chosen or ():
            if name not in known:
                raise ProfileError(self.project.explain_missing(name))

    @property
    def enabled(self) -> tuple[PluginSpec, ...]:
        """The plugins that are on."""
        return tuple(spec for spec in self.project.usable if self._is_on(spec.name))

    @property
    def offered_as_tools(self) -> tuple[PluginSpec, ...]:
        """The plugins that may be tools: chosen or switched on, or with `plugin_only: true`; if there are none, all."""
        wanted = set(self._chosen or ())
        wanted |= {name for name, is_on in self.switched.items() if is_on}
        offered = [spec for spec in self.enabled if spec.plugin_only or spec.name in wanted]
        return tuple(offered) or self.enabled

    @property
    def possible_tools(self) -> list[str]:
        """Names of the plugins that would be tools if they were on."""
        usable = self.project.usable
        marked = [spec.name for spec in usable if spec.plugin_only]
        return marked or [spec.name for spec in usable]

    def explain_off(self, name: str) -> str | None:
        """Return why a plugin is off, or None if it is on or unknown."""
        if reason := self.project.off.get(name):
            return reason
        if name not in self.project.by_name:
            error = self.project.unreadable.get(self.project.plugins / f"{name}.yaml")
            return str(error) if error else None
        if self._is_on(name):
            return None
        if name in self.switched:
            return "switched off in this session"
        return "not among the profile's `plugins`"

    def find(self, name: str) -> PluginSpec:
        """Return the plugin with this name. Raise ToolError with the nearest name if there is none."""
        spec = self.project.by_name.get(name)
        if spec is None:
            raise ToolError(self.project.explain_missing(name))
        return spec

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
        key = (specs, text, count)
        if self._selection.key == key:
            return self._selection.specs
        model = _find_embedding_model(view)
        if model and len(specs) > count:
            with closing(ParseCache(cache_folder() / "vectors.sqlite")) as cache:
                selected = await select_plugins(specs, text, count, model, cache)
        else:
            selected = await select_plugins(specs, text, count)
        self._selection = _Selection(key, selected)
        return selected

    def list_messages(self) -> list[Message]:
        """Return a message for each plugin that is on, for a new kernel."""
        self._reread_changed_files()
        self._sent = {spec.name: _make_message(spec) for spec in self.enabled}
        self._sent_state = self._get_state()
        return list(self._sent.values())

    def take_changes(self) -> Message | None:
        """Return a message with the changes since the last message to the kernel, or None."""
        self._reread_changed_files()
        state = self._get_state()
        if state == self._sent_state:
            return None
        self._sent_state = state
        current: dict[str, Message] = {}
        changed: list[Message] = []
        for spec in self.enabled:
            former = self._sent.get(spec.name)
            message = _make_message(spec, former)
            current[spec.name] = message
            if message != former:
                changed.append(message)
        removed = [name for name in self._sent if name not in current]
        self._sent = current
        if not changed and not removed:
            return None
        return {"type": "plugins", "plugins": changed, "removed": removed}

    def _reread_changed_files(self) -> None:
        marks = self._mark_files()
        if marks != self._file_marks:
            self.project = Project.read(self.project.folder)
            self._file_marks = marks

    def _mark_files(self) -> list[object]:
        files = {self.project.plugins}
        for spec in self.project.specs:
            files |= {spec.file, spec.code}
        files.update(each.file for each in self.project.diagnostics)  # broken files may be repaired
        return [_mark_file(file) for file in sorted(files)]

    def _get_state(self) -> object:
        return self._file_marks, tuple(sorted(self.switched.items()))

    def _is_on(self, name: str) -> bool:
        """Check whether a plugin is switched on, or not switched and chosen by the profile."""
        is_chosen = self._chosen is None or name in self._chosen
        return self.switched.get(name, is_chosen)


def _find_embedding_model(view: ExchangeView) -> ModelView | None:
    for model in (view.accelerator, view.processor):
        if model.embedding_model:
            return model
    return None


def _mark_file(file: Path) -> object:
    """Return a value that changes with the file."""
    try:
        status = file.stat()
    except (OSError, ValueError):
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def _make_message(spec: PluginSpec, former: Message | None = None) -> Message:
    """Return a plugin as the kernel needs it; the source is read again only if its file changed."""
    mark = str(_mark_file(spec.code))
    if former and former["mark"] == mark:
        source = former["source"]
    else:
        source = _read_source(spec.code)
    return {
        "name": spec.name,
        "source": source,
        "file": str(spec.code),
        "config": spec.configurations,
        "env": _read_variables(f"PLUGIN_{spec.name}_"),
        "mark": mark,
    }


def _read_variables(prefix: str) -> dict[str, str]:
    """Return the environment variables with a prefix, by the rest of their names."""
    variables = {}
    for name, value in os.environ.items():
        if name.startswith(prefix):
            variables[name.removeprefix(prefix)] = value
    return variables


def _read_source(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:  # the plugin fails with this error when a cell names it
        reason = f"{file} can not be read: {error}"
        return f"raise ImportError({reason!r})"
