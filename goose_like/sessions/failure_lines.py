"""Lines of long output that look like failures, which an excerpt must not lose."""

from goose_like.core.pattern import compile_later

_FAILURE = compile_later(
    rb"FAILED |ERROR |(FAIL|ERROR): |(FATAL|CRITICAL)\b|\[(ERROR|FATAL)\]"  # pytest, unittest, logs, Maven
    rb"|\S+::\S+ (FAILED|ERROR)\b"  # pytest -v
    rb"|[ \t]*--- FAIL: |FAIL[ \t]|panic: "  # Go, Jest
    rb"|test .+ \.\.\. FAILED|error(\[E\d+\])?: |thread '.*' panicked at"  # Cargo
    rb"|[ \t]*(\xe2\x97\x8f|\xe2\x9c\x95|\xe2\x9c\x97) |not ok "  # Jest and others: a dot or a cross; TAP
    rb"|g?make(\[\d+\])?: \*\*\* |[^\s:]+:\d+(:\d+)?: (fatal )?error\b|.{0,200}undefined reference to "  # make, gcc, ld
    rb"|[^\s:]+\(\d+,\d+\): error |[ \t]+\d+:\d+[ \t]+error[ \t]|npm (ERR!|error) "  # tsc, ESLint, npm
    rb"|Traceback \(most recent call last\)|[\w.]+(Error|Exception)(: |$)|Exception in thread "  # Python, Java
    rb"|Caused by: |Segmentation fault"
)
_MAX_LINES = 1_000
_MAX_LINE_BYTES = 300
_MAX_SCANNED_BYTES = 50_000_000


class FailureLines:
    """The lines that look like failures of a test or a build, by their number from 0, at most 1,000."""

    def __init__(self) -> None:
        self.lines: list[tuple[int, bytes]] = []
        self._number = 0
        self._rest = b""
        self._scanned_bytes = 0

    def write(self, chunk: bytes) -> None:
        """Scan more output. An unfinished line waits for its end."""
        self._scanned_bytes += len(chunk)
        if self._scanned_bytes > _MAX_SCANNED_BYTES or len(self.lines) >= _MAX_LINES:
            return
        first, *others = chunk.split(b"\n")
        if not others:
            self._rest = (self._rest + first)[:_MAX_LINE_BYTES]
            return
        for line in (self._rest + first, *others[:-1]):
            if _FAILURE.match(line, 0, _MAX_LINE_BYTES):  # a longer text could take quadratic time
                self.lines.append((self._number, line[:_MAX_LINE_BYTES]))
            self._number += 1
        self._rest = others[-1][:_MAX_LINE_BYTES]

    def find_between(self, start: int, end: int) -> list[bytes]:
        """Find the lines from number `start` on, before number `end`."""
        return [line for number, line in self.lines if start <= number < end]
