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

# prctl(2)
_SET_DUMPABLE = 4
_DROP_BOUND = 24
_SET_CHILD_SUBREAPER = 36
_SET_NO_NEW_PRIVS = 38

# keyctl(2), and its number as a system call by machine
_KEYCTL = {"x86_64": 250, "aarch64": 219}
_JOIN_SESSION_KEYRING = 1

# seccomp(2); older kernels slow filtered programs down without the last flag
_SECCOMP = {"x86_64": 317, "aarch64": 277}
_SET_MODE_FILTER = 1
_SPEC_ALLOW = 4

# landlock(7); system calls have these numbers on every machine
_CREATE_RULESET = 444
_RESTRICT_SELF = 446
_ABSTRACT_SOCKETS = 1

# open_tree(2), move_mount(2) and unshare(2), with AT_FDCWD and their flags
_OPEN_TREE = 428
_MOVE_MOUNT = 429
_HERE = -100
_CLONE = 1
_NO_FOLLOW = 0x100
_FROM_DESCRIPTOR = 4
_NEW_MOUNTS = 0x20000

# capabilities(7), capset(2)
_SETPCAP = 8
_SYS_ADMIN = 21
_CAPABILITY_VERSION = 0x20080522
_FILE_CAPABILITIES = 0b1011  # the bits of those in `file_owners.CAPABILITIES`, which commands of root may have

_PAUSE_MS = 100  # the kernel does not limit the processes of root, so the spawner counts them
SPARE_PROCESSES = 16  # the spawner may have more than its commands, so that a new command can end old ones
_OTHER_ENTRIES = 100  # names in /proc that are no processes, at most
_OOM_SCORE = b"500"  # when the machine runs out of memory, commands end first
_EVERY_SIGNAL = [number for number in signal.valid_signals() if number not in (signal.SIGKILL, signal.SIGSTOP)]

# proc_info.h of macOS: status, parent and process group of `struct proc_bsdinfo`
_BSD_INFO = struct.Struct("=4xI8xI80xI32x")
_PIDTBSDINFO = 3
_BSD_ZOMBIE = 5
_MAX_PROCESSES = 100_000


class ProcessEntry:
    """A process in the table of the system. It is not alive if it is a zombie."""

    __slots__ = ("group", "is_alive", "parent", "session")

    def __init__(self, parent: int, group: int, session: int, *, is_alive: bool) -> None:
        self.parent = parent
        self.group = group
        self.session = session
        self.is_alive = is_alive


Table = dict[int, ProcessEntry]
"""The processes by their id."""


def read_process_table() -> Table:
    """Read all processes from /proc."""
    if sys.platform != "linux":
        return _read_bsd_table()
    table: Table = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
            stat = file.read()
            # The command's name is in brackets and may contain blanks and brackets: proc_pid_stat(5).
            start = stat.rindex(b")") + 2
            state, parent, group, session = stat[start:].split(None, 4)[:4]
            is_alive = state != b"Z"
            table[int(name)] = ProcessEntry(int(parent), int(group), int(session), is_alive=is_alive)
    return table


def _is_process(pid: int) -> bool:
    try:
        return os.getsid(pid) >= 0
    except OSError:
        return False


def _read_bsd_table() -> Table:
    """Read all processes that this process may see from libproc of macOS. Untested there."""
    libc = ctypes.CDLL(None)
    pids = (ctypes.c_int * _MAX_PROCESSES)()
    info = ctypes.create_string_buffer(_BSD_INFO.size)
    count = libc.proc_listallpids(pids, ctypes.sizeof(pids))
    table: Table = {}
    for pid in pids[: max(0, count)]:
        with suppress(OSError):
            size = libc.proc_pidinfo(pid, _PIDTBSDINFO, ctypes.c_uint64(0), info, _BSD_INFO.size)
            if size == _BSD_INFO.size:
                status, parent, group = _BSD_INFO.unpack(info.raw)
                table[pid] = ProcessEntry(parent, group, os.getsid(pid), is_alive=status != _BSD_ZOMBIE)
    return table


def find_descendants(table: Table, found: set[int]) -> set[int]:
    """Find the given processes and all their descendants."""
    family = set(found)
    fresh = found
    while fresh:
        children = {pid for pid, entry in table.items() if entry.parent in family}
        fresh = children - family
        family |= fresh
    return family


def signal_all(table: Table, pids: set[int], number: int) -> int:
    """Send a signal to the process groups, and return how many of the processes were alive before.

    Signals go to whole groups: one by one, a process that forks fast enough would escape.
    """
    entries = [table[pid] for pid in pids]
    if number:
        for group in {entry.group for entry in entries}:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(group, number)
    return sum(entry.is_alive for entry in entries)


