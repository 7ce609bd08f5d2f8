"""A guard that keeps Python's file functions in the running directory, by an audit hook.

It gives honest code a clear error. The sandbox is the wall: it also holds C code and other programs. Functions that
only look at a path, such as `os.stat`, raise no audit event. `os.open` hides its `dir_fd` from the hook, so such a path
is judged as if it began in the current folder.
"""

import errno
import os
import re
import sys
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Literal, NamedTuple

StrPath = str | os.PathLike[str]

Level = Literal["write", "read", "reserved", ""]
"""The rights on a path: `reserved` is a dot folder without permission, "" allows nothing."""

# Paths of the system that libraries read by themselves.
_SYSTEM = (
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix/store",
    "/gnu/store",
    "/etc/ssl",
    "/etc/pki",
    "/etc/ca-certificates",
    "/etc/mime.types",
    "/etc/localtime",
    "/etc/timezone",
    "/etc/os-release",
    "/etc/resolv.conf",
    "/etc/hosts",
    "/etc/host.conf",
    "/etc/nsswitch.conf",
    "/etc/services",
    "/etc/protocols",
    "/etc/gai.conf",
    "/etc/fonts",
    "/etc/ld.so.cache",
    "/etc/debian_version",
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/loadavg",
    "/proc/uptime",
    "/proc/version",
    "/proc/filesystems",
    "/proc/sys/kernel",
    "/sys/devices/system",
    "/sys/fs/cgroup",
)
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
# Paths below /proc/PID of the process itself.
_OWN = re.compile(r"(stat|statm|status|cgroup|limits|mountinfo|mounts|maps|smaps|fd|task(/.*)?|net/.*)")
_NAMELESS = re.compile(r"/proc/\d+/fd/(pipe|socket|anon_inode|memfd|/memfd):?.*")
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class _Path(NamedTuple):
    """The path of an audit event: its place among the arguments, that of its `dir_fd`, and the act.

    The act `name` writes the name itself and leaves the target of a link alone.
    """

    place: int
    act: Literal["read", "write", "name", "folder"] = "read"
    dir_fd: int | None = None


_EVENTS: dict[str, tuple[_Path, ...]] = {
    "os.listdir": (_Path(0),),
    "os.scandir": (_Path(0),),
    "os.chdir": (_Path(0),),
    "os.walk": (_Path(0),),
    "os.fwalk": (_Path(0, "read", 4),),
    "os.listxattr": (_Path(0),),
    "os.getxattr": (_Path(0),),
    "os.setxattr": (_Path(0, "write"),),
    "os.removexattr": (_Path(0, "write"),),
    "os.mkdir": (_Path(0, "folder", 2),),
    "os.rmdir": (_Path(0, "name", 1),),
    "os.remove": (_Path(0, "name", 1),),
    "os.rename": (_Path(0, "name", 2), _Path(1, "name", 3)),
    "os.link": (_Path(0, "write", 2), _Path(1, "name", 3)),
    "os.chmod": (_Path(0, "write", 2),),
    "os.chown": (_Path(0, "write", 3),),
    "os.utime": (_Path(0, "write", 3),),
    "os.truncate": (_Path(0, "write"),),
    "shutil.rmtree": (_Path(0, "name", 1),),  # some of its further events name no folder
}


