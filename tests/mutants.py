"""Try a sample of the mutants of an area with mutmut, and list those that no test kills.

    pip install mutmut
    nice python -m tests.mutants journal --sample 150

Each area is a copy of the last commit in a folder of its own. Another run goes on where the first one stopped. It takes
over newer commits too: `--again` then tries the survivors again. The sample depends on the names of the mutants only.

Mutants of the path checks write where they may not: run this in a container or as a user without rights.
"""

import argparse
import ast
import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

# For each area the mutated files below goose_like/ and the tests closest to them, below tests/.
AREAS = {
    "loop": ("agent/exchange agent/model_client", "agent/test_[eltair]*.py"),
    "history": (
        "core/history core/context core/usage",
        "core/test_history.py core/test_images.py agent/test_[eijlrt]*.py agent/compaction/test_summary.py",
    ),
    "journal": ("agent/journal", "agent/test_journal.py agent/test_exchange.py agent/test_answer_stream.py"),
    "calls": ("agent/tool_call agent/tool_runner agent/tool_rules", "agent/test_tool_*.py agent/test_limits.py"),
    "paths": (
        "workspace/files config/private_folder workspace/sandbox/path_rules",
        "workspace/test_files.py config/test_private_folder.py workspace/sandbox/test_[his][ogc][mno]*.py "
        "workspace/permissions/test_approval.py",
    ),
    "policy": (
        "workspace/permissions/policy workspace/permissions/permissions workspace/permissions/rules",
        "workspace/permissions workspace/test_workspace.py agent/test_tool_rules.py",
    ),
    "moderators": ("agent/compaction/moderators agent/compaction/summary", "agent/compaction"),
    "wire": (
        "providers/wire providers/openai_wire providers/anthropic_wire providers/event_stream",
        "providers/test_*_wire.py providers/test_event_stream.py providers/test_vendor_rules.py core/test_images.py",
    ),
    "undo": ("workspace/undo/*", "workspace/undo"),
}

# Each test runs hundreds of times: slow ones are left out.
SLOW = (
    "not (three_hundred or any_work or crash_between or may_lack or TestNoLoop or requests_only_grow or becomes_a_link)"
)
CONFIGURATION = """
[tool.mutmut]
source_paths = ["goose_like"]
also_copy = ["tests", "toolkits", "profiles", "docs"]
only_mutate = {files}
pytest_add_cli_args_test_selection = {tests}
pytest_add_cli_args = ["--hypothesis-seed=1", "-p", "no:cacheprovider", "-m", "not local and not slow", "-k", {slow}]
timeout_multiplier = 10
use_git_change_detection = false
"""


def copy_commit(folder: Path, files: list[Path], tests: list[str]) -> None:
    """Copy the last commit into a folder and configure mutmut there."""
    folder.mkdir(parents=True, exist_ok=True)
    with subprocess.Popen(["git", "archive", "HEAD"], cwd=ROOT, stdout=subprocess.PIPE) as archive:
        subprocess.run(["tar", "-x"], cwd=folder, stdin=archive.stdout, check=True)
    for file in files:
        (folder / file).write_text(move_decorators((folder / file).read_text()))
    with open(folder / "pyproject.toml", "a") as file:
        file.write(CONFIGURATION.format(files=[str(path) for path in files], tests=tests, slow=repr(SLOW)))


def move_decorators(source: str) -> str:
    """Replace decorators by assignments below the functions, because mutmut skips decorated functions."""
    lines = source.splitlines()
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for decorator in node.decorator_list:
            if (name := ast.unparse(decorator)) in ("property", "contextmanager", "override"):
                lines[decorator.lineno - 1] = ""
                lines[node.end_lineno - 1] += f"\n{' ' * node.col_offset}{node.name} = {name}({node.name})"
    return "\n".join(lines) + "\n"


def run_mutmut(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run mutmut in a folder so that child processes, too, import the mutated modules."""
    places = [str(folder / "mutants" / name) for name in ("", "toolkits", "profiles")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(places), "HYPOTHESIS_PROFILE": "quick"}
    command = [sys.executable, "-m", "mutmut", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def read_results(folder: Path) -> dict[str, str]:
    """Return the results of all mutants by name."""
    lines = run_mutmut(folder, "results", "--all", "True").stdout.splitlines()
    return dict(line.strip().rsplit(": ", 1) for line in lines if "__mutmut_" in line)


def main() -> None:
    """Prepare the copy, try the mutants of the sample that have no result yet, and print the survivors."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("area", choices=AREAS)
    parser.add_argument("--sample", type=int, default=150)
    parser.add_argument("--folder", type=Path, default=ROOT / "mutants")
    parser.add_argument("--again", action="store_true", help="try survivors again")
    options = parser.parse_args()
    folder = options.folder / options.area
    sources, tests = (words.split() for words in AREAS[options.area])
    os.chdir(ROOT)
    files = sorted(path for name in sources for path in Path("goose_like").glob(f"{name}.py"))
    copy_commit(folder, files, sorted(str(path) for name in tests for path in Path("tests").glob(name)))
    prepared = run_mutmut(folder, "run", "none")  # creates the mutants, finds the tests of each function, then fails
    names = sorted(read_results(folder))
    if not names:
        sys.exit(prepared.stdout + prepared.stderr)
    sample = set(random.Random(1).sample(names, min(options.sample, len(names))))
    results = read_results(folder)
    wanted = {"not checked", "survived", "no tests"} if options.again else {"not checked"}
    if todo := [name for name in sample if results[name] in wanted]:
        run = run_mutmut(folder, "run", "--max-children", "1", *todo)
        print(run.stdout[-2000:], run.stderr[-2000:], sep="\n")
    results = {name: result for name, result in read_results(folder).items() if name in sample}
    print(f"{options.area}: {len(sample)} of {len(names)} mutants:", dict(Counter(results.values())))
    for name in sorted(name for name, result in results.items() if result in ("survived", "no tests")):
        print(run_mutmut(folder, "show", name).stdout)


if __name__ == "__main__":
    main()
