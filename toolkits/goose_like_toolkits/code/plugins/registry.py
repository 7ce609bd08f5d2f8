"""Catalogue: the plugins of a session: which are on, of which a model is told, and what the kernel has of them."""

import os
from collections.abc import Iterable, Mapping
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

from goose_like.config.paths import cache_folder
from goose_like.core.errors import ProfileError
from goose_like.sdk.store import ParseCache
from goose_like.toolkit import ExchangeView, ToolError
from goose_like_toolkits.code.kernel.channels import Message

from .plugin_prompt import prompt_form
from .project import Project
from .selection import selected
from .spec import Definition

OWN = Path(__file__).with_name("plugins")


class Catalogue:
    """A project's plugins. `chosen` are those of the profile's set, all by default; `switched` what a person said.

    Reading them imports none. `project` is read anew when a file of it has changed.
    """

    def __init__(self, folder: Path, chosen: Iterable[str] | None, switched: Mapping[str, bool]) -> None:
        """
        Raises:
            ProfileError: `chosen` names one that there is not.
        """
        self.project = Project.read(folder)
        self.switched = dict(switched)
        self._chosen = None if chosen is None else list(chosen)
        self._seen = self._marks()
        self._sent: dict[str, Message] = {}
        self._sent_for: object = None
        self._fits: tuple[object, tuple[Definition, ...]] = None, ()
        names = {definition.name for definition in self.project.definitions}
        for name in self._chosen or ():
            if name not in names:
                raise ProfileError(self.project.missing(name))

    @property
    def on(self) -> tuple[Definition, ...]:
        """The plugins that may be called."""
        return tuple(each for each in self.project.usable if self.switched.get(each.name, self._is_chosen(each.name)))

    @property
    def offered(self) -> tuple[Definition, ...]:
        """Those that may be tools of their own: the profile's set, or what is marked so; where none is, all."""
        marked = (each for each in self.on if each.plugin_only or each.name in self._wished)
        return tuple(marked) or self.on

    @property
    def _wished(self) -> set[str]:
        return {*(self._chosen or ()), *(name for name, is_on in self.switched.items() if is_on)}

    @property
    def offerable(self) -> list[str]:
        """The names of those that could be tools, were they on."""
        usable = self.project.usable
        return [each.name for each in usable if each.plugin_only] or [each.name for each in usable]

    def why_off(self, name: str) -> str | None:
        """Why a plugin that there is can't be called; None: it can."""
        if why := self.project.off.get(name):
            return why
        if name in self.switched:
            return None if self.switched[name] else "switched off in this session"
        return None if self._is_chosen(name) else "not among the profile's `plugins`"

    def find(self, name: str) -> Definition:
        """The plugin of that name.

        Raises:
            ToolError: there is none; the nearest is named.
        """
        there = {each.name: each for each in self.project.definitions}
        if name not in there:
            raise ToolError(self.project.missing(name))
        return there[name]

    def switch(self, name: str, *, is_on: bool) -> None:
        """Has a plugin called or not from now on.

        Raises:
            ToolError: there is none of that name, or it can't be on.
        """
        self.find(name)
        if is_on and (why := self.project.off.get(name)):
            raise ToolError(f"{name} stays off: {why}")
        self.switched[name] = is_on

    async def fitting(
        self, among: tuple[Definition, ...], said: str, k: int, view: ExchangeView
    ) -> tuple[Definition, ...]:
        """Those to tell a model of that was told this: all where they are few, else about the `k` that fit best."""
        asked = among, said, k
        if self._fits[0] != asked:  # each step of a turn asks the same
            models = (view.accelerator, view.processor)
            model = next((each for each in models if each.embedding_model), None)
            with (
                closing(ParseCache(cache_folder() / "vectors.sqlite"))
                if model and len(among) > k
                else nullcontext() as store
            ):
                self._fits = asked, await selected(among, said, k, model, store)
        return self._fits[1]

    # --- what the kernel has of them

    def messages(self) -> list[Message]:
        """All of them, for a new kernel."""
        self._look()
        self._sent = {each.name: _message(each) for each in self.on}
        self._sent_for = self._state()
        return list(self._sent.values())

    def changes(self) -> Message | None:
        """What a kernel that was told before must be told now."""
        self._look()
        if self._sent_for == (state := self._state()):
            return None
        self._sent_for = state
        now = {each.name: _message(each, self._sent.get(each.name)) for each in self.on}
        changed = [message for name, message in now.items() if self._sent.get(name) != message]
        gone = [name for name in self._sent if name not in now]
        self._sent = now
        return {"type": "plugins", "plugins": changed, "gone": gone} if changed or gone else None

    def _look(self) -> None:
        if (seen := self._marks()) != self._seen:
            self.project, self._seen = Project.read(self.project.folder), seen

    def _marks(self) -> list[object]:
        definitions = self.project.definitions
        files = {self.project.plugins, *(file for each in definitions for file in (each.file, each.code))}
        files.update(fault.file for fault in self.project.faults)  # what is broken may be mended
        return [_mark(file) for file in sorted(files)]

    def _state(self) -> object:
        return self._seen, tuple(sorted(self.switched.items()))

    def _is_chosen(self, name: str) -> bool:
        return self._chosen is None or name in self._chosen


def forms(definitions: Iterable[Definition]) -> str:
    """The plugins as functions with comments."""
    return "\n".join(map(prompt_form, definitions)).rstrip("\n")


def _mark(file: Path) -> object:
    try:
        found = file.stat()
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _message(definition: Definition, former: Message | None = None) -> Message:
    """What the desk in the kernel is told of a plugin; the source is read again only where its file has changed."""
    prefix = f"PLUGIN_{definition.name}_"
    mark = _mark(definition.code)
    text = former["source"] if former and former["mark"] == str(mark) else _source(definition.code)
    env = {name.removeprefix(prefix): value for name, value in os.environ.items() if name.startswith(prefix)}
    told: dict[str, Any] = {"name": definition.name, "source": text, "file": str(definition.code)}
    return told | {"config": definition.configurations, "env": env, "mark": str(mark)}


def _source(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:  # told where it is named, as any fault of its
        return f"raise ImportError({f'{file} can not be read: {error}'!r})"
