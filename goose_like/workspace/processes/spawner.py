"""The spawner: a helper process that starts commands, so that a sandbox is entered only once per session.

It runs as `python -I -S spawner.py FD [WORD...]`, with or without bubblewrap around it, and imports only cheap parts of
the standard library. The words confine it and all commands: see `confine`. FD is a unix socket of packets. A packet is
a line of words that starts with the command's number N:

    -> N spawn D...     with descriptors: the request (see `start_command`), the output pipe, and one for each number D
    -> 0 listen PORT    listen on the loopback address of the sandbox
    -> N signal S       signal every process of the command; S = 0 only counts them
    <- N started 1      the command runs
    <- N error TEXT     the command cannot be started
    <- N code C         the command ended, with -S after a death by signal S
    <- N unroutable 1   before the code, after `listen`: it tried to reach another machine, and there was no route
    <- 0 listening 1    with a descriptor: the listening socket, which this process closes
    <- N alive COUNT    the reply to `signal`: the number of processes that were alive

A request travels as a memfd, because an environment may be larger than a packet. When the socket closes, everything
that was started is killed.

The processes of a command are found by session, by descent, and by a variable that each of them inherits. Therefore a
daemon that left the session and lost its parents ends with its command. A daemon that erased its variables as well ends
when the socket closes.
"""

import binascii
import ctypes
import os
import resource
import select
import signal
import socket
import struct
import sys
import zlib
from contextlib import suppress

_MARK = b"GOOSE_LIKE_COMMAND"
_SET_DUMPABLE, _SET_CHILD_SUBREAPER, _SET_NO_NEW_PRIVS = 4, 36, 38  # prctl(2)
_KEYCTL = {"x86_64": 250, "aarch64": 219}  # system calls, by machine
_SECCOMP = {"x86_64": 317, "aarch64": 277}
_JOIN_SESSION_KEYRING = 1  # keyctl(2)
_SET_MODE_FILTER, _SPEC_ALLOW = 1, 4  # seccomp(2); older kernels slow filtered programs down without the second
_CREATE_RULESET, _RESTRICT_SELF, _ABSTRACT_SOCKETS = 444, 446, 1  # landlock(7)
_OPEN_TREE, _MOVE_MOUNT, _HERE = 428, 429, -100  # on every machine; AT_FDCWD
_CLONE, _NO_FOLLOW, _FROM_DESCRIPTOR, _NEW_MOUNTS = 1, 0x100, 4, 0x20000  # their flags, and one of unshare(2)
_SETPCAP, _SYS_ADMIN, _CAPABILITY_VERSION = 8, 21, 0x20080522  # capabilities(7), capset(2)
_FILE_CAPABILITIES = 0b1011  # the bits of those in `file_owners.CAPABILITIES`, which commands of root may have
_DROP_BOUND = 24  # prctl(2)
_PAUSE_MS = 100  # the kernel does not limit the processes of root, so the spawner counts them
SPARE_PROCESSES = 16  # the spawner may have more than its commands, so that a new command can end old ones
_OTHER_ENTRIES = 100  # names in /proc that are no processes, at most
_BSD_INFO = struct.Struct("=4xI8xI80xI32x")  # status, parent and process group of `struct proc_bsdinfo`
_PIDTBSDINFO, _BSD_ZOMBIE, _MAX_PROCESSES = 3, 5, 100_000  # proc_info.h of macOS
_OOM_SCORE = b"500"  # when the machine runs out of memory, commands end first
_EVERY_SIGNAL = [number for number in signal.valid_signals() if number not in (signal.SIGKILL, signal.SIGSTOP)]

Table = dict[int, tuple[int, int, int, bool]]
"""Process id -> parent, process group, session, and whether the process is alive (not a zombie)."""


