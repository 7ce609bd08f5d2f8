"""The loader of profiles: finds their files, merges the profiles that they extend, and validates the result."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from goose_like.core.entry_points import did_you_mean, list_entry_points, load_entry_point
from goose_like.core.errors import ProfileError
from goose_like.core.message import FrozenModel

from .paths import config_folder
from .profile import SHORT_FORMS, Limits, ModelChoice, ModeratorChoice, Profile, ToolkitChoice, expand_provider
from .trust import PROFILES, ProjectConfig, load_trusted_project
from .yaml_source import NO_DRAFTS, Drafts, YamlSource, describe_validation_error, parse_yaml, read_yaml

_PROJECT_KEYS = re.compile(
    r"extends|provider|(processor|accelerator)(\.(model|tools|window|max_output_tokens|temperature|stall_s))?"
    r"|moderator(\.name)?|toolkits(\.\d+\.(name|requires(\.[^.]+)?|1\.[^.]+|config(\.tools)?))?|limits(\.[a-z_]+)?"
)
"""Keys that a project's profile may have. None of them sends data elsewhere or grants a permission."""


def get_profiles_file() -> Path:
    """Return the user's `profiles.yaml`: profiles by name, and under `use` the name of the default profile."""
    return config_folder() / "profiles.yaml"


def load_profile(
    name: str | None, project: ProjectConfig | None = None, drafts: Drafts = NO_DRAFTS
) -> tuple[Profile, YamlSource]:
    """Load a profile, merged with the profiles that it extends, and its source.

    A user's profile may extend a profile of its own name from a project or a package. A project can never change
    sandbox and approval: these are the values that the user would have without the project.

    Args:
        name: The profile; None loads the one that `use` names, else `default`.
        project: The project that is trusted for this run; None uses the one around the current folder, if trusted.
        drafts: Texts to read instead of the contents of files.

    Raises:
        ProfileError: The name is unknown, `extends` forms a circle, the YAML is invalid or a value is not allowed.
            The text names the file, the line and the nearest valid name.
    """
    sources = list_profile_sources(project, drafts)
    return _resolve(sources, (find_selected_profile(project, drafts) or "default") if name is None else name)


def list_profile_sources(project: ProjectConfig | None = None, drafts: Drafts = NO_DRAFTS) -> list[YamlSource]:
    """List all profiles: first the user's, then the project's, then those of installed packages.

    `project` and `drafts` have the same meaning as in `load_profile`.
    """
    return list(_iterate_sources(project or load_trusted_project(Path.cwd()), drafts))


def find_selected_profile(project: ProjectConfig | None = None, drafts: Drafts = NO_DRAFTS) -> str | None:
    """Return the name under `use` in the user's `profiles.yaml`, or None without this line.

    Raises:
        ProfileError: No profile has this name. The text names the line.
    """
    data = _read_user_profiles(drafts)
    name = data.get("use") if isinstance(data, Mapping) else None
    if not isinstance(name, str):
        return None
    if name not in (names := [source.name for source in list_profile_sources(project, drafts)]):
        place = YamlSource("use", get_profiles_file(), data).locate("use")
        raise ProfileError(f"{place}: use: {describe_unknown_profile(name, names)}")
    return name


def describe_unknown_profile(name: str, known: Iterable[str]) -> str:
    """Format the error text for an unknown profile, with the nearest known name."""
    places, near = f"{config_folder()}, trusted projects and installed packages", did_you_mean(name, known)
    return f"unknown profile {name!r}; {near}; looked in {places}; make it: goose-like profile new {name}"


def find_origin(source: YamlSource, *path: str | int) -> str | None:
    """Format `file, line N` of the value at a path, in any of its written forms. None means a default value."""
    for each in (source, *source.bases):
        has_provider = path[0] == "processor" and "processor" not in each.data and "provider" in each.data
        written_path = ("provider",) if has_provider else path
        if (is_written := _is_written(each.data, written_path)) is not None:
            return replace(each, bases=()).locate(*written_path) if is_written else None
    return None


def _is_written(node: Any, path: tuple[str | int, ...]) -> bool | None:
    # False: the data replaces the value of its bases and has no value at this path. None: it leaves the bases' value.
    if not path:
        return True
    key, rest = path[0], path[1:]
    if isinstance(node, Mapping):
        return _is_written(node[key], rest) if key in node else None
    if isinstance(node, list):  # of toolkits, or one toolkit in the older form
        index = key if isinstance(key, int) else {"name": 0, "requires": 1}.get(key, len(node))
        return index < len(node) and _is_written(node[index], rest) is True
    return key in SHORT_FORMS.values()


def _iterate_sources(project: ProjectConfig | None, drafts: Drafts) -> Iterator[YamlSource]:
    for source in _split_by_name(get_profiles_file(), _read_user_profiles(drafts)):
        if source.name != "use" or not isinstance(source.data, str):
            yield source
    yield from _read_folder(config_folder() / "profiles", drafts)
    if project and (text := project.files.get(PROFILES)):
        for source in _split_by_name(file := project.get_path(PROFILES), parse_yaml(file, text)):
            yield replace(source, error=_find_forbidden_key(source), is_project=True)
    for name in list_entry_points("goose_like.profile"):
        for folder in getattr(load_entry_point("goose_like.profile", name), "__path__", ()):
            yield from _read_folder(Path(folder), drafts)


