"""API keys: from the environment, else the system's keyring, else a file that only its owner can read."""

import os
import tempfile
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from goose_like.core.errors import CredentialError, ProfileError

from .paths import config_folder
from .yaml_source import read_yaml

_SERVICE = "goose-like"
_ENVIRONMENT, _KEYRING = "the environment", "the keyring"


def find_key(variable: str | None) -> str:
    """The key that goes by the name of this environment variable; empty where there is none.

    Raises:
        CredentialError: the file of keys can be read by others, or is broken.
    """
    return next((key for _, key in _found(variable)), "")


def find_key_location(variable: str | None) -> str:
    """The place that `find` takes the key from, for people; empty where there is none.

    Raises:
        CredentialError: as `find`.
    """
    return next((place for place, _ in _found(variable)), "")


def store_key(variable: str, key: str) -> str:
    """Keeps the key in the keyring if there is one that works, else in the file; gives the place, for people.

    Raises:
        CredentialError: as `find`, or the file can't be written.
    """
    if _put_in_keyring(variable, key):
        return _KEYRING
    _write({**_read(), variable: key})
    return str(_file())


def delete_key(variable: str) -> list[str]:
    """Removes the key from wherever `store` puts keys; gives the places that had it.

    Raises:
        CredentialError: as `store`.
    """
    places = []
    if _from_keyring(variable):
        _keyring().delete_password(_SERVICE, variable)
        places.append(_KEYRING)
    kept = _read()
    if kept.pop(variable, None) is not None:
        _write(kept)
        places.append(str(_file()))
    return places


def _found(variable: str | None) -> Iterator[tuple[str, str]]:
    """Each place that has the key, and the key."""
    if not variable:
        return
    if key := os.environ.get(variable, "").strip():
        yield _ENVIRONMENT, key
    if key := _from_keyring(variable):
        yield _KEYRING, key
    if key := _read().get(variable, ""):
        yield str(_file()), key


def _file() -> Path:
    # A name that begins so is hidden from commands by the sandbox.
    return config_folder() / "keys.yaml"


def _read() -> dict[str, str]:
    file = _file()
    try:
        mode = file.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return {}
    if mode & 0o077:
        raise CredentialError(f"{file} can be read by others, so it is not used: chmod 600 {file}")
    try:
        data = read_yaml(file)
    except ProfileError:  # its words may be some of the file's
        data = None
    if not isinstance(data, Mapping):
        raise CredentialError(f"{file} can't be read; it has lines like `OPENAI_API_KEY: ...`") from None
    return {str(name): str(key).strip() for name, key in data.items()}


def _write(kept: Mapping[str, str]) -> None:
    target = Path(os.path.realpath(_file()))
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix="keys.", dir=target.parent)  # mode 0600 from its first moment
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            YAML().dump(dict(kept), file)
        os.replace(name, target)
    except OSError as error:
        raise CredentialError(f"{target} can't be written: {error.strerror}; set the variable instead") from error


def _keyring() -> Any:
    import keyring  # an extra

    return keyring


def _from_keyring(variable: str) -> str:
    if find_spec("keyring") is None:
        return ""
    try:
        return (_keyring().get_password(_SERVICE, variable) or "").strip()
    except Exception:  # a backend is anyone's code; none, a locked one and a broken one are all no keyring
        return ""


def _put_in_keyring(variable: str, key: str) -> bool:
    """Whether it is in there now: some backends take everything and keep nothing."""
    if find_spec("keyring") is None:
        return False
    try:
        _keyring().set_password(_SERVICE, variable, key)
    except Exception:  # as above
        return False
    return _from_keyring(variable) == key
