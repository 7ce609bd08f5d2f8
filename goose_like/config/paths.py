"""Folders of goose_like: the XDG base directories, or subfolders of `GOOSE_LIKE_HOME`; and files of the user."""

import codecs
import errno
import fcntl
import os
import pwd
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from goose_like.core.pattern import compile_later

WORKTREES_FOLDER = ".goose-like/worktrees"
"""The folder of our git worktrees in a repository or workspace."""

CACHE_PATHS = compile_later(r"(.*/)?(__pycache__|node_modules|\.venv|venv|[\w.]+_cache|\.coverage)(/.*)?")
"""Paths that git usually ignores, and whose content programs make again."""

FOLDER_ADVICE = "make that folder writable or point GOOSE_LIKE_HOME elsewhere"
"""The next step when a folder of ours cannot be used."""

_CLOSED = (errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOTDIR)
_APP = "goose-like"
_MAX_INPUT_BYTES = 30_000_000
_PART_BYTES = 8_192

PROJECT_FOLDER = ".goose-like"
PROFILES = "profiles.yaml"
TRUST_FILE = "trust.json"
COMMANDS = "commands"
AGENTS = "agents"
OTHER_COMMANDS = (".claude/commands", ".agents/commands")
OTHER_AGENTS = (".claude/agents",)
"""Folders in a repository whose files count: ours, and those of other agents with Markdown files."""


def _base(variable: str, default: str, below_home: str) -> Path:
    home = os.environ.get("GOOSE_LIKE_HOME")
    if home:
        return expand_home(home).absolute() / below_home
    value = os.environ.get(variable, "")
    if not os.path.isabs(value):  # the XDG specification says to ignore relative paths
        return home_folder() / default / _APP
    return Path(value) / _APP


def expand_home(path: str | Path) -> Path:
    """Replace `~` and `~NAME` at the start of a path. The name of an unknown user stays, as in a shell."""
    return Path(os.path.expanduser(path))


