"""One server as a file describes it: the keys of several agents, read leniently."""

import os
import re
import shlex
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError

from goose_like.config.yaml_source import describe_field_error

from .server import ServerConfig, Transport

_MIN_MILLISECONDS = 1000
"""The least `timeout` in milliseconds. A smaller number stands for seconds: agents differ in the unit."""

_TRANSPORTS: dict[str, Transport] = {"stdio": "stdio", "local": "stdio", "sse": "sse"}
"""Transports by the key `type`, in all agents. Every other type has a URL, and means `http`."""

_OTHER_TYPES = ("http", "streamable-http", "streamable_http", "streamablehttp", "remote", "")


class Login(BaseModel):
    """A client that the person registered at the server, for OAuth."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    client_id: str = Field(default="", validation_alias=AliasChoices("client_id", "clientId"))
    client_secret: str = Field(default="", validation_alias=AliasChoices("client_secret", "clientSecret"))
    callback_port: int = Field(
        default=0, ge=0, le=65535, validation_alias=AliasChoices("callback_port", "callbackPort")
    )


class ServerEntry(BaseModel):
    """The keys that several agents use for a server. Unknown keys are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", coerce_numbers_to_str=True, defer_build=True)

    type: str = ""
    command: str | list[str] = Field(default="", validation_alias=AliasChoices("command", "cmd"))
    args: list[str] = []
    env: dict[str, str | bool] = Field(default={}, validation_alias=AliasChoices("env", "environment", "envs"))
    env_names: list[str] = Field(default=[], validation_alias="env_vars")
    cwd: str = ""
    url: str = Field(default="", validation_alias=AliasChoices("url", "httpUrl", "serverUrl", "uri"))
    headers: dict[str, str] = Field(default={}, validation_alias=AliasChoices("headers", "http_headers"))
    header_variables: dict[str, str] = Field(default={}, validation_alias="env_http_headers")
    token_variable: str = Field(default="", validation_alias="bearer_token_env_var")
    tools: list[str] = Field(
        default=["*"], validation_alias=AliasChoices("tools", "includeTools", "enabled_tools", "available_tools")
    )
    start_timeout_s: float | None = Field(
        default=None, validation_alias=AliasChoices("start_timeout_s", "startup_timeout_sec")
    )
    timeout_s: float | None = Field(default=None, validation_alias=AliasChoices("timeout_s", "tool_timeout_sec"))
    timeout: float | None = None
    oauth: Login | bool = False
    enabled: bool = True
    disabled: bool = False

    @property
    def is_used(self) -> bool:
        """True if the person has not switched the server off."""
        return self.enabled and not self.disabled


KNOWN_KEYS = (
    *("type", "command", "args", "env", "cwd", "url", "headers", "tools", "start_timeout_s", "timeout_s", "oauth"),
    *("enabled", "disabled"),
)
"""The keys of a server in a profile. Files of other agents may have more."""


def parse_entry(name: str, entry: object, origin: str, *, is_projects: bool = False) -> ServerConfig | None:
    """Parse the description of a server; None if it is switched off.

    Raises:
        ValueError: it describes no server. The text is the end of a sentence.
    """
    if not name.strip() or not name.isprintable():
        raise ValueError("its name cannot be shown; rename it")
    if not isinstance(entry, Mapping):
        raise ValueError("expected a mapping with `command` or `url`")
    given = {key: value for key, value in entry.items() if value is not None}
    try:
        read = ServerEntry.model_validate(given)
    except ValidationError as error:
        raise ValueError(describe_field_error(_get_first(error), name)) from None
    if not read.is_used:
        return None
    transport = _find_transport(read)
    fields: dict[str, Any] = {"name": name, "origin": origin, "is_projects": is_projects, "transport": transport}
    if transport == "stdio":
        fields["command"] = _build_command(read)
        fields["variables"] = _build_variables(read)
        fields["folder"] = read.cwd
    else:
        fields["url"] = check_url(read.url)
        fields["headers"] = _build_headers(read)
        if isinstance(read.oauth, Login):
            fields["client_id"] = read.oauth.client_id
            fields["client_secret"] = read.oauth.client_secret
            fields["callback_port"] = read.oauth.callback_port
    fields["tools"] = tuple(read.tools)
    fields.update(_find_limits(read))
    return ServerConfig(**fields)


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
    if os.path.exists(os.path.expanduser(text)):
        return (text,)
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        raise ValueError(f"`command`: {str(error).lower()}") from None


def _get_first(error: ValidationError) -> Any:
    return error.errors()[0]


def _find_transport(entry: ServerEntry) -> Transport:
    named = entry.type.lower()
    transport = _TRANSPORTS.get(named)
    if transport is None and named not in _OTHER_TYPES:
        raise ValueError(f"`type`: expected stdio, http or sse, not {entry.type!r}")
    if entry.command and transport in (None, "stdio") and not entry.url:
        return "stdio"
    if entry.command and entry.url:
        raise ValueError("it has both `command` and `url`; keep one")
    if not entry.url:
        raise ValueError("it has neither `command` nor `url`")
    if transport == "stdio":
        raise ValueError("a server of type `stdio` needs `command`")
    # Old servers had this path by convention, and files that describe them often lack a type.
    path, _, _ = entry.url.partition("?")
    is_old = not named and path.endswith("/sse")
    if transport == "sse" or is_old:
        return "sse"
    return "http"


def _build_command(entry: ServerEntry) -> tuple[str, ...]:
    if isinstance(entry.command, list):
        command = tuple(entry.command)
    elif entry.args:
        command = (entry.command,)
    else:
        command = split_command(entry.command)
    if not command or not command[0].strip():
        raise ValueError("`command` is empty")
    return (*command, *entry.args)


def _build_variables(entry: ServerEntry) -> dict[str, str]:
    variables = {name: f"${{{name}}}" for name in entry.env_names}
    for name, value in entry.env.items():
        if not re.fullmatch(r"[A-Za-z_]\w*", name):
            raise ValueError(f"`env`: {name!r} is no name of a variable")
        if isinstance(value, bool):
            value = str(value).lower()
        variables[name] = value
    return variables


def _build_headers(entry: ServerEntry) -> dict[str, str]:
    headers = dict(entry.headers)
    for name, variable in entry.header_variables.items():
        headers[name] = f"${{{variable}}}"
    if entry.token_variable:
        headers["Authorization"] = f"Bearer ${{{entry.token_variable}}}"
    return headers


def _find_limits(entry: ServerEntry) -> dict[str, float]:
    """Return the limits of time that the entry has. All are above zero."""
    limits = {}
    seconds = entry.timeout_s
    if seconds is None and entry.timeout is not None:
        seconds = entry.timeout
        if seconds >= _MIN_MILLISECONDS:
            seconds /= 1000
    if seconds:
        limits["timeout_s"] = seconds
    if entry.start_timeout_s:
        limits["start_timeout_s"] = entry.start_timeout_s
    for name, limit in limits.items():
        if limit <= 0:
            raise ValueError(f"`{name}`: expected seconds above zero, not {limit:g}")
    return limits