class Guard:
    """Refuses paths outside of `root`, by real path, with a PermissionError that says what is allowed.

    Args:
        root: the running directory; folders with a leading dot, `.env` and `.env.*` in it are reserved.
        readable: more files and folders that may be read, also below reserved names. Python and the system's libraries
            are always readable.
        dot_folders: reserved names that are open.
        writable: more folders in which everything is allowed, such as one for temporary files.
        listed: folders whose names may be listed.
    """

    def __init__(
        self,
        root: StrPath,
        readable: Iterable[StrPath] = (),
        dot_folders: Iterable[str] = (),
        writable: Iterable[StrPath] = (),
        listed: Iterable[StrPath] = (),
    ) -> None:
        python = (sys.prefix, sys.base_prefix, sys.exec_prefix, os.path.dirname(sys.executable))
        self._shown = str(root)
        self._root = os.path.realpath(root)
        self._open_names = frozenset(dot_folders)
        self._writable = _resolve(writable)
        self._readable = _resolve((*readable, *python, *_SYSTEM))
        self._listed: set[str] = set()
        for path in listed:
            self._listed |= {os.fspath(path), os.path.realpath(path)}
        self._judge = lru_cache(4096)(self._judge_folder)

    def install(self) -> None:
        """Guard this process until it ends: an audit hook cannot be removed."""
        sys.addaudithook(self._hear)

    def check(self, path: Any, act: str = "read", dir_fd: Any = -1) -> None:
        """Raise PermissionError if an act on a path is not allowed. Ignore values that are no paths."""
        try:
            given = os.fsdecode(path)
            whole = given
            if dir_fd not in (None, -1) and not given.startswith("/"):
                whole = f"/proc/self/fd/{dir_fd}/{given}"
            real = _find_target(whole, follows=act in ("read", "write"))
        except (TypeError, ValueError, OSError):  # a descriptor, or no path at all: whoever takes it complains
            return
        level = self._find_level(real, is_folder=act == "folder")
        if level == "write" or (level == "read" and act == "read"):
            return
        raise PermissionError(errno.EACCES, self._explain(level), given)

    def _explain(self, level: Level) -> str:
        where = f"its running directory {self._shown}"
        if level == "read":
            return f"a component may only read this; write in {where}"
        if level != "reserved":
            return f"a component may only use files in {where}; give a path below it"
        names = ", ".join(sorted(self._open_names))
        but = f" but for {names}" if names else ""
        return f"names that begin with a dot are reserved in {self._shown}{but}; take another name"

    def _hear(self, event: str, args: tuple[Any, ...]) -> None:
        if event == "open":
            self._check_open(*args)
        elif event == "os.symlink":
            self._check_link(*args)
        elif event == "sqlite3.connect":
            self._check_database(args[0])
        for place, act, fd in _EVENTS.get(event, ()):
            path: Any = args[place] if place < len(args) else None
            if path is None and event in ("os.listdir", "os.scandir"):
                path = "."
            if event == "os.listdir" and path in self._listed:  # so does the import system
                continue
            dir_fd: Any = -1
            if fd is not None and fd < len(args):
                dir_fd = args[fd]
            self.check(path, act, dir_fd)

    def _check_open(self, path: Any, mode: Any, flags: Any) -> None:
        writes = flags & _WRITES if isinstance(flags, int) else 0
        if isinstance(mode, str):
            writes = writes or not set("wax+").isdisjoint(mode)
        self.check(path, "write" if writes else "read")

    def _check_link(self, target: Any, path: Any, dir_fd: Any = -1) -> None:
        """Refuse a link that leads out: it would trap a program that follows it outside of the sandbox."""
        self.check(path, "name", dir_fd)
        try:
            above = os.path.dirname(os.fsdecode(path))
            self.check(os.path.join(above, os.fsdecode(target)), "read", dir_fd)
        except (TypeError, ValueError):
            return

    def _check_database(self, name: Any) -> None:
        if not isinstance(name, str | bytes | os.PathLike):
            return
        text = os.fsdecode(name)
        if text in ("", ":memory:"):
            return
        if text.startswith("file:"):
            text = text.removeprefix("file:").partition("?")[0]
        self.check(text, "write")

    def _find_level(self, real: str, *, is_folder: bool) -> Level:
        """Return the rights on a real path. A dot file is reserved only in a dot folder, but for `.env`."""
        above, _, name = real.rpartition("/")
        if self._judge(above) != "write":
            return self._judge(real)
        if not name.startswith("."):
            return "write"
        is_environment = name == ".env" or name.startswith(".env.")
        if is_folder or is_environment or os.path.isdir(real):
            return self._judge(real)
        return "write"

    def _judge_folder(self, real: str) -> Level:
        """Return the rights on a real path, taken as a folder."""
        if _is_below(real, self._writable) or real in _DEVICES or _NAMELESS.fullmatch(real):
            return "write"
        is_inside = _is_below(real, (self._root,))
        is_reserved = is_inside and self._has_reserved_part(real)
        if is_inside and not is_reserved:
            return "write"
        if _is_below(real, self._readable) or _is_about_process(real):
            return "read"
        return "reserved" if is_reserved else ""

    def _has_reserved_part(self, real: str) -> bool:
        """Check whether a path below the root leads through a dot folder that is not open."""
        for part in real[len(self._root) :].split("/"):
            if part.startswith(".") and part not in self._open_names:
                return True
        return False


def _is_about_process(real: str) -> bool:
    """Check whether a path has facts about this process that it may read."""
    own = f"/proc/{os.getpid()}/"
    return real.startswith(own) and _OWN.fullmatch(real.removeprefix(own)) is not None


def _find_target(path: str, *, follows: bool) -> str:
    """Return the real path that a function changes: with `follows` that behind a link, else that of the name."""
    folder, _, name = path.rpartition("/")
    if follows or name in ("", ".", ".."):
        return os.path.realpath(path)
    if not folder:
        folder = "/" if path.startswith("/") else "."
    above = os.path.realpath(folder)
    return f"{above.rstrip('/')}/{name}"


def _resolve(paths: Iterable[StrPath]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(os.path.realpath(path) for path in paths))


def _is_below(real: str, folders: tuple[str, ...]) -> bool:
    for folder in folders:
        if folder in ("/", real) or real.startswith(f"{folder}/"):
            return True
    return False
