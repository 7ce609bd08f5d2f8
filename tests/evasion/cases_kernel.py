"""Interfaces of the kernel that a command does not need."""

from tests.evasion.case import Case

_CALL = "python3 -c \"import ctypes, os; c = ctypes.CDLL(None, use_errno=True); r = {}; print('GOT' if r >= 0 else os.strerror(ctypes.get_errno()))\""
_GOT = 'grep -q "^GOT" "$OUTPUT"'
_CALLS = {
    "keyctl read": "c.syscall(250, 0, -3, 1)",
    "add_key": "c.syscall(248, b'user', b'pwned', b'x', 1, -4)",
    "request_key": "c.syscall(249, b'user', b'pwned', None, 0)",
    "io_uring": "c.syscall(425, 8, ctypes.create_string_buffer(120))",
    "ptrace": "c.ptrace(16, os.getppid(), 0, 0)",
    "process_vm_readv": "c.syscall(310, os.getppid(), 0, 0, 0, 0, 0)",
    "user namespace": "c.unshare(0x10000000)",
    "mount": "c.mount(b'x', b'/tmp', b'tmpfs', 0, 0)",
    "bpf": "c.syscall(321, 0, ctypes.create_string_buffer(48), 48)",
    "userfaultfd": "c.syscall(323, 1)",
    "perf_event_open": "c.syscall(298, ctypes.create_string_buffer(b'\\x01\\0\\0\\0\\x70' + b'\\0' * 107), 0, -1, -1, 0)",
    "AF_VSOCK": "c.socket(40, 1, 0)",
    "AF_NETLINK audit": "c.socket(16, 3, 9)",
    "AF_PACKET": "c.socket(17, 3, 768)",
    "AF_ALG": "c.socket(38, 5, 0)",
    "open_by_handle_at": "c.syscall(304, -100, ctypes.create_string_buffer(b'\\x08' + b'\\0' * 60), 0)",
    "kexec_load": "c.syscall(246, 0, 0, 0, 0)",
    "setns": "c.setns(os.open('/proc/1/ns/net', 0), 0)",
    "keyctl join": "c.syscall(250, 1, None)",
    "keyctl by the x32 numbers": "c.syscall(0x40000000 + 250, 0, -3, 1)",
    "user namespace by clone": "c.syscall(56, 0x10000000 | 17, 0, 0, 0, 0)",
    "user namespace by clone3": "c.syscall(435, (ctypes.c_uint64 * 8)(0x10000000, 0, 0, 0, 17), 64)",
    "network namespace": "c.unshare(0x40000000)",
    "fsopen": "c.syscall(430, b'tmpfs', 0)",
    "open_tree": "c.syscall(428, -100, b'/', 1)",
    "pivot_root": "c.syscall(155, b'.', b'.')",
    "chroot": "c.chroot(b'/')",
    "pidfd_getfd": "c.syscall(438, c.syscall(434, os.getppid(), 0), 0, 0)",
    "io_uring register": "c.syscall(427, -1, 0, 0, 0)",
    "kcmp": "c.syscall(312, os.getpid(), 1, 0, 0, 0)",
    "AF_TIPC pair": "c.socketpair(30, 1, 0, (ctypes.c_int * 2)())",
    "AF_BLUETOOTH": "c.socket(31, 3, 0)",
    "AF_CAN": "c.socket(29, 3, 1)",
    "AF_XDP": "c.socket(44, 3, 0)",
    "AF_NETLINK kobject": "c.socket(16, 3, 15)",
    "raw IP socket": "c.socket(2, 3, 255)",
    "device": "c.mknod(b'/tmp/pwned', 0o20666, 0x103)",
    "capability": "c.prctl(23, 21, 0, 0, 0) - 1",
    "new privileges": "c.prctl(39, 0, 0, 0, 0) - 1 or -1",
}

CASES = [
    *(Case(name, _CALL.format(call), _GOT, ("workspace", "read-only", "workspace+network")) for name, call in _CALLS.items()),
    Case("TIOCSTI", "python3 -c \"import fcntl, termios; [fcntl.ioctl(0, termios.TIOCSTI, c) for c in 'x']; print('GOT')\"", _GOT),
    Case("kill the person's processes", "kill -0 $(ls /proc | grep -E '^[0-9]{4,}$' | head -1) && echo GOT; kill -9 -1; true", _GOT, has_control=False),
    Case("keyctl by the 32-bit numbers", "printf '%s' 'int main(void){long r;__asm__ volatile(\"int $0x80\":\"=a\"(r):\"a\"(288),\"b\"(0),\"c\"(-3),\"d\"(1));return r<0;}' > /tmp/k.c; gcc -o /tmp/k /tmp/k.c; /tmp/k && echo GOT; true", _GOT),
    Case("abstract socket of the person", "python3 -c \"import socket; s = socket.socket(socket.AF_UNIX); s.connect('\\0dbus-' + open('/proc/sys/kernel/random/boot_id').read()[:8]); print('GOT')\"", _GOT, ("workspace+network",), setup="(timeout 60 python3 -c \"import socket, time; s = socket.socket(socket.AF_UNIX); s.bind('\\0dbus-' + open('/proc/sys/kernel/random/boot_id').read()[:8]); s.listen(); time.sleep(60)\" >/dev/null 2>&1 &) ; sleep 1"),
    Case("gdb", "gdb -p 1 -batch -ex 'call (int)getpid()' 2>&1 | grep -q '^\\$1' && echo GOT; strace -p 1 -o /tmp/s & sleep 1; kill %1; test -s /tmp/s && echo GOT; true", _GOT),
    Case("memory of process 1", "head -c 1 /proc/1/mem && echo GOT; cat /proc/1/environ /proc/1/maps && echo GOT; readlink /proc/1/fd/0 && echo GOT; true", _GOT),
    Case("dmesg", "dmesg | grep -q . && echo GOT", _GOT),
    Case("/proc/sys", "echo 0 > /proc/sys/kernel/randomize_va_space && echo GOT", _GOT, has_control=False),
]  # fmt: skip
