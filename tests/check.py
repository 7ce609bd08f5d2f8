"""Run every check: lint, format, types and tests. Other arguments go to pytest.

python tests/check.py            # everything
python tests/check.py --quick    # lint, format, types, and only the tests closest to the change
"""

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

SOURCES = [".ci", "bench", "docs", "goose_like", "profiles", "tests", "toolkits"]
"""The folders with our Python files. Others in the checkout, such as what an agent wrote there, are not checked."""

CHECKS = {
    "lint": ["ruff", "check", *SOURCES],
    "format": ["ruff", "format", "--check", *SOURCES],
    # A thousand tests start commands; each would compile our modules anew where PYTHONDONTWRITEBYTECODE is set.
    "bytecode": ["compileall", "-q", "goose_like", "toolkits"],
}

# mypy uses one core for a minute, and the tests leave some time of both: they run at the same time.
TYPES = ["mypy"]

# Tests wait a lot, so there are two workers more than the two cores of CI. With "worksteal" a worker that is done takes
# over tests of the others; the default hands out all of tests/e2e to one worker.
PARALLEL = ["-n", "4", "--dist", "worksteal"]

# A test that waits for ever fails after ten minutes and shows where it waits. The slowest test takes one minute.
TIME_LIMIT = ["--timeout", "600"]


def list_changed_files() -> list[Path]:
    """Return the files with uncommitted changes or, if there are none, the files of the last commit."""
    changed = run_git("diff", "--name-only", "HEAD") + run_git("ls-files", "--others", "--exclude-standard")
    return [ROOT / name for name in changed or run_git("diff", "--name-only", "HEAD~1", "HEAD")]


def run_git(*words: str) -> list[str]:
    process = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return process.stdout.splitlines()


def find_tests(path: Path) -> set[Path]:
    """Find the tests closest to a changed file: its own test file, else the tests of the nearest folder that has some.

    The tests of `goose_like/x/y.py` are in `tests/x/test_y.py`, those of `toolkits/goose_like_toolkits/x/` in
    `tests/toolkits/x/` or `tests/toolkits/test_x.py`.
    """
    tests = ROOT / "tests"
    if path.is_relative_to(tests):
        return {path} if path.name.startswith("test_") and path.is_file() else set()
    if path.is_relative_to(ROOT / "goose_like"):
        place = path.relative_to(ROOT / "goose_like")
    elif path.is_relative_to(ROOT / "toolkits/goose_like_toolkits"):
        place = "toolkits" / path.relative_to(ROOT / "toolkits/goose_like_toolkits")
    else:
        return set()
    while place != Path():
        test_file = (tests / place).with_name(f"test_{place.stem}.py")
        if test_file.is_file():
            return {test_file}
        place = place.parent
        if near := set((tests / place).glob("test_*.py")):
            return near
    return set()


def run_check(name: str, command: list[str]) -> bool:
    """Run one check as `python -m ...` and return whether it passed."""
    print(f"== {name}: {' '.join(command)}", flush=True)
    return subprocess.run([sys.executable, "-m", *command], cwd=ROOT, check=False).returncode == 0


def main(arguments: list[str]) -> int:
    """Run all checks, also after one that failed. Tests come last, so that pytest's summary line ends the output.

    Only wrong types come after it.
    """
    checks = dict(CHECKS)
    if "--quick" in arguments:
        arguments.remove("--quick")
        del checks["bytecode"]
        near = set().union(*map(find_tests, list_changed_files())) | {ROOT / "tests/architecture/test_packages.py"}
        files = sorted(str(path.relative_to(ROOT)) for path in near)
        checks["tests"] = ["pytest", "-x", *PARALLEL, *TIME_LIMIT, *files, *arguments]
    else:
        checks["tests"] = ["pytest", *PARALLEL, *TIME_LIMIT, *arguments]
    with tempfile.TemporaryFile("w+") as output:
        print(f"== types, beside the others: {' '.join(TYPES)}", flush=True)
        types = subprocess.Popen([sys.executable, "-m", *TYPES], cwd=ROOT, stdout=output, stderr=subprocess.STDOUT)
        failed = [name for name, command in checks.items() if not run_check(name, command)]
        if types.wait():
            failed.append("types")
            output.seek(0)
            print(output.read(), flush=True)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
