"""A component from a remote repository: each file with its checksum and its signature verified, or nothing at all."""

import tempfile
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from goose_like.core.errors import GooseLikeError
from goose_like_toolkits.components.described.coordinates import PARTS, Coordinates
from goose_like_toolkits.components.described.document import read_document

from .checksums import LIMIT_BYTES as LIMIT_DIGEST_BYTES
from .checksums import READ, digest, stated
from .layout import is_added
from .listing import RefusedError
from .progress import Tell, slow
from .remote import Remote, open_remote, place_of
from .settings import RemoteAddress
from .signing import verify
from .sources import CONFIG_FILES

_LIMIT_FILE_BYTES = 256 << 20
_LIMIT_BYTES = 512 << 20
_LIMIT_SIGNATURE_BYTES = 64_000


@dataclass(frozen=True, slots=True)
class Found:
    """What became of looking for a component: where it is not, and whether somebody gave no answer."""

    looked: tuple[str, ...] = ()
    is_unknown: bool = False
    is_there: bool = False


def fetch_from(
    remotes: Iterable[RemoteAddress],
    coordinates: Coordinates,
    fill: Callable[[Coordinates, Callable[[Path], bool]], bool],
    tell: Tell,
    gnupg_home: Path | None,
    follow: Tell | None = None,
) -> Found:
    """Has `fill` put a component in place that the first remote has which has it.

    `tell` is given what happened, `follow` what goes on, where it takes long; without one `tell` is.

    Raises:
        RefusedError: a remote gave what is damaged, badly signed or out to do harm; nothing of it is kept.
    """
    looked: list[str] = []
    is_unknown = False
    for address in remotes:
        if not address.serves(coordinates.is_snapshot):
            kind = "snapshots" if coordinates.is_snapshot else "releases"
            looked.append(f"{address.shown}: not asked for {kind}, as the settings say")
            continue
        with (
            closing(open_remote(address.url, insecure=address.insecure)) as remote,
            slow(f"asking {remote.name} for {coordinates}", follow or tell),
        ):
            write = partial(_taken, remote, coordinates, tell=tell, gnupg_home=gnupg_home, follow=follow)
            try:
                if fill(coordinates, write):
                    tell(f"{coordinates} fetched from {remote.name}")
                    return Found(is_there=True)
                looked.append(f"{remote.name}: not there")
            except RefusedError as error:
                raise RefusedError(f"{coordinates} of {remote.name} is refused: {error}") from error
            except _NoAnswer as error:
                looked.append(str(error))
                is_unknown = True
    return Found(tuple(looked), is_unknown=is_unknown)


class _NoAnswer(Exception):
    """A remote failed; another one may do."""


def _taken(*what: Any, **how: Any) -> bool:
    """As `fetch_component`, with failures of the remote told from those of the place that it is written to."""
    try:
        return fetch_component(*what, **how)
    except RefusedError:
        raise
    except GooseLikeError as error:
        raise _NoAnswer(str(error)) from error


def fetch_component(
    remote: Remote,
    coordinates: Coordinates,
    folder: Path,
    tell: Tell,
    gnupg_home: Path | None = None,
    follow: Tell | None = None,
) -> bool:
    """Writes a component's files to an empty folder. Whether the remote has it.

    Raises:
        RefusedError: a file is not what its checksum, signature or name says.
        GooseLikeError: the remote can't be reached, or the files not be written.
    """
    files = remote.files(coordinates)
    if files is None:
        return False
    own = {name: sha256 for name, sha256 in files.items() if not is_added(name)}
    prefix = f"{coordinates.artifact_id}-{coordinates.version}-"
    config = next((n for p in (prefix, "") for name in CONFIG_FILES if (n := f"{p}{name}") in own), None)
    if config is None:
        raise RefusedError(f"there is no {CONFIG_FILES[0]} among its files, so it is no component")
    left = _LIMIT_BYTES
    notes: dict[str, None] = {}
    signed: dict[str, bool] = {}
    for name, sha256 in own.items():
        target, path = folder / name, f"{place_of(coordinates)}/{name}"
        _fetch(remote, path, target, min(left, _LIMIT_FILE_BYTES), follow or tell)
        left -= target.stat().st_size
        notes |= dict.fromkeys(_checked(remote, path, target, sha256))
        # Where the listing is one of ours it names the signatures: another one is of a snapshot that was replaced.
        is_signed = sha256 is None or f"{name}.asc" in files
        words = _signed(remote, path, target, gnupg_home) if is_signed else None
        signed[name] = words is not None
        notes |= {words: None} if words else {}
    if len(set(signed.values())) > 1:
        bare = next(name for name, is_signed in signed.items() if not is_signed)
        raise RefusedError(f"{bare} is not signed, and other files of it are; ask whoever deployed it")
    for note in notes:
        tell(f"{coordinates}: {note}")
    _require_same(folder / config, coordinates)
    return True


def _fetch(remote: Remote, path: str, target: Path, limit_bytes: int, tell: Tell) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        is_there = remote.fetch(path, target, limit_bytes, tell)
    except OSError as error:
        raise GooseLikeError(f"{target} can't be written: {error.strerror}") from error
    if not is_there:
        raise RefusedError(f"{target.name} is listed, and not there; it may be being replaced, try again later")


def _checked(remote: Remote, path: str, file: Path, sha256: str | None) -> list[str]:
    """What there is to say of a file's checksums; a wrong one is an error."""
    if sha256:
        _require_digest(file, "sha256", sha256)
    for algorithm in READ:
        said = _beside(remote, f"{path}.{algorithm}", LIMIT_DIGEST_BYTES)
        if said is not None:
            _require_digest(file, algorithm, stated(said.decode("utf-8", "replace"), algorithm) or "")
            return []
    return [] if sha256 else [f"{file.name} came without a checksum, so it is taken as it is"]


def _require_digest(file: Path, algorithm: str, expected: str) -> None:
    if digest(file, algorithm) != expected.lower():
        raise RefusedError(
            f"{file.name} is not what its {algorithm} checksum says: damaged on the way, or replaced; "
            "try again, and tell whoever deployed it if it stays so"
        )


def _signed(remote: Remote, path: str, file: Path, gnupg_home: Path | None) -> str | None:
    """What there is to say of a file's signature, None where it has none; a bad one is an error."""
    signature = _beside(remote, f"{path}.asc", _LIMIT_SIGNATURE_BYTES)
    if signature is None:
        return None
    with tempfile.NamedTemporaryFile(suffix=".asc") as kept:
        kept.write(signature)
        kept.flush()
        verdict = verify(file, Path(kept.name), gnupg_home)
    if verdict.state == "bad":
        raise RefusedError(f"the signature of {file.name} is bad ({verdict.words}); ask whoever signed it")
    how = "signed by" if verdict.state == "good" else "a signature is not verified:"
    return f"{how} {verdict.words}"


def _beside(remote: Remote, path: str, limit_bytes: int) -> bytes | None:
    """A small file's bytes; None where the remote has none."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "file"
        return target.read_bytes() if remote.fetch(path, target, limit_bytes, _silent) else None


def _silent(words: str) -> None:
    """A small file's progress is not worth a word."""


def _require_same(config_file: Path, coordinates: Coordinates) -> None:
    document = read_document(config_file).value
    said = [document.data.get(part) for part in PARTS] if document else []
    if said and ":".join(map(str, said)).lower() != str(coordinates).lower():
        raise RefusedError(f"its config.yaml says that it is {':'.join(map(str, said))}; tell whoever deployed it")
