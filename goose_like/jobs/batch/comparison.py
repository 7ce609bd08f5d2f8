"""The table of an evaluation: one row for each profile and model, and how often each task was solved."""

from collections.abc import Iterable, Iterator, Sequence
from statistics import fmean, median

from goose_like.core.dataclass import dataclass
from goose_like.core.spelling import format_count

from .intervals import Estimate, estimate_difference, estimate_pass_rate
from .job import Outcome, ResultLine

_HEAD = ("", "tasks", "trials", "solved", "pass@1", "95 %", "tokens", "cost", "time")

_MEASURED_CODES = (3, 4, 5, 6, 8, 124)
"""The exit codes of trials that failed because of the model: its limits, a denial, or the check."""


@dataclass(frozen=True, slots=True)
class _Column:
    """The trials of one profile and model, by task."""

    label: str
    trials: dict[str, list[ResultLine]]

    @property
    def lines(self) -> list[ResultLine]:
        return [line for lines in self.trials.values() for line in lines]

    def count_solved(self, task: str) -> int:
        return sum(map(_is_solved, self.trials[task]))

    def get_rate(self, task: str) -> float:
        return fmean(map(_is_solved, self.trials[task]))


def has_error(outcome: Outcome) -> bool:
    """Return whether a trial measured nothing: it could not run, or its server failed."""
    return outcome.status == "failed" and outcome.exit_code not in _MEASURED_CODES


def format_comparison(lines: Iterable[ResultLine], width: int) -> str:
    """Format the tables. The one of tasks is left out if it is wider than `width`."""
    columns = _sort_into_columns(lines)
    if not columns:
        return "no trial is finished"
    rows: list[Sequence[str]] = [_HEAD]
    for column in columns:
        rows.append(_format_row(column))
    parts = ["\n".join(_align(rows))]
    notes: list[str] = []
    for column in columns[1:]:
        notes += _compare(columns[0], column)
    for column in columns:
        errors = sum(map(has_error, column.lines))
        if errors:
            notes.append(f"{column.label}: {format_count(errors, 'trial')} ended by an error, and not by the model")
    if notes:
        parts.append("\n".join(notes))
    matrix = _align(_list_tasks(columns))
    if len(matrix[0]) <= width:
        parts.append("\n".join(matrix))
    return "\n\n".join(parts)


def _sort_into_columns(lines: Iterable[ResultLine]) -> list[_Column]:
    columns: dict[str, _Column] = {}
    for line in sorted(lines, key=lambda line: line.number):
        names = (line.input.get("profile"), line.input.get("model"))
        label = " ".join(filter(None, names)) or "default"
        column = columns.setdefault(label, _Column(label, {}))
        column.trials.setdefault(line.input["task"], []).append(line)
    return list(columns.values())


def _is_solved(line: ResultLine) -> bool:
    return line.status == "done"


def _format_row(column: _Column) -> tuple[str, ...]:
    lines = column.lines
    passes = []
    for trials in column.trials.values():
        passes.append([_is_solved(line) for line in trials])
    estimate = estimate_pass_rate(passes)
    costs = [line.cost_usd for line in lines if line.cost_usd is not None]
    cost = "-"
    if len(costs) == len(lines):
        cost = f"${sum(costs):.2f}"
    return (
        column.label,
        f"{len(column.trials)}",
        f"{len(lines)}",
        f"{sum(map(_is_solved, lines))}",
        f"{estimate.value:.0%}",
        f"{estimate.low:.0%} to {estimate.high:.0%}",
        f"{sum(line.usage.total_tokens for line in lines):,}",
        cost,
        f"{median(line.seconds for line in lines):.0f} s",
    )


def _compare(first: _Column, second: _Column) -> Iterator[str]:
    """Describe how much more the second column solves, over the tasks that both have."""
    tasks = [task for task in first.trials if task in second.trials]
    if not tasks:
        return
    first_rates = list(map(first.get_rate, tasks))
    second_rates = list(map(second.get_rate, tasks))
    estimate = estimate_difference(first_rates, second_rates)
    names = f"{second.label} - {first.label}"
    count = format_count(len(tasks), "task")
    if estimate is None:
        points = 100 * (fmean(second_rates) - fmean(first_rates))
        yield f"{names}: {points:+.0f} points over {count}; too few tasks for an interval"
        return
    text = f"{names}: {_format_points(estimate)} over {count}"
    if estimate.low <= 0 <= estimate.high:
        text += "; no difference is shown"
    yield text


def _format_points(estimate: Estimate) -> str:
    value = 100 * estimate.value
    low = 100 * estimate.low
    high = 100 * estimate.high
    return f"{value:+.0f} points ({low:+.0f} to {high:+.0f})"


def _list_tasks(columns: Sequence[_Column]) -> list[tuple[str, ...]]:
    rows = [("task", *(column.label for column in columns))]
    tasks: dict[str, None] = {}
    for column in columns:
        tasks |= dict.fromkeys(column.trials)
    for task in tasks:
        cells = []
        for column in columns:
            cell = ""
            if task in column.trials:
                cell = f"{column.count_solved(task)}/{len(column.trials[task])}"
            cells.append(cell)
        rows.append((task, *cells))
    return rows


def _align(rows: Sequence[Sequence[str]]) -> list[str]:
    """Align the first cells at the left and the others at the right. All lines are equally long but for spaces."""
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    lines = []
    for first, *others in rows:
        cells = [first.ljust(widths[0])]
        for cell, width in zip(others, widths[1:], strict=True):
            cells.append(cell.rjust(width))
        lines.append("  ".join(cells).rstrip())
    return lines
