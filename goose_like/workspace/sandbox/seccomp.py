"""The filter of system calls: a seccomp program that denies commands what namespaces leave open.

It denies the kernel keyring, io_uring, tracing of other processes, new namespaces and mounts, programs that run as
their owner (setuid), and all sockets but unix, IP and the kernel's routing table. Debuggers need tracing, so they need
mode `full`. See seccomp(2), linux/filter.h.
"""

import os
import struct
import sys
from collections.abc import Iterable
from errno import EAFNOSUPPORT, ENOSYS, EPERM

_X86_64 = {
    "ioctl": 16, "socket": 41, "socketpair": 53, "clone": 56, "ptrace": 101, "pivot_root": 155,
    "syslog": 103, "mount": 165, "umount2": 166, "add_key": 248, "request_key": 249, "keyctl": 250,
    "unshare": 272, "perf_event_open": 298, "setns": 308, "process_vm_readv": 310,
    "process_vm_writev": 311, "kcmp": 312, "bpf": 321, "userfaultfd": 323,
}  # fmt: skip
_AARCH64 = {
    "ioctl": 29, "socket": 198, "socketpair": 199, "clone": 220, "ptrace": 117, "pivot_root": 41,
    "syslog": 116, "mount": 40, "umount2": 39, "add_key": 217, "request_key": 218, "keyctl": 219,
    "unshare": 97, "perf_event_open": 241, "setns": 268, "process_vm_readv": 270,
    "process_vm_writev": 271, "kcmp": 272, "bpf": 280, "userfaultfd": 282,
}  # fmt: skip
_EVERYWHERE = {
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428, "move_mount": 429,
    "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "clone3": 435, "pidfd_getfd": 438,
    "mount_setattr": 442, "open_tree_attr": 467,
}  # fmt: skip
_MACHINES = {"x86_64": (0xC000003E, _X86_64), "aarch64": (0xC00000B7, _AARCH64)}
"""Audit architecture and the numbers of system calls by the machine's name in uname(2)."""

# chmod, chown, setxattr, removexattr and their variants, which Landlock does not know.
_ATTRIBUTES = {
    "x86_64": (90, 91, 92, 93, 94, 188, 189, 190, 197, 198, 199, 260, 268, 452, 463, 466, 469),
    "aarch64": (5, 6, 7, 14, 15, 16, 52, 53, 54, 55, 452, 463, 466, 469),
}

# Calls that take the mode of a file, with the number of that argument; for `open`, the number of the flags first.
_MODES = {
    "x86_64": {85: 1, 90: 1, 91: 1, 133: 1, 259: 2, 268: 2, 452: 2},
    "aarch64": {33: 2, 52: 1, 53: 2, 452: 2},
}
_OPENS = {
    "x86_64": {2: (1, 2), 257: (2, 3)},
    "aarch64": {56: (2, 3)},
}
_SETUID = 0o4000
_CREATING = 0o100 | 0o20000000  # O_CREAT, O_TMPFILE
_OPENAT2 = 437  # its mode is in memory, out of reach of a filter

_X32_BIT = 0x40000000  # the x32 calls of x86_64 are numbered from here
_NEW_NAMESPACES = 0x7E020080  # CLONE_NEW{TIME,NS,CGROUP,UTS,IPC,USER,PID,NET}
_TYPING = (0x5412, 0x541C)  # TIOCSTI and TIOCLINUX type into the user's terminal

# Families of sockets.
_UNIX = 1
_IPV4 = 2
_IPV6 = 10
_NETLINK = 16
_NETLINK_ROUTE = 0  # getaddrinfo(3) asks it for addresses

# Offsets in `struct seccomp_data`: the call's number, its architecture, and the low words of its arguments.
_NUMBER = 0
_ARCHITECTURE = 4
_ARGUMENTS = (16, 24, 32, 40)

# Codes of instructions, and results of a program.
_LOAD = 0x20
_IF_EQUAL = 0x15
_IF_AT_LEAST = 0x35
_IF_ANY_BIT = 0x45
_RETURN = 0x06
_ALLOW = 0x7FFF0000
_ERROR = 0x00050000

Instruction = tuple[int, int, int, int]
"""Code, instructions to skip if a condition holds, instructions to skip if not, and an operand."""


