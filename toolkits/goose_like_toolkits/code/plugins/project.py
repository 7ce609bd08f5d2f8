"""A folder of plugins or a whole TaskWeaver project, with everything that is wrong in it."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from goose_like.config.paths import cache_folder
from goose_like.core.gc_pause import pause_gc
from goose_like.core.spelling import did_you_mean, format_count
from goose_like.sdk.diagnostics import Diagnostic, ParseResult
from goose_like.sdk.parse_cache import ParseCache
from goose_like.terminal.escape import escape_controls
from goose_like_toolkits.code.taskweaver import CONFIG_NAME, Settings, read_settings

from .signature import Signature, check_signature, complete_spec, read_signature
from .spec import PluginSpec, read_plugin_spec


@dataclass(frozen=True, slots=True)
class Project:
    """The plugins of a folder. An error in one file never affects another plugin.

    `specs` are the readable plugins, sorted by file; `off` maps names of plugins to the reason why they are off;
    `diagnostics` are sorted by place.
    """

    folder: Path
    plugins: Path
    specs: tuple[PluginSpec, ...] = ()
    off: Mapping[str, str] = field(default_factory=dict)
    diagnostics: tuple[Diagnostic, ...] = ()
    settings: Settings = field(default_factory=Settings)

    @property
    def usable(self) -> tuple[PluginSpec, ...]:
        """The plugins without errors that are not disabled."""
        return tuple(spec for spec in self.specs if spec.name not in self.off)

    @property
    def urgent_diagnostics(self) -> tuple[Diagnostic, ...]:
        """The errors of plugins that are not disabled, without warnings."""
        ignored = {file for spec in self.specs if not spec.enabled for file in (spec.file, spec.code)}
        ignored -= {spec.code for spec in self.specs if spec.enabled}
        return tuple(each for each in self.diagnostics if not each.is_warning and each.file not in ignored)

    def describe_broken(self, count: int) -> str:
        """Return a line for each of the first plugins with errors, and the number of the others."""
        reasons = {spec.name: self.off[spec.name] for spec in self.specs if spec.enabled and spec.name in self.off}
        reasons = {**{file.stem: str(each) for file, each in self.unreadable.items()}, **reasons}
        lines = [f"- {name}: {reason}" for name, reason in reasons.items()]
        return "\n".join([*lines[:count], *([f"- {len(lines) - count} more"] if len(lines) > count else [])])

    @property
    def unreadable(self) -> dict[Path, Diagnostic]:
        """The first error of each YAML file that cannot be read."""
        readable = {spec.file for spec in self.specs}
        errors = [each for each in self.diagnostics if each.file.suffix == ".yaml" and not each.is_warning]
        return {each.file: each for each in reversed(errors) if each.file not in readable}

    def explain_missing(self, name: str) -> str:
        """Explain why there is no plugin with this name: its YAML has errors, or the name is misspelt."""
        if error := self.unreadable.get(self.plugins / f"{name}.yaml"):
            return f"the plugin {name!r} can't be used: {error}"
        return f"no plugin {name!r} in {self.plugins}; {did_you_mean(name, [spec.name for spec in self.specs])}"

    @classmethod
    def read(cls, folder: Path) -> "Project":
        """Read a folder of plugins, or a project with `taskweaver_config.json` or `plugins/`.

        Plugins are not imported. Unchanged files come from a cache.
        """
        folder = Path(os.path.expanduser(folder)).absolute()
        if not os.path.isdir(folder):  # unlike Path.is_dir, this never raises for impossible names
            text = (
                "this is not a folder; give the folder that contains it"
                if os.path.exists(folder)
                else "there is no such folder"
            )
            return cls(folder, folder, diagnostics=(Diagnostic(file=folder, text=text),))
        result = read_settings(folder)
        settings = result.value or Settings()
        is_project = os.path.isfile(folder / CONFIG_NAME) or os.path.isdir(folder / "plugins")
        plugins = settings.get_plugins_folder(folder) if is_project else folder
        diagnostics = list(result.diagnostics)
        try:
            files = sorted(file for file in plugins.iterdir() if not file.name.startswith("."))
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            diagnostics.append(Diagnostic(file=plugins, text=f"the folder of plugins can't be read: {reason}"))
            return cls(folder, plugins, diagnostics=tuple(diagnostics), settings=settings)
        with pause_gc(), closing(ParseCache(cache_folder() / "plugins.sqlite")) as cache:
            specs = _read_specs(cache, files, folder / "plugins", diagnostics)
            specs, off = _check_sources(cache, specs, diagnostics)
        diagnostics += _find_misnamed_files(files)
        diagnostics.sort(key=lambda each: each.sort_key)
        return cls(folder, plugins, tuple(specs), off, tuple(diagnostics), settings)


def _read_specs(
    cache: ParseCache, files: Iterable[Path], code_folder: Path, diagnostics: list[Diagnostic]
) -> list[PluginSpec]:
    """Return the specs of all YAML files; `code_folder` is where Python files may be too."""
    specs: dict[str, PluginSpec] = {}
    yaml_files = (file for file in files if file.suffix == ".yaml")
    for file, result in cache.parse_files(ParseResult[PluginSpec], yaml_files, read_plugin_spec):
        diagnostics += result.diagnostics
        if (spec := result.value) is None:
            continue
        if (other := specs.get(spec.name)) is not None:
            text = f"the name {spec.name!r} is taken by {other.file.name}; choose another one"
            diagnostics.append(Diagnostic(file=file, line=spec.line, text=text))
            continue
        code = code_folder / spec.code.name
        if not os.path.isfile(spec.code) and os.path.isfile(code):
            spec = spec.model_copy(update={"code": code})
        specs[spec.name] = spec
    return list(specs.values())


def _check_sources(
    cache: ParseCache, specs: Iterable[PluginSpec], diagnostics: list[Diagnostic]
) -> tuple[list[PluginSpec], dict[str, str]]:
    """Return the specs, completed from their Python sources, and the reasons why some are off."""
    files = dict.fromkeys(spec.code for spec in specs)
    sources = dict(cache.parse_files(ParseResult[Signature], files, read_signature))
    diagnostics += (each for source in sources.values() for each in source.diagnostics)
    completed: list[PluginSpec] = []
    off: dict[str, str] = {}
    for spec in specs:
        source = sources[spec.code]
        differences = list(check_signature(spec, source.value)) if source.value else []
        if spec.allow_drift:
            differences = [each.model_copy(update={"is_warning": True}) for each in differences]
        diagnostics += differences
        if reason := _explain_off(spec, [*source.diagnostics, *differences]):
            off[spec.name] = reason
        completed.append(complete_spec(spec, source.value) if source.value else spec)
    return completed, off


def _explain_off(spec: PluginSpec, diagnostics: Iterable[Diagnostic]) -> str | None:
    if not spec.enabled:
        return "`enabled: false` in its YAML"
    errors = [each for each in diagnostics if not each.is_warning]
    if not errors:
        return None
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    hint = "; `allow_drift: true` in the YAML turns it on anyway" if errors[0].file == spec.file else ""
    return f"{errors[0].text.removesuffix('?')}{more}{hint}"


def _find_misnamed_files(files: Iterable[Path]) -> Iterator[Diagnostic]:
    for file in files:
        if file.suffix == ".yml" and os.path.isfile(file.with_suffix(".py")):
            yield Diagnostic(file=file, text="only *.yaml is read; rename it if it is a plugin", is_warning=True)


def explain_empty(project: Project) -> str:
    """Explain how to get plugins into a folder without any."""
    return (
        f"there are no plugins in {project.plugins}: a plugin is a NAME.yaml and a NAME.py; "
        "choose another folder with --project, or write one with `goose-like plugin new NAME`"
    )


def list_rows(project: Project, explain_off: Callable[[str], str | None]) -> list[list[str]]:
    """Return name, state and description of each plugin, also of those with an unreadable YAML file."""
    reasons = [explain_off(spec.name) for spec in project.specs]
    rows = [
        [spec.name, f"off: {reason}" if reason else "on", " ".join(spec.description.split())]
        for spec, reason in zip(project.specs, reasons, strict=True)
    ]
    rows += [[file.stem, f"broken: {each.text}", ""] for file, each in project.unreadable.items()]
    return sorted([escape_controls(cell) for cell in row] for row in rows)


def print_diagnostics(project: Project) -> int:
    """Print all errors and warnings by file; return the exit code, 1 for an error or an empty folder."""
    for each in project.diagnostics:
        print(escape_controls(str(each)))
    errors = sum(not each.is_warning for each in project.diagnostics)
    plugins = format_count(len(project.specs), "plugin")
    if errors:
        print(f"\n{plugins}, {format_count(errors, 'error')}")
    elif project.specs:
        print(f"{plugins}, no errors")
    else:
        print(explain_empty(project))
    return int(errors > 0 or not project.specs)
