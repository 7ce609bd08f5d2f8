"""Keeping and forgetting a provider's API key."""

import getpass
import os
import sys

from goose_like.config import secrets as keys
from goose_like.config.profile import ModelChoice
from goose_like.core.errors import UsageError
from goose_like.providers.base import Probed
from goose_like.providers.registry import provider_class


def read_key(name: str) -> str:
    """The key for a provider, asked for without echo, or the first line of standard input.

    Raises:
        UsageError: none was given, or the provider takes none.
    """
    variable = _variable(name)
    typed = getpass.getpass(f"{variable} (not shown): ") if sys.stdin.isatty() else sys.stdin.readline()
    key = typed.strip()
    if not key:
        raise UsageError(f"no key was given; type it, or: goose-like provider login {name} < FILE")
    if not (key.isascii() and key.isprintable()):
        raise UsageError("what was given holds characters that no key has; copy it anew")
    return key


async def log_in(name: str, key: str, *, is_checked: bool) -> int:
    """Keeps the key, once the provider's server took it, and says where.

    Raises:
        CredentialError: the server refused it, or it can't be kept; then nothing is.
        ModelUnavailableError: the server can't be reached.
    """
    variable, kind = _variable(name), provider_class(name)
    said = "not checked"
    if is_checked and isinstance(kind, Probed):
        probe = await kind.probe(ModelChoice(model=name), key)
        said = (
            f"{probe.address} accepted it" if probe.is_key_proven else f"{probe.address} answers, and did not check it"
        )
    print(f"{variable} is kept in {keys.store(variable, key)} ({said})")
    if os.environ.get(variable):
        print(f"but {variable} is set in the environment, which comes first")
    return 0


def log_out(name: str) -> None:
    """Removes what `log_in` kept, and says from where."""
    variable = _variable(name)
    places = keys.forget(variable)
    print(f"{variable} is gone from {' and '.join(places)}" if places else f"no {variable} was kept")
    if place := keys.where(variable):
        print(f"it is still set in {place}")


def _variable(name: str) -> str:
    if variable := provider_class(name).facts.key_variable:
        return variable
    raise UsageError(f"provider {name!r} takes no key")
