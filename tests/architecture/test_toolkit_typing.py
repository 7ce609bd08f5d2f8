"""Tests that type checkers see the types of an installed goose_like from a toolkit outside the repository.

The toolkit is the one from docs/toolkits.md. The test builds two small virtual environments, which share the installed
dependencies of the present one, and installs goose_like into them: in editable mode, and from a wheel.
"""

import json
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests import ROOT

PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet")
OFFLINE = ("--no-index", "--no-deps", "--no-build-isolation")
EXAMPLE = re.compile(r"```python\n# (\w+\.py)\n(.*?)```", re.DOTALL)
CORRECT, MISSPELT = 'self.notifier.status("asking the fast model")', "self.workspace.nope()"
IMPORT_ERRORS = re.compile(r"\[import[\w-]*\]|Cannot find implementation|missing library stubs|reportMissing\w*")


def run(*command: str | Path, cwd: Path) -> str:
    """Run a command without network and return its output. Type checkers exit with 1 when they find errors."""
    # Without this variable pyright asks PyPI for its newest version.
    env = {**os.environ, "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1", "PYTHONPATH": ""}
    process = subprocess.run(list(map(str, command)), cwd=cwd, env=env, capture_output=True, text=True, check=False)
    assert process.returncode in (0, 1), process.stdout + process.stderr
    return process.stdout


def create_environment(tmp_path: Path, *, is_editable: bool) -> Path:
    """Create an environment in which only goose_like is installed, and return its interpreter."""
    folder = tmp_path / ("editable" if is_editable else "wheel")
    run(sys.executable, "-m", "venv", "--without-pip", folder, cwd=tmp_path)
    python = folder / "bin" / "python"
    site_packages = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'), end='')", cwd=tmp_path)
    (Path(site_packages) / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    what = ("--editable", ROOT) if is_editable else (ROOT,)
    run(*PIP, "--python", python, "install", *OFFLINE, "--no-compile", *what, cwd=tmp_path)
    origin = run(python, "-c", "import goose_like; print(goose_like.__file__, end='')", cwd=tmp_path)
    assert Path(origin).is_relative_to(ROOT if is_editable else site_packages)
    return python


@pytest.fixture
def toolkit(tmp_path: Path) -> Path:
    """Return a folder with the files of docs/toolkits.md, and a copy of the toolkit with a misspelt method."""
    folder = tmp_path / "toolkit"
    folder.mkdir()
    for name, text in EXAMPLE.findall((ROOT / "docs/toolkits.md").read_text()):
        (folder / name).write_text(text)
    text = (folder / "dice_toolkit.py").read_text()
    assert CORRECT in text
    (folder / "misspelt_toolkit.py").write_text(text.replace(CORRECT, MISSPELT))
    return folder


@pytest.mark.slow
def test_type_checkers_resolve_every_import_and_report_a_misspelt_method(tmp_path: Path, toolkit: Path) -> None:
    files = sorted(path.name for path in toolkit.glob("*.py"))
    assert {"dice_toolkit.py", "test_dice_toolkit.py", "misspelt_toolkit.py"} <= set(files)
    # mypy wants the marker `py.typed` in a wheel, and pyright does not follow each kind of editable install.
    check_with_mypy(create_environment(tmp_path, is_editable=False), toolkit, files)
    check_with_pyright(create_environment(tmp_path, is_editable=True), toolkit, files)


def check_with_mypy(python: Path, toolkit: Path, files: list[str]) -> None:
    mypy = (sys.executable, "-m", "mypy", "--strict", "--config-file", "", "--cache-dir", toolkit.parent / "cache")
    output = run(*mypy, "--python-executable", python, *files, cwd=toolkit)
    assert '"Workspace" has no attribute "nope"' in output
    assert output.count("nope") == 1
    assert not IMPORT_ERRORS.search(output), output


def check_with_pyright(python: Path, toolkit: Path, files: list[str]) -> None:
    pyright = (sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", python)
    diagnostics = json.loads(run(*pyright, *files, cwd=toolkit))["generalDiagnostics"]
    reports = [(Path(each["file"]).name, each.get("rule", ""), each["message"]) for each in diagnostics]
    assert [(file, rule) for file, rule, message in reports if "nope" in message] == [
        ("misspelt_toolkit.py", "reportAttributeAccessIssue")
    ]
    assert not [rule for _, rule, _ in reports if IMPORT_ERRORS.search(rule)], reports
