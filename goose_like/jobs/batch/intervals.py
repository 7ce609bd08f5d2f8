"""Confidence intervals of pass rates: several trials of one task are not independent of each other."""

import math
from collections.abc import Sequence
from statistics import NormalDist, fmean, variance

from goose_like.core.dataclass import dataclass

CONFIDENCE = 0.95

_SMALL_QUANTILES = (12.7062, 4.30265, 3.18245, 2.77645, 2.57058, 2.44691, 2.36462, 2.30600, 2.26216, 2.22814)
"""The quantiles of Student's t for 1 to 10 degrees of freedom, for an interval of 95 %."""

_ROUNDING = 1e-9
"""Differences that are closer are equal: 2/3 - 1/3 and 1/3 - 0 are not the same float."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with the ends of its confidence interval."""

    value: float
    low: float
    high: float


def estimate_pass_rate(passes: Sequence[Sequence[bool]]) -> Estimate:
    """Estimate the pass rate over tasks, by the trials of each.

    The interval is Wilson's, with the tasks as observations. With several trials, the variance between tasks may tell
    more: then the observations are as many as independent trials with that variance, and the quantile is Student's.
    """
    rates = [fmean(trials) for trials in passes]
    rate = fmean(rates)
    task_count = len(rates)
    trial_count = sum(map(len, passes))
    if task_count == 1:
        return _compute_wilson(rate, trial_count, _get_normal_quantile())
    by_tasks = _compute_wilson(rate, task_count, _get_normal_quantile())
    if rate in (0, 1):
        return by_tasks
    share = variance(rates) / task_count / (rate * (1 - rate))
    count = 1 / max(share, 1 / trial_count)
    by_variance = _compute_wilson(rate, count, compute_t_quantile(task_count - 1))
    return min(by_tasks, by_variance, key=lambda estimate: estimate.high - estimate.low)


def estimate_difference(first: Sequence[float], second: Sequence[float]) -> Estimate | None:
    """Estimate how much higher the second pass rates are, by pairs of one task: Student's interval.

    It is None for a single task and for equal differences, which tell nothing about other tasks.
    """
    differences = [after - before for before, after in zip(first, second, strict=True)]
    if max(differences) - min(differences) < _ROUNDING:
        return None
    value = fmean(differences)
    deviation = math.sqrt(variance(differences) / len(differences))
    half = compute_t_quantile(len(differences) - 1) * deviation
    return Estimate(value, max(value - half, -1.0), min(value + half, 1.0))


def compute_t_quantile(freedom: int) -> float:
    """Return the quantile of Student's t for an interval of 95 %, to three digits."""
    if freedom <= len(_SMALL_QUANTILES):
        return _SMALL_QUANTILES[freedom - 1]
    z = _get_normal_quantile()
    # The first terms of the expansion by Cornish and Fisher.
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    more = first / freedom + second / freedom**2
    return z + more


def _get_normal_quantile() -> float:
    return NormalDist().inv_cdf((1 + CONFIDENCE) / 2)


def _compute_wilson(rate: float, count: float, quantile: float) -> Estimate:
    square = quantile**2 / count
    center = (rate + square / 2) / (1 + square)
    spread = rate * (1 - rate) * square
    half = math.sqrt(spread + square**2 / 4) / (1 + square)
    return Estimate(rate, max(center - half, 0.0), min(center + half, 1.0))
