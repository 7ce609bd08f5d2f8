"""Measure the start with 30 installed toolkits, 3 of them used. `python bench/toolkits.py [--rounds N]`."""

import argparse
import asyncio
import os
import sys
import tempfile
from pathlib import Path

from server import print_medians, read_processor_s, record, shuffle

INSTALLED, USED = 30, 3
TARGET_MS = 20

MODULE = '''"""One of many toolkits."""

from goose_like.toolkit import Toolkit, tool


class Kit(Toolkit):
    """Counts words."""

    def prompt(self) -> str:
        return "Count words with the tool."

    @tool
    def count_{number}(self, text: str, least: int = 1) -> int:
        """Count the words of a text.

        Args:
            text: The text.
            least: Minimum number of letters of a word.
        """
        return sum(len(word) >= least for word in text.split())
'''


def install(site: Path, number: int) -> None:
    """Write the files that pip writes for a package with one toolkit."""
    info = site / f"bench_kit_{number}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: bench-kit-{number}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[goose_like.toolkit]\nkit_{number} = bench_kit_{number}:Kit\n")
    (info / "RECORD").write_text("")
    (site / f"bench_kit_{number}.py").write_text(MODULE.format(number=number))


async def main(rounds: int) -> None:
    with tempfile.TemporaryDirectory(prefix="goose-like-bench-") as name:
        folder = Path(name)
        for part in ("work", "empty", "home/config/profiles"):
            (folder / part).mkdir(parents=True)
        for number in range(INSTALLED):
            install(folder / "site", number)
        kits = ", ".join(f"kit_{number}" for number in range(0, INSTALLED, INSTALLED // USED))
        for profile, more in (("none", ""), ("used", f", {kits}")):
            text = f"extends: default\ntoolkits: [developer{more}]\n"
            (folder / f"home/config/profiles/{profile}.yaml").write_text(text)
        subjects = {
            "no toolkits installed": ("none", "empty"),
            f"{INSTALLED} installed, none used": ("none", "site"),
            f"{INSTALLED} installed, {USED} used": ("used", "site"),
        }
        starts: dict[str, list[float]] = {subject: [] for subject in subjects}
        work: dict[str, list[float]] = {subject: [] for subject in subjects}
        for count in range(rounds + 1):  # the first round warms the caches
            for subject in shuffle(subjects, count):
                profile, site = subjects[subject]
                env = {**os.environ, "GOOSE_LIKE_HOME": str(folder / "home"), "PYTHONPATH": str(folder / site)}
                words = ["run", "--model", "openai:bench", "--sandbox", "full", "--profile", profile, "go"]
                before_s = read_processor_s()
                _, start_s = await record([sys.executable, "-m", "goose_like", *words], env, 1, str(folder / "work"))
                if count:
                    starts[subject].append(start_s * 1000)
                    work[subject].append((read_processor_s() - before_s) * 1000)
    print(f"medians of {rounds} interleaved runs; the start should be at most {TARGET_MS} ms later")
    print_medians("process start to first request", starts)
    print_medians("processor time of the whole process", work)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=25)
    asyncio.run(main(parser.parse_args().rounds))
