"""Signatures by GPG: a file's detached one is beside it, as `.asc`."""

import os
import sys
from dataclasses import dataclass
from getpass import getpass
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from goose_like.core.errors import DeniedError, GooseLikeError

VARIABLE = "CONPACK_GPG_PASSPHRASE"
"""Where a passphrase comes from that no command line shows."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What there is to say of a signature. `unknown`: nobody here can tell, `words` say why."""

    state: Literal["good", "bad", "unknown"]
    words: str


def verify(file: Path, signature: Path, home: Path | None = None) -> Verdict:
    """Holds a detached signature against a file and the keys in `home` (GPG's own folder where it is None)."""
    try:
        result = _gpg(home).verify_file(str(signature), str(file.absolute()))
    except GooseLikeError as error:
        return Verdict("unknown", str(error))
    if result.valid:
        return Verdict("good", f"{result.username or 'a key'} ({result.fingerprint or result.key_id})")
    if result.status == "no public key":
        key = result.key_id or "?"
        return Verdict("unknown", f"the key {key} is not known here; `gpg --recv-keys {key}` fetches it")
    if result.key_status == "signing key has expired":  # since then; the signature itself is right
        return Verdict("unknown", f"the key {result.key_id or '?'} has expired")
    return Verdict("bad", result.status or "it is no signature")


@dataclass(frozen=True, slots=True)
class Signer:
    """Signs with the first secret key in `home`. `passphrase` may be empty: a key can be without."""

    passphrase: str
    home: Path | None = None

    def sign(self, file: Path, signature: Path) -> None:
        """Writes the detached signature of a file.

        Raises:
            GooseLikeError: there is no key, or the passphrase is not its, or GPG is missing.
        """
        try:
            result = _gpg(self.home).sign_file(
                str(file.absolute()), passphrase=self.passphrase, detach=True, output=str(signature.absolute())
            )
        except ValueError as error:  # python-gnupg's: a passphrase with a line end
            raise GooseLikeError("that is no passphrase: it has a line end; give it without") from error
        if not result or not signature.is_file():
            said = [line for line in result.stderr.splitlines() if line.startswith("gpg: ")] if result.stderr else []
            reason = said[-1].removeprefix("gpg: ") if said else result.status or "gpg gave no reason"
            raise GooseLikeError(
                f"{file.name} can't be signed: {reason}; check the passphrase, and with `gpg --list-secret-keys` that "
                "there is a key (--gnupg-home names another folder of keys)"
            )


def ask_passphrase(given: str | None) -> str | None:
    """The passphrase from the command line, the environment or a person at a terminal; None: nothing is signed."""
    if given is not None:
        return given
    if VARIABLE in os.environ:
        return os.environ[VARIABLE]
    if sys.stdin and sys.stdin.isatty():
        return ask_hidden("passphrase of your GPG key (nothing: don't sign): ") or None
    return None


def ask_hidden(prompt: str) -> str:
    """What a person types at a terminal without being seen.

    Raises:
        DeniedError: the person has no more to say.
    """
    try:
        return getpass(prompt)
    except KeyboardInterrupt:
        print(file=sys.stderr)  # what is said next begins a line
        raise
    except EOFError as error:
        raise DeniedError("nothing is deployed, as you gave no answer") from error


def _gpg(home: Path | None) -> Any:
    try:
        gnupg = import_module("gnupg")
    except ImportError as error:
        raise GooseLikeError(
            "python-gnupg is not installed; `pip install 'goose-like[components]'` brings it"
        ) from error
    if home and not home.is_dir():
        raise GooseLikeError(f"there is no folder {home} with keys; name another with --gnupg-home")
    try:
        return gnupg.GPG(gnupghome=str(home.absolute()) if home else None)
    except (OSError, ValueError) as error:
        raise GooseLikeError("GPG is not installed; your system's package `gnupg` brings it") from error
