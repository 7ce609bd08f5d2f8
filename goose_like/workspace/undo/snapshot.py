"""What stands at a path and below a folder, seen without following a link; what is unchanged is not read again."""

import os
import stat
import time
from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from goose_like.core.errors import GooseLikeError

FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

LIMIT_ENTRIES = 20_000
LIMIT_FILE_BYTES = 10 << 20
LIMIT_TREE_BYTES = 100 << 20

_KINDS = {stat.S_IFREG, stat.S_IFLNK, stat.S_IFDIR}
_UNKNOWN = "\0"  # no link leads to such a name
_TICK_NS = 50_000_000
_TRIES = 3

Keep = Callable[[bytes], str]
"""Keeps a content and gives its name."""


@dataclass(frozen=True, slots=True)
class Node:
    """What stands at a path: `mode` with its kind, as in `stat`, and `content`: the name of a file's, or where a link
    leads. Where it could not be kept, it is a NUL and marks that tell whether it changed."""

    mode: int
    content: str = ""

    @property
    def is_kept(self) -> bool:
        return not self.content.startswith(_UNKNOWN)


ABSENT = Node(0)


@dataclass(frozen=True, slots=True)
class Seen:
    """A node, and the marks that it had. They are None where it may have changed since without another mark."""

    node: Node
    size_bytes: int
    marks: tuple[int, ...] | None


@dataclass(slots=True)
class Tree:
    """The nodes below a folder by their path. `gaps` are those whose content could not be kept, by the reason.

    A tree that is not `is_complete` has more entries than we look at, and holds none.
    """

    seen: dict[str, Seen] = field(default_factory=dict)
    gaps: dict[str, list[str]] = field(default_factory=dict)
    is_complete: bool = True


def open_folder(path: Path) -> int:
    """A descriptor of a real path's folder, made where missing, with no link followed."""
    here = os.open("/", FOLDER)
    for name in path.parts[1:]:
        try:
            try:
                below = os.open(name, FOLDER, dir_fd=here)
            except FileNotFoundError:
                with suppress(FileExistsError):
                    os.mkdir(name, dir_fd=here)
                below = os.open(name, FOLDER, dir_fd=here)
        except NotADirectoryError as error:
            raise GooseLikeError(f"{path}: {name!r} is no folder, or became a link just now; look again") from error
        finally:
            os.close(here)
        here = below
    return here


def look(root: Path, left_out: Container[str], keep: Keep, known: Mapping[str, Seen]) -> Tree:
    """The tree below a folder.

    Nothing of a `.git`, of what is mounted there, of sockets and devices, and of the paths in `left_out`. What has the
    marks of `known` is as it was. Small files come first where not all can be kept.

    Raises:
        OSError: of `keep`.
    """
    tree, room_bytes = Tree(), LIMIT_TREE_BYTES
    unread: list[tuple[str, os.stat_result]] = []
    for path, status in _walk(str(root), left_out, known):
        if len(tree.seen) + len(unread) >= LIMIT_ENTRIES:
            return Tree(is_complete=False)
        old = known.get(path)
        if old and (status is None or old.marks == _marks(status)):
            tree.seen[path] = old
            room_bytes -= old.size_bytes if old.node.is_kept else 0
        elif status is not None:
            unread.append((path, status))
    for path, status in sorted(unread, key=lambda entry: entry[1].st_size):
        seen, gap = _see(path, status, keep, room_bytes)
        if gap and not os.path.lexists(path):
            continue  # gone since
        tree.seen[path] = seen
        if gap:
            tree.gaps.setdefault(gap, []).append(path)
        elif stat.S_ISREG(seen.node.mode):
            room_bytes -= seen.size_bytes
    return tree


def node_at(path: str, keep: Keep) -> Node:
    """What stands there. Raises: OSError: of `keep`."""
    try:
        status = os.lstat(path)
    except (OSError, ValueError):
        return ABSENT
    return _see(path, status, keep, LIMIT_FILE_BYTES)[0].node if _is_ours(status) else ABSENT


def _walk(
    root: str, left_out: Container[str], known: Mapping[str, Seen]
) -> Iterator[tuple[str, os.stat_result | None]]:
    """Every path below; without a status what lies in a folder that can't be listed now, as far as it is known."""
    folders, device = [root], None
    with suppress(FileNotFoundError):
        device = os.lstat(root).st_dev
    while folders:
        folder = folders.pop()
        try:
            with os.scandir(folder) as listed:
                entries = list(listed)
        except OSError:
            yield from ((path, None) for path in known if path.startswith(f"{folder}/"))
            continue
        for entry in entries:
            path = entry.path
            if entry.name == ".git" or path in left_out:
                continue
            try:
                status = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            if status.st_dev == device and _is_ours(status):
                if stat.S_ISDIR(status.st_mode):
                    folders.append(path)
                yield path, status


def _is_ours(status: os.stat_result) -> bool:
    return stat.S_IFMT(status.st_mode) in _KINDS


def _see(path: str, status: os.stat_result, keep: Keep, room_bytes: int) -> tuple[Seen, str]:
    """What is there, and the reason why its content was not kept."""
    looked_ns, gap, content = time.time_ns(), "", ""
    try:
        if stat.S_ISLNK(status.st_mode):
            content = _target(path)
        elif stat.S_ISREG(status.st_mode):
            if status.st_size > LIMIT_FILE_BYTES:
                gap = f"over {LIMIT_FILE_BYTES >> 20} MB"
            elif status.st_size > room_bytes:
                gap = f"beyond {LIMIT_TREE_BYTES >> 20} MB in all"
            else:
                data, status = _read(path)
                content = keep(data)
    except _Unreadable:
        gap = "that can't be read"
    # A change within the clock's tick after the look would leave no other mark.
    marks = _marks(status) if looked_ns - status.st_ctime_ns > _TICK_NS else None
    if gap:
        content = f"{_UNKNOWN}{_marks(status)}"
    return Seen(Node(status.st_mode, content), status.st_size, marks), gap


class _Unreadable(OSError):
    pass


def _target(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError as error:
        raise _Unreadable(*error.args) from error


def _read(path: str) -> tuple[bytes, os.stat_result]:
    """All of a regular file as it was at one moment, and its status then."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as error:
        raise _Unreadable(*error.args) from error
    try:
        for _ in range(_TRIES):
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or status.st_size > LIMIT_FILE_BYTES:
                break
            data = os.pread(descriptor, status.st_size + 1, 0)
            if len(data) == status.st_size and _marks(os.fstat(descriptor)) == _marks(status):
                return data, status
    except OSError as error:
        raise _Unreadable(*error.args) from error
    finally:
        os.close(descriptor)
    raise _Unreadable("it changes while it is read")


def _marks(status: os.stat_result) -> tuple[int, ...]:
    return (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_mode)