def _read_user_profiles(drafts: Drafts) -> Any:
    file = get_profiles_file()
    return read_yaml(file, drafts) if file in drafts or file.is_file() else {}


def _read_folder(folder: Path, drafts: Drafts) -> Iterator[YamlSource]:
    for file in sorted(folder.glob("*.yaml")):
        try:
            yield YamlSource(file.stem, file, read_yaml(file, drafts))
        except ProfileError as error:  # raised when somebody asks for this profile
            yield YamlSource(file.stem, file, None, error=error)


def _split_by_name(file: Path, data: Any) -> Iterator[YamlSource]:
    if not isinstance(data, Mapping):
        raise ProfileError(f"{file}: this file maps names to profiles, e.g. `default: {{processor: local}}`")
    for name, value in data.items():
        yield YamlSource(str(name), file, value)


def _find_forbidden_key(source: YamlSource) -> ProfileError | None:
    for path in _iterate_key_paths(source.data):
        if not _PROJECT_KEYS.fullmatch(key := ".".join(map(str, path))):
            place, user_file = source.locate(*path), config_folder() / PROFILES
            return ProfileError(f"{place}: a project may not set {key!r}; set it in {user_file}, or by an option")
    return None


def _iterate_key_paths(node: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    for key, value in node.items() if isinstance(node, Mapping) else ():
        yield (*path, key)
        yield from _iterate_key_paths(value, (*path, key))
    for index, value in enumerate(node) if isinstance(node, list) else ():
        yield from _iterate_key_paths(value, (*path, index))


def _resolve(sources: list[YamlSource], name: str) -> tuple[Profile, YamlSource]:
    chain = _follow_extends(sources, name)
    merged: dict[str, Any] = {}
    for source in reversed(chain):
        merged = _merge(merged, expand_provider({key: v for key, v in source.data.items() if key != "extends"}))
    merged |= _get_user_confinement(chain, sources)
    source = replace(chain[0], bases=tuple(chain[1:]))
    try:
        return Profile.model_validate({**merged, "name": name}), source
    except ValidationError as error:
        raise ProfileError(describe_validation_error(error, source, _suggest_key, "the profile")) from error


def _follow_extends(sources: list[YamlSource], name: str) -> list[YamlSource]:
    chain: list[YamlSource] = []
    wanted: object = name
    while wanted is not None:
        place = chain[-1].locate("extends") + ": " if chain else ""
        if not isinstance(wanted, str):
            raise ProfileError(f"{place}`extends` takes one profile's name")
        source = next((s for s in sources if s.name == wanted and s not in chain), None)
        if source is None:
            names = [s.name for s in sources]
            if wanted in names:
                circle = " -> ".join([*(s.name for s in chain), wanted])
                raise ProfileError(f"{place}profiles extend each other in a circle: {circle}; remove one `extends`")
            raise ProfileError(f"{place}{describe_unknown_profile(wanted, names)}")
        if source.error:
            raise source.error
        if not isinstance(source.data, Mapping):
            raise ProfileError(f"{source.locate()}: profile {wanted!r} is no mapping; write e.g. `processor: local`")
        chain.append(source)
        wanted = source.data.get("extends")
    return chain


def _get_user_confinement(chain: list[YamlSource], sources: list[YamlSource]) -> dict[str, Any]:
    # A project chooses what its profile extends, so its bases must not loosen sandbox and approval. Use the values
    # that the user would have without the project, then those of profiles that extend the project's.
    at = next((index for index, source in enumerate(chain) if source.is_project), None)
    if at is None:
        return {}
    users = [source for source in sources if not source.is_project and source not in chain[:at]]
    replacement = chain[at].name if any(source.name == chain[at].name for source in users) else "default"
    profile, _ = _resolve(users, replacement)
    confinement: dict[str, Any] = {"sandbox": profile.sandbox, "approval": profile.approval}
    for source in reversed(chain[:at]):
        confinement |= {key: source.data[key] for key in confinement if key in source.data}
    return confinement


def _merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Merge mappings key by key and replace other values. Another moderator does not inherit the config."""
    merged = dict(base)
    for key, value in over.items():
        old = merged.get(key)
        if isinstance(old, str) and key in SHORT_FORMS:
            old = {SHORT_FORMS[key]: old}
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            is_other_moderator = key == "moderator" and value.get("name", old.get("name")) != old.get("name")
            value = value if is_other_moderator else _merge(old, value)
        merged[key] = value
    return merged


def _suggest_key(path: tuple[str | int, ...]) -> str:
    models: dict[str, type[FrozenModel]] = {
        "processor": ModelChoice,
        "accelerator": ModelChoice,
        "moderator": ModeratorChoice,
        "toolkits": ToolkitChoice,
        "limits": Limits,
    }
    *parents, key = path
    known = set(models.get(str(parents[0]), Profile).model_fields) if parents else set(Profile.model_fields)
    return did_you_mean(str(key), known if parents else known - {"name"} | {"extends", "provider"})
