"""Explanations for commands that failed at a limit of the sandbox."""

import os
import re
import signal
from collections.abc import Iterator
from dataclasses import dataclass

from goose_like.config.profile import ResourceLimits


@dataclass(frozen=True, slots=True)
class _Limit:
    """A limit of the sandbox, and the signs that a command met it."""

    key: str
    """The key of the profile."""

    text: str
    pattern: re.Pattern[str]
    """The words that programs use."""

    signal: int | None = None
    """The signal that ends a command at this limit."""


_LIMITS = (
    _Limit(
        "processes",
        "at most {} processes at a time, threads included",
        re.compile(
            r"fork: (retry: )?Resource temporarily unavailable|can't start new thread"
            r"|unable to create (native )?thread"
            r"|pthread_create.*(failed|Resource temporarily)|Errno 11\] Resource temporarily unavailable"
            r"|spawn \S+ EAGAIN"
            r"|fork/exec .*: resource temporarily unavailable",
            re.MULTILINE,
        ),
        signal.SIGKILL if os.getuid() == 0 else None,  # see `serve` in processes/spawner.py
    ),
    _Limit(
        "memory_mb",
        "{} MB of memory for each process",
        re.compile(
            r"[Cc]annot allocate memory|^MemoryError|std::bad_alloc|memory allocation of \d+ bytes failed|\bENOMEM\b"
            r"|can't start new thread"  # no room for its stack
            r"|Sanitizer failed to allocate|Sanitizer can not mmap|runtime: (out of|cannot allocate) memory",
            re.MULTILINE,
        ),
    ),
    _Limit(
        "file_size_mb",
        "{} MB for each file",
        re.compile(r"File too large|File size limit exceeded|\bEFBIG\b", re.MULTILINE),
        signal.SIGXFSZ,
    ),
    _Limit(
        "open_files",
        "{} open files for each process",
        re.compile(r"[Tt]oo many open files|\bEMFILE\b", re.MULTILINE),
    ),
    _Limit(
        "tmpfs_mb",
        "{} MB in /dev/shm",
        re.compile(r"/dev/shm.*No space left on device|insufficient shared memory", re.MULTILINE),
        signal.SIGBUS,
    ),
)

_TRACING = re.compile(r"ptrace.*: Operation not permitted|LeakSanitizer has encountered a fatal error")
_SIGNING = re.compile(
    r"gpg failed to sign the data|gpg: signing failed|gpg: skipped .*: No secret key|ssh-keygen -Y sign"
    r"|Couldn't load public key|No private key found for"
)
_NAMESPACES = re.compile(r"unshare failed: Operation not permitted|No usable sandbox!|[Cc]reating new namespace failed")


def explain_limits(limits: ResourceLimits, code: int, output: str) -> Iterator[str]:
    """Explain which limits of the sandbox a failed command may have met, for the model and the person."""
    for limit in _LIMITS:
        value = getattr(limits, limit.key)
        if value is None:
            continue
        allowed = f"the sandbox allows {limit.text.format(value)} (`resources: {{{limit.key}: ...}}` in the profile)"
        has_signal = limit.signal is not None and code in (-limit.signal, 128 + limit.signal)
        if limit.pattern.search(output):
            yield allowed
        elif has_signal and limit.signal == signal.SIGKILL:
            yield f"a `kill -9` or a lack of memory ended it, or a limit: {allowed}"
        elif has_signal:
            yield allowed
    if _TRACING.search(output):
        yield "the sandbox denies debuggers and tracers; for sanitizers, set ASAN_OPTIONS=detect_leaks=0"
    if _SIGNING.search(output):
        yield "the keys of gpg (~/.gnupg) and ssh are hidden from commands: the person can sign, or allow --no-gpg-sign"
    if _NAMESPACES.search(output):
        yield "the sandbox denies new namespaces; if the program has a sandbox of its own, switch it off (--no-sandbox)"
