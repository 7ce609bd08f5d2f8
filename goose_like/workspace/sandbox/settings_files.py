"""Settings of toolchains that may hold credentials: the files, and their text without credentials for commands."""

import glob
import os
import re
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from goose_like.config.paths import normalize_path
from goose_like.core.masking import mask_text
from goose_like.core.pattern import compile_later

from .home import list_git_files, list_homes

_MAX_BYTES = 200_000

# User and password in a URL. For the web the whole part is removed, because a user name alone may be a token.
_URL_USER = compile_later(r"(https?://)[^/\s?#]*@|(://)[^/\s@:]*:[^/\s]*@", re.IGNORECASE)

# Every part has a largest length, so that no file takes quadratic time.
_SECRET_LINE = compile_later(
    r"(?:token|passw(?:or)?d|passphrase|secret|_auth|goauth|authorization|api_?key|private_?key|access_?key|smtppass"
    r"|bearer|cookie)[\w.-]{0,100}+[\"']?\s*[=:]"
    r"|extraheader|authorization\s*:|\bbearer\s|\bsshpass\b|-----BEGIN"
    r"|[\s\"'=][^\s\"'/@:=]{1,200}+:[^\s\"'/@]{1,1000}+@"  # user and password without a scheme
    r"|://\S{0,300}/t/[\w-]{8}",  # a token in the path of a conda channel
    re.IGNORECASE,
)
_LOGICAL_LINE = compile_later(r"(?:[^\n]*\\\n)*[^\n]*\n|(?:[^\n]*\\\n)*[^\n]+\Z")
_HEADER = compile_later(r"\s*+(\[(?:\"[^\"\n]*+\"|[^\]\"\n]|\")*+\]+)(.*)", re.DOTALL)
_ENV_HEADER = compile_later(r"\s*\[\[?\s*env\b", re.IGNORECASE)  # of mise: every value may be a secret
_MULTILINE = compile_later(r"\"\"\"|'''")

_CONDA = (".conda", "miniconda3", "anaconda3", "miniforge3", "mambaforge", "micromamba")

