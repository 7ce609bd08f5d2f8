"""An analysis from a messy file to sums and a picture: the real command and kernel, only the model is played."""

import csv
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.toolkits.code.messy_orders import ROWS, write

SCRIPT = Path(__file__).with_name("analysis.yaml")
needs_extra = pytest.mark.skipif(
    not all(map(find_spec, ("ipykernel", "pandas", "matplotlib"))), reason="the extra `analyst` is not installed"
)
PNG = b"\x89PNG\r\n\x1a\n"


def sums(file: Path) -> dict[str, int]:
    """In cents."""
    with file.open(encoding="utf-8", newline="") as source:
        return {name: round(float(sold) * 100) for name, sold in list(csv.reader(source))[1:]}


@needs_extra
def test_analysis_from_file_to_chart(place):
    truth = write(place.work / "orders.csv")
    done = place.run("run", "--profile", "analyst", "--model", f"scripted:{SCRIPT}", "what was sold where and when?")
    assert (done.returncode, done.stdout.split()[:2]) == (0, ["The", "sums"]), done.stderr
    assert [(each["is_error"], each["output"]) for each in results(place) if each["is_error"]] == []
    assert f"{truth.kept} rows, 5 towns" in results(place)[4]["output"]
    assert sums(place.work / "by_town.csv") == truth.by_town
    assert sums(place.work / "by_month.csv") == truth.by_month
    assert (place.work / "by_month.png").read_bytes().startswith(PNG)

    # The figure and the plugin's picture are among the session's outputs.
    (session,) = (place.home / "state/sessions").iterdir()
    pictures = [file for file in (session / "outputs").iterdir() if file.suffix == ".png"]
    assert {file.read_bytes()[:8] for file in pictures} == {PNG}
    report = re.findall(
        rf"{re.escape(str(session))}/outputs/[\w.-]+", "".join(each["output"] for each in results(place))
    )
    assert report
    assert [path for path in report if not Path(path).is_file()] == []


@needs_extra
def test_analysis_of_a_workbook_a_csv_and_parquet(place):
    import pandas as pd

    rows = [
        ["Sales of May", None, None],
        [None] * 3,
        ["town", "product", "sold"],
        ["Köln", "lamp", 3],
        ["Kiel", "lamp", "(1)"],
    ]
    pd.DataFrame([*rows, ["Bonn", "chair", 2]]).to_excel(
        place.work / "sales.xlsx", sheet_name="Sales", header=False, index=False
    )
    text = "Prices\nfrom Müller\nproduct;price;note\nlamp;34,90;a\nchair;1.234,56;b\n"
    (place.work / "prices.csv").write_bytes(text.encode("cp1252"))
    towns = pd.DataFrame({"town": ["Köln", "Bonn", "Kiel"], "region": ["west", "west", "north"]})
    towns.to_parquet(place.work / "towns.parquet")
    script = SCRIPT.with_name("files.yaml")
    done = place.run("run", "--profile", "analyst", "--model", f"scripted:{script}", "what did each region sell?")
    assert done.returncode == 0, done.stderr
    assert [each["output"] for each in results(place) if each["is_error"] or "[raised" in each["output"]] == []
    assert not [each["output"] for each in results(place) if "Warning" in each["output"]]
    total = pd.read_excel(place.work / "total.xlsx", engine="calamine")
    assert dict(zip(total.region, total.total.round(2), strict=True)) == {"north": -34.9, "west": 2573.82}
    assert (place.work / "total.png").read_bytes().startswith(PNG)


def test_order_generator_is_deterministic(tmp_path):
    first, again = tmp_path / "first.csv", tmp_path / "again.csv"
    assert write(first) == write(again)
    assert first.read_bytes() == again.read_bytes()
    with first.open(encoding="utf-8") as source:
        assert sum(1 for _ in source) == ROWS + 1


def results(place) -> list[dict]:
    """Return the results of the tools, in order."""
    return [event["result"] for event in place.events() if event["type"] == "tool_finished"]
