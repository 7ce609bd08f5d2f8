import csv

from checking import assert_unchanged, read, run, run_python

SUMMARY = [["harbour", 3, 7.3, 8.8], ["north", 5, 4.5, 7.5], ["south", 3, 10.5, 12.0]]
REJECTED = [("week-11", 6), ("week-11", 7), ("week-12", 5), ("week-13", 4), ("week-13", 6)]


def check_files() -> None:
    rows = list(csv.DictReader(read("summary.csv").splitlines()))
    assert rows and list(rows[0]) == ["station", "readings", "mean", "max"], "summary.csv has other columns"
    names = [row["station"] for row in rows]
    assert names == ["harbour", "north", "south"], f"summary.csv has the stations {names}"
    for row, (station, count, mean, largest) in zip(rows, SUMMARY, strict=True):
        assert row["readings"] == str(count), f"{station} has {row['readings']} readings, not {count}"
        # Halves may be rounded up or down.
        assert abs(float(row["mean"]) - mean) < 0.11, f"{station} has a mean of {row['mean']}, not {mean}"
        assert abs(float(row["max"]) - largest) < 0.11, f"{station} has a maximum of {row['max']}, not {largest}"
        decimals = [value.partition(".")[2] for value in (row["mean"], row["max"])]
        assert [len(each) for each in decimals] == [1, 1], f"{station} has not one decimal: {row}"
    rejected = list(csv.DictReader(read("rejected.csv").splitlines()))
    assert rejected and list(rejected[0]) == ["file", "line", "reason"], "rejected.csv has other columns"
    places = sorted((row["file"].removeprefix("data/").removesuffix(".csv"), int(row["line"])) for row in rejected)
    assert places == REJECTED, f"rejected.csv has the lines {places}"
    assert all(row["reason"].strip() for row in rejected), "rejected.csv has no reasons"


assert_unchanged("data/README.md", "data/week-11.csv", "data/week-12.csv", "data/week-13.csv")
check_files()
assert run("git", "status", "--porcelain") == "", "there are changes that were not committed"
assert "summarize.py" in run("git", "ls-files").split(), "summarize.py was not committed"
run_python("summarize.py")
check_files()
with open("data/week-13.csv", "a") as file:
    file.write("2026-03-28;20,0;SOUTH\n")
run_python("summarize.py")
assert "south,4,12.9,20.0" in read("summary.csv"), "summarize.py does not read the files anew"
