"""A component of the local repository sent to a remote one: with checksums, and signed if there is a passphrase."""

import os
import shutil
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

from goose_like.core.errors import GooseLikeError, UsageError
from goose_like_toolkits.components.described.coordinates import Coordinates

from .checksums import WRITTEN, digest
from .layout import LISTING, is_added
from .listing import is_plain, written
from .progress import Tell, slow
from .remote import Remote, open_remote, place_of
from .settings import PUBLIC, RemoteAddress, Settings
from .signing import Signer


def target_for(settings: Settings, is_snapshot: bool, credentials: tuple[str, str] | None) -> Remote:
    """The remote that such a version is deployed to: the first of the settings that takes it.

    Raises:
        UsageError: there is none, or its upload is not offered here.
    """
    kind = "snapshots" if is_snapshot else "releases"
    address = next((one for one in settings.remotes if one.serves(is_snapshot)), None)
    if address is None:
        raise UsageError(f"no repository in the settings takes {kind}; add one to `repos`")
    _require_open(address)
    return open_remote(address.url, credentials, insecure=address.insecure)


def _require_open(address: RemoteAddress) -> None:
    host = urlsplit(PUBLIC).hostname or ""
    named = urlsplit(address.url).hostname or ""
    if named == host or named.endswith(f".{host}"):
        raise UsageError(
            f"{address.shown} takes uploads with a login of its own (a captcha), which is not offered here; put a "
            "Maven repository or a folder first in `repos` of settings.yaml, or deploy with ConCopilot's own conpack"
        )


def require_new(coordinates: Coordinates, remote: Remote) -> None:
    """
    Raises:
        UsageError: it is a release, and the remote has it.
    """
    if not coordinates.is_snapshot and remote.files(coordinates) is not None:
        raise UsageError(
            f"{coordinates} is in {remote.name} already, and a release is never replaced; raise its version, or end it "
            "with -SNAPSHOT while it changes"
        )


def deploy(folder: Path, coordinates: Coordinates, remote: Remote, signer: Signer | None, tell: Tell) -> int:
    """Sends what is in a component's folder of the local repository; gives the number of its own files.

    Raises:
        UsageError: this release is there already.
        GooseLikeError: it can't be signed, or the remote does not take it.
    """
    require_new(coordinates, remote)
    with tempfile.TemporaryDirectory() as made:
        names, own = _packed(folder, Path(made), signer)
        with slow(f"sending {coordinates} to {remote.name}", tell):
            remote.publish(place_of(coordinates), Path(made), names, tell)
    return own


def _packed(source: Path, target: Path, signer: Signer | None) -> tuple[list[str], int]:
    """The names of all that is to be sent, in order, and how many of them are the component's own."""
    found = (os.path.relpath(os.path.join(at, name), source) for at, _, names in os.walk(source) for name in names)
    own = sorted(name for name in found if not is_added(name))
    if bad := next((name for name in own if not is_plain(name)), None):
        raise GooseLikeError(
            f"{bad!r} can't be deployed: others could not take a file of this name; rename it and install it again"
        )
    names: list[str] = []
    try:
        for name in own:
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source / name, target / name)
            names += [name, *_sums(target, name)]
            if signer:
                names.append(f"{name}.asc")
                signer.sign(target / name, target / names[-1])
        listed = [name for name in names if name in own or name.endswith(".asc")]
        text = written({name: digest(target / name, "sha256") for name in listed})
        (target / LISTING).write_text(text, encoding="utf-8")
        return [*names, *_sums(target, LISTING), LISTING], len(own)
    except OSError as error:
        raise GooseLikeError(f"{error.filename or source} can't be copied: {error.strerror}") from error


def _sums(folder: Path, name: str) -> list[str]:
    """Writes a file's checksums beside it; gives their names."""
    made = [f"{name}.{algorithm}" for algorithm in WRITTEN]
    for algorithm, beside in zip(WRITTEN, made, strict=True):
        (folder / beside).write_text(digest(folder / name, algorithm), encoding="ascii")
    return made