def signal_command(mark: bytes, number: int, leader: int | None = None, family: int | None = None) -> int:
    """Signal all processes that carry the mark of a command. With `family`, only descendants of that process.

    `leader` adds its session, and not its process group, because a shell gives each job its own group.
    """
    table = read_process_table()
    candidates = set(table)
    if family is not None:
        candidates = find_descendants(table, {family}) - {family}
    members = set()
    for pid in candidates:
        if table[pid].session == leader or mark in _read_environment(pid):
            members.add(pid)
    return signal_all(table, find_descendants(table, members), number)


def format_mark(spawner: int, command: bytes = b"") -> bytes:
    """Format the variable that all processes of a command inherit. Without a command, the start that all share."""
    if command:
        command += b"\0"
    return b"%s=%d.%s" % (_MARK, spawner, command)


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
    argv = words[: int(count)]
    pairs = words[int(count) :]
    pairs.append(format_mark(os.getpid(), command)[:-1])
    env = dict(pair.split(b"=", 1) for pair in pairs)
    os.chdir(folder)
    actions: list[tuple[object, ...]] = []
    if 0 not in others:
        actions.append((os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0))
    actions.append((os.POSIX_SPAWN_DUP2, output, 1))
    actions.append((os.POSIX_SPAWN_DUP2, output, 2))
    for theirs, ours in sorted(others.items()):
        actions.append((os.POSIX_SPAWN_DUP2, ours, theirs))
    program = argv[0]
    if b"/" not in program:
        program = _find_program(program, env.get(b"PATH", os.defpath.encode()))
    return os.posix_spawn(program, argv, env, file_actions=actions, setsid=True, setsigmask=(), setsigdef=_EVERY_SIGNAL)


def _find_program(name: bytes, path: bytes) -> bytes:
    """Search PATH for a program. Trying each folder with exec would cost half a millisecond per failure."""
    for folder in path.split(b":"):
        place = os.path.join(folder, name)
        if folder and os.access(place, os.X_OK) and os.path.isfile(place):
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
    links = [word.removeprefix("link=") for word in words if word.startswith("link=")]
    if words and sys.platform == "linux":
        call = _KEYCTL.get(os.uname().machine)
        if call is not None:
            libc.syscall(call, _JOIN_SESSION_KEYRING, None)  # it fails where there are no keyrings
        with suppress(OSError), open("/proc/self/oom_score_adj", "wb") as score:  # it cannot be lowered
            score.write(_OOM_SCORE)
    if links:
        _mount_links(libc, links)
    if words and sys.platform == "linux":
        _forbid_abstract_sockets(libc)
    for word in words[len(links) :]:
        kind, _, value = word.partition("=")
        if kind == "limit":
            number, limit = map(int, value.split(":"))
            _lower_limit(number, limit)
        elif kind == "filter":
            _install_filter(libc, zlib.decompress(binascii.a2b_base64(value)))
        else:
            raise ValueError(f"unknown confinement: {kind}")


def _lower_limit(number: int, limit: int) -> None:
    soft, hard = resource.getrlimit(number)
    if soft < 0 or soft > limit:  # -1: none
        soft = limit
    if hard < 0 or hard > limit:
        hard = limit
    resource.setrlimit(number, (soft, hard))


