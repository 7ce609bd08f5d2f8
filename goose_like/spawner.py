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
"""

import ctypes
import os
import select
import signal
import socket
import sys
from contextlib import suppress

_SET_DUMPABLE, _SET_CHILD_SUBREAPER = 4, 36  # prctl(2)
_EVERY_SIGNAL = [number for number in signal.valid_signals() if number not in (signal.SIGKILL, signal.SIGSTOP)]

Table = dict[int, tuple[int, int, bool]]


def processes() -> Table:
    """Every process by its id: its parent, its session, and whether it still lives (is no zombie)."""
    table: Table = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
            stat = file.read()
            # The command's name stands in brackets and may itself hold blanks and brackets: proc_pid_stat(5).
            state, parent, _, session = stat[stat.rindex(b")") + 2 :].split(None, 4)[:4]
            table[int(name)] = int(parent), int(session), state != b"Z"
    return table


def descendants(table: Table, found: set[int]) -> set[int]:
    """Those processes and everything that descends from them."""
    found, fresh = set(found), found
    while fresh:
        fresh = {pid for pid, (parent, _, _) in table.items() if parent in found} - found
        found |= fresh
    return found


def signal_all(table: Table, pids: set[int], number: int) -> int:
    """Sends a signal to each; gives how many of them lived before it came."""
    for pid in pids if number else ():
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)
    return sum(table[pid][2] for pid in pids)


def signal_session(leader: int, number: int, ancestor: int | None = None) -> int:
    """Signals a session and whatever descends from it; with `ancestor` only what is of its family.

    By session and not by process group, because a shell gives each of its jobs a group of its own.
    """
    table = processes()
    members = {pid for pid, (_, session, _) in table.items() if session == leader}
    if ancestor is not None:
        members &= descendants(table, {ancestor})
    return signal_all(table, descendants(table, members), number)


def start(request: int, output: int, stdin: int | None = None) -> int:
    """Starts what the request says: folder, number of arguments, arguments, NAME=VALUE..., with NUL between them.

    The child leads a session of its own, has default signals, and inherits no descriptor but these.
    """
    folder, count, *words = os.pread(request, os.fstat(request).st_size, 0).split(b"\0")
    argv, pairs = words[: int(count)], words[int(count) :]
    env = dict(pair.split(b"=", 1) for pair in pairs)
    os.chdir(folder)
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0) if stdin is None else (os.POSIX_SPAWN_DUP2, stdin, 0),
        (os.POSIX_SPAWN_DUP2, output, 1),
        (os.POSIX_SPAWN_DUP2, output, 2),
    ]
    path = env.get(b"PATH", os.defpath.encode())
    folders = [b""] if b"/" in argv[0] else [part for part in path.split(b":") if part]
    problem: OSError = FileNotFoundError(2, "no such command", argv[0].decode(errors="replace"))
    for place in folders:
        try:
            return os.posix_spawn(
                os.path.join(place, argv[0]),
                argv,
                env,
                file_actions=actions,
                setsid=True,
                setsigmask=(),
                setsigdef=_EVERY_SIGNAL,
            )
        except (FileNotFoundError, NotADirectoryError):
            continue
        except PermissionError as error:
            problem = error
    raise problem


def serve(control: socket.socket) -> None:
    """Answers requests and tells of ends, until the other side is gone."""
    numbers: dict[int, bytes] = {}  # pid -> the command's number, while it runs
    leaders: dict[bytes, int] = {}  # the command's number -> pid
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
        if control.fileno() in ready:
            packet, descriptors, _, _ = socket.recv_fds(control, 4096, 3)
            for descriptor in descriptors:  # `recv_fds` passes no MSG_CMSG_CLOEXEC on
                os.set_inheritable(descriptor, False)
            if not packet:
                return
            number_, verb, *arguments = packet.split()
            if verb == b"signal":
                leader = leaders.get(number_)
                alive = signal_session(leader, int(arguments[0]), os.getpid()) if leader else 0
                control.send(b"%s alive %d" % (number_, alive))
                continue
            try:
                pid = start(*descriptors)
            except OSError as error:
                text = f"{error.strerror}: {os.fsdecode(error.filename or '')}"
                control.send(b"%s error %s" % (number_, text[:1000].encode(errors="replace")))
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
