"""The commands `mcp login` and `mcp logout`."""

import asyncio
import os
import sys
from dataclasses import replace
from typing import Any

from goose_like.config.secrets import find_key, store_key
from goose_like.core.errors import GooseLikeError, UsageError
from goose_like.terminal.escape import escape_invisible
from goose_like.terminal.interaction import exit_on_signals, read_secret

from ..browser import find_browser, open_callback, visit
from ..config import expand_server, list_variables
from ..definitions import Definitions, DefinitionStore
from ..login import build_auth, build_login_auth, forget_login, load_login
from ..server import ServerConfig
from .report import print_offer
from .setting import Setting, ask_connection, load_setting, require_sdk

_LOGIN_S = 900.0
"""The time for a person to log in."""


def log_in(name: str, profile_name: str | None, *, has_browser: bool) -> None:
    """Store the keys that a server needs, then log in at a server at a URL.

    Raises:
        GooseLikeError: the server refuses the login, or there is nothing to log in to.
    """
    setting = load_setting(profile_name)
    server = setting.find(name)
    has_new_keys = _store_keys(server)
    if server.transport == "stdio":
        if not has_new_keys:
            raise UsageError(f"{name!r} needs no login: it is a program, and all variables that it names have values")
        print(f"start it now: goose-like mcp test {name}")
        return
    require_sdk()
    with exit_on_signals():
        definitions, place = asyncio.run(_log_in_at_url(server, setting, has_browser=has_browser))
    if place:
        print(f"logged in at {place}")
    elif server.sends_key:
        print("the server accepts the key")
    else:
        print("the server answers without a login")
    print_offer(server, definitions)
    if DefinitionStore().load(server) is None:
        DefinitionStore().save(server, definitions)


def _store_keys(server: ServerConfig) -> bool:
    """Ask for the variables that the environment lacks, and store them among the keys. Return whether one is new.

    A key that is stored is asked for too, as it may have expired; an empty line keeps it.
    """
    variables = list_variables(server)
    lacking = [name for name, has_default in variables.items() if not has_default and not os.environ.get(name)]
    if lacking and server.is_projects:
        raise UsageError(
            f"the server {server.name!r} of {server.origin} gets variables of your environment, but no stored keys: "
            f"export {lacking[0]}=..."
        )
    has_new_keys = False
    for name in lacking:
        is_stored = bool(find_key(name))
        if is_stored:
            print(f"{name} is stored; type another value, or nothing to keep it", file=sys.stderr)
        value = read_secret(name).strip()
        if value:
            print(f"{name} is stored in {store_key(name, value)}")
            has_new_keys = True
        elif not is_stored:
            raise UsageError(f"no value was given for {name}; type it, or: export {name}=...")
    return has_new_keys


async def _log_in_at_url(server: ServerConfig, setting: Setting, *, has_browser: bool) -> tuple[Definitions, str]:
    """Log in, and return what the server offers and the issuer of the login; no issuer if it wants no login."""
    expanded = expand_server(server)
    stored = load_login(expanded)
    port = server.callback_port or _find_port(stored.client if stored else {})
    pages: list[str] = []
    async with open_callback(port, is_fixed=bool(server.callback_port)) as callback:

        async def show(url: str) -> str:
            pages.append(url)
            return await visit(url, callback, _tell, has_browser=has_browser and find_browser())

        def find_auth(found: ServerConfig) -> Any:
            if server.sends_key:
                return build_auth(found)
            return build_login_auth(found, show, callback.url)

        # Nothing limits the time of a person but this.
        patient = replace(server, start_timeout_s=_LOGIN_S, timeout_s=_LOGIN_S)
        try:
            definitions = await ask_connection(patient, setting, find_auth)
        except GooseLikeError as error:
            raise GooseLikeError(f"the login failed: {escape_invisible(str(error))}") from error
    if not pages:
        return definitions, ""
    login = load_login(expanded)
    return definitions, (login.issuer if login else "") or server.url


def _find_port(client: dict[str, Any]) -> int:
    """Return the port that a registered client uses, or 0: servers take no other one for it."""
    for url in client.get("redirect_uris") or ():
        _, _, port = str(url).removesuffix("/callback").rpartition(":")
        if port.isdecimal():
            return int(port)
    return 0


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def log_out(name: str, profile_name: str | None) -> None:
    """Delete the login at a server from this machine."""
    server = load_setting(profile_name).find(name)
    if server.transport == "stdio":
        raise UsageError(f"{name!r} is a program and has no login; its keys: goose-like mcp show {name}")
    places = forget_login(expand_server(server))
    if places:
        print(f"deleted the login from {' and '.join(places)}; the server may still know it")
    else:
        print(f"there is no login at {name}")
