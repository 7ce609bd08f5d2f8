"""Storing and deleting API keys of providers."""

import getpass
import os
import sys

from goose_like.config import secrets
from goose_like.config.profile import ModelChoice
from goose_like.core.errors import UsageError
from goose_like.providers.base import SupportsProbe
from goose_like.providers.registry import find_provider_class


def read_key(name: str) -> str:
    """Read the API key of a provider from a hidden prompt, or from the first line of standard input."""
    variable = _get_key_variable(name)
    typed = getpass.getpass(f"{variable} (not shown): ") if sys.stdin.isatty() else sys.stdin.readline()
    key = typed.strip()
    if not key:
        raise UsageError(f"no key was given; type it, or: goose-like provider login {name} < FILE")
    if not (key.isascii() and key.isprintable()):
        raise UsageError("the key contains characters that no key has; copy it again")
    return key


async def log_in(name: str, key: str, *, is_checked: bool) -> int:
    """Store a key after the provider's server accepted it."""
    variable, factory = _get_key_variable(name), find_provider_class(name)
    verdict = "not checked"
    if is_checked and isinstance(factory, SupportsProbe):
        probe = await factory.probe(ModelChoice(model=name), key)
        verdict = f"{probe.address} {'accepted it' if probe.is_key_verified else 'answers, but did not check it'}"
    print(f"{variable} is stored in {secrets.store_key(variable, key)} ({verdict})")
    if os.environ.get(variable):
        print(f"note: {variable} in the environment takes precedence")
    return 0


def log_out(name: str) -> None:
    """Delete the stored key of a provider."""
    variable = _get_key_variable(name)
    places = secrets.delete_key(variable)
    print(f"deleted {variable} from {' and '.join(places)}" if places else f"no {variable} is stored")
    if place := secrets.find_key_location(variable):
        print(f"note: {variable} is still set in {place}")


def _get_key_variable(name: str) -> str:
    if variable := find_provider_class(name).info.key_variable:
        return variable
    raise UsageError(f"provider {name!r} needs no key")