def build_filter(*, is_isolated: bool = True, network: bool = True) -> bytes | None:
    """Build the program for this machine as an array of `struct sock_filter`.

    Args:
        is_isolated: commands have mounts of their own. If not, the filter also denies them unix sockets, which lead to
            the person's services, and changes of modes, owners and attributes of files.
        network: allows IP sockets.

    Returns:
        The program, or None on a machine with other system calls than x86_64 and aarch64.
    """
    machine = os.uname().machine
    if sys.platform != "linux" or machine not in _MACHINES or sys.maxsize < 2**32:
        return None
    architecture, calls = _MACHINES[machine]
    numbers = calls | _EVERYWHERE
    # A process may switch to another architecture, where the numbers mean other calls.
    program = [_load(_ARCHITECTURE), (_IF_EQUAL, 1, 0, architecture), _deny(ENOSYS), _load(_NUMBER)]
    if machine == "x86_64":
        program += _when(_IF_AT_LEAST, _X32_BIT, [_deny(ENOSYS)])
    # The flags of clone3 are in memory, out of reach of a filter. The C library then uses clone.
    program += _when(_IF_EQUAL, numbers.pop("clone3"), [_deny(ENOSYS)])
    for name in ("clone", "unshare"):
        program += _when(_IF_EQUAL, numbers.pop(name), _deny_namespaces())
    program += _when(_IF_EQUAL, numbers.pop("ioctl"), _deny_typing())
    pair = [_load(_ARGUMENTS[0]), *_when(_IF_EQUAL, _UNIX, [_allow()]), _deny(EAFNOSUPPORT)]
    program += _when(_IF_EQUAL, numbers.pop("socketpair"), pair)
    families = []
    if is_isolated:
        families.append(_UNIX)
    if network:
        families += [_IPV4, _IPV6]
    program += _when(_IF_EQUAL, numbers.pop("socket"), _deny_other_families(families))
    denied = [*numbers.values()]
    if not is_isolated:
        denied += _ATTRIBUTES[machine]
    for number in denied:
        program += _when(_IF_EQUAL, number, [_deny(EPERM)])
    program += _deny_setuid(machine)
    program.append(_allow())
    return b"".join(struct.pack("HBBI", *step) for step in program)


def _deny_namespaces() -> list[Instruction]:
    denied = _when(_IF_ANY_BIT, _NEW_NAMESPACES, [_deny(EPERM)])
    return [_load(_ARGUMENTS[0]), *denied, _allow()]


def _deny_typing() -> list[Instruction]:
    program = [_load(_ARGUMENTS[1])]
    for request in _TYPING:
        program += _when(_IF_EQUAL, request, [_deny(EPERM)])
    return [*program, _allow()]


def _deny_other_families(allowed: Iterable[int]) -> list[Instruction]:
    """Deny sockets, except those of some families and the routing table of the kernel."""
    program = [_load(_ARGUMENTS[0])]
    for family in allowed:
        program += _when(_IF_EQUAL, family, [_allow()])
    route = [_load(_ARGUMENTS[2]), *_when(_IF_EQUAL, _NETLINK_ROUTE, [_allow()])]
    program += _when(_IF_EQUAL, _NETLINK, route)
    return [*program, _deny(EAFNOSUPPORT)]


def _deny_setuid(machine: str) -> list[Instruction]:
    """Deny the setuid bit of files. A setuid file of root gives other users root's rights."""
    denied = _when(_IF_ANY_BIT, _SETUID, [_deny(EPERM)])
    program = _when(_IF_EQUAL, _OPENAT2, [_deny(ENOSYS)])  # programs then use openat
    for number, mode in _MODES[machine].items():
        program += _when(_IF_EQUAL, number, [_load(_ARGUMENTS[mode]), *denied, _allow()])
    for number, (flags, mode) in _OPENS[machine].items():
        creating = _when(_IF_ANY_BIT, _CREATING, [_load(_ARGUMENTS[mode]), *denied])
        program += _when(_IF_EQUAL, number, [_load(_ARGUMENTS[flags]), *creating, _allow()])
    return program


def _load(offset: int) -> Instruction:
    return (_LOAD, 0, 0, offset)


def _when(condition: int, operand: int, steps: list[Instruction]) -> list[Instruction]:
    """Run steps only if the loaded value meets a condition."""
    return [(condition, 0, len(steps), operand), *steps]


def _deny(error: int) -> Instruction:
    return (_RETURN, 0, 0, _ERROR | error)


def _allow() -> Instruction:
    return (_RETURN, 0, 0, _ALLOW)
