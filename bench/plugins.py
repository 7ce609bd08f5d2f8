"""Measure the start of a session with 200 plugins. `python bench/plugins.py [--rounds N]`.

Each start is a new process that has imported the modules of a session. The time is that of importing our modules for
plugins and reading the folder, compared with an empty folder.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

COUNT = 200
TARGET_MS = 150

YAML = """name: count_rows_{number}
enabled: true
required: false
description: >-
  Counts the rows of a table that fulfil a condition number {number}, and gives the table of those rows.
  Use it when somebody asks how many there are of something.
examples: |-
  count, rows = count_rows_{number}(df, "price", 100)

parameters:
  - name: df
    type: DataFrame
    required: true
    description: >-
      The table whose rows are looked at.
  - name: column
    type: str
    required: true
    description: The name of the column that is compared.
  - name: least
    type: float
    required: false
    description: The smallest value that counts. Rows with less are left out.

returns:
  - name: count
    type: int
    description: How many rows there are.
  - name: rows
    type: DataFrame
    description: The rows themselves.

configurations:
  is_strict: true
  limit: {number}
"""

SOURCE = '''from pathlib import Path

from taskweaver.plugin import Plugin, register_plugin, test_plugin

Path({marker!r}).touch()


def compare(values, least, is_strict):
    """Mark the values that are large enough."""
    return values > least if is_strict else values >= least


@register_plugin
class CountRows(Plugin):
    """Counts rows."""

    seen = 0

    def __call__(self, df, column: str, least: float = 0.0):
        if column not in df.columns:
            raise ValueError(f"there is no column {{column!r}}; there are {{list(df.columns)}}")
        rows = df[compare(df[column], least, self.config.get("is_strict", True))]
        self.seen += len(rows)
        limit = self.config.get("limit")
        if limit and len(rows) > limit:
            self.log("info", f"{{len(rows)}} rows, cut to {{limit}}")
            rows = rows.head(limit)
        self.ctx.add_artifact(name="rows", file_name="rows.csv", type="df", val=rows)
        return len(rows), rows


@test_plugin(name="counts", description="counts what is larger")
def test_counts(plugin):
    import pandas as pd

    count, _ = plugin(pd.DataFrame({{"a": [1, 2, 3]}}), "a", 1)
    assert count == 2
'''

START = """
import sys, time
import goose_like.agent.build, goose_like_toolkits.code.toolkit
begun = time.perf_counter()
from pathlib import Path
from goose_like_toolkits.code.plugins.project import Project
project = Project.read(Path(sys.argv[1]))
print((time.perf_counter() - begun) * 1000, len(project.usable))
"""


def measure_start(folder: Path, home: Path) -> tuple[float, int]:
    """Return the milliseconds of one start, and the number of usable plugins."""
    env = {**os.environ, "GOOSE_LIKE_HOME": str(home)}
    command = [sys.executable, "-c", START, str(folder)]
    ended = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    took, count = ended.stdout.split()
    return float(took), int(count)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=9)
    rounds = options.parse_args().rounds
    with tempfile.TemporaryDirectory() as place:
        top = Path(place)
        many, none, marker = top / "many", top / "none", top / "imported"
        many.mkdir()
        none.mkdir()
        for number in range(COUNT):
            (many / f"count_rows_{number}.yaml").write_text(YAML.format(number=number))
            (many / f"count_rows_{number}.py").write_text(SOURCE.format(marker=str(marker)))
        took: dict[str, list[float]] = {"an empty folder": [], "the first time": [], "from then on": []}
        for at in range(rounds):
            home = top / f"home{at}"
            took["an empty folder"].append(measure_start(none, home)[0])
            for when in ("the first time", "from then on"):
                spent, count = measure_start(many, home)
                assert count == COUNT
                took[when].append(spent)
        assert not marker.exists(), "a plugin was imported"
    for when, spent in took.items():
        print(f"{when:>16}: {statistics.median(spent):6.1f} ms (best {min(spent):.1f})")
    print(f"target for {COUNT} plugins: {TARGET_MS} ms; none was imported")


if __name__ == "__main__":
    main()
