"""The loader of profiles: finds their files, merges the profiles that they extend, and validates the result."""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from typing import Any

from goose_like.config.entry_points import list_names, load_entry_point
from goose_like.config.paths import home_folder
from goose_like.core.errors import ProfileError
from goose_like.core.format_version import describe_newer_format
from goose_like.core.pattern import compile_later
from goose_like.core.spelling import did_you_mean

from .paths import PROFILES, config_folder
from .profile import Profile, WorkspaceSettings
from .toolkit_keys import move_toolkit_keys
from .trust import ProjectConfig, load_trusted_project
from .yaml_source import YamlSource, read_yaml, validate

_PROJECT_KEYS = compile_later(
    r"extends|provider|(processor|accelerator|fallback)(\.(model|tools|window|max_output_tokens|temperature|stall_s))?"
    r"|moderator(\.name)?|toolkits(\.\d+\.(name|requires(\.[^.]+)?|1\.[^.]+|config(\.tools)?))?|limits(\.[a-z_]+)?"
)
"""Keys that a project's profile may have. None of them sends data elsewhere or grants a permission."""

_Path = tuple[str | int, ...]

_FORMAT = 1
"""The format of profile files. `version` in a file is optional, because people write these files."""

_FILE_KEYS = ("use", "version")
_CONTENT = "names to profiles, e.g. `default: {processor: local}`"
_PROFILE_KEYS = {"extends", "provider", *Profile.model_fields} - {"name"}
_CONFINEMENT_KEYS = {"sandbox", "approval", "hosted", *WorkspaceSettings.model_fields}
_SHORT_FORMS = {"processor": "model", "accelerator": "model", "fallback": "model", "moderator": "name"}
"""Keys whose value may be a text instead of a mapping, with the key inside the mapping that the text stands for."""

_ADDED_LISTS = {"permissions": ("allow", "ask", "deny"), "paths": ("hide", "deny_write")}
"""Lists that an extending profile adds to, so that it cannot lose a rule without saying so."""


def get_profiles_file() -> Path:
    """Return the user's `profiles.yaml`: profiles by name, and under `use` the name of the default profile."""
    return config_folder() / "profiles.yaml"


def describe_goose09_profiles() -> str:
    """Describe how to take over profiles of goose 0.9, or return an empty text if that is done or there are none."""
    old = home_folder() / ".config/goose/profiles.yaml"
    new = get_profiles_file()
    if not os.path.isfile(old) or os.path.lexists(new):
        return ""
    return f"the profiles of goose 0.9 are not used; copy them: mkdir -p {new.parent} && cp {old} {new}"


def load_profile(
    name: str | None, project: ProjectConfig | None = None, drafts: Mapping[Path, str] = {}
) -> tuple[Profile, YamlSource]:
    """Load a profile, merged with the profiles that it extends, and its source.

    Without a name, load the one that `use` names, else `default`. Without a project, use the one around the current
    folder, if it is trusted. `drafts` are texts to read instead of files. A user's profile may extend a profile of its
    own name from a project or a package. A project can never change what the agent may do: sandbox, approval and the
    like have the values that the user would have without the project.

    Raises:
        ProfileError: The name is unknown, `extends` forms a circle, the YAML is invalid or a value is not allowed.
            The text names the file, the line and the nearest valid name.
    """
    sources = list_profile_sources(project, drafts)
    if name is None:
        name = _choose_default(sources, drafts)
    return _resolve(sources, name)


def _choose_default(sources: list[YamlSource], drafts: Mapping[Path, str]) -> str:
    """Return the name of the profile that `use` names, else `default`."""
    selected = find_selected_profile(drafts)
    if selected is None:
        return "default"
    names = [source.name for source in sources]
    if selected not in names:
        place = _read_user_profiles(drafts).locate("use")
        raise ProfileError(f"{place}: use: {describe_unknown_profile(selected, names)}")
    return selected


def list_profile_sources(project: ProjectConfig | None = None, drafts: Mapping[Path, str] = {}) -> list[YamlSource]:
    """List all profiles: the user's, the project's, those of installed packages. Parameters as in `load_profile`."""
    sources = _split_profiles(_read_user_profiles(drafts))
    sources += _read_folder(config_folder() / "profiles", drafts)
    project = project or load_trusted_project(Path.cwd())
    if project:
        sources += _read_project_profiles(project)
    for name in list_names("goose_like.profile"):
        package = load_entry_point("goose_like.profile", name)
        for folder in getattr(package, "__path__", ()):
            sources += _read_folder(Path(folder), drafts, is_shipped=True)
    return sources


