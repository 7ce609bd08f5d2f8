"""Tests of the package order, of names, and of what never enters the repository."""

import ast
import re
import subprocess
import sys
from graphlib import TopologicalSorter
from itertools import combinations
from pathlib import Path

import pytest

from tests import ROOT

LAYERS = [
    ["core"],
    ["config", "terminal"],
    ["providers", "workspace"],
    ["sessions"],
    ["agent"],
    ["sdk"],
    ["toolkit", "testing"],
    ["cli", "serve", "templates"],
    ["__main__"],
]
"""The packages of goose_like from the bottom up. A file imports only from its own package and from lower layers."""

PARTICIPLE = re.compile(
    r"told|made|said|found|shown|taken|given|kept|held|drawn|written|chosen|gone|left|seen|built|sent|known|"
    r"(?!embed$|speed$|proceed$|succeed$|exceed$|feed$|need$)[a-z]{3,}ed"
)
ALLOWED_PARTICIPLES: dict[str, str] = {}
"""Function names that may be a bare participle, each with the reason."""

OURS = sorted([*(ROOT / "goose_like").rglob("*.py"), *(ROOT / "toolkits").rglob("*.py")])


def name_module(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    parts = parts[1:] if parts[0] == "toolkits" else parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_module(path): path for path in OURS}


def read_imports(module: str) -> set[str]:
    """Return the modules of ours that a module imports anywhere in its text."""
    path = MODULES[module]
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            base = ".".join(package.split(".")[: len(package.split(".")) - node.level + 1]) if node.level else ""
            stem = ".".join(filter(None, (base, node.module)))
            names |= {stem, *(f"{stem}.{alias.name}" for alias in node.names)}
    return names & set(MODULES) - {module}


def layer_of(module: str) -> int:
    package = module.split(".")[1]
    return next(index for index, layer in enumerate(LAYERS) if package in layer)


@pytest.mark.parametrize("module", sorted(name for name in MODULES if name.startswith("goose_like.")))
def test_a_module_imports_from_its_own_package_and_lower_layers(module):
    imports = {name for name in read_imports(module) if name.count(".")}
    own = module.split(".")[1]
    assert {name for name in imports if name.split(".")[1] != own and layer_of(name) >= layer_of(module)} == set()


def test_no_import_cycle():
    graph = {
        module: {name for name in read_imports(module) if MODULES[name].name != "__init__.py"} for module in MODULES
    }
    assert "goose_like.agent.journal" in graph["goose_like.agent.exchange"]  # the reader of imports works
    TopologicalSorter(graph).prepare()


def test_the_core_imports_no_toolkit_and_only_terminal_layers_import_rich():
    for path in OURS:
        text = path.read_text()
        package = path.relative_to(ROOT).parts[1]
        if path.is_relative_to(ROOT / "goose_like"):
            assert not re.search(r"^\s*(import|from) goose_like_toolkits", text, re.MULTILINE), path
            if package not in ("terminal", "cli", "core"):
                assert not re.search(r"^\s*(import|from) rich\b", text, re.MULTILINE), path
        elif path.name not in ("cli.py", "conpack.py", "run.py", "view.py"):
            assert "goose_like.cli" not in text, path


@pytest.mark.parametrize("path", OURS, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_function_is_named_by_a_bare_participle(path):
    names = [
        node.name
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and PARTICIPLE.fullmatch(node.name.strip("_"))
        and not any("property" in ast.unparse(decorator) for decorator in node.decorator_list)
    ]
    assert [name for name in names if name not in ALLOWED_PARTICIPLES] == []


def differ_by_one_letter(one: str, other: str) -> bool:
    if abs(len(one) - len(other)) > 1 or one == other:
        return False
    short, long = sorted((one, other), key=len)
    if len(short) == len(long):
        return sum(a != b for a, b in zip(short, long, strict=True)) == 1
    return any(long[:index] + long[index + 1 :] == short for index in range(len(long)))


def test_no_two_modules_of_a_package_differ_by_one_letter():
    assert differ_by_one_letter("spawn", "spawns")
    assert differ_by_one_letter("fold", "gold")
    pairs = [
        (str(one.relative_to(ROOT)), other.name)
        for one, other in combinations(OURS, 2)
        if one.parent == other.parent and differ_by_one_letter(one.stem, other.stem)
    ]
    assert pairs == []


@pytest.mark.parametrize("path", OURS, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_and_functions_stay_short(path):
    text = path.read_text()
    assert text.count("\n") <= 450
    tree = ast.parse(text)
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    assert [node.name for node in functions if (node.end_lineno or 0) - node.lineno >= 60] == []
    assert not any(isinstance(node, ast.Name) and node.id == "TYPE_CHECKING" for node in ast.walk(tree))


def count_lines(folder: str) -> int:
    return sum(path.read_text().count("\n") for path in (ROOT / folder).rglob("*.py"))


def test_the_core_stays_small():
    assert count_lines("goose_like/core") <= 2_000
    assert (ROOT / "goose_like/agent/exchange.py").read_text().count("\n") <= 260
    assert (ROOT / "ARCHITECTURE.md").stat().st_size <= 8_000


def list_tracked_files() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode:
        pytest.skip("this is not a git checkout")
    return [ROOT / name for name in listed.stdout.decode().split("\0") if name and (ROOT / name).is_file()]


def test_no_registry_host_and_no_machine_path_is_committed():
    hosts = [
        "pypi." + "org",
        "python" + "hosted.org",
        "registry.npm" + "js",
        "--index" + "-url",
        "--extra-index" + "-url",
    ]
    paths = ["/" + "work/main", "/" + "work/shared", "/" + "tmp/dev", "/" + "root/", f"{ROOT}/"]
    forbidden = re.compile("|".join([*map(re.escape, hosts), *(rf"(?<!\w){re.escape(path)}" for path in paths)]))
    matches = [
        f"{path.relative_to(ROOT)}:{number}: {match[0]}"
        for path in list_tracked_files()
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1)
        if (match := forbidden.search(line))
    ]
    assert matches == []


def test_no_large_file_is_committed():
    assert [str(path) for path in list_tracked_files() if path.stat().st_size > 200_000] == []


def test_importing_the_agent_loads_no_heavy_library():
    heavy = {"openai", "anthropic", "rich", "genai_prices", "xllamacpp"}
    program = f"import sys, goose_like.agent.build; print(*sorted({heavy} & set(sys.modules)))"
    process = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert process.stdout == "\n"
