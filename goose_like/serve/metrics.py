"""Counts that all workers share: each adds to a row of its own, and whoever is asked sums up the rows."""

import multiprocessing
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise, product

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

from goose_like.core.message import Usage

PATHS = ("query", "feedback", "copilots", "agents", "healthz", "metrics", "page", "other")
STATUSES = ("200", "400", "401", "403", "404", "405", "408", "413", "415", "422", "429", "500", "503", "other")
DIALECTS = ("", "copilot", "workspace")
ENDINGS = ("", "stop", "handed_off", "step_limit", "budget", "cancelled", "error")
VOTES = ("up", "down", "other")
TOKENS = ("input", "output", "cache_read", "cache_write")

_LABELS = {labels: at for at, labels in enumerate(product(PATHS, STATUSES, DIALECTS, ENDINGS))}
_FIRST_BYTE = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, float("inf"))
_SECONDS = (0.01, 0.05, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, float("inf"))
_PIECES = {
    "requests": len(_LABELS),
    "votes": len(VOTES),
    "tokens": len(TOKENS),
    "running": 1,
    "first_byte": len(_FIRST_BYTE) + 1,  # the last cell of a histogram is its sum
    "seconds": len(_SECONDS) + 1,
}
_ENDS = [sum(list(_PIECES.values())[:count]) for count in range(len(_PIECES) + 1)]
_PLACES = {name: slice(*ends) for name, ends in zip(_PIECES, pairwise(_ENDS), strict=True)}
_WIDTH = _ENDS[-1]


@dataclass(slots=True)
class Seen:
    """What is known of a request when it is over. Times in seconds; `content` only where it is logged."""

    path: str
    status: int = 500
    dialect: str = ""
    ending: str = ""
    seconds: float = 0.0
    first_byte_s: float | None = None
    usage: Usage = field(default_factory=Usage)
    content: dict[str, str] = field(default_factory=dict)


class Board:
    """The rows. It is handed to workers when they start (`spawn` pickles it then, and at no other time).

    A worker that takes the place of one that died takes its row as well, so that no count is lost.
    """

    def __init__(self, workers: int) -> None:
        context = multiprocessing.get_context("spawn")
        rows = 2 * workers + 6  # for those that start before the old ones are gone
        self._cells = context.RawArray("d", rows * _WIDTH)
        self._owners = context.RawArray("q", rows)
        self._lock = context.Lock()

    def row(self) -> "Row":
        """A row for this process alone."""
        with self._lock:
            free = [at for at, pid in enumerate(self._owners) if not _is_alive(pid)]
            at = next((at for at in free if self._owners[at]), free[0])
            self._owners[at] = os.getpid()
        row = Row(memoryview(self._cells).cast("B").cast("d")[at * _WIDTH : (at + 1) * _WIDTH])
        row.cells[_PLACES["running"].start] = 0.0
        return row

    def text(self) -> bytes:
        """All of it in Prometheus' text format."""
        every = list(self._cells)
        registry = CollectorRegistry(auto_describe=False)
        registry.register(_Sum([sum(every[at::_WIDTH]) for at in range(_WIDTH)]))
        return generate_latest(registry)

    @property
    def running(self) -> int:
        """Queries that are being answered now, by all workers that are alive."""
        rows = [at for at, pid in enumerate(self._owners) if _is_alive(pid)]
        return int(sum(self._cells[at * _WIDTH + _PLACES["running"].start] for at in rows))


@dataclass(frozen=True, slots=True)
class Row:
    """One worker's counts."""

    cells: "memoryview[float]"

    def run(self, change: int) -> None:
        """One query more (1) or less (-1) is being answered."""
        self.cells[_PLACES["running"].start] += change

    def vote(self, vote: str) -> None:
        """Feedback on an answer."""
        self.cells[_PLACES["votes"].start + VOTES.index(vote if vote in VOTES else "other")] += 1

    def count(self, seen: Seen) -> None:
        """A request that is over."""
        status = str(seen.status) if str(seen.status) in STATUSES else "other"
        self.cells[_PLACES["requests"].start + _LABELS[seen.path, status, seen.dialect, seen.ending]] += 1
        if seen.path == "query":
            self._observe("seconds", _SECONDS, seen.seconds)
            if seen.first_byte_s is not None:
                self._observe("first_byte", _FIRST_BYTE, seen.first_byte_s)
        for at, kind in enumerate(TOKENS, _PLACES["tokens"].start):
            self.cells[at] += getattr(seen.usage, f"{kind}_tokens")

    def _observe(self, name: str, bounds: tuple[float, ...], value: float) -> None:
        place = _PLACES[name]
        self.cells[place.start + next(at for at, bound in enumerate(bounds) if value <= bound)] += 1
        self.cells[place.stop - 1] += value


@dataclass(frozen=True, slots=True, eq=False)
class _Sum(Collector):
    cells: list[float]

    def collect(self) -> Iterator[Metric]:
        requests = CounterMetricFamily(
            "goose_like_requests", "Requests that are over.", labels=("path", "status", "dialect", "ending")
        )
        for labels, count in zip(_LABELS, self.cells[_PLACES["requests"]], strict=True):
            if count:
                requests.add_metric(labels, count)
        yield requests
        yield self._counter("feedback", "Feedback on answers.", "vote", VOTES, "votes")
        yield self._counter("tokens", "Tokens that were spent.", "kind", TOKENS, "tokens")
        (running,) = self.cells[_PLACES["running"]]
        yield GaugeMetricFamily("goose_like_running", "Queries that are being answered now.", running)
        yield self._histogram("first_byte", "Seconds until an answer's first byte.", _FIRST_BYTE)
        yield self._histogram("seconds", "Seconds until an answer's end.", _SECONDS)

    def _counter(self, name: str, about: str, label: str, values: tuple[str, ...], place: str) -> Metric:
        counter = CounterMetricFamily(f"goose_like_{name}", about, labels=(label,))
        for value, count in zip(values, self.cells[_PLACES[place]], strict=True):
            counter.add_metric((value,), count)
        return counter

    def _histogram(self, name: str, about: str, bounds: tuple[float, ...]) -> Metric:
        *counts, total = self.cells[_PLACES[name]]
        family = HistogramMetricFamily(f"goose_like_query_{name}_seconds".replace("seconds_seconds", "seconds"), about)
        upto = [sum(counts[: at + 1]) for at in range(len(counts))]
        names = ["+Inf" if bound == float("inf") else str(bound) for bound in bounds]
        family.add_metric((), list(zip(names, upto, strict=True)), total)
        return family


def _is_alive(pid: int) -> bool:
    if not pid:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