def _read_project_profiles(project: ProjectConfig) -> Iterator[YamlSource]:
    """Yield the profiles of a project. Each has an error if it sets a key that a project may not set."""
    text = project.files.get(PROFILES)
    if not text:
        return
    file = project.get_path(PROFILES)
    for source in _split_profiles(read_yaml(file, {file: text})):
        yield replace(source, error=_find_forbidden_key(source), is_project=True)


def _split_profiles(file: YamlSource) -> list[YamlSource]:
    """Return the profiles of a file by name. `use` and `version` are keys of the file, unless they are profiles.

    Raises:
        ProfileError: The file is no mapping of names to profiles, has settings outside of profiles, or a newer format.
    """
    _check_version(file)
    _check_is_nested(file)
    profiles: list[YamlSource] = []
    for source in file.split(_CONTENT):
        if source.name in _FILE_KEYS and not isinstance(source.data, Mapping):
            continue
        profiles.append(source)
    return profiles


def _check_version(file: YamlSource) -> None:
    if not isinstance(file.data, Mapping):
        return
    version = file.data.get("version")
    if version is None or isinstance(version, Mapping):
        return
    place = file.locate("version")
    if not isinstance(version, int) or version < 1:
        raise ProfileError(f"{place}: version: expected the number {_FORMAT}, not {version!r:.80}")
    if refusal := describe_newer_format(place, version, _FORMAT):
        raise ProfileError(refusal)


def _check_is_nested(file: YamlSource) -> None:
    """Check that no setting of a profile stands where names of profiles stand."""
    if not isinstance(file.data, Mapping):
        return
    for key, value in file.data.items():
        if key not in _PROFILE_KEYS:
            continue
        is_profile = isinstance(value, Mapping) and value.keys() <= _PROFILE_KEYS
        if not is_profile:
            raise ProfileError(
                f"{file.locate(key)}: {key!r} stands outside of a profile; write `default:` or another name above "
                "the settings of the profile, and indent these by two blanks"
            )


def find_selected_profile(drafts: Mapping[Path, str] = {}) -> str | None:
    """Return the name under `use` in the user's `profiles.yaml`, or None without this line.

    Raises:
        ProfileError: The file cannot be read, or `use` is neither a name nor a profile of this name.
    """
    source = _read_user_profiles(drafts)
    if not isinstance(source.data, Mapping):
        return None
    name = source.data.get("use")
    if name is None or isinstance(name, Mapping):
        return None
    if not isinstance(name, str):
        raise ProfileError(f"{source.locate('use')}: use: expected the name of a profile, not {name!r:.80}")
    return name


def describe_unknown_profile(name: str, known: Iterable[str]) -> str:
    """Format the error text for an unknown profile, with the nearest known name."""
    hint = did_you_mean(name, known)
    places = f"{config_folder()}, trusted projects and installed packages"
    return f"unknown profile {name!r}; {hint}; looked in {places}; make it: goose-like profile new {name}"


def _read_user_profiles(drafts: Mapping[Path, str]) -> YamlSource:
    file = get_profiles_file()
    if not os.path.lexists(file):
        drafts = {file: "", **drafts}
    return read_yaml(file, drafts)


def _read_folder(folder: Path, drafts: Mapping[Path, str], *, is_shipped: bool = False) -> Iterator[YamlSource]:
    for file in sorted(folder.glob("*.yaml")):
        try:
            source = read_yaml(file, drafts, is_shipped=is_shipped)
            _check_version(source)
            yield _remove_version(source)
        except ProfileError as error:  # raised when somebody asks for this profile
            yield YamlSource(file.stem, file, None, error=error)


def _remove_version(source: YamlSource) -> YamlSource:
    if not isinstance(source.data, Mapping):
        return source
    data = dict(source.data)
    data.pop("version", None)
    return replace(source, data=data)


def _find_forbidden_key(source: YamlSource) -> ProfileError | None:
    """Return the error about the first key that a project may not set."""
    for path in _iterate_key_paths(source.data):
        key = ".".join(map(str, path))
        if not _PROJECT_KEYS.fullmatch(key):
            place = source.locate(*path)
            user_file = get_profiles_file()
            return ProfileError(f"{place}: a project may not set {key!r}; set it in {user_file}, or by an option")
    return None


def _iterate_key_paths(node: Any, path: _Path = ()) -> Iterator[_Path]:
    """Yield the path of each key in nested mappings and lists."""
    if isinstance(node, Mapping):
        for key, value in node.items():
            key_path = (*path, key)
            yield key_path
            yield from _iterate_key_paths(value, key_path)
    elif isinstance(node, list):
        for index, item in enumerate(node):
            yield from _iterate_key_paths(item, (*path, index))


