"""Everything that has to hold before a change lands: lint, format, types, tests. Arguments go to pytest."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CHECKS = {
    "lint": ["ruff", "check", "."],
    "format": ["ruff", "format", "--check", "."],
    "types": ["mypy"],
    # A thousand tests start commands; each would compile our modules anew where Python is told to write no bytecode.
    "bytecode": ["compileall", "-q", "goose_like", "toolkits"],
    # One more than the cores that CI has, as tests wait a lot. Workers steal: xdist's usual first share of an eighth of
    # the tests would be all of tests/e2e for one worker, long after the others are through.
    "tests": ["pytest", "-n", "3", "--dist", "worksteal", *sys.argv[1:]],
}


def main() -> int:
    """Runs all checks, also after one that failed; the tests come last, so that their closing line ends the output."""
    failed = []
    for name, command in CHECKS.items():
        print(f"== {name}: {' '.join(command)}", flush=True)
        if subprocess.run([sys.executable, "-m", *command], cwd=ROOT, check=False).returncode:
            failed.append(name)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
