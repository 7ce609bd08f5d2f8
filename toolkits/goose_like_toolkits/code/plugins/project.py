"""Project: the plugins of a folder, or of a whole TaskWeaver project, and what is wrong with them."""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from goose_like.config.paths import cache_folder
from goose_like.core.entry_points import did_you_mean
from goose_like.core.errors import GooseLikeError
from goose_like.core.gc_pause import pause_gc
from goose_like.sdk.diagnostics import Diagnostic, ParseResult
from goose_like.sdk.parse_cache import parse_files
from goose_like.sdk.store import ParseCache
from goose_like_toolkits.code.taskweaver import CONFIG, Settings, read_settings

from .signature import Signature, read_signature
from .signature_check import drift, settled
from .spec import Definition


@dataclass(frozen=True, slots=True)
class Project:
    """`definitions` are the plugins whose YAML can be read, sorted by their file; `off` says of some why they are.

    `faults` are sorted by their place; nothing that is wrong with one file keeps another from being read.
    """

    folder: Path
    plugins: Path
    definitions: tuple[Definition, ...] = ()
    off: Mapping[str, str] = field(default_factory=dict)
    faults: tuple[Diagnostic, ...] = ()
    settings: Settings = field(default_factory=Settings)

    @property
    def usable(self) -> tuple[Definition, ...]:
        """The plugins that a model may be told of."""
        return tuple(definition for definition in self.definitions if definition.name not in self.off)

    @property
    def pressing(self) -> tuple[Diagnostic, ...]:
        """What a person should know at the start: no remarks, and nothing of plugins with `enabled: false`."""
        disabled = [each for each in self.definitions if not each.enabled]
        aside = {file for each in disabled for file in (each.file, each.code)}
        aside -= {each.code for each in self.definitions if each.enabled}
        return tuple(fault for fault in self.faults if not fault.is_warning and fault.file not in aside)

    def missing(self, name: str) -> str:
        """Why there is no plugin of that name: its YAML can't be read, or another name was meant."""
        read = {each.file for each in self.definitions}
        for fault in self.faults:
            if fault.file.name == f"{name}.yaml" and fault.file not in read and not fault.is_warning:
                return f"the plugin {name!r} can't be used: {fault}"
        return f"no plugin {name!r} in {self.plugins}; {did_you_mean(name, [each.name for each in self.definitions])}"

    @classmethod
    def read(cls, folder: Path) -> "Project":
        """What is there now: a folder of plugins, or a project with `taskweaver_config.json` or `plugins/`.

        No plugin is imported. What was read before and has not changed comes from the cache.

        Raises:
            GooseLikeError: PyYAML is not installed.
        """
        folder = Path(os.path.expanduser(folder)).absolute()
        if not os.path.isdir(folder):  # which never raises, as Path's does for names that no file can have
            what = "this is no folder; name the one it is in" if os.path.exists(folder) else "there is no such folder"
            return cls(folder, folder, faults=(Diagnostic(file=folder, text=what),))
        settings = read_settings(folder)
        found = settings.value or Settings()
        is_project = os.path.isfile(folder / CONFIG) or os.path.isdir(folder / "plugins")
        plugins = found.plugins_folder(folder) if is_project else folder
        faults = list(settings.diagnostics)
        try:
            files = sorted(file for file in plugins.iterdir() if not file.name.startswith("."))
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            faults.append(Diagnostic(file=plugins, text=f"the folder of plugins can't be read: {reason}"))
            return cls(folder, plugins, faults=tuple(faults), settings=found)
        with pause_gc(), closing(ParseCache(cache_folder() / "plugins.sqlite")) as store:
            definitions, off = _gathered(store, files, folder / "plugins", faults)
        faults += _misnamed(files)
        ordered = tuple(sorted(faults, key=lambda fault: fault.sort_key))
        return cls(folder, plugins, tuple(definitions), off, ordered, found)


def _gathered(
    store: ParseCache, files: Iterable[Path], elsewhere: Path, faults: list[Diagnostic]
) -> tuple[list[Definition], dict[str, str]]:
    """The plugins, and why some are off; what is wrong is added to the faults."""
    named: dict[str, Definition] = {}
    for file, reading in parse_files(
        store, ParseResult[Definition], (f for f in files if f.suffix == ".yaml"), _read_yaml
    ):
        faults += reading.diagnostics
        if (definition := reading.value) is None:
            continue
        if (other := named.get(definition.name)) is not None:
            text = f"the name {definition.name!r} is taken by {other.file.name}; choose another one"
            faults.append(Diagnostic(file=file, line=definition.line, text=text))
            continue
        code = elsewhere / definition.code.name
        if not os.path.isfile(definition.code) and os.path.isfile(code):
            definition = definition.model_copy(update={"code": code})
        named[definition.name] = definition
    codes = dict.fromkeys(definition.code for definition in named.values())
    sources = dict(parse_files(store, ParseResult[Signature], codes, read_signature))
    faults += (fault for source in sources.values() for fault in source.diagnostics)
    off: dict[str, str] = {}
    for name, definition in named.items():
        source = sources[definition.code]
        differences = list(drift(definition, source.value)) if source.value else []
        if definition.allow_drift:
            differences = [fault.model_copy(update={"is_remark": True}) for fault in differences]
        faults += differences
        if why := _why_off(definition, [*source.diagnostics, *differences]):
            off[name] = why
        if source.value:
            named[name] = settled(definition, source.value)
    return list(named.values()), off


def _read_yaml(file: Path) -> ParseResult[Definition]:
    try:
        from .spec_file import read_definition  # PyYAML, of which a start needs nothing where no file has changed
    except ImportError as error:
        raise GooseLikeError(
            "plugins need a library that is not installed: pip install 'goose-like[kernel]'"
        ) from error
    return read_definition(file)


def _why_off(definition: Definition, faults: Iterable[Diagnostic]) -> str | None:
    if not definition.enabled:
        return "`enabled: false` in its YAML"
    wrong = [fault for fault in faults if not fault.is_warning]
    if not wrong:
        return None
    more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
    allowed = "; to have it on all the same: `allow_drift: true`" if wrong[0].file == definition.file else ""
    return f"{wrong[0].text.removesuffix('?')}{more}{allowed}"


def _misnamed(files: Iterable[Path]) -> Iterator[Diagnostic]:
    for file in files:
        if file.suffix == ".yml" and os.path.isfile(file.with_suffix(".py")):
            yield Diagnostic(file=file, text="only *.yaml is read; rename it if it is a plugin", is_warning=True)
