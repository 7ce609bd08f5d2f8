"""anomalies: the rows of a time series that don't fit, each with the reason."""

from difflib import get_close_matches
from typing import Any

from taskweaver.plugin import Plugin, register_plugin, test_plugin

CYCLES = {"hour": (3_600, 24), "dayofweek": (86_400, 7), "month": (2_629_800, 12)}
"""What may come again and again: how many seconds one of its parts has, and how many parts there are."""
WORDS = {"hour": "for this hour of the day", "dayofweek": "for this day of the week", "month": "for this month"}


@register_plugin
class Anomalies(Plugin):
    """Takes off the trend (a running median) and the season (the median of each of its parts), and judges the rest."""

    def __call__(
        self, df: Any, value: str, time: str = "", period: int | None = None, threshold: float | None = None
    ) -> Any:
        """The rows of `df` further than `threshold` robust deviations from what was expected, strangest first.

        Raises:
            ValueError: a column is missing or holds something else, or there are too few values.
        """
        try:
            import pandas
        except ImportError:
            raise RuntimeError("anomalies needs pandas, which this Python has not: pip install pandas") from None
        if not hasattr(df, "columns"):
            raise ValueError(f"anomalies takes a data frame, and this is a {type(df).__name__}")
        limit = float(self.config.get("threshold", 4.0) if threshold is None else threshold)
        series = _series(df, value, time, pandas)
        if len(series) < 8:
            raise ValueError(f"{len(series)} values are too few to tell what is usual; at least 8 are needed")
        if period is not None and not 1 < period <= len(series) // 2:
            raise ValueError(f"a period of {period} needs at least {2 * period} values; there are {len(series)}")
        expected = {name: _expected(series["value"], *how) for name, how in _seasons(series, period).items()}
        spreads = {name: _spread(series["value"] - each) for name, each in expected.items()}
        # What any season leaves is less; one that leaves nearly as much as none is chance.
        season = min(spreads, key=lambda name: spreads[name] * (0.75 if not name else 1))
        # In a series without any noise a hair's breadth would be strange.
        spread = max(spreads[season], 0.02 * _spread(series["value"] - series["value"].median())) or 1.0
        series["expected"] = expected[season]
        series["deviation"] = (series["value"] - series["expected"]) / spread
        strange = series[series["deviation"].abs() > limit].sort_values("deviation", key=abs, ascending=False)
        told = f" {WORDS.get(season, season)}".rstrip()
        found = df.iloc[strange["row"]].assign(
            expected=strange["expected"].to_numpy(), deviation=strange["deviation"].round(1).to_numpy()
        )
        found["reason"] = [
            f"{got:,.6g} is {abs(got - usual):,.4g} {'above' if got > usual else 'below'} the {usual:,.6g} expected"
            f"{told}: {abs(far):.1f} times the usual deviation"
            for got, usual, far in strange[["value", "expected", "deviation"]].itertuples(index=False, name=None)
        ]
        return found


def _series(df: Any, value: str, time: str, pandas: Any) -> Any:
    """The values in the order of time, with the rows that they stand in; what has no value or time is told."""
    for name in (value, time) if time else (value,):
        if name not in df.columns:
            columns = [str(column) for column in df.columns]
            near = get_close_matches(str(name), columns, 3)
            told = f"did you mean: {', '.join(near)}?" if near else f"the columns are: {', '.join(columns)}"
            raise ValueError(f"no column {name!r}; {told}")
    numbers = pandas.to_numeric(df[value], errors="coerce")
    held = df[value].notna()
    if held.any() and numbers.notna().sum() < 0.5 * held.sum():
        raise ValueError(f"the column {value!r} holds no numbers, but for example {df[value][held].iloc[0]!r}")
    times = range(len(df))
    if time:
        times = df[time]
        if times.dtype.kind not in "Mi":
            times = pandas.to_datetime(times, errors="coerce", format="mixed", utc=True)
        times = times.reset_index(drop=True)
    series = pandas.DataFrame({"row": range(len(df)), "time": times, "value": numbers.astype(float).to_numpy()})
    series = series[series["value"].abs() != float("inf")].dropna()
    if len(series) < len(df):
        left_out = f"{len(df) - len(series):,} of {len(df):,}"
        print(f"rows left out, as they have no value{' or no time' if time else ''}: {left_out}")
    return series.sort_values("time", kind="stable").reset_index(drop=True)


def _seasons(series: Any, period: int | None) -> dict[str, tuple[Any, int]]:
    """The seasons that there may be: the part of it in which each value stands, and how many values a round has."""
    seasons: dict[str, tuple[Any, int]] = {"": (None, 5)}
    if period:
        return {f"at this place of {period}": (series.index.to_series() % period, period)}
    if series["time"].dtype.kind == "M":
        step = series["time"].diff().dt.total_seconds().median()
        span = (series["time"].iloc[-1] - series["time"].iloc[0]).total_seconds()
        for name, (part_s, parts) in CYCLES.items():
            if 0 < step <= parts * part_s / 4 and span >= 3 * parts * part_s:
                seasons[name] = (getattr(series["time"].dt, name), round(part_s * parts / step))
    return seasons


def _expected(values: Any, phases: Any, round_length: int) -> Any:
    """A straight line, what runs slowly around it, and the season: each by medians, which a few outliers don't move."""
    half = len(values) // 2
    slope = (values.diff(half) / half).median()
    line = slope * values.index.to_series()
    reach = min(round_length, half - 1)

    def slow(each: Any) -> Any:
        # At both ends it goes on as it came, turned around: a median of what is on one side only lags behind.
        first, last = each.iloc[:3].median(), each.iloc[-3:].median()
        before, after = 2 * first - each.iloc[reach:0:-1], 2 * last - each.iloc[-2 : -reach - 2 : -1]
        whole = type(each)([*before, *each, *after], index=range(-reach, len(each) + reach))
        return whole.rolling(2 * reach + 1, center=True).median().loc[each.index]

    if phases is None:
        return line + slow(values - line)
    rest = values - line - slow(values - line)
    season = rest.groupby(phases).transform("median")
    return line + season + slow(values - line - season)


def _spread(rest: Any) -> float:
    """As large as a standard deviation, but half of the values may be anything."""
    return float(1.4826 * rest.abs().median() or 1.2533 * rest.abs().mean())


@test_plugin(name="weeks")
def test_weeks(call: Any) -> None:
    """Finds a quiet day that would be usual on another day of the week."""
    import pandas

    sold = [100 + day % 5 if day % 7 < 5 else 20 + day % 3 for day in range(140)]
    sold[70] = 22  # a Monday
    frame = pandas.DataFrame({"day": pandas.date_range("2024-01-01", periods=140), "sold": sold})
    found = call(frame, "sold", "day")
    assert found.index.to_list() == [70]
    assert "below" in found["reason"].iloc[0]
    assert "day of the week" in found["reason"].iloc[0]
