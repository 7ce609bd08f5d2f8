"""Settings: which local repository and which remote ones, as `~/.concopilot/settings.yaml` says it."""

from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, ValidationError
from pydantic_core import PydanticCustomError

from goose_like.config.yaml_source import read_yaml, validate
from goose_like.core.errors import UsageError
from goose_like.core.message import FrozenModel, Utf8Text

PUBLIC = "https://concopilot.org"
"""The site that ConCopilot's own `conpack` uses where nothing else is said."""


def home() -> Path:
    """The folder that is shared with ConCopilot's own `conpack`."""
    return Path.home() / ".concopilot"


def checked_address(url: str) -> str:
    """A repository's address, checked for pydantic; as it may hold a password, it is not in what is told."""
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise PydanticCustomError(
            "user_message", "this URL can't be read; give one such as https://example.org"
        ) from error
    scheme = parts.scheme.lower()
    if "://" in url and scheme not in ("http", "https", "file"):
        raise PydanticCustomError("user_message", "it is reached by http:, https:, file: or as a folder's path")
    if scheme in ("http", "https") and not parts.hostname:
        raise PydanticCustomError(
            "user_message", "this URL has no host; give a whole one, e.g. https://example.org/components"
        )
    if not url.strip() or "\0" in url:
        raise PydanticCustomError("user_message", "give a URL, or a folder's path")
    return url


def _given(value: Any) -> Any:
    """As ConCopilot: an entry that is empty is as if it were not there."""
    return {} if value is None else value


def _listed(value: Any) -> Any:
    return [one for one in value if one is not None] if isinstance(value, list) else value or []


class Policy(FrozenModel):
    """What a remote repository is asked for. `update` is read and means nothing, as with ConCopilot 0.0.5."""

    enable: bool = True
    update: bool | None = None


class RemoteAddress(FrozenModel):
    """A remote repository: a URL, or a folder's path, and which kinds of versions it is asked for.

    With `insecure` a user's name and password may be sent there by http.
    """

    url: Annotated[Utf8Text, AfterValidator(checked_address)]
    snapshot: Annotated[Policy, BeforeValidator(_given)] = Policy()
    release: Annotated[Policy, BeforeValidator(_given)] = Policy()
    insecure: bool = False

    @property
    def shown(self) -> str:
        """Its address without a password."""
        before, _, after = self.url.partition("://")
        return f"{before}://{after.rpartition('@')[2]}" if after else self.url

    def serves(self, is_snapshot: bool) -> bool:
        """Whether it is asked for such versions."""
        return (self.snapshot if is_snapshot else self.release).enable


class _File(FrozenModel):
    local_repo_path: Utf8Text | None = None
    repos: Annotated[tuple[RemoteAddress, ...], BeforeValidator(_listed)] = ()


class Settings(FrozenModel):
    """Where components are kept, and where they are fetched from, in this order."""

    local: Path
    remotes: tuple[RemoteAddress, ...]


def address_of(url: str, *, insecure: bool = False) -> RemoteAddress:
    """A remote repository that a person names on the command line.

    Raises:
        UsageError: it is none.
    """
    try:
        return RemoteAddress(url=url, insecure=insecure)
    except ValidationError as error:
        raise UsageError(f"that is no repository's address: {error.errors()[0]['msg']}") from error


def read_settings(file: Path | None = None) -> Settings:
    """What a settings file says; without one `~/.concopilot/settings.yaml`, which need not be there.

    Raises:
        UsageError: the file named is not there, or can't be read, or says what is no setting; the text names the line.
    """
    chosen = file or home() / "settings.yaml"
    if not chosen.exists():
        if file:
            raise UsageError(f"there is no file {file}; name another with --settings, or leave it out")
        return _settled(_File())
    if chosen.is_dir():
        raise UsageError(f"{chosen} is a folder; name the file in it with --settings")
    source = read_yaml(chosen)
    return _settled(validate(_File, source.data, source, "the settings"))


def _settled(read: _File) -> Settings:
    local = Path(read.local_repo_path).expanduser() if read.local_repo_path else home() / "repository"
    return Settings(local=local, remotes=read.repos or (RemoteAddress(url=PUBLIC),))
