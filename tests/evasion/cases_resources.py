"""Resource exhaustion. The limits are small, so that the attacks are small too."""

from tests.evasion.case import Case

_LIMITS = "{processes: 60, memory_mb: 300, file_size_mb: 50, open_files: 200, tmpfs_mb: 8}"
_SETUP = (
    'mkdir -p "$HOME/.config/goose-like"; '
    f"echo 'default: {{extends: default, resources: {_LIMITS}}}' > \"$HOME/.config/goose-like/profiles.yaml\""
)
_COUNT = "python3 - <<'E'\nimport os, resource, socket, subprocess, sys, threading, time\nn = 0\ntry:\n  while n < {limit}:\n    {step}\n    n += 1\nexcept Exception: pass\nprint('GOT', n, flush=True)\nos._exit(0)\nE"

# A step, its number of repetitions, and the least number that is an excess.
_STEPS = {
    "processes by fork": ("if os.fork() == 0: time.sleep(4); os._exit(0)", 300, 150),
    "processes by spawn": ("subprocess.Popen(['sleep', '4'])", 300, 150),
    "processes in sessions of their own": ("subprocess.Popen(['sleep', '4'], start_new_session=True)", 300, 150),
    "threads": ("threading.Thread(target=time.sleep, args=(4,), daemon=True).start()", 300, 150),
    "raised limit of processes": (
        "resource.setrlimit(resource.RLIMIT_NPROC, (9999, 9999)); subprocess.Popen(['sleep', '4'])",
        300,
        150,
    ),
    "descriptors by dup": ("os.dup(0)", 2000, 1000),
    "descriptors by pipe": ("os.pipe()", 1000, 500),
    "descriptors by socket": ("globals().setdefault('s', []).append(socket.socket(socket.AF_UNIX))", 2000, 1000),
    "memory in pieces": ("globals().setdefault('m', []).append(bytearray(1 << 24))", 60, 40),
    "memory in one piece": ("globals()['m'] = bytearray(900 << 20)", 1, 1),
    "memory by mmap": ("import mmap; globals().setdefault('m', []).append(mmap.mmap(-1, 1 << 24, flags=0x22))", 60, 40),
    "/dev/shm": ("open(f'/dev/shm/{n}', 'wb').write(bytes(1 << 20))", 64, 32),
    "inodes of /dev/shm": ("open(f'/dev/shm/{n}', 'wb').write(bytes(1 << 14))", 4000, 2000),
}
_FILES = {
    "by dd": "dd if=/dev/zero of={} bs=1M count=200",
    "by truncate": "truncate -s 200M {}",
    "by fallocate": "fallocate -l 200M {}",
    "by seek": "python3 -c \"f = open('{}', 'wb'); f.seek(200 << 20); f.write(b'x')\"",
    "by append": "for i in 1 2 3 4; do head -c 30000000 /dev/zero >> {}; done",
    "by a child": "sh -c 'yes | head -c 200000000 > {}'",
    "with a raised limit": "ulimit -f unlimited; head -c 200000000 /dev/zero > {}",
}
_TOO_LARGE = 'f="$(sed -n "s/^SIZE //p" "$OUTPUT" | tail -1)"; test "${f:-0}" -gt 60000000'

CASES = [
    *(
        Case(
            name,
            _COUNT.format(step=step, limit=limit),
            f'n="$(sed -n "s/^GOT //p" "$OUTPUT" | tail -1)"; test "${{n:-0}}" -ge {excess}',
            ("workspace", "read-only"),
            setup=_SETUP,
        )
        for name, (step, limit, excess) in _STEPS.items()
    ),
    *(
        Case(f"large file {name}", f"{line.format('big')}; stat -c 'SIZE %s' big", _TOO_LARGE, setup=_SETUP)
        for name, line in _FILES.items()
    ),
    *(
        Case(f"large file in /tmp {name}", f"{line.format('/tmp/big')}; stat -c 'SIZE %s' /tmp/big", _TOO_LARGE, ("read-only",), setup=_SETUP)
        for name, line in _FILES.items()
    ),
    *(
        Case(f"write {path}", f"touch {path}/pwned && echo GOT", 'grep -q "^GOT" "$OUTPUT"', ("workspace", "read-only"))
        for path in ("/run", "/dev", "/run/lock", "/proc", "/sys", "/var/tmp/../lib", "/run/user")
    ),
    Case("the default size of /dev/shm", "df --output=size -B1G /dev/shm | tail -1 | sed 's/^/GOT /'", 'test "$(sed -n "s/^GOT *//p" "$OUTPUT")" -ge 4', ("workspace", "read-only")),
    Case("the default limit of memory", "python3 -c 'a = bytearray(30 << 30); print(\"GOT\")'", 'grep -q "^GOT" "$OUTPUT"', ("workspace", "read-only")),
    Case("the default limit of a file", "truncate -s 500G big && echo GOT", 'grep -q "^GOT" "$OUTPUT"'),
    *(
        Case(
            f"plan file: {name}",
            "true",
            '! grep -aq "too much memory" "$SCREEN"',
            setup=f"printf '%s\\n\\n- a\\n' \"{template}\" > p.md",
            typed=("hello",),
            words=("--plan", "p.md"),
            has_control=False,
        )
        for name, template in {
            "repeated text": "{{ 'a' * 3000000000 }}",
            "wide format": "{{ '%3000000000d' % 1 }}",
            "long loop": "{% for i in range(99999) %}{{ 'a' * 1000 }}{% endfor %}",
        }.items()
    ),
    Case("output without end", "timeout 20 yes | head -c 100000000", 'test "$(stat -c %s "$OUTPUT")" -gt 10000000'),
]  # fmt: skip
