"""The configuration of one MCP server, and how a file describes it: the keys of several agents, read leniently."""

import hashlib
import json
import os
import shlex
from collections.abc import Mapping
from dataclasses import field
from functools import cached_property
from typing import Any, Literal
from urllib.parse import urlsplit

from goose_like.config.yaml_source import shorten_value
from goose_like.core.dataclass import dataclass

Transport = Literal["stdio", "http", "sse"]

_MIN_MILLISECONDS = 1000
"""The least `timeout` in milliseconds. A smaller number stands for seconds: agents differ in the unit."""

_TRANSPORTS: dict[str, Transport] = {"stdio": "stdio", "local": "stdio", "sse": "sse"}
"""Transports by the key `type`, in all agents. Every other type has a URL, and means `http`."""

_OTHER_TYPES = ("http", "streamable-http", "streamable_http", "streamablehttp", "remote", "")

_FLAGS = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}

_MAX_PORT = 65_535

KNOWN_KEYS = (
    *("type", "command", "args", "env", "cwd", "url", "headers", "tools", "start_timeout_s", "timeout_s", "oauth"),
    *("enabled", "disabled"),
)
"""The keys of a server in a profile. Files of other agents may have more."""


@dataclass(frozen=True)
class ServerConfig:
    """An MCP server as a file or a profile describes it. Variables such as `${TOKEN}` are not replaced yet.

    `command` is the program with its arguments, for `stdio`; `url` is the address, for `http` and `sse`. `variables`
    are environment variables of the program. `origin` names the file or profile for the person. With `is_projects`
    the project brought the server, so a person trusted its exact text.

    `is_literal` means that the texts name no variables. A program may write in `data_folder`. With `is_ambiguous`, the
    command was one text, whose words depend on the files that exist.

    `client_id` and `client_secret` are those of a client that the person registered there, for OAuth; a login leads to
    `callback_port` of this machine (0: any). `tools` are patterns of the tools that the model may use. Progress of the
    server starts the time of a call anew.
    """

    name: str
    origin: str
    is_projects: bool = False
    is_literal: bool = False
    is_ambiguous: bool = False
    data_folder: str = ""
    transport: Transport = "stdio"
    command: tuple[str, ...] = ()
    variables: dict[str, str] = field(default_factory=dict)
    folder: str = ""
    url: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    client_id: str = ""
    client_secret: str = ""
    callback_port: int = 0
    tools: tuple[str, ...] = ("*",)
    start_timeout_s: float = 30
    timeout_s: float = 120

    @property
    def sends_key(self) -> bool:
        """True if the configuration has the header for a key, so that no login is needed."""
        return "authorization" in {header.lower() for header in self.headers}

    @cached_property
    def fingerprint(self) -> str:
        """The hash of everything that decides what runs or is asked, without the origin and the limits of time."""
        fields = {
            "transport": self.transport,
            "command": self.command,
            "variables": self.variables,
            "folder": self.folder,
            "url": self.url,
            "headers": self.headers,
        }
        text = json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


def parse_entry(name: str, entry: object, origin: str, *, is_projects: bool = False) -> ServerConfig | None:
    """Parse the description of a server; None if it is switched off.

    Raises:
        ValueError: it describes no server. The text is the end of a sentence.
    """
    if not name.strip() or not name.isprintable():
        raise ValueError("its name cannot be shown; rename it")
    if not isinstance(entry, Mapping):
        raise ValueError("expected a mapping with `command` or `url`")
    given = _Fields(entry)
    is_on = given.read_flag("enabled", default=True) and not given.read_flag("disabled", default=False)
    if not is_on:
        return None
    fields: dict[str, Any] = {"name": name, "origin": origin, "is_projects": is_projects}
    command = given.read_command("command", "cmd")
    url = given.read_text("url", "httpUrl", "serverUrl", "uri")
    fields["transport"] = _find_transport(given.read_text("type"), command, url)
    if fields["transport"] == "stdio":
        arguments = given.read_texts("args") or ()
        fields["command"] = _build_command(command, arguments)
        fields["is_ambiguous"] = not arguments and isinstance(command, str) and not _is_plain_word(command)
        fields["variables"] = _build_variables(given)
        fields["folder"] = given.read_text("cwd")
    else:
        fields["url"] = check_url(url)
        fields["headers"] = _build_headers(given)
        fields |= _read_login(given.enter("oauth"))
    tools = given.read_texts("tools", "includeTools", "enabled_tools", "available_tools")
    if tools is not None:
        fields["tools"] = tools
    fields |= _find_limits(given)
    return ServerConfig(**fields)


