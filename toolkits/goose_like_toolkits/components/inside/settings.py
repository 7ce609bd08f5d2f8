"""The settings of a run: one object in a process, which components read."""

import abc
import datetime
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import urlsplit

from .class_dict import ClassDict
from .yamls import read_yaml

default_config_folder = ".config"
default_config_files = ["config.yaml", "config.yml"]
component_completion_flag = "__COMPLETED"


class SingletonMeta(abc.ABCMeta):
    """Classes of which there is one object in a process: whoever makes one is given it."""

    _instances: dict[type, Any] = {}
    _lock = Lock()

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if cls not in cls._instances:
            made = super().__call__(*args, **kwargs)
            with SingletonMeta._lock:
                cls._instances.setdefault(cls, made)
        return cls._instances[cls]


class Singleton(abc.ABC, metaclass=SingletonMeta):
    """A class of which there is one object."""


class Env(Singleton):
    """Where things are if nothing else is said."""

    def __init__(self) -> None:
        self.default_settings_path = str(Path.home() / ".concopilot" / "settings.yaml")
        self.default_local_repo_path = str(Path.home() / ".concopilot" / "repository")
        self.default_repo_base_url = "https://concopilot.org"


def curr_time() -> str:
    """The local time, to the millisecond: `2026-01-31 09:05:00.250`."""
    return datetime.datetime.now().isoformat(sep=" ", timespec="milliseconds")


class _RepoPolicy:
    """Whether a repository is asked, and whether what was had from it before is asked for again."""

    def __init__(self, enable: bool, update: bool) -> None:
        self.enable = enable
        self.update = update


class _Repo:
    """A remote repository."""

    RepoPolicy = _RepoPolicy

    def __init__(self, url: str, snapshot: _RepoPolicy | None = None, release: _RepoPolicy | None = None) -> None:
        parts = urlsplit(str(url))
        if parts.scheme not in ("http", "https", "file") or not (parts.netloc or parts.path):
            raise ValueError(f"{url!r} is no repository's address: write it as https://host/path")
        self.url = url
        self.snapshot = snapshot or _RepoPolicy(enable=True, update=True)
        self.release = release or _RepoPolicy(enable=True, update=False)

    def snapshot_url(
        self, group_id: str | None = None, artifact_id: str | None = None, version: str | None = None
    ) -> str:
        """Where snapshots of a group, an artifact or a version lie."""
        return self._at("snapshots", group_id, artifact_id, version)

    def release_url(
        self, group_id: str | None = None, artifact_id: str | None = None, version: str | None = None
    ) -> str:
        """Where releases of a group, an artifact or a version lie."""
        return self._at("releases", group_id, artifact_id, version)

    def repo_url(
        self,
        group_id: str | None = None,
        artifact_id: str | None = None,
        version: str | None = None,
        is_snapshot: bool = False,
    ) -> str:
        """Either of both."""
        return self._at("snapshots" if is_snapshot else "releases", group_id, artifact_id, version)

    def _at(self, kind: str, *ids: str | None) -> str:
        given = [part for part in ids if part is not None]
        if given != list(ids[: len(given)]):
            names = ("group_id", "artifact_id", "version")
            raise ValueError(f"an address needs {names[ids.index(None)]} before what follows it")
        below = [given[0].replace(".", "/"), *given[1:]] if given else []
        return "/".join([self.url.rstrip("/"), "repository", kind, *below])

    @staticmethod
    def convert(d: Mapping[str, Any]) -> "_Repo":
        """A repository as `settings.yaml` names it: `url`, and `snapshot` and `release` with `enable`, `update`."""
        policies = []
        for kind in ("snapshot", "release"):
            given = d.get(kind)
            if isinstance(given, Mapping):
                given = _RepoPolicy(bool(given.get("enable")), bool(given.get("update")))
            elif given is not None and not isinstance(given, _RepoPolicy):
                raise ValueError(f"{kind!r} of a repository holds enable and update, it is no {given!r}")
            policies.append(given)
        return _Repo(d.get("url") or "", *policies)


class Settings(Singleton):
    """What holds for every component of this run."""

    Repo = _Repo

    def __init__(
        self,
        local_repo_path: str | None = None,
        repos: list[_Repo] | None = None,
        working_directory: str = ".",
        skip_setup: bool = False,
        pip_params: list[str] | None = None,
        current_time: Callable[[], str] | None = None,
    ) -> None:
        self.local_repo_path = check_local_repo_path(local_repo_path)
        self.repos = check_repos(repos)
        self.working_directory = working_directory or "."
        self.skip_setup = skip_setup
        self.pip_params = pip_params or []
        self.current_time = current_time or curr_time
        self.network_session: Any = None

    @property
    def current_time(self) -> Callable[[], str]:
        """What tells the time that messages carry."""
        return self._current_time

    @current_time.setter
    def current_time(self, value: Callable[[], str] | None) -> None:
        self._current_time = value or curr_time


def check_local_repo_path(local_repo_path: str | None = None) -> str:
    """The path, or the usual one."""
    return local_repo_path if local_repo_path is not None else env.default_local_repo_path


def check_repos(repos: list[_Repo] | None = None) -> list[_Repo]:
    """The repositories, or the public one if there is none."""
    return repos or [default_repo]


def load_settings(
    settings_path: str | None = None,
    working_directory: str | None = None,
    skip_setup: bool | None = None,
    pip_params: str | None = None,
) -> Settings:
    """The settings, with what the file and the arguments say in them.

    Raises:
        ValueError: when the file can't be read as settings.
    """
    settings = Settings()
    path = settings_path if settings_path is not None else env.default_settings_path
    told = read_yaml(path) if Path(path).is_file() else {}
    if not isinstance(told, Mapping):
        raise ValueError(f"{path}: settings are a mapping with local_repo_path and repos")
    if "local_repo_path" in told:
        settings.local_repo_path = check_local_repo_path(told["local_repo_path"])
    if "repos" in told:
        settings.repos = check_repos([_Repo.convert(ClassDict.convert(repo)) for repo in told["repos"] or [] if repo])
    if working_directory is not None:
        settings.working_directory = working_directory
    if skip_setup is not None:
        settings.skip_setup = skip_setup
    if pip_params:
        settings.pip_params = pip_params.split()
    return settings


env: Env = Env()
default_repo = _Repo(url=env.default_repo_base_url)
_Repo.__name__, _Repo.__qualname__ = "Repo", "Settings.Repo"  # as components know them
_RepoPolicy.__name__, _RepoPolicy.__qualname__ = "RepoPolicy", "Settings.Repo.RepoPolicy"