def read_process_table() -> Table:
    """Read all processes from /proc."""
    if sys.platform != "linux":
        return _read_bsd_table()
    table: Table = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
            stat = file.read()
            # The command's name is in brackets and may contain blanks and brackets: proc_pid_stat(5).
            state, parent, group, session = stat[stat.rindex(b")") + 2 :].split(None, 4)[:4]
            table[int(name)] = int(parent), int(group), int(session), state != b"Z"
    return table


def _is_process(pid: int) -> bool:
    try:
        return os.getsid(pid) >= 0
    except OSError:
        return False


def _read_bsd_table() -> Table:
    """Read all processes that this process may see from libproc of macOS. Untested there."""
    libc, table = ctypes.CDLL(None), Table()
    pids, info = (ctypes.c_int * _MAX_PROCESSES)(), ctypes.create_string_buffer(_BSD_INFO.size)
    for pid in pids[: max(0, libc.proc_listallpids(pids, ctypes.sizeof(pids)))]:
        with suppress(OSError):
            if libc.proc_pidinfo(pid, _PIDTBSDINFO, ctypes.c_uint64(0), info, _BSD_INFO.size) == _BSD_INFO.size:
                status, parent, group = _BSD_INFO.unpack(info.raw)
                table[pid] = parent, group, os.getsid(pid), status != _BSD_ZOMBIE
    return table


def find_descendants(table: Table, found: set[int]) -> set[int]:
    """Find the given processes and all their descendants."""
    found, fresh = set(found), found
    while fresh:
        fresh = {pid for pid, (parent, *_) in table.items() if parent in found} - found
        found |= fresh
    return found


def signal_all(table: Table, pids: set[int], number: int) -> int:
    """Send a signal to the process groups, and return how many of the processes were alive before.

    Signals go to whole groups: one by one, a process that forks fast enough would escape.
    """
    for group in {table[pid][1] for pid in pids} if number else ():
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, number)
    return sum(table[pid][3] for pid in pids)


def signal_command(mark: bytes, number: int, leader: int | None = None, family: int | None = None) -> int:
    """Signal all processes that carry the mark of a command. With `family`, only descendants of that process.

    `leader` adds its session, and not its process group, because a shell gives each job its own group.
    """
    table = read_process_table()
    candidates = set(table) if family is None else find_descendants(table, {family}) - {family}
    members = {pid for pid in candidates if table[pid][2] == leader or mark in _read_environment(pid)}
    return signal_all(table, find_descendants(table, members), number)


def format_mark(spawner: int, command: bytes = b"") -> bytes:
    """Format the variable that all processes of a command inherit. Without a command, the start that all share."""
    return b"%s=%d.%s" % (_MARK, spawner, command and command + b"\0")


def _read_environment(pid: int) -> bytes:
    with suppress(OSError), open(f"/proc/{pid}/environ", "rb") as file:
        return file.read()
    return b""


def start_command(command: bytes, request: int, output: int, others: dict[int, int]) -> int:
    """Start a command. The request holds folder, argument count, arguments and NAME=VALUE pairs, separated by NUL.

    The child leads its own session, has default signals, and inherits only `others`, by the numbers that it knows. Its
    input is empty unless they have number 0.
    """
    folder, count, *words = os.pread(request, os.fstat(request).st_size, 0).split(b"\0")
    argv, pairs = words[: int(count)], words[int(count) :]
    env = dict(pair.split(b"=", 1) for pair in [*pairs, format_mark(os.getpid(), command)[:-1]])
    os.chdir(folder)
    actions = [
        *([] if 0 in others else [(os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0)]),
        (os.POSIX_SPAWN_DUP2, output, 1),
        (os.POSIX_SPAWN_DUP2, output, 2),
        *((os.POSIX_SPAWN_DUP2, ours, theirs) for theirs, ours in sorted(others.items())),
    ]
    program = argv[0] if b"/" in argv[0] else _find_program(argv[0], env.get(b"PATH", os.defpath.encode()))
    return os.posix_spawn(program, argv, env, file_actions=actions, setsid=True, setsigmask=(), setsigdef=_EVERY_SIGNAL)