class _Fields:
    """The values of an entry by key, checked as they are read. The first of several keys that is there counts.

    Errors are ValueErrors that name the key. A schema of pydantic would cost each start too much.
    """

    def __init__(self, fields: Mapping[str, Any], place: str = "") -> None:
        self._fields = fields
        self._place = place

    def read_text(self, *keys: str) -> str:
        """Read a text or a number; an empty text without the key."""
        key, value = self._find(keys, "")
        return _check_text(key, value)

    def read_texts(self, *keys: str) -> tuple[str, ...] | None:
        """Read a list of texts."""
        key, value = self._find(keys, None)
        if value is None:
            return None
        if not isinstance(value, list | tuple):
            raise _describe_wrong(key, "a list", value)
        return tuple(_check_text(f"{key}.{index}", text) for index, text in enumerate(value))

    def read_command(self, *keys: str) -> str | tuple[str, ...]:
        """Read a text, or a list of texts."""
        _, value = self._find(keys, "")
        if isinstance(value, list | tuple):
            return self.read_texts(*keys) or ()
        return self.read_text(*keys)

    def read_mapping(self, *keys: str, has_flags: bool = False) -> dict[str, str]:
        """Read texts by name. With `has_flags`, true and false are texts, too."""
        key, value = self._find(keys, {})
        if not isinstance(value, Mapping):
            raise _describe_wrong(key, "a mapping", value)
        texts = {}
        for name, text in value.items():
            if has_flags and isinstance(text, bool):
                text = str(text).lower()
            texts[_check_text(key, name)] = _check_text(f"{key}.{name}", text)
        return texts

    def read_number(self, *keys: str) -> float | None:
        """Read a number, which may be a text."""
        key, value = self._find(keys, None)
        if value is None:
            return None
        try:
            return float(value)
        except (TypeError, ValueError, OverflowError):
            raise _describe_wrong(key, "a number", value) from None

    def read_flag(self, key: str, *, default: bool) -> bool:
        """Read true or false, which may be a text."""
        _, value = self._find((key,), default)
        text = str(value).lower()
        if text not in _FLAGS:
            raise _describe_wrong(key, "true or false", value)
        return _FLAGS[text]

    def enter(self, key: str) -> "_Fields":
        """Return the values of a mapping within the entry. A switch in its place has none."""
        _, value = self._find((key,), {})
        if isinstance(value, bool):
            value = {}
        if not isinstance(value, Mapping):
            raise _describe_wrong(key, "a mapping", value)
        return _Fields(value, f"{self._place}{key}.")

    def _find(self, keys: tuple[str, ...], default: Any) -> tuple[str, Any]:
        """Return the name for errors and the value of the first key that has one."""
        for key in keys:
            value = self._fields.get(key)
            if value is not None:
                return f"{self._place}{key}", value
        return keys[0], default


def _check_text(key: str, value: object) -> str:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number:
        return str(value)
    if not isinstance(value, str):
        raise _describe_wrong(key, "text", value)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise _describe_wrong(key, "valid text", value) from None
    return value


def _describe_wrong(key: str, expected: str, value: object) -> ValueError:
    return ValueError(f"{key}: expected {expected}, not {shorten_value(value)}")


