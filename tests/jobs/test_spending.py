"""Shares of a total: no order of starts and ends spends more than it."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goose_like.jobs.batch.jsonl_file import JsonlFile
from goose_like.jobs.batch.spending import Attempt, Spending, TotalReachedError, Totals


@given(
    total=st.integers(10, 10_000),
    own=st.none() | st.integers(1, 5_000),
    parts=st.lists(st.floats(0, 1), min_size=1, max_size=30),
    workers=st.integers(1, 5),
    data=st.data(),
)
def test_a_total_is_never_exceeded(tmp_path_factory, total, own, parts, workers, data):
    """Attempts end in any order with any part of their share. At the end, a resume knows what was spent."""
    path = tmp_path_factory.mktemp("spent") / "attempts.jsonl"
    limits = {} if own is None else {"tokens": float(own)}
    running: list[Attempt] = []
    waiting = list(range(len(parts)))
    spent = 0
    with JsonlFile(path, Attempt) as file:
        spending = Spending(Totals(tokens=total), file)
        while waiting or running:
            share = None
            if waiting and len(running) < workers:
                try:
                    share = spending.share(limits, len(waiting))
                except TotalReachedError:
                    if not running:
                        break
            if share is not None:
                attempt = Attempt(number=waiting.pop(), attempt=1, tokens=int(share["tokens"]))
                spending.record(attempt)
                running.append(attempt)
            else:
                ended = running.pop(data.draw(st.integers(0, len(running) - 1)))
                used = int(ended.tokens * parts[ended.number])
                spending.record(ended.model_copy(update={"tokens": used}))
                spent += used
            assert spent + sum(attempt.tokens for attempt in running) <= total
    with JsonlFile(path, Attempt) as file:
        assert Spending(Totals(), file).used.tokens == spent


def test_what_was_running_at_a_crash_counts_as_spent(tmp_path: Path) -> None:
    path = tmp_path / "attempts.jsonl"
    with JsonlFile(path, Attempt) as file:
        Spending(Totals(cost_usd=1.0), file).record(Attempt(number=1, attempt=1, cost_usd=0.75))
    with JsonlFile(path, Attempt) as file:
        spending = Spending(Totals(cost_usd=1.0), file)
        assert spending.count_attempts(1) == 1
        assert spending.share({}, 1) == {"cost_usd": 0.25}
        with pytest.raises(TotalReachedError, match="--total-cost MORE") as error:
            spending.share({"cost_usd": 0.5}, 1)
    assert error.value.exit_code == 4


def test_without_totals_each_input_has_its_own_limits(tmp_path: Path) -> None:
    with JsonlFile(tmp_path / "attempts.jsonl", Attempt) as file:
        assert Spending(Totals(), file).share({"steps": 3.0}, 5) == {"steps": 3.0}
