"""The intervals of pass rates, against scipy, which takes a second to import: each test imports it."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goose_like.jobs.batch.intervals import compute_t_quantile, estimate_difference, estimate_pass_rate

TRIALS = st.lists(st.booleans(), min_size=1, max_size=5)


@pytest.mark.parametrize("freedom", [*range(1, 60), 100, 1000])
def test_the_quantile_is_students(freedom):
    from scipy import stats

    assert compute_t_quantile(freedom) == pytest.approx(stats.t.ppf(0.975, freedom), rel=1e-3)


@given(st.lists(st.booleans(), min_size=1, max_size=40))
def test_one_trial_a_task_gives_wilsons_interval(passes):
    from scipy import stats

    found = estimate_pass_rate([[passed] for passed in passes])
    expected = stats.binomtest(sum(passes), len(passes)).proportion_ci(method="wilson")
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-9)


@given(st.lists(st.lists(st.booleans(), min_size=3, max_size=3), min_size=2, max_size=20))
def test_the_ends_are_the_rates_that_the_score_test_just_accepts(passes):
    """With several trials: the number of observations from scipy's variance, the ends as roots, not by a formula."""
    from scipy import optimize, stats

    rates = [sum(trials) / 3 for trials in passes]
    rate = sum(rates) / len(rates)
    found = estimate_pass_rate(passes)
    assert found.value == pytest.approx(rate)
    scales = [stats.norm.ppf(0.975) / math.sqrt(len(rates))]
    if rate in (0, 1):
        expected = stats.binomtest(int(rate) * len(rates), len(rates)).proportion_ci(method="wilson")
        assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-9)
        return
    count = 3 * len(rates)
    error = stats.sem(rates)
    if error > 0:
        count = min(rate * (1 - rate) / error**2, count)
    scales.append(stats.t.ppf(0.975, len(rates) - 1) / math.sqrt(count))

    def excess(other):
        return abs(rate - other) - min(scales) * math.sqrt(other * (1 - other))

    ends = (optimize.brentq(excess, 0, rate), optimize.brentq(excess, rate, 1))
    assert (found.low, found.high) == pytest.approx(ends, abs=1e-3)


@given(st.lists(st.tuples(TRIALS, TRIALS), min_size=2, max_size=20))
def test_a_difference_is_that_of_pairs(pairs):
    from scipy import stats

    first = [sum(trials) / len(trials) for trials, _ in pairs]
    second = [sum(trials) / len(trials) for _, trials in pairs]
    found = estimate_difference(first, second)
    differences = [after - before for before, after in zip(first, second, strict=True)]
    if max(differences) - min(differences) < 1e-9:
        assert found is None
        return
    expected = stats.ttest_rel(second, first).confidence_interval(0.95)
    clipped = (max(expected.low, -1), min(expected.high, 1))
    assert (found.low, found.high) == pytest.approx(clipped, abs=1e-3)


@pytest.mark.parametrize(
    ("first", "second"),
    [([0.5], [1.0]), ([0.0, 0.0], [1.0, 1.0]), ([1 / 3, 0.0, 2 / 3], [2 / 3, 1 / 3, 1.0]), ([1.0] * 9, [1.0] * 9)],
)
def test_one_task_or_equal_differences_give_no_interval(first, second):
    assert estimate_difference(first, second) is None
