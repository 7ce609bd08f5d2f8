"""Remote repositories in Maven's layout: a folder, or a server that takes GET, PUT and perhaps ConCopilot's POST."""

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote, unquote, urlsplit

from goose_like.core.errors import GooseLikeError, UsageError
from goose_like_toolkits.components.described.coordinates import Coordinates

from .layout import LISTING, is_added, put_in_place
from .listing import LIMIT_BYTES, RefusedError, read_listing
from .progress import Progress, Tell

_REDIRECTS = 5
_BLOCK_BYTES = 1 << 16
_UNREACHABLE = "check the address and the connection, or `enable: false` in settings.yaml"


class Remote(Protocol):
    """A repository elsewhere. Paths are relative to it: "releases/g/ro/up/artifact/version", and a file's below."""

    @property
    def name(self) -> str:
        """Its address as a person wrote it, without a password."""

    def files(self, coordinates: Coordinates) -> dict[str, str | None] | None:
        """The names of a component's files, and their SHA-256 where it is said; None where it is not there."""

    def fetch(self, path: str, target: Path, limit_bytes: int, tell: Tell) -> bool:
        """Writes a file to `target`, which is not there yet. Whether the repository has it."""

    def publish(self, folder: str, source: Path, names: Sequence[str], tell: Tell) -> None:
        """Puts these files of the folder `source` there, in this order, in the place of former ones."""

    def close(self) -> None:
        """Ends its connections."""


def place_of(coordinates: Coordinates) -> str:
    """A component's folder in a remote repository."""
    return f"{'snapshots' if coordinates.is_snapshot else 'releases'}/{coordinates.folder.as_posix()}"


def open_remote(address: str, credentials: tuple[str, str] | None = None, *, insecure: bool = False) -> Remote:
    """The repository at a URL or a folder's path; `credentials` are a user's name and password.

    Raises:
        UsageError: others could read these on their way, and that is not allowed by `insecure`.
        GooseLikeError: the URL can't be read.
    """
    parts = urlsplit(address)
    if parts.scheme.lower() in ("http", "https"):
        return ServerRemote(address, credentials, insecure=insecure)
    folder = Path(unquote(parts.path)) if address.lower().startswith("file:") else Path(address).expanduser()
    return FolderRemote(folder, address)