def _install_filter(libc: ctypes.CDLL, program: bytes) -> None:
    libc.prctl(_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    call = _SECCOMP[os.uname().machine]
    packed = _Filter(len(program) // 8, program)
    if libc.syscall(call, _SET_MODE_FILTER, _SPEC_ALLOW, ctypes.byref(packed)):
        raise OSError(ctypes.get_errno(), "the kernel rejects the filter of system calls")


def _forbid_abstract_sockets(libc: ctypes.CDLL) -> None:
    """Forbid connections to abstract unix sockets of other programs, which no mount hides and a network shares."""
    attributes = (ctypes.c_uint64 * 3)(0, 0, _ABSTRACT_SOCKETS)
    ruleset = libc.syscall(_CREATE_RULESET, attributes, ctypes.sizeof(attributes), 0)
    if ruleset < 0:  # an old kernel
        return
    libc.prctl(_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if libc.syscall(_RESTRICT_SELF, ruleset, 0):
        raise OSError(ctypes.get_errno(), "the kernel rejects the Landlock rules")
    os.close(ruleset)


def _mount_links(libc: ctypes.CDLL, paths: list[str]) -> None:
    """Mount a link over each file, then give up the rights to mount. No other way of mounting follows no links."""

    def call(*words: object) -> int:
        result = libc.syscall(*words)
        if result < 0:
            raise OSError(ctypes.get_errno(), "the kernel cannot mount a link")
        return int(result)

    libc.unshare(_NEW_MOUNTS)  # where bubblewrap made a second user namespace, the mounts belong to the first
    for path in paths:
        name = os.path.basename(path)
        link = f"/dev/shm/{name}"
        os.symlink(f"hooks/{name}", link)
        with suppress(OSError):  # the file stays read-only
            tree = call(_OPEN_TREE, _HERE, os.fsencode(link), _CLONE | os.O_CLOEXEC | _NO_FOLLOW)
            call(_MOVE_MOUNT, tree, b"", _HERE, os.fsencode(path), _FROM_DESCRIPTOR)
            os.close(tree)
        os.unlink(link)
    for capability in (_SYS_ADMIN, _SETPCAP):
        libc.prctl(_DROP_BOUND, capability, 0, 0, 0)
    # The ambient set never holds more than the others.
    kept = _read_capabilities()["CapPrm"] & _FILE_CAPABILITIES
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    sets = (ctypes.c_uint32 * 6)(kept, kept, kept)
    libc.capset(header, sets)
    for name, capabilities in _read_capabilities().items():
        if capabilities & ~_FILE_CAPABILITIES:
            raise OSError(1, f"capabilities are left: {name} {capabilities:x}")


def _read_capabilities() -> dict[str, int]:
    """Read the sets of capabilities of this process as bits, by their names in proc_pid_status(5)."""
    sets = {}
    with open("/proc/self/status") as status:
        for line in status:
            if line.startswith("Cap"):
                name, value = line.split()
                sets[name.rstrip(":")] = int(value, 16)
    return sets


def count_packets_without_route(
    name_servers: str = "/etc/resolv.conf", counters: str = "/proc/self/net/snmp"
) -> int | None:
    """Count the attempts in this network namespace to reach another machine that found no route.

    Lookups of names count too. At a name server on loopback, as with systemd-resolved, nobody answers them. Return None
    if the count is unknown: a system file that cannot be understood must not make a command fail. `counters` is the
    path for IPv4; the file for IPv6 next to it is missing where the kernel has no IPv6.
    """
    wanted = ["Ip:OutNoRoutes", "Ip6OutNoRoutes"]
    try:
        if all(server.startswith(("127.", "::1")) for server in _list_name_servers(name_servers)):
            wanted += ["Udp:NoPorts", "Udp6NoPorts"]
        counts = _read_counters(counters)
        with suppress(FileNotFoundError):
            counts |= _read_ip6_counters(f"{counters}6")
    except (OSError, ValueError):
        return None
    return sum(counts.get(name, 0) for name in wanted)


def _list_name_servers(path: str) -> list[str]:
    servers = []
    with suppress(OSError), open(path, errors="replace") as file:
        for line in file:
            words = line.split()
            if words[:1] == ["nameserver"] and len(words) > 1:
                servers.append(words[1])
    return servers


def _read_counters(path: str) -> dict[str, int]:
    """Read counters such as `Ip:OutNoRoutes`. Each line of names is followed by one of numbers."""
    with open(path, errors="replace") as file:
        lines = [line.split() for line in file]
    counts = {}
    for names, numbers in zip(lines[::2], lines[1::2], strict=True):
        for name, number in zip(names[1:], numbers[1:], strict=True):
            counts[names[0] + name] = int(number)
    return counts


def _read_ip6_counters(path: str) -> dict[str, int]:
    """Read counters such as `Ip6OutNoRoutes`, one on each line."""
    counts = {}
    with open(path, errors="replace") as file:
        for line in file:
            words = line.split()
            if len(words) == 2:
                counts[words[0]] = int(words[1])
    return counts


class _Server:
    """Starts commands and reports how they end, for the process at the other end of a socket.

    `limit` is that of processes; 0 is none.
    """

    def __init__(self, control: socket.socket, limit: int) -> None:
        self._control = control
        self._limit = limit
        self._running: dict[int, bytes] = {}  # pid -> number of the command, while it runs
        self._leaders: dict[bytes, int] = {}  # number of the command -> pid, and thereby its session
        self._uncounted: set[int] = set()  # the sessions of commands that do not count
        self._is_listening = False
        self._unroutable: dict[bytes, int | None] = {}  # number of the command -> count at its start, after `listen`

    def serve(self) -> None:
        """Answer requests and report exit codes until the socket closes."""
        woken = _open_child_signals()
        poll = select.poll()
        poll.register(self._control, select.POLLIN)
        poll.register(woken, select.POLLIN)
        parent = os.getppid()
        is_counted = self._limit > 0 and os.getuid() == 0 and os.getpid() == 1
        pause_ms = _PAUSE_MS if is_counted or sys.platform != "linux" else None
        while pause_ms is None or os.getppid() == parent:  # on macOS, a closed socket may stay silent
            ready = {descriptor for descriptor, _ in poll.poll(pause_ms)}
            if is_counted and len(os.listdir("/proc")) > self._limit + _OTHER_ENTRIES:
                kill_descendants()
            if woken in ready:
                os.read(woken, 4096)
                self._report_ends()
            if self._control.fileno() in ready:
                packet, descriptors = _receive(self._control)
                if not packet:
                    return
                self._answer(packet, descriptors)

    def _report_ends(self) -> None:
        """Report the commands that ended. Orphans of commands end here too."""
        with suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if not pid:
                    return
                self._uncounted.discard(pid)
                command = self._running.pop(pid, None)
                if command is None:
                    continue
                if self._had_no_route(command):
                    self._control.send(b"%s unroutable 1" % command)
                self._control.send(b"%s code %d" % (command, os.waitstatus_to_exitcode(status)))

    def _had_no_route(self, command: bytes) -> bool:
        """Check that more packets are without a route than at the start. An unknown count has not grown."""
        start = self._unroutable.pop(command, None)
        if start is None:
            return False
        count = count_packets_without_route() or 0
        return count > start

    def _answer(self, packet: bytes, descriptors: list[int]) -> None:
        command, verb, *arguments = packet.split()
        if verb == b"signal":
            self._signal(command, int(arguments[0]))
        elif verb == b"listen":
            self._listen(int(arguments[0]))
        else:
            self._start(command, arguments, descriptors, is_counted=verb == b"spawn")

    def _signal(self, command: bytes, number: int) -> None:
        if command == b"0":  # all commands
            alive = _signal_descendants(number, self._uncounted)
        else:
            leader = self._leaders.get(command)
            if leader and leader not in self._running and _is_process(leader):
                leader = None  # the session is empty, since another process has this number now
            me = os.getpid()
            alive = signal_command(format_mark(me, command), number, leader, family=me)
        self._control.send(b"%s alive %d" % (command, alive))

    def _listen(self, port: int) -> None:
        with socket.create_server(("127.0.0.1", port)) as listener:
            socket.send_fds(self._control, [b"0 listening 1"], [listener.fileno()])
        self._is_listening = True

    def _start(self, command: bytes, arguments: list[bytes], descriptors: list[int], *, is_counted: bool) -> None:
        try:
            if self._is_listening:
                self._unroutable[command] = count_packets_without_route()
            request, output, *others = descriptors
            numbers = map(int, arguments)
            pid = start_command(command, request, output, dict(zip(numbers, others, strict=True)))
            if self._limit > 0 and sys.platform == "linux":
                resource.prlimit(pid, resource.RLIMIT_NPROC, (self._limit, self._limit))
        except (OSError, ValueError, IndexError) as error:
            reason = _describe(error).encode(errors="replace")
            self._control.send(b"%s error %s" % (command, reason))
        else:
            self._running[pid] = command
            self._leaders[command] = pid
            if not is_counted:
                self._uncounted.add(pid)
            self._control.send(b"%s started 1" % command)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)


def _open_child_signals() -> int:
    """Return a pipe that becomes readable when a child ends. Other signals do not end this process from now on."""
    woken, wake = os.pipe()
    os.set_blocking(woken, False)
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # `kill $PPID` in a command must not end us
        signal.signal(number, signal.SIG_IGN)
    return woken


def _receive(control: socket.socket) -> tuple[bytes, list[int]]:
    packet, descriptors, _, _ = socket.recv_fds(control, 4096, 4)
    for descriptor in descriptors:  # `recv_fds` does not set MSG_CMSG_CLOEXEC
        os.set_inheritable(descriptor, False)
    return packet, descriptors


def _describe(error: Exception) -> str:
    if isinstance(error, OSError):
        return f"{error.strerror}: {os.fsdecode(error.filename or '')}"[:1000]
    return f"{error}: "[:1000]


def kill_descendants() -> None:
    """Kill everything that was started, until only zombies are left."""
    while _signal_descendants(signal.SIGKILL):
        pass


def _signal_descendants(number: int, but_sessions: set[int] | frozenset[int] = frozenset()) -> int:
    me = os.getpid()
    table = read_process_table()
    descendants = find_descendants(table, {me}) - {me}
    chosen = {pid for pid in descendants if table[pid].session not in but_sessions}
    return signal_all(table, chosen, number)


def main() -> None:
    """Serve requests on the socket, and finally kill everything that was started."""
    confinement = sys.argv[2:]
    confine(confinement)
    limit = 0
    if confinement:
        soft, _ = resource.getrlimit(resource.RLIMIT_NPROC)
        limit = soft - SPARE_PROCESSES
    if sys.platform == "linux":
        prctl = ctypes.CDLL(None).prctl
        prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # orphans become our children, so none escapes
        prctl(_SET_DUMPABLE, 0, 0, 0, 0)  # commands must not read our memory or descriptors: we hold the socket
    control = socket.socket(fileno=int(sys.argv[1]))
    control.set_inheritable(False)
    try:
        with suppress(ConnectionError):
            _Server(control, limit).serve()
    finally:
        kill_descendants()


if __name__ == "__main__":
    main()
