"""Run the fuzz suite: python -m tests.fuzz [--targets NAME ...] [--inputs N] [--seed N] [--state FILE].

Each target gets N random inputs, the same ones for the same seed. With a state file, an interrupted run goes on where
it stopped. `--only NUMBER` checks a single input again and shows its error.
"""

import argparse
import sys
from pathlib import Path

from tests.fuzz.suite import Suite, list_targets


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--targets", nargs="*", choices=list_targets(), default=list_targets(), metavar="NAME")
    parser.add_argument("--inputs", type=int, default=10_000, help="inputs of each target")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--state", type=Path, help="file that keeps the progress; the next run goes on from there")
    parser.add_argument("--only", type=int, metavar="NUMBER", help="check only this input of each target")
    options = parser.parse_args()
    suite = Suite(options.seed, options.state)
    if options.only is not None:
        for name in options.targets:
            suite.check_one(name, options.only)
        return 0
    failures = 0
    for name in options.targets:
        progress = suite.run(name, options.inputs)
        failures += progress.failures
        each_us = progress.seconds / max(progress.done, 1) * 1e6
        slowest = f"slowest: {progress.slowest_s * 1e3:,.1f} ms (number {progress.slowest_number})"
        findings = f"{progress.failures} failures of {len(progress.findings)} kinds"
        print(f"{name:<10} {progress.done:>9,} inputs, {each_us:,.0f} us each; {slowest}; {findings}", flush=True)
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
