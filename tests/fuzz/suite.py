"""The suite: runs random inputs of a target, measures each, and keeps its progress in a file."""

import hashlib
import importlib
import json
import os
import signal
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

from tests.fuzz.source import Source

LIMIT_S = 1.0
"""Processor time that no input may take, not even one of `_LONG_SIZE`: a quadratic one would."""

_HANG_S = 20.0
_LONG_EVERY = 2_000
_LONG_SIZE = 64_000
_SAVE_EVERY_S = 5.0


class Target(Protocol):
    """A parser under test. `create` makes an input, and `check` raises if the parser treats it wrongly."""

    def __init__(self, folder: Path) -> None: ...

    def create(self, source: Source) -> Any: ...

    def check(self, value: Any) -> None: ...


@dataclass
class Progress:
    """The inputs of one target that are done. `findings` has a number and a text for each kind of failure."""

    seed: int
    done: int = 0
    seconds: float = 0.0
    slowest_s: float = 0.0
    slowest_number: int = 0
    failures: int = 0
    findings: dict[str, list[str]] = field(default_factory=dict)


def list_targets() -> list[str]:
    """List the targets: the modules `target_NAME`."""
    return sorted(file.stem.removeprefix("target_") for file in Path(__file__).parent.glob("target_*.py"))


def load_target(name: str) -> Callable[[Path], Target]:
    """Return the class of a target."""
    return importlib.import_module(f"tests.fuzz.target_{name}").FuzzTarget  # type: ignore[no-any-return]


class Suite:
    """Runs of all targets. With a `state_file`, a run goes on where the last one stopped."""

    def __init__(self, seed: int, state_file: Path | None = None) -> None:
        self._seed, self._state_file = seed, state_file
        known = json.loads(state_file.read_text()) if state_file and state_file.exists() else {}
        self.progress = {name: Progress(**fields) for name, fields in known.items() if fields["seed"] == seed}

    def run(self, name: str, count: int) -> Progress:
        """Check the inputs of a target up to this count, and return its progress."""
        progress = self.progress.setdefault(name, Progress(self._seed))
        saved_at = time.monotonic()
        with _open_target(name) as target, _interrupt_hangs():
            while progress.done < count:
                self._check(target, name, progress)
                progress.done += 1
                if time.monotonic() - saved_at > _SAVE_EVERY_S:
                    self._save()
                    saved_at = time.monotonic()
        self._save()
        return progress

    def check_one(self, name: str, number: int) -> None:
        """Print one input, and check it; an error escapes."""
        with _open_target(name) as target:
            key = self._make_key(name, number)
            value = target.create(Source(key, _LONG_SIZE if _is_long(number) else 0))
            print(f"{name} {number}: {value!r:.4000}")
            target.check(value)

    def _make_key(self, name: str, number: int) -> int:
        return int.from_bytes(hashlib.blake2b(f"{name} {self._seed} {number}".encode(), digest_size=8).digest())

    def _check(self, target: Target, name: str, progress: Progress) -> None:
        number, seconds = progress.done, 0.0
        key = self._make_key(name, number)
        try:
            value = target.create(Source(key, _LONG_SIZE if _is_long(number) else 0))
            seconds = _measure(target, value)
            if seconds > LIMIT_S:
                seconds = min(_measure(target, value) for _ in range(3))
                assert seconds <= LIMIT_S, f"takes {seconds:.1f} s"
        except Exception as error:  # a finding must not end the run
            progress.failures += 1
            kind = _describe(error)
            if kind not in progress.findings:
                progress.findings[kind] = [str(number), repr(error)[:500]]
                print(f"{name} {number}: {kind}: {error!r:.300}", flush=True)
        progress.seconds += seconds
        if seconds > progress.slowest_s:
            progress.slowest_s, progress.slowest_number = seconds, number

    def _save(self) -> None:
        if self._state_file:
            draft = self._state_file.with_suffix(".draft")
            draft.write_text(json.dumps({name: asdict(each) for name, each in self.progress.items()}, indent=1))
            draft.replace(self._state_file)


def _is_long(number: int) -> bool:
    return number % _LONG_EVERY == _LONG_EVERY - 1


def _measure(target: Target, value: Any) -> float:
    """Check an input, and return the processor time."""
    signal.setitimer(signal.ITIMER_VIRTUAL, _HANG_S)
    started = time.process_time()
    target.check(value)
    return time.process_time() - started


def _describe(error: Exception) -> str:
    """Describe a failure by its type and the innermost places in our code, so that each kind is noted once."""
    frames = traceback.extract_tb(error.__traceback__)
    places = [
        f"{Path(frame.filename).name}:{frame.lineno}" for frame in frames if "/tests/fuzz/suite" not in frame.filename
    ]
    return f"{type(error).__name__} at {' '.join([*places[:1], *places[-1:]])}"


@contextmanager
def _open_target(name: str) -> Iterator[Target]:
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # a disk would take most of the time
    with tempfile.TemporaryDirectory(prefix="goose-like-fuzz-", dir=memory) as folder:
        yield load_target(name)(Path(folder))


@contextmanager
def _interrupt_hangs() -> Iterator[None]:
    def interrupt(number: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"takes more than {_HANG_S:g} s")

    before = signal.signal(signal.SIGVTALRM, interrupt)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
