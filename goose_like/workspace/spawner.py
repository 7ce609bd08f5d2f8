"""The spawner: a helper process that starts commands, so that a sandbox is entered only once per session.

It runs as `python -I -S spawner.py FD`, with or without bubblewrap around it, and imports only cheap parts of the
standard library. FD is a unix socket of packets. A packet is a line of words that starts with the command's number N:

    -> N spawn          with descriptors: the request (see `start_command`), the output pipe, and an optional input
    -> N signal S       signal every process of the command; S = 0 only counts them
    <- N pid P          the command runs
    <- N error TEXT     the command cannot be started
    <- N code C         the command ended, with -S after a death by signal S
    <- N alive COUNT    the reply to `signal`: the number of processes that were alive

A request travels as a memfd, because an environment may be larger than a packet. When the socket closes, everything
that was started is killed.

The processes of a command are found by session, by descent, and by a variable that each of them inherits. Therefore a
daemon that left the session and lost its parents ends with its command. A daemon that erased its variables as well ends
when the socket closes.
"""

import ctypes
import os
import select
import signal
import socket
import sys
from contextlib import suppress

_MARK = b"GOOSE_LIKE_COMMAND"
_SET_DUMPABLE, _SET_CHILD_SUBREAPER = 4, 36  # prctl(2)
_EVERY_SIGNAL = [number for number in signal.valid_signals() if number not in (signal.SIGKILL, signal.SIGSTOP)]

Table = dict[int, tuple[int, int, int, bool]]
"""Process id -> parent, process group, session, and whether the process is alive (not a zombie)."""


def read_process_table() -> Table:
    """Read all processes from /proc."""
    table: Table = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
            stat = file.read()
            # The command's name is in brackets and may contain blanks and brackets: proc_pid_stat(5).
            state, parent, group, session = stat[stat.rindex(b")") + 2 :].split(None, 4)[:4]
            table[int(name)] = int(parent), int(group), int(session), state != b"Z"
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


def signal_command(spawner: int, command: bytes, leader: int | None, number: int, family: int | None = None) -> int:
    """Signal all processes of a command. With `family`, signal only descendants of that process.

    The search uses the session and not the process group, because a shell gives each job its own group.
    """
    table = read_process_table()
    candidates = set(table) if family is None else find_descendants(table, {family}) - {family}
    mark = _format_mark(spawner, command)
    members = {pid for pid in candidates if table[pid][2] == leader or mark in _read_environment(pid)}
    return signal_all(table, find_descendants(table, members), number)


def _format_mark(spawner: int, command: bytes) -> bytes:
    return b"%s=%d.%s\0" % (_MARK, spawner, command)


def _read_environment(pid: int) -> bytes:
    with suppress(OSError), open(f"/proc/{pid}/environ", "rb") as file:
        return file.read()
    return b""


def start_command(command: bytes, request: int, output: int, stdin: int | None = None) -> int:
    """Start a command. The request holds folder, argument count, arguments and NAME=VALUE pairs, separated by NUL.

    The child leads its own session, has default signals, and inherits no other descriptors.
    """
    folder, count, *words = os.pread(request, os.fstat(request).st_size, 0).split(b"\0")
    argv, pairs = words[: int(count)], words[int(count) :]
    env = dict(pair.split(b"=", 1) for pair in [*pairs, _format_mark(os.getpid(), command)[:-1]])
    os.chdir(folder)
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0) if stdin is None else (os.POSIX_SPAWN_DUP2, stdin, 0),
        (os.POSIX_SPAWN_DUP2, output, 1),
        (os.POSIX_SPAWN_DUP2, output, 2),
    ]
    program = argv[0] if b"/" in argv[0] else _find_program(argv[0], env.get(b"PATH", os.defpath.encode()))
    return os.posix_spawn(program, argv, env, file_actions=actions, setsid=True, setsigmask=(), setsigdef=_EVERY_SIGNAL)


def _find_program(name: bytes, path: bytes) -> bytes:
    """Search PATH for a program. Trying each folder with exec would cost half a millisecond per failure."""
    for place in (os.path.join(folder, name) for folder in path.split(b":") if folder):
        if os.access(place, os.X_OK) and os.path.isfile(place):
            return place
    raise FileNotFoundError(2, "no such command", name.decode(errors="replace"))


def _has_members(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # a group started by sudo
        return True
    return True


def serve_requests(control: socket.socket) -> None:
    """Answer requests and report exit codes until the socket closes."""
    running: dict[int, bytes] = {}  # pid -> number of the command, while it runs
    leaders: dict[bytes, int] = {}  # number of the command -> pid, while it or its background processes run
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

    while True:
        ready = {descriptor for descriptor, _ in poll.poll()}
        if woken in ready:
            os.read(woken, 4096)
            with suppress(ChildProcessError):
                while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                    if command := running.pop(ended[0], None):
                        control.send(b"%s code %d" % (command, os.waitstatus_to_exitcode(ended[1])))
            leaders = {name: pid for name, pid in leaders.items() if pid in running or _has_members(pid)}
        if control.fileno() in ready:
            packet, descriptors, _, _ = socket.recv_fds(control, 4096, 3)
            for descriptor in descriptors:  # `recv_fds` does not set MSG_CMSG_CLOEXEC
                os.set_inheritable(descriptor, False)
            if not packet:
                return
            command, verb, *arguments = packet.split()
            if verb == b"signal":
                me = os.getpid()
                alive = signal_command(me, command, leaders.get(command), int(arguments[0]), family=me)
                control.send(b"%s alive %d" % (command, alive))
                continue
            try:
                pid = start_command(command, *descriptors)
            except (OSError, ValueError, IndexError) as error:
                why = error.strerror if isinstance(error, OSError) else error
                where = os.fsdecode(error.filename or "") if isinstance(error, OSError) else ""
                control.send(b"%s error %s" % (command, f"{why}: {where}"[:1000].encode(errors="replace")))
            else:
                running[pid] = command
                leaders[command] = pid
                control.send(b"%s pid %d" % (command, pid))
            finally:
                for descriptor in descriptors:
                    os.close(descriptor)


def main() -> None:
    """Serve requests on the socket, and finally kill everything that was started."""
    prctl = ctypes.CDLL(None).prctl
    prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # orphans become our children, so none escapes
    prctl(_SET_DUMPABLE, 0, 0, 0, 0)  # commands must not read our memory or descriptors: we hold the socket
    control = socket.socket(fileno=int(sys.argv[1]))
    control.set_inheritable(False)
    try:
        with suppress(ConnectionError):
            serve_requests(control)
    finally:
        me = os.getpid()
        while signal_all(table := read_process_table(), find_descendants(table, {me}) - {me}, signal.SIGKILL):
            with suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass


if __name__ == "__main__":
    main()