def check_url(url: str) -> str:
    """Return a URL with a host, which variables may stand in.

    Raises:
        ValueError: it is none. The text is the end of a sentence.
    """
    if url.startswith("${"):  # the whole address, known only when the server is used
        return url
    try:
        parts = urlsplit(url)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise ValueError(f"`url`: expected an address such as https://example.org/mcp, not {url!r}")
    return url


def split_command(text: str) -> tuple[str, ...]:
    """Split a command with arguments in one text, as a shell does. The path of a file stays whole, with its spaces."""
    if _is_plain_word(text) or os.path.exists(os.path.expanduser(text)):
        return (text,)
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        raise ValueError(f"`command`: {str(error).lower()}") from None


def _is_plain_word(text: str) -> bool:
    return shlex.quote(text) == text


def _find_transport(named: str, command: str | tuple[str, ...], url: str) -> Transport:
    kind = named.lower()
    transport = _TRANSPORTS.get(kind)
    if transport is None and kind not in _OTHER_TYPES:
        raise ValueError(f"`type`: expected stdio, http or sse, not {named!r}")
    if command and transport in (None, "stdio") and not url:
        return "stdio"
    if command and url:
        raise ValueError("it has both `command` and `url`; keep one")
    if not url:
        raise ValueError("it has neither `command` nor `url`")
    if transport == "stdio":
        raise ValueError("a server of type `stdio` needs `command`")
    # Old servers had this path by convention, and files that describe them often lack a type.
    path, _, _ = url.partition("?")
    is_old = not kind and path.endswith("/sse")
    if transport == "sse" or is_old:
        return "sse"
    return "http"


def _build_command(command: str | tuple[str, ...], arguments: tuple[str, ...]) -> tuple[str, ...]:
    if isinstance(command, str):
        command = (command,) if arguments else split_command(command)
    if not command or not command[0].strip():
        raise ValueError("`command` is empty")
    return (*command, *arguments)


def _build_variables(given: _Fields) -> dict[str, str]:
    names = given.read_texts("env_vars") or ()
    variables = {name: f"${{{name}}}" for name in names}
    for name, value in given.read_mapping("env", "environment", "envs", has_flags=True).items():
        if not (name.isascii() and name.isidentifier()):
            raise ValueError(f"`env`: {name!r} is no name of a variable")
        variables[name] = value
    return variables


def _build_headers(given: _Fields) -> dict[str, str]:
    headers = given.read_mapping("headers", "http_headers")
    for name, variable in given.read_mapping("env_http_headers").items():
        headers[name] = f"${{{variable}}}"
    token_variable = given.read_text("bearer_token_env_var")
    if token_variable:
        headers["Authorization"] = f"Bearer ${{{token_variable}}}"
    return headers


def _read_login(given: _Fields) -> dict[str, Any]:
    """Read the client that the person registered at the server, for OAuth."""
    port = given.read_number("callback_port", "callbackPort") or 0
    if not 0 <= port <= _MAX_PORT:
        raise ValueError(f"`callback_port`: expected a number up to {_MAX_PORT}, not {port:g}")
    return {
        "client_id": given.read_text("client_id", "clientId"),
        "client_secret": given.read_text("client_secret", "clientSecret"),
        "callback_port": int(port),
    }


def _find_limits(given: _Fields) -> dict[str, float]:
    """Return the limits of time that the entry has. All are above zero."""
    limits = {}
    seconds = given.read_number("timeout_s", "tool_timeout_sec")
    other = given.read_number("timeout")
    if seconds is None and other is not None:
        seconds = other
        if seconds >= _MIN_MILLISECONDS:
            seconds /= 1000
    if seconds:
        limits["timeout_s"] = seconds
    start_seconds = given.read_number("start_timeout_s", "startup_timeout_sec")
    if start_seconds:
        limits["start_timeout_s"] = start_seconds
    for name, limit in limits.items():
        if not limit > 0:  # nor NaN
            raise ValueError(f"`{name}`: expected seconds above zero, not {limit:g}")
    return limits