def home_folder() -> Path:
    """Return the person's home folder: HOME if it is an absolute path, or else the one that the system knows.

    It is `/` for a user that the system does not know, as in a container that runs with any number of a user.
    """
    home = os.environ.get("HOME", "")
    if os.path.isabs(home):
        return normalize_path(home)
    try:
        return Path(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError:
        return Path("/")


def shorten_home(path: str) -> str:
    """Write a path in the home folder with `~`. Other paths stay, and all paths if the home folder is `/`."""
    home = home_folder()
    if home == Path("/") or not Path(path).is_relative_to(home):
        return path
    return f"~/{Path(path).relative_to(home)}"


def normalize_path(path: str | Path) -> Path:
    """Return an absolute path without `.`, `..` and empty names. Links stay; two slashes at the start become one."""
    return Path("/", os.path.normpath(path).lstrip("/"))


def config_folder() -> Path:
    """Return the folder of `profiles.yaml`, `profiles/` and AGENTS.md. Tools can never write there."""
    return _base("XDG_CONFIG_HOME", ".config", "config")


def state_folder() -> Path:
    """Return the folder of data that goose_like keeps between runs."""
    return _base("XDG_STATE_HOME", ".local/state", "state")


def sessions_folder() -> Path:
    """Return the folder that holds one subfolder per session, named by the session's id."""
    return state_folder() / "sessions"


def kept_folder() -> Path:
    """Return the folder of computed values that later starts trust. As in all of the state, commands see none of it.

    The cache may lie where they write: tools of CI put it into the workspace.
    """
    return state_folder() / "kept"


def cache_folder() -> Path:
    """Return the folder of data that can be created again: model weights and indexes."""
    return _base("XDG_CACHE_HOME", ".cache", "cache")


def find_repository_root(folder: Path) -> Path:
    """Return the root of the git repository around a folder, or the folder itself outside a repository."""
    for place in (folder, *folder.parents):
        if os.path.exists(f"{place}/.git"):
            return place
    return folder


def list_project_folders(root: Path) -> tuple[str, ...]:
    """Return the folders of a project whose Markdown files count. In the home folder, only ours."""
    own = (f"{PROJECT_FOLDER}/{COMMANDS}", f"{PROJECT_FOLDER}/{AGENTS}")
    if root == home_folder():
        return own
    return (*own, *OTHER_COMMANDS, *OTHER_AGENTS)


def find_worktree(folder: Path) -> Path | None:
    """Return the top of the worktree of ours around a folder, by its path alone. Of nested ones, the outermost."""
    outermost_first = reversed((folder, *folder.parents))
    for place in outermost_first:
        if str(place.parent).endswith(f"/{WORKTREES_FOLDER}"):
            return place
    return None


def find_main_folder(folder: Path) -> Path:
    """Return the folder that one in a worktree of ours stands for: the same in the main working tree, or itself."""
    while top := find_worktree(folder):
        folder = top.parents[2] / folder.relative_to(top)
    return folder


def read_user_file(file: Path, limit_bytes: int = _MAX_INPUT_BYTES, *, allows_pipes: bool = False) -> str:
    """Read a text file that a user wrote. Pipes and devices are refused by default: reading one may never end.

    A mark at its start, which some programs write, is left out.

    Raises:
        OSError: The file is missing or unreadable.
        ValueError: It is no file, too large or not UTF-8. The text is the end of a sentence.
    """
    return read_user_bytes(file, limit_bytes, allows_pipes=allows_pipes).decode()


def read_user_bytes(file: Path, limit_bytes: int = _MAX_INPUT_BYTES, *, allows_pipes: bool = False) -> bytes:
    """Read the bytes of a text file as `read_user_file` does."""
    waits = 0 if allows_pipes else os.O_NONBLOCK  # otherwise opening a pipe waits for a writer
    descriptor = os.open(file, os.O_RDONLY | waits | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            raise ValueError("it is a folder")
        if not stat.S_ISREG(status.st_mode) and not allows_pipes:
            raise ValueError("it is a pipe or a device")
        data = _read_all(descriptor, status.st_size, limit_bytes)
    finally:
        os.close(descriptor)
    if len(data) > limit_bytes:
        raise ValueError(f"it has more than {limit_bytes:,} bytes")
    return data.removeprefix(codecs.BOM_UTF8)


def _read_all(descriptor: int, size_bytes: int, limit_bytes: int) -> bytes:
    """Read a file to its end, but at most one byte more than allowed. It may be larger than its size says.

    A buffer for the limit would take longer than reading a small file.
    """
    parts: list[bytes] = []
    room = limit_bytes + 1
    part_bytes = max(size_bytes + 1, _PART_BYTES)
    while part := os.read(descriptor, min(room, part_bytes)):
        parts.append(part)
        room -= len(part)
    return b"".join(parts)


def describe_read_error(error: OSError | ValueError) -> str:
    """Describe an error of `read_user_file` in a few words that quote no content."""
    if isinstance(error, UnicodeDecodeError):
        line = error.object.count(b"\n", 0, error.start) + 1
        return f"line {line} is not UTF-8 text"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error)


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Create a folder if necessary, and let only one process at a time run the block for this folder."""
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def create_private_folder(folder: Path) -> Path:
    """Create a folder that only its owner can enter. Close the whole state folder if it lies there, and return it."""
    top = folder
    if folder.is_relative_to(state_folder()):
        top = state_folder()
    top.parent.mkdir(parents=True, exist_ok=True)
    for place in reversed((folder, *folder.parents)):
        if place.is_relative_to(top):
            place.mkdir(mode=0o700, exist_ok=True)
    if top.stat().st_mode & 0o077:
        with suppress(PermissionError):  # it belongs to somebody else, who may share it
            top.chmod(0o700)
    return folder


def is_closed_error(error: OSError) -> bool:
    """Check whether an error says that this user can create nothing at a place, however much space there is."""
    return error.errno in _CLOSED


def describe_file_error(error: OSError) -> str:
    """Describe an error with its file, if it names one."""
    reason = error.strerror or str(error)
    if error.filename:
        return f"{error.filename}: {reason}"
    return reason


def replace_private_file(file: Path, text: str) -> None:
    """Replace a file, or the target of a link, atomically with one that only its owner can read."""
    import tempfile  # imported here: `--help` starts faster

    target = Path(os.path.realpath(file))
    target.parent.mkdir(parents=True, exist_ok=True)
    # The sandbox hides `keys*` from commands. `mkstemp` creates files with mode 0600.
    descriptor, name = tempfile.mkstemp(prefix=f"{file.name}.", dir=target.parent)
    with open(descriptor, "w", encoding="utf-8") as stream:
        stream.write(text)
    os.replace(name, target)
