"""A folder of plugins or a whole TaskWeaver project, with everything that is wrong in it."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from goose_like.config.paths import kept_folder
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
    def by_name(self) -> dict[str, PluginSpec]:
        """The readable plugins by name."""
        return {spec.name: spec for spec in self.specs}

    @property
    def usable(self) -> tuple[PluginSpec, ...]:
        """The plugins without errors that are not disabled."""
        return tuple(spec for spec in self.specs if spec.name not in self.off)

    @property
    def urgent_diagnostics(self) -> tuple[Diagnostic, ...]:
        """The errors of plugins that are not disabled, without warnings."""
        ignored: set[Path] = set()
        used: set[Path] = set()
        for spec in self.specs:
            if spec.enabled:
                used.add(spec.code)
            else:
                ignored |= {spec.file, spec.code}
        ignored -= used  # both may have the same Python file
        return tuple(each for each in _list_errors(self.diagnostics) if each.file not in ignored)

    def describe_broken(self, count: int) -> str:
        """Return a line for each of the first plugins with errors, and the number of the others."""
        reasons = {file.stem: str(error) for file, error in self.unreadable.items()}
        for spec in self.specs:
            if spec.enabled and spec.name in self.off:
                reasons[spec.name] = self.off[spec.name]
        lines = [f"- {name}: {reason}" for name, reason in reasons.items()]
        left_out = lines[count:]
        if left_out:
            lines[count:] = [f"- {len(left_out)} more"]
        return "\n".join(lines)

    @property
    def unreadable(self) -> dict[Path, Diagnostic]:
        """The first error of each YAML file that cannot be read."""
        readable = {spec.file for spec in self.specs}
        errors: dict[Path, Diagnostic] = {}
        for each in reversed(_list_errors(self.diagnostics)):  # the first one of a file comes last
            if each.file.suffix == ".yaml" and each.file not in readable:
                errors[each.file] = each
        return errors

    def explain_missing(self, name: str) -> str:
        """Explain why there is no plugin with this name: its YAML has errors, or the name is misspelt."""
        if error := self.unreadable.get(self.plugins / f"{name}.yaml"):
            return f"the plugin {name!r} can't be used: {error}"
        return f"no plugin {name!r} in {self.plugins}; {did_you_mean(name, self.by_name)}"

    @classmethod
    def read(cls, folder: Path) -> "Project":
        """Read a folder of plugins, or a project with `taskweaver_config.json` or `plugins/`.

        Plugins are not imported. Unchanged files come from a cache.
        """
        folder = Path(os.path.expanduser(folder)).absolute()
        if not os.path.isdir(folder):  # unlike Path.is_dir, this never raises for impossible names
            text = "there is no such folder"
            if os.path.exists(folder):
                text = "this is not a folder; give the folder that contains it"
            return cls(folder, folder, diagnostics=(Diagnostic(file=folder, text=text),))
        result = read_settings(folder)
        settings = result.value or Settings()
        diagnostics = list(result.diagnostics)
        plugins = folder
        is_project = os.path.isfile(folder / CONFIG_NAME) or os.path.isdir(folder / "plugins")
        if is_project:
            plugins = settings.get_plugins_folder(folder)
        try:
            files = sorted(file for file in plugins.iterdir() if not file.name.startswith("."))
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            diagnostics.append(Diagnostic(file=plugins, text=f"the folder of plugins can't be read: {reason}"))
            return cls(folder, plugins, diagnostics=tuple(diagnostics), settings=settings)
        cache_file = kept_folder() / "plugins.sqlite"
        with pause_gc(), closing(ParseCache(cache_file)) as cache:
            specs = _read_specs(cache, files, folder / "plugins", diagnostics)
            if not is_project and not specs and not _has_pair(files):
                diagnostics.clear()  # the folder has YAML of other programs
            specs, off = _check_sources(cache, specs, diagnostics)
        diagnostics += _find_misnamed_files(files)
        diagnostics.sort(key=lambda each: each.sort_key)
        return cls(folder, plugins, tuple(specs), off, tuple(diagnostics), settings)


def _has_pair(files: Iterable[Path]) -> bool:
    """Return whether a YAML file has a Python file of the same name."""
    return any(file.suffix == ".yaml" and os.path.isfile(file.with_suffix(".py")) for file in files)


def _read_specs(
    cache: ParseCache, files: Iterable[Path], code_folder: Path, diagnostics: list[Diagnostic]
) -> list[PluginSpec]:
    """Return the specs of all YAML files; `code_folder` is where Python files may be too."""
    specs: dict[str, PluginSpec] = {}
    yaml_files = [file for file in files if file.suffix == ".yaml"]
    for file, result in cache.parse_files(ParseResult[PluginSpec], yaml_files, read_plugin_spec):
        diagnostics += result.diagnostics
        spec = result.value
        if spec is None:
            continue
        other = specs.get(spec.name)
        if other is not None:
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
    sources: dict[Path, ParseResult[Signature]] = {}
    for file, source in cache.parse_files(ParseResult[Signature], files, read_signature):
        sources[file] = source
        diagnostics += source.diagnostics
    completed: list[PluginSpec] = []
    off: dict[str, str] = {}
    for spec in specs:
        source = sources[spec.code]
        differences = _list_differences(spec, source.value)
        diagnostics += differences
        if reason := _explain_off(spec, [*source.diagnostics, *differences]):
            off[spec.name] = reason
        if source.value:
            spec = complete_spec(spec, source.value)
        completed.append(spec)
    return completed, off


def _list_differences(spec: PluginSpec, signature: Signature | None) -> list[Diagnostic]:
    """List the differences between YAML and source. They are warnings for a plugin that allows them."""
    if signature is None:
        return []
    differences = list(check_signature(spec, signature))
    if spec.allow_drift:
        differences = [each.model_copy(update={"is_warning": True}) for each in differences]
    return differences


def _explain_off(spec: PluginSpec, diagnostics: Iterable[Diagnostic]) -> str | None:
    if not spec.enabled:
        return "`enabled: false` in its YAML"
    errors = _list_errors(diagnostics)
    if not errors:
        return None
    first, *others = errors
    reason = first.text.removesuffix("?")
    if others:
        reason += f" (and {len(others)} more)"
    if first.file == spec.file:
        reason += "; `allow_drift: true` in the YAML turns it on anyway"
    return reason


def _list_errors(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    return [each for each in diagnostics if not each.is_warning]


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
    rows = []
    for spec in project.specs:
        reason = explain_off(spec.name)
        state = f"off: {reason}" if reason else "on"
        description = " ".join(spec.description.split())
        rows.append([spec.name, state, description])
    for file, error in project.unreadable.items():
        rows.append([file.stem, f"broken: {error.text}", ""])
    return sorted(list(map(escape_controls, row)) for row in rows)


def print_diagnostics(project: Project) -> int:
    """Print all errors and warnings by file; return the exit code, 1 for an error or an empty folder."""
    for each in project.diagnostics:
        print(escape_controls(str(each)))
    error_count = len(_list_errors(project.diagnostics))
    plugins = format_count(len(project.specs), "plugin")
    if error_count:
        print(f"\n{plugins}, {format_count(error_count, 'error')}")
        return 1
    if not project.specs:
        print(explain_empty(project))
        return 1
    print(f"{plugins}, no errors")
    return 0
