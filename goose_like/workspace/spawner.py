"""The process that starts commands: it lives as long as the session, so that a sandbox is entered only once.

Run as `python -I -S spawner.py FD`, inside bubblewrap or without it; imports only cheap parts of the standard
library. FD is a unix socket of packets, each a line of words that begins with the command's number N:

    -> N spawn          beside it, as descriptors: the request (see `start`), the output's pipe and perhaps an input
    -> N signal S       to every process of the command; S = 0 only counts them
    <- N pid P          it runs, or: N error TEXT
    <- N code C         it ended, with -S for a death by signal S
    <- N alive COUNT    the answer to `signal`: how many processes the command still had

A request travels as a memfd, because an environment may be larger than a packet. When the socket closes, nobody
is left who could want anything: whatever was started is killed, however far it went to hide.

A command's processes are known by its session, by descent, and by a variable that each of them inherits. So a daemon
that left the session and lost its parents is stopped with its command; one that erased its variables as well lives on
until the socket closes.
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


def processes() -> Table:
    """Every process by its id: its parent, its group, its session, and whether it still lives (is no zombie)."""
    table: Table = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
            stat = file.read()
            # The command's name stands in brackets and may itself hold blanks and brackets: proc_pid_stat(5).
            state, parent, group, session = stat[stat.rindex(b")") + 2 :].split(None, 4)[:4]
            table[int(name)] = int(parent), int(group), int(session), state != b"Z"
    return table


def descendants(table: Table, found: set[int]) -> set[int]:
    """Those processes and everything that descends from them."""
    found, fresh = set(found), found
    while fresh:
        fresh = {pid for pid, (parent, *_) in table.items() if parent in found} - found
        found |= fresh
    return found


def signal_all(table: Table, pids: set[int], number: int) -> int:
    """Sends a signal to each; gives how many of them lived before it came.

    To their groups, all at once: one by one, who forks fast enough would never be met.
    """
    for group in {table[pid][1] for pid in pids} if number else ():
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, number)
    return sum(table[pid][3] for pid in pids)


def signal_command(spawner: int, command: bytes, leader: int | None, number: int, family: int | None = None) -> int:
    """Signals all of a command's processes; with `family` only those that descend from that process.

    By session and not by process group, because a shell gives each of its jobs a group of its own.
    """
    table = processes()
    near = set(table) if family is None else descendants(table, {family}) - {family}
    mark = _mark(spawner, command)
    members = {pid for pid in near if table[pid][2] == leader or mark in _variables(pid)}
    return signal_all(table, descendants(table, members), number)


def _mark(spawner: int, command: bytes) -> bytes:
    return b"%s=%d.%s\0" % (_MARK, spawner, command)


def _variables(pid: int) -> bytes:
    with suppress(OSError), open(f"/proc/{pid}/environ", "rb") as file:
        return file.read()
    return b""


def start(command: bytes, request: int, output: int, stdin: int | None = None) -> int:
    """Starts what the request says: folder, number of arguments, arguments, NAME=VALUE..., with NUL between them.

    The child leads a session of its own, has default signals, and inherits no descriptor but these.
    """
    folder, count, *words = os.pread(request, os.fstat(request).st_size, 0).split(b"\0")
    argv, pairs = words[: int(count)], words[int(count) :]
    env = dict(pair.split(b"=", 1) for pair in [*pairs, _mark(os.getpid(), command)[:-1]])
    os.chdir(folder)
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0) if stdin is None else (os.POSIX_SPAWN_DUP2, stdin, 0),
        (os.POSIX_SPAWN_DUP2, output, 1),
        (os.POSIX_SPAWN_DUP2, output, 2),
    ]
    program = argv[0] if b"/" in argv[0] else _found(argv[0], env.get(b"PATH", os.defpath.encode()))
    return os.posix_spawn(program, argv, env, file_actions=actions, setsid=True, setsigmask=(), setsigdef=_EVERY_SIGNAL)


def _found(name: bytes, path: bytes) -> bytes:
    """Where the program lies: by a look, since each exec that fails costs half a millisecond."""
    for place in (os.path.join(folder, name) for folder in path.split(b":") if folder):
        if os.access(place, os.X_OK) and os.path.isfile(place):
            return place
    raise FileNotFoundError(2, "no such command", name.decode(errors="replace"))


def _has_members(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # sudo's
        return True
    return True


def serve(control: socket.socket) -> None:
    """Answers requests and tells of ends, until the other side is gone."""
    numbers: dict[int, bytes] = {}  # pid -> the command's number, while it runs
    leaders: dict[bytes, int] = {}  # the command's number -> pid, while it or something in the background runs
    woken, wake = os.pipe()
    os.set_blocking(woken, False)
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # a command that signals its parent means itself
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
                    if number_ := numbers.pop(ended[0], None):
                        control.send(b"%s code %d" % (number_, os.waitstatus_to_exitcode(ended[1])))
            leaders = {name: pid for name, pid in leaders.items() if pid in numbers or _has_members(pid)}
        if control.fileno() in ready:
            packet, descriptors, _, _ = socket.recv_fds(control, 4096, 3)
            for descriptor in descriptors:  # `recv_fds` passes no MSG_CMSG_CLOEXEC on
                os.set_inheritable(descriptor, False)
            if not packet:
                return
            number_, verb, *arguments = packet.split()
            if verb == b"signal":
                me = os.getpid()
                alive = signal_command(me, number_, leaders.get(number_), int(arguments[0]), family=me)
                control.send(b"%s alive %d" % (number_, alive))
                continue
            try:
                pid = start(number_, *descriptors)
            except (OSError, ValueError, IndexError) as error:
                why = error.strerror if isinstance(error, OSError) else error
                where = os.fsdecode(error.filename or "") if isinstance(error, OSError) else ""
                control.send(b"%s error %s" % (number_, f"{why}: {where}"[:1000].encode(errors="replace")))
            else:
                numbers[pid] = number_
                leaders[number_] = pid
                control.send(b"%s pid %d" % (number_, pid))
            finally:
                for descriptor in descriptors:
                    os.close(descriptor)


def main() -> None:
    prctl = ctypes.CDLL(None).prctl
    prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # orphans come back to us, so that none is out of reach
    prctl(_SET_DUMPABLE, 0, 0, 0, 0)  # no command may look into us: we hold the socket
    control = socket.socket(fileno=int(sys.argv[1]))
    control.set_inheritable(False)
    try:
        with suppress(ConnectionError):
            serve(control)
    finally:
        me = os.getpid()
        while signal_all(table := processes(), descendants(table, {me}) - {me}, signal.SIGKILL):
            with suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass


if __name__ == "__main__":
    main()