def _resolve(sources: list[YamlSource], name: str) -> tuple[Profile, YamlSource]:
    """Merge and validate a profile. Return it with its source."""
    chain = _follow_extends(sources, name)
    merged: dict[str, Any] = {}
    for source in reversed(chain):
        merged = _merge(merged, _expand_provider(source.data))
    if any(source.is_project for source in chain):
        for key in _CONFINEMENT_KEYS:
            merged.pop(key, None)
        merged |= _get_user_confinement(chain, sources)
    merged["name"] = name
    first, *bases = chain
    source = replace(first, bases=tuple(bases))
    try:
        merged = move_toolkit_keys(merged, {*_PROFILE_KEYS, "name"})
    except ProfileError as error:
        raise ProfileError(f"{source.locate(*error.path)}: {error}") from error
    profile = validate(Profile, merged, source, "the profile", ("extends", "provider"))
    return profile, source


def _follow_extends(sources: list[YamlSource], name: str) -> list[YamlSource]:
    """Return the profile of a name, the one that it extends, and so on."""
    chain: list[YamlSource] = []
    wanted: str | None = name
    while wanted is not None:
        source = _find_next(sources, chain, wanted)
        chain.append(source)
        wanted = source.data.get("extends")
        if not isinstance(wanted, str | None):
            raise ProfileError(f"{source.locate('extends')}: extends: expected one profile's name, not {wanted!r:.80}")
    return chain


def _find_next(sources: list[YamlSource], chain: list[YamlSource], name: str) -> YamlSource:
    """Return the first profile of a name that is not in the chain: one may extend another of its own name."""
    for source in sources:
        if source.name != name or source in chain:
            continue
        if source.error:
            raise source.error
        if not isinstance(source.data, Mapping):
            raise ProfileError(f"{source.locate()}: profile {name!r} is no mapping; write e.g. `processor: local`")
        return source
    place = ""
    if chain:
        place = chain[-1].locate("extends") + ": "
    names = [source.name for source in sources]
    if name not in names:
        raise ProfileError(f"{place}{describe_unknown_profile(name, names)}")
    names_in_chain = [source.name for source in chain]
    circle = " -> ".join([*names_in_chain, name])
    raise ProfileError(f"{place}profiles extend each other in a circle: {circle}; remove one `extends`")


def _get_user_confinement(chain: list[YamlSource], sources: list[YamlSource]) -> dict[str, Any]:
    # A project chooses what its profile extends, so its bases must not loosen sandbox and approval. Use the values
    # that the user would have without the project, then those of profiles that extend the project's.
    extending = list(takewhile(lambda source: not source.is_project, chain))
    project_name = chain[len(extending)].name
    own = [source for source in sources if not source.is_project and source not in extending]
    own_names = {source.name for source in own}
    replacement = project_name if project_name in own_names else "default"
    profile, _ = _resolve(own, replacement)
    confinement = profile.model_dump(include=_CONFINEMENT_KEYS, exclude_unset=True)
    for source in reversed(extending):
        chosen = {key: value for key, value in source.data.items() if key in _CONFINEMENT_KEYS}
        confinement = _merge(confinement, chosen)
    return confinement


def _expand_provider(data: Mapping[str, Any]) -> dict[str, Any]:
    """Replace `provider: x`, which Goose 0.9 wrote beside bare model names, by `x:model`. Drop `extends`."""
    expanded = dict(data)
    expanded.pop("extends", None)
    provider = expanded.pop("provider", None)
    if provider is None:
        return expanded
    for role in ("processor", "accelerator"):
        model = expanded.get(role)
        if isinstance(model, str):
            expanded[role] = f"{provider}:{model}"
    expanded["processor"] = expanded.get("processor") or str(provider)
    return expanded


def _merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Merge mappings key by key, add up `_ADDED_LISTS`, and replace other values."""
    merged = dict(base)
    for key, value in over.items():
        old = merged.get(key)
        if isinstance(old, str) and key in _SHORT_FORMS:
            old = {_SHORT_FORMS[key]: old}
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            value = _merge_key(key, old, value)
        merged[key] = value
    return merged


def _merge_key(key: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Mapping[str, Any]:
    """Merge the mappings that a key has in two profiles. Another moderator does not inherit the config."""
    old_name = old.get("name")
    if key == "moderator" and new.get("name", old_name) != old_name:
        return new
    merged = _merge(old, new)
    for name in _ADDED_LISTS.get(key, ()):
        if name in new:
            merged[name] = _add_up(old.get(name), new[name])
    return merged


def _add_up(old: Any, new: Any) -> Any:
    """Add the items of an inherited list. The own ones come first, so that errors name their lines."""
    if not (isinstance(old, list | tuple) and isinstance(new, list)):
        return new
    return [*new, *(item for item in old if item not in new)]
