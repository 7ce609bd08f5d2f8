"""The manifest and the servers of Agent Plugins 1.0.0, which are checked strictly.

Source: https://agent-plugins.org, sections 5, 7.2 and 9 of the specification.
"""

import ipaddress
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from goose_like.config.foreign_text import parse_json
from goose_like.config.paths import describe_read_error, read_user_file
from goose_like.core.errors import UsageError

MANIFEST = "plugin.json"
MCP_FILE = "mcp.json"
SCHEMA_START = "https://agent-plugins.org/schemas/"
_SCHEMA = f"{SCHEMA_START}1.0.0/plugin.schema.json"
_MCP_SCHEMA = f"{SCHEMA_START}1.0.0/mcp.schema.json"
_ROOT = "${PLUGIN_ROOT}"
_DATA = "${PLUGIN_DATA}"
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9]|[-.](?=[a-z0-9]))*")
_MAX_NAME_CHARS = 64
_TYPES: dict[str, type] = {
    "$schema": str,
    "name": str,
    "version": str,
    "description": str,
    "author": dict,
    "homepage": str,
    "repository": str,
    "license": str,
    "keywords": list,
}
_AUTHOR_KEYS = {"name", "email", "url"}
_PROGRAM_KEYS = {"type", "command", "args", "env", "cwd"}
_ADDRESS_KEYS = {"type", "url", "headers"}


def check_manifest(manifest: Mapping[str, Any]) -> list[str]:
    """Check a manifest, and return sentences about fields that have no effect.

    Raises:
        UsageError: a field must have another value, so that nothing of the bundle may be used.
    """
    if manifest.get("$schema") != _SCHEMA:
        raise UsageError(f"{MANIFEST} has another `$schema` than {_SCHEMA}; this version is not known here")
    name = manifest.get("name", "")
    if not isinstance(name, str) or not _NAME.fullmatch(name) or len(name) > _MAX_NAME_CHARS:
        raise UsageError(f"{MANIFEST}: {name!r} is no name: lower-case letters, digits, single `-` and `.` between")
    problems: list[str] = []
    for key, value in manifest.items():
        expected = _TYPES.get(key)
        if key == "extensions":
            if not isinstance(value, dict):
                problems.append("`extensions` is no object, and has no effect")
        elif expected is None:
            problems.append(f"the field {key!r} is not in the specification, and has no effect")
        elif not isinstance(value, expected):
            raise UsageError(f"{MANIFEST}: `{key}` has a value of a wrong type")
    if not _are_texts(manifest.get("keywords", [])):
        raise UsageError(f"{MANIFEST}: `keywords` has a value that is no text")
    author = manifest.get("author", {})
    if not author.keys() <= _AUTHOR_KEYS or not _are_texts(author.values()):
        raise UsageError(f"{MANIFEST}: `author` has the texts name, email and url, and no other fields")
    return problems


def _are_texts(values: Iterable[Any]) -> bool:
    return all(isinstance(value, str) for value in values)


def read_portable_servers(root: Path) -> tuple[dict[str, Any], list[str]]:
    """Read the servers of mcp.json, each as its entry with a working folder, and what is left out."""
    file = root / MCP_FILE
    if not os.path.lexists(file):
        return {}, []
    try:
        content = parse_json(read_user_file(file))
    except (OSError, ValueError) as error:
        return {}, [f"{MCP_FILE} can't be read: {describe_read_error(error)}"]
    is_valid = isinstance(content, dict) and content.keys() == {"$schema", "mcpServers"}
    if not is_valid or content["$schema"] != _MCP_SCHEMA or not isinstance(content["mcpServers"], dict):
        return {}, [f"{MCP_FILE} needs the fields `$schema` (for 1.0.0) and `mcpServers`, and no others"]
    servers: dict[str, Any] = {}
    problems: list[str] = []
    for name, entry in content["mcpServers"].items():
        try:
            servers[name] = _check_server(entry, root)
        except ValueError as error:
            problems.append(f"the server {name!r}: {error}")
    return servers, problems


def _check_server(entry: Any, root: Path) -> dict[str, Any]:
    """Return an entry with the path of its program and its working folder.

    Raises:
        ValueError: the specification does not allow it.
    """
    kind = entry.get("type") if isinstance(entry, dict) else None
    keys = {"stdio": _PROGRAM_KEYS, "streamable-http": _ADDRESS_KEYS, "sse": _ADDRESS_KEYS}.get(str(kind))
    if keys is None:
        raise ValueError("`type` is stdio, streamable-http or sse")
    unknown = sorted(entry.keys() - keys)
    if unknown:
        raise ValueError(f"{unknown[0]!r} is no field of the type {kind}")
    for key in ("env", "headers"):
        values = entry.get(key, {})
        if not isinstance(values, dict) or not _are_texts(values.values()):
            raise ValueError(f"`{key}` is no object of texts")
    if kind != "stdio":
        _check_address(entry)
        return dict(entry)
    arguments = entry.get("args", [])
    if not isinstance(arguments, list) or not _are_texts(arguments):
        raise ValueError("`args` is no list of texts")
    if not {"PLUGIN_ROOT", "PLUGIN_DATA"}.isdisjoint(entry.get("env", {})):
        raise ValueError("`env` must not set PLUGIN_ROOT or PLUGIN_DATA")
    command = [_find_program(entry.get("command"), root)]
    folder = _find_folder(entry.get("cwd", _ROOT), root)
    return {"type": "stdio", "command": command, "args": arguments, "env": entry.get("env", {}), "cwd": folder}


def _check_address(entry: Mapping[str, Any]) -> None:
    try:
        parts = urlsplit(entry.get("url") or "")
        host = parts.hostname or ""
    except (ValueError, TypeError, AttributeError):
        raise ValueError("`url` is no address") from None
    is_local = host == "localhost" or _is_loopback(host)
    is_allowed = parts.scheme == "https" or (parts.scheme == "http" and is_local)
    if not is_allowed or not host or parts.username is not None or parts.fragment:
        raise ValueError("`url` is an https address (http only on this machine), without user and fragment")
    names = [name.lower() for name in entry.get("headers", {})]
    if len(names) != len(set(names)):
        raise ValueError("`headers` has a name twice")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _find_program(command: object, root: Path) -> str:
    """Return a bare name as it is, and a path of the bundle below the place of its root."""
    if not isinstance(command, str) or not command or command != command.strip():
        raise ValueError("`command` is no program")
    if "/" not in command:
        return command
    return _find_place(command, root, "command")


def _find_folder(value: object, root: Path) -> str:
    text = str(value)
    for start in (_ROOT, _DATA):
        if text == start or text.startswith(f"{start}/"):
            if ".." in Path(text).parts:
                raise ValueError("`cwd` leaves the bundle")
            if start == _DATA:
                return text
            inner = os.path.normpath(f"/./{text.removeprefix(start)}")
            return _find_place(f".{inner}", root, "cwd")
    return _find_place(text, root, "cwd")


def _find_place(text: str, root: Path, key: str) -> str:
    real = os.path.realpath(root / text)
    top = os.path.realpath(root)
    is_inside = real == top or real.startswith(f"{top}/")
    if not is_inside or not text.startswith("./"):
        raise ValueError(f"`{key}` begins with ./ and stays in the bundle")
    return f"{_ROOT}{real.removeprefix(top)}"
