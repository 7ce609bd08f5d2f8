"""A guard that keeps Python code in its running directory, by an audit hook.

It gives honest code a clear error. The sandbox is the wall: it also holds C code and other programs. Functions that
only look at a path, such as `os.stat`, raise no audit event. `os.open` hides its `dir_fd` from the hook, so such a path
is judged as if it began in the current folder.
"""

import errno
import os
import re
import stat
import sys
from collections.abc import Callable, Iterable
from typing import Any, Literal, NamedTuple
from urllib.parse import unquote

StrPath = str | os.PathLike[str]

Level = Literal["write", "read", "reserved", ""]
"""The rights on a path: `reserved` is a dot folder without permission, "" allows nothing."""

# Paths of the system that libraries read by themselves.
_SYSTEM = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store"),
    *("/etc/ssl", "/etc/pki", "/etc/ca-certificates", "/etc/mime.types", "/etc/localtime", "/etc/timezone"),
    *("/etc/os-release", "/etc/resolv.conf", "/etc/hosts", "/etc/host.conf", "/etc/nsswitch.conf", "/etc/services"),
    *("/etc/protocols", "/etc/gai.conf", "/etc/fonts", "/etc/ld.so.cache", "/etc/debian_version"),
    *("/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/loadavg", "/proc/uptime", "/proc/version"),
    *("/proc/filesystems", "/proc/sys/kernel", "/sys/devices/system", "/sys/fs/cgroup"),
)
_DEVICES = frozenset(f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom"))
# Paths below /proc/PID of the process itself.
_OWN = re.compile(r"(stat|statm|status|cgroup|limits|mountinfo|mounts|maps|smaps|fd|task(/.*)?|net/.*)")
_NAMELESS = re.compile(r"/proc/\d+/fd/(pipe|socket|anon_inode|memfd|/memfd):?.*")
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_MAGIC = re.compile(r"[*?\[]")
_MOST_FOLDERS = 4096


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
    "os.chflags": (_Path(0, "write"),),
    "os.exec": (_Path(0),),
    "os.posix_spawn": (_Path(0),),
    "os.spawn": (_Path(1),),
    "shutil.copytree": (_Path(0), _Path(1, "write")),
    "shutil.rmtree": (_Path(0, "name", 1),),  # of what follows some is told without the folder
    "import": (_Path(1),),
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
        self._leave = frozenset(dot_folders)
        self._writable = _real(writable)
        self._readable = _real((*readable, *python, *_SYSTEM))
        self._listed = frozenset(each for path in listed for each in (os.fspath(path), os.path.realpath(path)))
        self._folders: dict[str, tuple[int, int, str]] = {}
        self._levels: dict[str, Level] = {}
        self._others: dict[str, Callable[..., None]] = {
            "open": self._open,
            "os.symlink": self._symlink,
            "subprocess.Popen": self._popen,
            "ctypes.dlopen": self._library,
            "sqlite3.connect": self._database,
            "sqlite3.load_extension": lambda _, path, *__: self.check(path),
            "socket.connect": self._socket,
            "socket.sendto": self._socket,
            "socket.sendmsg": self._socket,
            "socket.bind": self._bind,
            "glob.glob": lambda pattern, *_: self._pattern("", pattern),
            "glob.glob/2": lambda pattern, _, root_dir=None, *__: self._pattern(root_dir or "", pattern),
            "pathlib.Path.glob": lambda path, pattern, *_: self._pattern(path, pattern),
            "pathlib.Path.rglob": lambda path, pattern, *_: self._pattern(path, pattern),
        }

    def install(self) -> None:
        """Guard this process until it ends: an audit hook cannot be removed."""
        sys.addaudithook(self._hear)

    def check(self, path: Any, act: str = "read", dir_fd: Any = -1) -> None:
        """Raise PermissionError if an act on a path is not allowed. Ignore values that are no paths."""
        try:
            given = os.fsdecode(path)
            whole = f"/proc/self/fd/{dir_fd}/{given}" if dir_fd not in (None, -1) and given[:1] != "/" else given
            real = self._real(whole, follows=act in ("read", "write"))
        except (TypeError, ValueError, OSError):  # a descriptor, or no path at all: whoever takes it complains
            return
        level = self._level(real, is_folder=act == "folder")
        if level == "write" or (level == "read" and act == "read"):
            return
        where = f"its running directory {self._shown}"
        if level == "reserved":
            but = f" but for {', '.join(sorted(self._leave))}" if self._leave else ""
            text = f"names that begin with a dot are reserved in {self._shown}{but}; take another name"
        elif level == "read":
            text = f"a component may only read this; write in {where}"
        else:
            text = f"a component may only use files in {where}; give a path below it"
        raise PermissionError(errno.EACCES, text, given)

    def _hear(self, event: str, args: tuple[Any, ...]) -> None:
        if (paths := _EVENTS.get(event)) is not None:
            for place, act, fd in paths:
                path: Any = args[place] if place < len(args) else None
                if path is None and event in ("os.listdir", "os.scandir"):
                    path = "."
                if event == "os.listdir" and path in self._listed:  # so does the import system
                    continue
                self.check(path, act, args[fd] if fd is not None and fd < len(args) else -1)
        elif (take := self._others.get(event)) is not None:
            take(*args)

    def _open(self, path: Any, mode: Any, flags: Any, *_: Any) -> None:
        writes = flags & _WRITES if isinstance(flags, int) else 0
        if isinstance(mode, str):
            writes = writes or not set("wax+").isdisjoint(mode)
        self.check(path, "write" if writes else "read")

    def _symlink(self, target: Any, path: Any, dir_fd: Any = -1, *_: Any) -> None:
        """Refuse a link that leads out: it would trap a program that follows it outside of the sandbox."""
        self.check(path, "name", dir_fd)
        try:
            above = os.path.dirname(os.fsdecode(path))
            self.check(os.path.join(above, os.fsdecode(target)), "read", dir_fd)
        except (TypeError, ValueError):
            return

    def _popen(self, program: Any, _args: Any, cwd: Any = None, *_: Any) -> None:
        self.check(cwd)
        self._library(program)

    def _library(self, name: Any, *_: Any) -> None:
        """Check a program or library that is named by a path."""
        if isinstance(name, str | bytes | os.PathLike) and "/" in os.fsdecode(name):
            self.check(name)

    def _database(self, name: Any, *_: Any) -> None:
        try:
            text = os.fsdecode(name)
        except TypeError:
            return
        if text.startswith("file:"):
            path, query = text.removeprefix("file:").partition("?")[::2]
            path = unquote(path.partition("#")[0])
            text = "" if "mode=memory" in query.split("&") else re.sub(r"^//[^/]*", "", path)
        if text not in ("", ":memory:"):
            self.check(text, "write")

    def _socket(self, _: Any, address: Any = None, *__: Any) -> None:
        """Check a Unix socket; abstract ones belong to other programs, except for those of multiprocessing."""
        if not isinstance(address, str | bytes):
            return
        name = os.fsdecode(address)
        if not name.startswith("\0"):
            self.check(name, "write")
        elif not name.startswith("\0listener-"):
            text = f"a component may only connect to sockets in its running directory {self._shown}"
            raise PermissionError(errno.EACCES, text, name.replace("\0", "@"))

    def _bind(self, _: Any, address: Any = None, *__: Any) -> None:
        if isinstance(address, str | bytes) and not os.fsdecode(address).startswith("\0"):
            self.check(address, "name")

    def _pattern(self, folder: Any, pattern: Any) -> None:
        """Check the folder above the first wildcard: `glob` would skip refused folders silently."""
        try:
            path = os.path.join(os.fsdecode(folder), os.fsdecode(pattern))
        except (TypeError, ValueError):
            return
        if wild := _MAGIC.search(path):
            path = path[: path.rfind("/", 0, wild.start()) + 1]
        self.check(path or ".")

    def _real(self, path: str, *, follows: bool) -> str:
        """Return the real path. Cache that of its folder while the name leads to the same folder."""
        above, _, name = path.rpartition("/")
        if name in ("", ".", ".."):
            return os.path.realpath(path)
        folder = (above or "/") if path[0] == "/" else f"{os.getcwd()}/{above}"
        try:
            status = os.stat(folder)
            device, inode, real = self._folders.get(folder, (0, 0, ""))
            if (device, inode) != (status.st_dev, status.st_ino):
                real = os.path.realpath(folder)
                if len(self._folders) >= _MOST_FOLDERS:
                    self._folders.clear()
                self._folders[folder] = status.st_dev, status.st_ino, real
        except OSError:
            real = os.path.realpath(folder)
        whole = f"{real}/{name}" if real != "/" else f"/{name}"
        return os.path.realpath(whole) if follows and os.path.islink(whole) else whole

    def _level(self, real: str, *, is_folder: bool) -> Level:
        above, _, name = real.rpartition("/")
        level = self._levels.get(above)
        if level is None:
            if len(self._levels) >= _MOST_FOLDERS:
                self._levels.clear()
            level = self._levels[above] = self._judge(above)
        if level == "write" and not (name.startswith(".") and self._is_reserved(real, name, is_folder)):
            return level
        return self._judge(real)

    def _is_reserved(self, real: str, name: str, is_folder: bool) -> bool:
        if name in self._leave:
            return False
        return is_folder or name == ".env" or name.startswith(".env.") or _is_folder(real)

    def _judge(self, real: str) -> Level:
        """Return the rights on a real path, taken as a folder."""
        if _is_below(real, self._writable) or real in _DEVICES or _NAMELESS.fullmatch(real):
            return "write"
        is_inside = _is_below(real, (self._root,))
        parts = real[len(self._root) :].split("/") if is_inside else []
        is_reserved = any(part.startswith(".") and part not in self._leave for part in parts)
        if is_inside and not is_reserved:
            return "write"
        if _is_below(real, self._readable) or _is_own(real):
            return "read"
        return "reserved" if is_reserved else ""


def _real(paths: Iterable[StrPath]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(os.path.realpath(path) for path in paths))


def _is_below(real: str, folders: tuple[str, ...]) -> bool:
    return any(real == folder or folder == "/" or real.startswith(f"{folder}/") for folder in folders)


def _is_own(real: str) -> bool:
    own = f"/proc/{os.getpid()}/"
    return real.startswith(own) and _OWN.fullmatch(real.removeprefix(own)) is not None


def _is_folder(real: str) -> bool:
    try:
        return stat.S_ISDIR(os.stat(real).st_mode)
    except OSError:
        return False
