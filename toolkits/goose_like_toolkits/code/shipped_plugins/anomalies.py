"""Plugin `anomalies`: find the unusual rows of a time series, each with a reason."""

from typing import Any

from taskweaver.plugin import Plugin, register_plugin, test_plugin

from ._errors import check_column, import_library

SEASONS = {"hour": (3_600, 24), "dayofweek": (86_400, 7), "month": (2_629_800, 12)}
"""Possible seasons: the length of one part in seconds, and the number of parts."""
LABELS = {"hour": "for this hour of the day", "dayofweek": "for this day of the week", "month": "for this month"}


@register_plugin
class Anomalies(Plugin):
    """A detector that removes the trend (a running median) and the season (the median of each part)."""

    def __call__(
        self, df: Any, value: str, time: str = "", period: int | None = None, threshold: float | None = None
    ) -> Any:
        """Return the rows that deviate from the expected value by more than `threshold` robust deviations.

        Raises:
            ValueError: A column is missing or has no numbers, or there are too few values.
        """
        pandas = import_library("pandas", "anomalies")
        if not hasattr(df, "columns"):
            raise ValueError(f"anomalies takes a data frame, and this is a {type(df).__name__}")
        limit = float(self.config.get("threshold", 4.0) if threshold is None else threshold)
        series = _make_series(df, value, time, pandas)
        if len(series) < 8:
            raise ValueError(f"{len(series)} values are too few to find the usual ones; at least 8 are needed")
        if period is not None and not 1 < period <= len(series) // 2:
            raise ValueError(f"a period of {period} needs at least {2 * period} values; there are {len(series)}")
        expected = {name: _predict(series["value"], *how) for name, how in _list_seasons(series, period).items()}
        spreads = {name: _measure_spread(series["value"] - each) for name, each in expected.items()}
        # Any season lowers the spread a little by chance, so a season must lower it by a quarter.
        season = min(spreads, key=lambda name: spreads[name] * (0.75 if not name else 1))
        # Without a lower limit, a series without noise would report tiny deviations.
        spread = max(spreads[season], 0.02 * _measure_spread(series["value"] - series["value"].median())) or 1.0
        series["expected"] = expected[season]
        series["deviation"] = (series["value"] - series["expected"]) / spread
        unusual = series[series["deviation"].abs() > limit].sort_values("deviation", key=abs, ascending=False)
        label = f" {LABELS.get(season, season)}".rstrip()
        found = df.iloc[unusual["row"]].assign(
            expected=unusual["expected"].to_numpy(), deviation=unusual["deviation"].round(1).to_numpy()
        )
        found["reason"] = [
            f"{actual:,.6g} is {abs(actual - usual):,.4g} {'above' if actual > usual else 'below'} the {usual:,.6g} "
            f"expected{label}: {abs(deviation):.1f} times the usual deviation"
            for actual, usual, deviation in unusual[["value", "expected", "deviation"]].itertuples(
                index=False, name=None
            )
        ]
        return found


def _make_series(df: Any, value: str, time: str, pandas: Any) -> Any:
    """Return the values with their row numbers, in the order of time; print the number of incomplete rows."""
    for name in (value, time) if time else (value,):
        check_column(name, df.columns)
    numbers = pandas.to_numeric(df[value], errors="coerce")
    present = df[value].notna()
    if present.any() and numbers.notna().sum() < 0.5 * present.sum():
        raise ValueError(f"the column {value!r} has no numbers, but for example {df[value][present].iloc[0]!r}")
    times = range(len(df))
    if time:
        times = df[time]
        if times.dtype.kind not in "Mi":
            times = pandas.to_datetime(times, errors="coerce", format="mixed", utc=True)
        times = times.reset_index(drop=True)
    series = pandas.DataFrame({"row": range(len(df)), "time": times, "value": numbers.astype(float).to_numpy()})
    series = series[series["value"].abs() != float("inf")].dropna()
    if len(series) < len(df):
        count = f"{len(df) - len(series):,} of {len(df):,}"
        print(f"rows left out, without a value{' or a time' if time else ''}: {count}")
    return series.sort_values("time", kind="stable").reset_index(drop=True)


def _list_seasons(series: Any, period: int | None) -> dict[str, tuple[Any, int]]:
    """Return the possible seasons: the part of each value, and the number of values per round."""
    seasons: dict[str, tuple[Any, int]] = {"": (None, 5)}
    if period:
        return {f"at this place of {period}": (series.index.to_series() % period, period)}
    if series["time"].dtype.kind == "M":
        step = series["time"].diff().dt.total_seconds().median()
        span = (series["time"].iloc[-1] - series["time"].iloc[0]).total_seconds()
        for name, (part_s, parts) in SEASONS.items():
            if 0 < step <= parts * part_s / 4 and span >= 3 * parts * part_s:
                seasons[name] = (getattr(series["time"].dt, name), round(part_s * parts / step))
    return seasons


def _predict(values: Any, phases: Any, round_length: int) -> Any:
    """Return the sum of a line, a slow change around it and the season, by medians, which resist outliers."""
    half = len(values) // 2
    slope = (values.diff(half) / half).median()
    line = slope * values.index.to_series()
    margin = min(round_length, half - 1)

    def smooth(each: Any) -> Any:
        # Mirror the ends, because a median of values on one side only lags behind.
        first, last = each.iloc[:3].median(), each.iloc[-3:].median()
        before, after = 2 * first - each.iloc[margin:0:-1], 2 * last - each.iloc[-2 : -margin - 2 : -1]
        whole = type(each)([*before, *each, *after], index=range(-margin, len(each) + margin))
        return whole.rolling(2 * margin + 1, center=True).median().loc[each.index]

    if phases is None:
        return line + smooth(values - line)
    rest = values - line - smooth(values - line)
    season = rest.groupby(phases).transform("median")
    return line + season + smooth(values - line - season)


def _measure_spread(rest: Any) -> float:
    """Return a robust standard deviation, which up to half of the values cannot change."""
    return float(1.4826 * rest.abs().median() or 1.2533 * rest.abs().mean())


@test_plugin(name="weeks")
def test_weeks(call: Any) -> None:
    """A quiet Monday is unusual even if Sundays are quiet."""
    import pandas

    sold = [100 + day % 5 if day % 7 < 5 else 20 + day % 3 for day in range(140)]
    sold[70] = 22  # a Monday
    frame = pandas.DataFrame({"day": pandas.date_range("2024-01-01", periods=140), "sold": sold})
    found = call(frame, "sold", "day")
    assert found.index.to_list() == [70]
    assert "below" in found["reason"].iloc[0]
    assert "day of the week" in found["reason"].iloc[0]
