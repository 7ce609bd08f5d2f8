"""Tokens of Microsoft Entra ID, in place of an API key."""

import logging
from collections.abc import Callable
from importlib.util import find_spec

from goose_like.core.errors import CredentialError
from goose_like.core.threads import run_in_daemon_thread

from .wire import clip

_EXCLUDED = ("exclude_cli_credential", "exclude_developer_cli_credential", "exclude_powershell_credential")
"""The credentials that start a program of the PATH (`az`, `azd`, `pwsh`), where the model may have written one."""


def is_installed() -> bool:
    """Check for the library of the extra `azure`."""
    return find_spec("azure") is not None and find_spec("azure.identity") is not None


class TokenSource:
    """The tokens for one scope. The library keeps each token until shortly before its end."""

    def __init__(self, scope: str) -> None:
        self._scope = scope
        self._get_token: Callable[[], str] | None = None

    async def fetch(self) -> str:
        """Return a valid token.

        Raises:
            CredentialError: there are no credentials, or they are refused.
        """
        try:
            return await run_in_daemon_thread(self._fetch, "Entra ID")
        except Exception as error:  # from the library: each kind of credentials has errors of its own
            # The rest is one line for each kind of credentials.
            reason, _, _ = str(error).partition("\n")
            raise CredentialError(
                f"no token of Entra ID ({clip(reason, 200)}); set AZURE_TENANT_ID, AZURE_CLIENT_ID and "
                "AZURE_CLIENT_SECRET, or a key; goose-like starts no program such as `az` for a token"
            ) from error

    def _fetch(self) -> str:
        if self._get_token is None:
            from azure.identity import DefaultAzureCredential, get_bearer_token_provider

            # Without a handler its warning, which repeats the error over many lines, appears on the person's screen.
            logging.getLogger("azure.identity").addHandler(logging.NullHandler())
            credential = DefaultAzureCredential(**dict.fromkeys(_EXCLUDED, True))
            self._get_token = get_bearer_token_provider(credential, self._scope)
        return self._get_token()