def _find_program(name: bytes, path: bytes) -> bytes:
    """Search PATH for a program. Trying each folder with exec would cost half a millisecond per failure."""
    for place in (os.path.join(folder, name) for folder in path.split(b":") if folder):
        if os.access(place, os.X_OK) and os.path.isfile(place):
            return place
    raise FileNotFoundError(2, "no such command", name.decode(errors="replace"))


class _Filter(ctypes.Structure):
    """`struct sock_fprog` of linux/filter.h."""

    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def confine(words: list[str]) -> None:
    """Confine this process, and thereby all commands, as each word says. Raise OSError if that is impossible.

    link=PATH               a link to hooks/NAME over the settings file PATH of a repository
    limit=RESOURCE:VALUE    a limit of setrlimit(2), unless a lower one holds already
    filter=BASE64           a compressed program for seccomp(2), which must come last: it denies some of the other steps

    With any word, the session keyring is a new one, abstract sockets of other programs are out of reach (from Linux
    6.12 on), and commands are the first to end when the machine has no memory.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if words and sys.platform == "linux":
        if call := _KEYCTL.get(os.uname().machine):
            libc.syscall(call, _JOIN_SESSION_KEYRING, None)  # it fails where there are no keyrings
        with suppress(OSError), open("/proc/self/oom_score_adj", "wb") as score:  # it cannot be lowered
            score.write(_OOM_SCORE)
    if links := [word.removeprefix("link=") for word in words if word.startswith("link=")]:
        _mount_links(libc, links)
    if words and sys.platform == "linux":
        _forbid_abstract_sockets(libc)
    for word in words[len(links) :]:
        kind, _, value = word.partition("=")
        if kind == "limit":
            number, limit = map(int, value.split(":"))
            soft, hard = (limit if old < 0 else min(old, limit) for old in resource.getrlimit(number))  # -1: none
            resource.setrlimit(number, (soft, hard))
        elif kind == "filter":
            program = zlib.decompress(binascii.a2b_base64(value))
            libc.prctl(_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
            packed = _Filter(len(program) // 8, program)
            if libc.syscall(_SECCOMP[os.uname().machine], _SET_MODE_FILTER, _SPEC_ALLOW, ctypes.byref(packed)):
                raise OSError(ctypes.get_errno(), "the kernel rejects the filter of system calls")
        else:
            raise ValueError(f"unknown confinement: {kind}")


def _forbid_abstract_sockets(libc: ctypes.CDLL) -> None:
    """Forbid connections to abstract unix sockets of other programs, which no mount hides and a network shares."""
    attributes = (ctypes.c_uint64 * 3)(0, 0, _ABSTRACT_SOCKETS)
    if (ruleset := libc.syscall(_CREATE_RULESET, attributes, ctypes.sizeof(attributes), 0)) >= 0:  # else an old kernel
        libc.prctl(_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        if libc.syscall(_RESTRICT_SELF, ruleset, 0):
            raise OSError(ctypes.get_errno(), "the kernel rejects the Landlock rules")
        os.close(ruleset)


def _mount_links(libc: ctypes.CDLL, paths: list[str]) -> None:
    """Mount a link over each file, then give up the rights to mount. No other way of mounting follows no links."""

    def call(*words: object) -> int:
        if (result := libc.syscall(*words)) < 0:
            raise OSError(ctypes.get_errno(), "the kernel cannot mount a link")
        return int(result)

    libc.unshare(_NEW_MOUNTS)  # where bubblewrap made a second user namespace, the mounts belong to the first
    for path in paths:
        link = f"/dev/shm/{os.path.basename(path)}"
        os.symlink(f"hooks/{os.path.basename(path)}", link)
        with suppress(OSError):  # the file stays read-only
            tree = call(_OPEN_TREE, _HERE, os.fsencode(link), _CLONE | os.O_CLOEXEC | _NO_FOLLOW)
            call(_MOVE_MOUNT, tree, b"", _HERE, os.fsencode(path), _FROM_DESCRIPTOR)
            os.close(tree)
        os.unlink(link)
    for capability in (_SYS_ADMIN, _SETPCAP):
        libc.prctl(_DROP_BOUND, capability, 0, 0, 0)
    # The ambient set never holds more than the others.
    kept = _read_capabilities()["CapPrm"] & _FILE_CAPABILITIES
    libc.capset((ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0), (ctypes.c_uint32 * 6)(kept, kept, kept))
    for name, capabilities in _read_capabilities().items():
        if capabilities & ~_FILE_CAPABILITIES:
            raise OSError(1, f"capabilities are left: {name} {capabilities:x}")


def _read_capabilities() -> dict[str, int]:
    """Read the sets of capabilities of this process as bits, by their names in proc_pid_status(5)."""
    with open("/proc/self/status") as status:
        lines = [line.split() for line in status if line.startswith("Cap")]
    return {name.rstrip(":"): int(value, 16) for name, value in lines}


def count_packets_without_route(
    name_servers: str = "/etc/resolv.conf", counters: str = "/proc/self/net/snmp"
) -> int | None:
    """Count the attempts in this network namespace to reach another machine that found no route.

    Lookups of names count too. At a name server on loopback, as with systemd-resolved, nobody answers them. Return None
    if the count is unknown: a system file that cannot be understood must not make a command fail. `counters` is the
    path for IPv4; the file for IPv6 next to it is missing where the kernel has no IPv6.
    """
    wanted, counts = ["Ip:OutNoRoutes", "Ip6OutNoRoutes"], dict[str, int]()
    try:
        if all(server.startswith(("127.", "::1")) for server in _list_name_servers(name_servers)):
            wanted += ["Udp:NoPorts", "Udp6NoPorts"]
        with open(counters, errors="replace") as file:
            lines = [line.split() for line in file]  # each line of names is followed by one of numbers
        for names, numbers in zip(lines[::2], lines[1::2], strict=True):
            counts |= {names[0] + name: int(number) for name, number in zip(names[1:], numbers[1:], strict=True)}
        with suppress(FileNotFoundError), open(f"{counters}6", errors="replace") as file:
            counts |= {words[0]: int(words[1]) for words in map(str.split, file) if len(words) == 2}
    except (OSError, ValueError):
        return None
    return sum(counts.get(name, 0) for name in wanted)


def _list_name_servers(path: str) -> list[str]:
    with suppress(OSError), open(path, errors="replace") as file:
        return [words[1] for words in map(str.split, file) if words[:1] == ["nameserver"] and len(words) > 1]
    return []


def serve_requests(control: socket.socket, limit: int) -> None:
    """Answer requests and report exit codes until the socket closes. `limit` is that of processes; 0 is none."""
    running: dict[int, bytes] = {}  # pid -> number of the command, while it runs
    leaders: dict[bytes, int] = {}  # number of the command -> pid, and thereby its session
    unroutable: dict[bytes, int | None] | None = None  # number of the command -> count at its start, after `listen`
    woken, wake = os.pipe()
    os.set_blocking(woken, False)
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # `kill $PPID` in a command must not end us
        signal.signal(number, signal.SIG_IGN)
    poll = select.poll()
    poll.register(control, select.POLLIN)
    poll.register(woken, select.POLLIN)

    parent, is_counted = os.getppid(), limit > 0 and os.getuid() == 0 and os.getpid() == 1
    pause_ms = _PAUSE_MS if is_counted or sys.platform != "linux" else None
    while pause_ms is None or os.getppid() == parent:  # on macOS, a closed socket may stay silent
        ready = {descriptor for descriptor, _ in poll.poll(pause_ms)}
        if is_counted and len(os.listdir("/proc")) > limit + _OTHER_ENTRIES:
            kill_descendants()
        if woken in ready:
            os.read(woken, 4096)
            with suppress(ChildProcessError):
                while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                    if command := running.pop(ended[0], None):
                        if unroutable is not None and _has_grown(unroutable.pop(command, None)):
                            control.send(b"%s unroutable 1" % command)
                        control.send(b"%s code %d" % (command, os.waitstatus_to_exitcode(ended[1])))
        if control.fileno() in ready:
            packet, descriptors = _receive(control)
            if not packet:
                return
            command, verb, *arguments = packet.split()
            if verb == b"signal":
                leader = leaders.get(command)
                if leader and leader not in running and _is_process(leader):
                    leader = None  # the session is empty, since another process has this number now
                _signal(control, command, int(arguments[0]), leader)
                continue
            if verb == b"listen":
                unroutable = _listen(control, int(arguments[0]))
                continue
            try:
                if unroutable is not None:
                    unroutable[command] = count_packets_without_route()
                request, output, *others = descriptors
                pid = start_command(command, request, output, dict(zip(map(int, arguments), others, strict=True)))
                if limit > 0 and sys.platform == "linux":
                    resource.prlimit(pid, resource.RLIMIT_NPROC, (limit, limit))
            except (OSError, ValueError, IndexError) as error:
                control.send(b"%s error %s" % (command, _describe(error).encode(errors="replace")))
            else:
                running[pid] = command
                leaders[command] = pid
                control.send(b"%s started 1" % command)
            finally:
                for descriptor in descriptors:
                    os.close(descriptor)


def _has_grown(start: int | None) -> bool:
    """Check that more packets are without a route than at the start. An unknown count has not grown."""
    return start is not None and (count_packets_without_route() or 0) > start


def _receive(control: socket.socket) -> tuple[bytes, list[int]]:
    packet, descriptors, _, _ = socket.recv_fds(control, 4096, 4)
    for descriptor in descriptors:  # `recv_fds` does not set MSG_CMSG_CLOEXEC
        os.set_inheritable(descriptor, False)
    return packet, descriptors


def _signal(control: socket.socket, command: bytes, number: int, leader: int | None) -> None:
    if command == b"0":  # all commands
        alive = _signal_descendants(number)
    else:
        alive = signal_command(format_mark(os.getpid(), command), number, leader, family=os.getpid())
    control.send(b"%s alive %d" % (command, alive))


def _listen(control: socket.socket, port: int) -> dict[bytes, int | None]:
    with socket.create_server(("127.0.0.1", port)) as listener:
        socket.send_fds(control, [b"0 listening 1"], [listener.fileno()])
    return {}


def _describe(error: Exception) -> str:
    if isinstance(error, OSError):
        return f"{error.strerror}: {os.fsdecode(error.filename or '')}"[:1000]
    return f"{error}: "[:1000]


def kill_descendants() -> None:
    """Kill everything that was started, until only zombies are left."""
    while _signal_descendants(signal.SIGKILL):
        pass


def _signal_descendants(number: int) -> int:
    me = os.getpid()
    return signal_all(table := read_process_table(), find_descendants(table, {me}) - {me}, number)


def main() -> None:
    """Serve requests on the socket, and finally kill everything that was started."""
    confine(sys.argv[2:])
    limit = resource.getrlimit(resource.RLIMIT_NPROC)[0] - SPARE_PROCESSES if sys.argv[2:] else 0
    if sys.platform == "linux":
        prctl = ctypes.CDLL(None).prctl
        prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # orphans become our children, so none escapes
        prctl(_SET_DUMPABLE, 0, 0, 0, 0)  # commands must not read our memory or descriptors: we hold the socket
    control = socket.socket(fileno=int(sys.argv[1]))
    control.set_inheritable(False)
    try:
        with suppress(ConnectionError):
            serve_requests(control, limit)
    finally:
        kill_descendants()


if __name__ == "__main__":
    main()