# In a home folder; with patterns.
_FILES = (
    *(".gitconfig", ".config/git/*", ".cargo/config", ".cargo/config.toml", ".config/go/env", ".rye/config.toml"),
    *(".config/mise/*.toml", ".config/mise/conf.d/*.toml", ".pixi/config.toml", ".stack/config.yaml"),
)
# Folders with an installation or a virtual environment, in a home folder.
_ENVIRONMENTS = (
    *(".pyenv/versions/*", ".pyenv/versions/*/envs/*", ".virtualenvs/*", ".venvs/*", ".venv"),
    *(".local/share/virtualenv/*", ".local/share/virtualenvs/*", ".local/share/hatch/env/virtual/*/*/*"),
    *(".local/share/pdm/venvs/*", ".cache/pypoetry/virtualenvs/*", ".local/share/pipx/venvs/*"),
    *(".local/pipx/venvs/*", ".local/share/uv/tools/*", ".local/share/uv/python/*", ".rye/py/*", ".rye/tools/*"),
    *(".pixi/envs/*", *_CONDA, *(f"{name}/envs/*" for name in _CONDA), ".nvm/versions/*/*", ".npm-global"),
    *(".fnm/node-versions/*/installation", ".local/share/fnm/node-versions/*/installation", ".nix-profile"),
    *(".volta/tools/image/*/*", ".nodenv/versions/*", ".asdf/installs/*/*", ".local/share/mise/installs/*/*"),
    *(".local", ".linuxbrew", ".yarn", ".bun", ".local/share/pnpm", ".local/opt/*"),
)
_IN_ENVIRONMENT = (
    *("pip.conf", "etc/pip.conf", "condarc", ".condarc", "condarc.d/*", "etc/conda/.condarc", "etc/gitconfig"),
    *(".npmrc", "etc/npmrc", "lib/node_modules/npm/npmrc", "lib/node_modules/npm/.npmrc"),
)
_HIDDEN_IN_ENVIRONMENT = (".env", ".netrc", ".pypirc")
_SYSTEM = ("/etc/gitconfig", "/etc/npmrc", "/usr/etc/npmrc", "/etc/pip.conf", "/etc/conda/.condarc")
_FILE_VARIABLES = (
    *("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "PIP_CONFIG_FILE", "CONDARC", "GOENV", "UV_CONFIG_FILE"),
    *("NPM_CONFIG_USERCONFIG", "NPM_CONFIG_GLOBALCONFIG", "npm_config_userconfig", "npm_config_globalconfig"),
)


def strip_url_users(text: str) -> str:
    """Remove user and password from the URLs of a text."""
    if "@" not in text:
        return text
    return _URL_USER.sub(r"\1\2", text)


def find_cleaned_settings() -> dict[Path, bytes]:
    """Find the settings that hold credentials, by the given path and the real one, with the text to show instead."""
    environments = list(dict.fromkeys(_list_environments()))
    found: dict[Path, bytes] = {}
    for path in dict.fromkeys((*_list_files(), *_join(environments, _IN_ENVIRONMENT))):
        data = _read_file(path)
        if data is None:
            continue
        cleaned = _clean_data(data, has_secret_variables="mise" in path)
        if cleaned != data:
            found[normalize_path(path)] = cleaned
            found[Path(os.path.realpath(path))] = cleaned
    for path in _join(environments, _HIDDEN_IN_ENVIRONMENT):
        found[normalize_path(path)] = b""
        found[Path(os.path.realpath(path))] = b""
    return found


def clean_settings(text: str, *, has_secret_variables: bool = False) -> str:
    """Remove the lines with credentials from settings in the format of git, INI, TOML, YAML or npm.

    With `has_secret_variables`, a section `[env]` is removed too.
    """
    original = text
    text = strip_url_users(text)
    kept: list[str] = []
    is_secret_section = False
    has_dropped = False
    for line in _LOGICAL_LINE.findall(text):
        header = _HEADER.fullmatch(line)
        if header:
            is_env = has_secret_variables and _ENV_HEADER.match(line) is not None
            is_secret_section = is_env or mask_text(header[1]) != header[1]
        if is_secret_section:
            has_dropped = True
        elif not _has_secret(header[2] if header else line):
            kept.append(line)
        else:
            has_dropped = True
            if header:
                kept.append(f"{header[1]}\n")
    if has_dropped and _MULTILINE.search(original):
        return ""  # half of a text of several lines would break the rest
    return "".join(kept)


def _has_secret(line: str) -> bool:
    return _SECRET_LINE.search(f" {line}") is not None or mask_text(line) != line


def _clean_data(data: bytes, *, has_secret_variables: bool) -> bytes:
    if len(data) > _MAX_BYTES:
        return b""
    text = os.fsdecode(data)
    return os.fsencode(clean_settings(text, has_secret_variables=has_secret_variables))


def _list_files() -> Iterator[str]:
    """List the paths of settings that stand alone, existing or not."""
    homes = list_homes()
    yield from list_git_files(homes)
    for home in homes:
        for name in _FILES:
            yield from glob.iglob(f"{glob.escape(str(home))}/{name}")
    yield from _SYSTEM
    for variable in _FILE_VARIABLES:
        path = os.environ.get(variable, "")
        if os.path.isabs(path):
            yield path
    cargo = os.environ.get("CARGO_HOME", "")
    if os.path.isabs(cargo):
        yield from (f"{cargo}/config", f"{cargo}/config.toml")


def _list_environments() -> Iterator[str]:
    """List the folders of installations: those at usual places in a home folder, and those that variables name."""
    for home in list_homes():
        tops: set[str] = set()
        with suppress(OSError):  # a home that is missing, closed or a file
            tops.update(os.listdir(home))
        for name in _ENVIRONMENTS:
            if name.partition("/")[0] in tops:
                yield from glob.iglob(f"{glob.escape(str(home))}/{name}")
    yield from (sys.prefix, sys.base_prefix)
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX", "npm_config_prefix", "NPM_CONFIG_PREFIX"):
        folder = os.environ.get(name, "")
        if os.path.isabs(folder):
            yield folder
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        if os.path.isabs(folder) and os.path.basename(folder) == "bin":
            yield os.path.dirname(folder).rstrip("/")


def _join(folders: Iterable[str], names: Iterable[str]) -> Iterator[str]:
    """List the existing files with one of these names in one of the folders."""
    for folder in folders:
        for name in names:
            path = f"{folder}/{name}"
            if "*" in name:
                yield from glob.iglob(f"{glob.escape(folder)}/{name}")
            elif os.path.lexists(path):
                yield path


def _read_file(path: str) -> bytes | None:
    """Read a file without blocking. A link is followed. Return None if it is no file, or cannot be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            is_file = stat.S_ISREG(os.fstat(descriptor).st_mode)
            return file.read(_MAX_BYTES + 1) if is_file else None
    except OSError:
        return None  # commands have the same rights
