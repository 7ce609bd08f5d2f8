"""API keys from the environment, the system's keyring or a private file, and the names of secret variables."""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from goose_like.core.errors import CredentialError, ProfileError
from goose_like.core.masking import add_secret
from goose_like.core.pattern import compile_later

from .paths import config_folder, describe_read_error, read_user_file, replace_private_file
from .yaml_source import read_yaml

_SERVICE = "goose-like"
_FILE_LINES = "it has lines like `OPENAI_API_KEY: ...`"
_OTHER_NAMES = {"GEMINI_API_KEY": "GOOGLE_API_KEY"}
"""Second names of keys in the environment, which the vendor's tools and goose 0.9 read."""

ENVIRONMENT = "the environment"
_KEYRING = "the keyring"

_SECRET_WORDS = {
    *("KEY", "KEYS", "APIKEY", "TOKEN", "TOKENS", "AUTHTOKEN", "SECRET", "SECRETS"),
    *("PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "CREDENTIALS", "AUTH", "JWT", "PAT", "PASS"),
}
# Words without an underscore, such as OPENAIKEY. A plain KEY is missing here, because MONKEY ends with it.
_SECRET_SUFFIXES = ("APIKEY", "AIKEY", "ACCESSKEY", "SECRETKEY", "PRIVATEKEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD")
_SECRET_NAMES = {"PGPASSFILE", "MYSQL_PWD", "KUBECONFIG", "BW_SESSION"}
_SECRET_PREFIX = "OP_SESSION_"

# More names whose values are masked: a wrong guess hides a text, but takes no variable from a command.
_LIKELY_SECRETS = compile_later(r"PASS|PWD|CREDS|BEARER|COOKIE|CONN_?STR|CONNECTION_STRING|WEBHOOK|(KEY|TOKEN|PAT)\d*$")
_URL_PASSWORD = compile_later(r"://[^/\s:@]*:([^@\s]+)@")


def find_key(variable: str | None) -> str:
    """Return the API key with the name of this environment variable, or an empty text.

    Raises:
        CredentialError: Other users can read the file of keys, or the file is broken.
    """
    _, key = _find_first(variable)
    add_secret(variable or "", key)
    return key


def register_keys() -> None:
    """Mask the secrets of the environment, passwords in its URLs, and the keys of the file from now on.

    A key of the keyring is masked as soon as `find_key` returns it: a keyring is too slow to be read for masking.
    """
    for name, value in os.environ.items():
        if "://" in value and "WEBHOOK" not in name.upper():
            if password := _URL_PASSWORD.search(value):
                add_secret(name, password[1])
        elif is_secret_variable(name) or _LIKELY_SECRETS.search(name.upper()):
            add_secret(name, value.strip())
    with suppress(OSError, ValueError):  # `find_key` reports a file that cannot be read
        text = read_user_file(_get_file())
        for line in text.splitlines():
            name, _, value = line.partition(":")
            add_secret(name.strip(), value.strip().strip("\"'"))


def find_key_location(variable: str | None) -> str:
    """Return the place from which `find_key` takes the key, for display, or an empty text."""
    place, _ = _find_first(variable)
    return place


def store_key(variable: str, key: str) -> str:
    """Store the key in the keyring if one works, else in the file, and return the place for display.

    Raises:
        CredentialError: The file is readable by other users, broken or not writable.
    """
    with suppress(Exception):  # foreign code, as in `_read_keyring`
        import keyring

        keyring.set_password(_SERVICE, variable, key)
    if _read_keyring(variable) == key:  # some backends accept everything and keep nothing
        return _KEYRING
    _write_file({**_read_file(), variable: key})
    return str(_get_file())


def delete_key(variable: str) -> list[str]:
    """Delete the key from the keyring and the file, and return the places that had the key. Raise as `store_key`."""
    places = []
    if _read_keyring(variable):
        import keyring

        keyring.delete_password(_SERVICE, variable)
        places.append(_KEYRING)
    keys = _read_file()
    if variable in keys:
        del keys[variable]
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
    for word in name.split("_"):
        if word in _SECRET_WORDS or word.endswith(_SECRET_SUFFIXES):
            return True
    return False


def _find_first(variable: str | None) -> tuple[str, str]:
    """Return the first place that has the key, and the key; two empty texts without one."""
    if not variable:
        return "", ""
    for name in (variable, _OTHER_NAMES.get(variable, variable)):
        if key := os.environ.get(name, "").strip():
            return ENVIRONMENT, key
    if key := _read_keyring(variable):
        return _KEYRING, key
    if key := _read_file().get(variable, ""):
        return str(_get_file()), key
    return "", ""


def _get_file() -> Path:
    # The sandbox hides files with this name from commands.
    return config_folder() / "keys.yaml"


def _read_file() -> dict[str, str]:
    file = _get_file()
    if not os.path.lexists(file):
        return {}
    try:
        text = read_user_file(file)
    except (OSError, ValueError) as error:
        reason = describe_read_error(error)
        raise CredentialError(f"{file} can't be read: {reason}; {_FILE_LINES}") from error
    if file.stat().st_mode & 0o077:
        raise CredentialError(f"{file} can be read by others, so it is not used: chmod 600 {file}")
    try:
        data = read_yaml(file, {file: text}).data
    except ProfileError:  # its text may quote a key
        data = None
    if not isinstance(data, Mapping):
        raise CredentialError(f"{file} can't be read; {_FILE_LINES}") from None
    return {str(name): str(key).strip() for name, key in data.items()}


def _write_file(keys: Mapping[str, str]) -> None:
    file = _get_file()
    try:
        from .yaml_reader import format_document  # slow to import

        replace_private_file(file, format_document(dict(keys)))
    except OSError as error:
        raise CredentialError(f"{file} can't be written: {error.strerror}; set the variable instead") from error


def _read_keyring(variable: str) -> str:
    try:
        import keyring  # an optional extra

        key = keyring.get_password(_SERVICE, variable) or ""
        return key.strip()
    except Exception:  # backends are foreign code: a missing, locked or broken keyring counts as no keyring
        return ""