class FolderRemote:
    """A folder in Maven's layout, on a disk or a share."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self.name = name

    def files(self, coordinates: Coordinates) -> dict[str, str | None] | None:
        self._require_folder()
        folder = self._folder / place_of(coordinates)
        try:
            said = (folder / LISTING).read_bytes()[:LIMIT_BYTES].decode()
        except FileNotFoundError:
            said = None
        except (OSError, ValueError) as error:
            raise GooseLikeError(f"{folder / LISTING} can't be read: {' '.join(str(error).split())}") from error
        if said is not None and (files := read_listing(said, coordinates.folder.as_posix())) is not None:
            return files
        found = [os.path.relpath(file, folder) for file in _regular(folder)]
        return dict.fromkeys(found) if any(not is_added(name) for name in found) else None

    def fetch(self, path: str, target: Path, limit_bytes: int, tell: Tell) -> bool:
        source = self._folder / path
        try:
            known = source.lstat()
            if not stat.S_ISREG(known.st_mode):
                raise RefusedError(f"{source} is no file; links are not followed")
            _require_small(path, known.st_size, limit_bytes)
            shutil.copyfile(source, target, follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            raise GooseLikeError(f"{source} can't be copied: {error.strerror}") from error
        return True

    def publish(self, folder: str, source: Path, names: Sequence[str], tell: Tell) -> None:
        self._require_folder()
        target = self._folder / folder
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            made = Path(tempfile.mkdtemp(prefix=".", dir=target.parent))
            try:
                for name in names:
                    (made / name).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(source / name, made / name)
                made.chmod(0o755)
                put_in_place(made, target)
            finally:
                shutil.rmtree(made, ignore_errors=True)
        except OSError as error:
            raise GooseLikeError(f"{target} can't be written: {error.strerror}; is the folder yours?") from error

    def close(self) -> None:
        """There is nothing to end."""

    def _require_folder(self) -> None:
        if not self._folder.is_dir():
            raise GooseLikeError(f"there is no folder {self._folder}; make it, or give another repository")


class ServerRemote:
    """A Maven repository's server: files by GET and PUT, with basic authentication where credentials are known."""

    def __init__(self, url: str, credentials: tuple[str, str] | None = None, *, insecure: bool = False) -> None:
        # No module of a session's start: an HTTP library takes longer to import than all else here.
        import httpx2

        try:
            given = httpx2.URL(url)
        except httpx2.InvalidURL as error:
            raise GooseLikeError(f"a repository's URL can't be read: {error}; correct it") from error
        own = (given.username, given.password) if given.userinfo else None
        base = given.copy_with(userinfo=b"", query=None, fragment=None)
        self.name = str(base)
        # As ConCopilot: what names a site only has its repository below this folder.
        self._base = base if base.path.strip("/") else base.copy_with(path="/repository")
        self._auth = credentials or own
        if self._auth and not insecure and base.scheme == "http" and not _is_this_machine(base.host):
            raise UsageError(
                f"{self.name} would be sent your user name and password for all to read; give its address with https:, "
                "or allow it by `insecure: true` beside its `url` in settings.yaml (for `deploy --to`: --insecure)"
            )
        self._client = httpx2.Client(timeout=httpx2.Timeout(30, connect=10), follow_redirects=False)

    def files(self, coordinates: Coordinates) -> dict[str, str | None] | None:
        folder = place_of(coordinates)
        with self._asked("POST", self._url(folder)) as response:
            said = self._text(response) if response.status_code == 200 else None
        if said is not None and (files := read_listing(said, coordinates.folder.as_posix())):
            return files
        with self._got(self._url(f"{folder}/{LISTING}")) as response:
            said = self._text(response) if self._is_there(response) else None
        if said is None:
            return None
        files = read_listing(said, coordinates.folder.as_posix())
        if files is None:
            raise RefusedError(f"{LISTING} of {self.name} can't be read: it is no list of names")
        return files

    def fetch(self, path: str, target: Path, limit_bytes: int, tell: Tell) -> bool:
        with self._got(self._url(path)) as response:
            if not self._is_there(response):
                return False
            length = response.headers.get("content-length", "")
            total = int(length) if length.isdecimal() and len(length) < 20 else None
            _require_small(path, total or 0, limit_bytes)
            progress = Progress(f"fetching {Path(path).name}", tell, total)
            with target.open("xb") as file:
                for block in response.iter_bytes(_BLOCK_BYTES):
                    file.write(block)
                    progress.moved(len(block))
                    _require_small(path, progress.done_bytes, limit_bytes)
        return True

    def publish(self, folder: str, source: Path, names: Sequence[str], tell: Tell) -> None:
        for name in names:
            tell_size = (source / name).stat().st_size
            progress = Progress(f"sending {Path(name).name}", tell, tell_size)
            headers = {"content-length": str(tell_size)}
            url = self._url(f"{folder}/{name}")
            with self._asked("PUT", url, content=_blocks(source / name, progress), headers=headers) as response:
                if not response.is_success:
                    raise GooseLikeError(f"{self.name} did not take {name}: {self._refusal(response)}")

    def close(self) -> None:
        self._client.close()

    def _url(self, path: str) -> Any:
        return self._base.copy_with(raw_path=f"{self._base.raw_path.decode().rstrip('/')}/{quote(path)}".encode())

    @contextmanager
    def _asked(self, method: str, url: Any, **how: Any) -> Iterator[Any]:
        """One request, of which no redirect is followed. Whoever is not on our host gets no password."""
        import httpx2

        is_own = (url.scheme, url.host, url.port) == (self._base.scheme, self._base.host, self._base.port)
        headers = {"accept-encoding": "identity"} | how.pop("headers", {})
        auth = self._auth if is_own else None
        try:
            with self._client.stream(method, url, auth=auth, headers=headers, **how) as response:
                yield response
        except httpx2.HTTPError as error:
            why = str(error).partition("\n")[0] or type(error).__name__
            raise GooseLikeError(f"{self.name} can't be reached: {why}; {_UNREACHABLE}") from error

    @contextmanager
    def _got(self, url: Any) -> Iterator[Any]:
        """What is at the end of redirects: on the same host, or by https."""
        for _ in range(_REDIRECTS + 1):
            with self._asked("GET", url) as response:
                if not response.has_redirect_location:
                    yield response
                    return
                url = self._next(url, response.headers["location"])
        raise GooseLikeError(f"{self.name} redirects more than {_REDIRECTS} times; give the address that it leads to")

    def _next(self, url: Any, location: str) -> Any:
        import httpx2

        try:
            target = url.join(location)
        except httpx2.InvalidURL as error:
            raise RefusedError(f"{self.name} redirects to what is no URL; tell whoever runs it") from error
        is_safe = target.scheme == "https" or (target.scheme == url.scheme and target.host == url.host)
        if not is_safe or target.userinfo:
            raise RefusedError(
                f"{self.name} redirects to {target.copy_with(userinfo=b'')}, which is another host without https; "
                "if that is right, give its address in settings.yaml"
            )
        return target

    def _is_there(self, response: Any) -> bool:
        if response.status_code in (404, 410):
            return False
        if not response.is_success:
            raise GooseLikeError(f"{self.name} gave no answer: {self._refusal(response)}")
        return True

    def _refusal(self, response: Any) -> str:
        status = f"{response.status_code} {response.reason_phrase}".strip()
        if response.status_code in (401, 403):
            whose = "the user name and password are not accepted" if self._auth else "it wants a user name and password"
            return f"{status}; {whose}: --repo-user-name and --repo-user-pwd, or https://USER:PASSWORD@... in settings"
        return f"{status}; try again later, or ask whoever runs it"

    def _text(self, response: Any) -> str | None:
        """The body as far as it is text and not large."""
        body = bytearray()
        for block in response.iter_bytes(_BLOCK_BYTES):
            body += block
            _require_small("its list of files", len(body), LIMIT_BYTES)
        try:
            return body.decode()
        except UnicodeDecodeError:
            return None


def _is_this_machine(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _require_small(what: str, size: int, limit_bytes: int) -> None:
    if size > limit_bytes:
        raise RefusedError(f"{what} is larger than {limit_bytes:,} bytes, and no part of a component")


def _blocks(file: Path, progress: Progress) -> Iterator[bytes]:
    with file.open("rb") as source:
        while block := source.read(_BLOCK_BYTES):
            yield block
            progress.moved(len(block))


def _regular(folder: Path) -> Iterator[str]:
    """The paths of all files below a folder that are no links."""
    for below, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(below, name)
            if stat.S_ISREG(os.lstat(path).st_mode):
                yield path
