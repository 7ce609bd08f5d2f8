"""API keys from the environment, the system's keyring or a private file, and the names of secret variables."""

import os
import tempfile
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from goose_like.core.errors import CredentialError, ProfileError

from .paths import config_folder
from .yaml_reader import format_document
from .yaml_source import read_yaml

_SERVICE = "goose-like"
_ENVIRONMENT, _KEYRING = "the environment", "the keyring"

_SECRET_WORDS = {
    *("KEY", "KEYS", "APIKEY", "TOKEN", "TOKENS", "AUTHTOKEN", "SECRET", "SECRETS"),
    *("PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "CREDENTIALS", "AUTH", "JWT", "PAT", "PASS"),
}
# Words without an underscore, such as OPENAIKEY. A plain KEY is missing here, because MONKEY ends with it.
_SECRET_SUFFIXES = ("APIKEY", "AIKEY", "ACCESSKEY", "SECRETKEY", "PRIVATEKEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD")
_SECRET_NAMES = {"PGPASSFILE", "MYSQL_PWD", "KUBECONFIG", "BW_SESSION"}
_SECRET_PREFIX = "OP_SESSION_"


def find_key(variable: str | None) -> str:
    """Return the API key with the name of this environment variable, or an empty text.

    Raises:
        CredentialError: Other users can read the file of keys, or the file is broken.
    """
    return next((key for _, key in _iterate_keys(variable)), "")


def find_key_location(variable: str | None) -> str:
    """Return the place from which `find_key` takes the key, for display, or an empty text.

    Raises:
        CredentialError: Other users can read the file of keys, or the file is broken.
    """
    return next((place for place, _ in _iterate_keys(variable)), "")


def store_key(variable: str, key: str) -> str:
    """Store the key in the keyring if one works, else in the file, and return the place for display.

    Raises:
        CredentialError: The file is readable by other users, broken or not writable.
    """
    if _store_in_keyring(variable, key):
        return _KEYRING
    _write_file({**_read_file(), variable: key})
    return str(_get_file())


def delete_key(variable: str) -> list[str]:
    """Delete the key from the keyring and the file, and return the places that had the key.

    Raises:
        CredentialError: The file is readable by other users, broken or not writable.
    """
    places = []
    if _read_keyring(variable):
        _import_keyring().delete_password(_SERVICE, variable)
        places.append(_KEYRING)
    keys = _read_file()
    if keys.pop(variable, None) is not None:
        _write_file(keys)
        places.append(str(_get_file()))
    return places


def is_secret_variable(name: str) -> bool:
    """Check whether an environment variable holds a secret, by the words between underscores in its name.

    OPENAI_API_KEY holds one; KEYBOARD_LAYOUT and MONKEYS do not.
    """
    name = name.upper()
    if name in _SECRET_NAMES or name.startswith(_SECRET_PREFIX):
        return True
    return any(word in _SECRET_WORDS or word.endswith(_SECRET_SUFFIXES) for word in name.split("_"))


def _iterate_keys(variable: str | None) -> Iterator[tuple[str, str]]:
    """Yield each place that has the key, and the key."""
    if not variable:
        return
    if key := os.environ.get(variable, "").strip():
        yield _ENVIRONMENT, key
    if key := _read_keyring(variable):
        yield _KEYRING, key
    if key := _read_file().get(variable, ""):
        yield str(_get_file()), key


def _get_file() -> Path:
    # The sandbox hides files with this name from commands.
    return config_folder() / "keys.yaml"


def _read_file() -> dict[str, str]:
    file = _get_file()
    try:
        mode = file.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return {}
    if mode & 0o077:
        raise CredentialError(f"{file} can be read by others, so it is not used: chmod 600 {file}")
    try:
        data = read_yaml(file)
    except ProfileError:  # its text may quote a key
        data = None
    if not isinstance(data, Mapping):
        raise CredentialError(f"{file} can't be read; it has lines like `OPENAI_API_KEY: ...`") from None
    return {str(name): str(key).strip() for name, key in data.items()}


def _write_file(keys: Mapping[str, str]) -> None:
    target = Path(os.path.realpath(_get_file()))
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix="keys.", dir=target.parent)  # created with mode 0600
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(format_document(dict(keys)))
        os.replace(name, target)
    except OSError as error:
        raise CredentialError(f"{target} can't be written: {error.strerror}; set the variable instead") from error


def _import_keyring() -> Any:
    import keyring  # an optional extra

    return keyring


def _read_keyring(variable: str) -> str:
    if find_spec("keyring") is None:
        return ""
    try:
        return (_import_keyring().get_password(_SERVICE, variable) or "").strip()
    except Exception:  # backends are foreign code: a missing, locked or broken keyring counts as no keyring
        return ""


def _store_in_keyring(variable: str, key: str) -> bool:
    """Store the key and check that it is there: some backends accept everything and keep nothing."""
    if find_spec("keyring") is None:
        return False
    try:
        _import_keyring().set_password(_SERVICE, variable, key)
    except Exception:  # foreign code, as above
        return False
    return _read_keyring(variable) == key
