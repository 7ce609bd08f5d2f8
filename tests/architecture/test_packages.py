"""Tests of the package order, of names, and of what never enters the repository."""

import ast
import re
import subprocess
import sys
from functools import cache
from graphlib import TopologicalSorter
from itertools import combinations
from pathlib import Path

import pytest

from tests import ROOT
from tests.architecture.sources import parse

LAYERS = [
    ["core"],
    ["config", "terminal"],
    ["providers", "workspace"],
    ["sessions"],
    ["agent"],
    ["recipes"],
    ["launch", "sdk"],
    ["toolkit", "provider", "moderator", "testing", "api"],
    ["cli", "serve", "acp", "jobs", "templates"],
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


@cache
def read_imports(module: str) -> set[str]:
    """Return the modules of ours that a module imports anywhere in its text."""
    path = MODULES[module]
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    names: set[str] = set()
    for node in ast.walk(parse(path)):
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


def test_a_module_imports_from_its_own_package_and_lower_layers():
    wrong = []
    for module in [name for name in MODULES if name.startswith("goose_like.")]:
        imports = {name for name in read_imports(module) if name.count(".")}
        own = module.split(".")[1]
        others = [name for name in imports if name.split(".")[1] != own]
        wrong += [(module, name) for name in others if layer_of(name) >= layer_of(module)]
    assert wrong == []


def test_no_import_cycle():
    graph = {
        module: {name for name in read_imports(module) if MODULES[name].name != "__init__.py"} for module in MODULES
    }
    assert "goose_like.agent.journal" in graph["goose_like.agent.exchange"]  # the reader of imports works
    TopologicalSorter(graph).prepare()


PRIVATE_NAMES = {
    # Its documentation tells subclasses to use this attribute.
    "goose_like.recipes.template": {"_undefined_name"},
    "goose_like.terminal.prompt_internals": {"_redraw", "_running_in_terminal", "_running_in_terminal_f"},
    # The packages that these two adapt are pinned, or run in a process of their own.
    "goose_like_toolkits.components.worker.corrections": {"_check_in_root", "_plugin_prompt_generator", "_repo_url"},
    "goose_like_toolkits.code.worker.launch": {"_get_exc_info", "_showtraceback"},
    # Python leaves no other way to call what a process wants to run at its end, and to skip the rest.
    "goose_like.launch.exit": {"_run_exitfuncs"},
    # The SDK has no public request without its checks. Where the names change, malformed lists are refused whole again.
    "goose_like_toolkits.mcp.listing": {"_dispatcher", "_stamp"},
}
"""The private names of other libraries, by the only module that uses them. The tests of that module run the library."""
DOCUMENTED = {"_exit", "_getframe"}
"""Functions of `os` and `sys` with public documentation."""


def read_private_names(module: str) -> tuple[set[str], set[str]]:
    """Return the private names that a module defines, and the private attributes that it uses."""
    defined: set[str] = set()
    used: set[str] = set()
    for node in ast.walk(parse(MODULES[module])):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            defined.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            defined.add(node.id)
        elif isinstance(node, ast.Attribute) and node.attr.startswith("_"):
            is_own = ast.unparse(node.value) in ("self", "cls") and isinstance(node.ctx, ast.Store)
            (defined if is_own else used).add(node.attr)
    return defined, used


def test_private_names_of_other_libraries_are_used_in_one_tested_place():
    names = {module: read_private_names(module) for module in MODULES}
    defined = set().union(*(own for own, _ in names.values()))
    found = {}
    for module, (_, used) in names.items():
        foreign = {name for name in used - defined - DOCUMENTED if not name.endswith("__")}
        if foreign:
            found[module] = foreign
    assert found == PRIVATE_NAMES


def test_threads_are_started_where_every_exception_reaches_its_caller():
    """A `StopIteration` in a thread of asyncio never reaches its caller before Python 3.12."""
    starts = re.compile(r"asyncio\.to_thread|\.run_in_executor\(")
    found = [module for module, path in MODULES.items() if starts.search(path.read_text())]
    assert found == ["goose_like.core.threads"]


def test_the_core_imports_no_toolkit_and_only_terminal_layers_import_rich():
    for path in OURS:
        text = path.read_text()
        package = path.relative_to(ROOT).parts[1]
        if path.is_relative_to(ROOT / "goose_like"):
            assert not re.search(r"^\s*(import|from) goose_like_toolkits", text, re.MULTILINE), path
            if package not in ("terminal", "cli"):
                assert not re.search(r"^\s*(import|from) rich\b", text, re.MULTILINE), path
        else:
            assert not re.search(r"goose_like\.(cli|acp|jobs)\b", text), path


def test_no_function_is_named_by_a_bare_participle():
    names = [
        (str(path.relative_to(ROOT)), node.name)
        for path in OURS
        for node in ast.walk(parse(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and PARTICIPLE.fullmatch(node.name.strip("_"))
        and not any("property" in ast.unparse(decorator) for decorator in node.decorator_list)
    ]
    assert [name for name in names if name[1] not in ALLOWED_PARTICIPLES] == []


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


MAX_FILE_LINES = 600
MAX_FUNCTION_LINES = 80


def has_exhaustive_match(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Tell whether a function holds a `match` whose last case is `assert_never`: one case an event makes it long."""
    matches = [node for node in ast.walk(function) if isinstance(node, ast.Match)]
    return any("assert_never" in ast.unparse(match.cases[-1]) for match in matches)


def test_files_stay_short():
    assert [path for path in OURS if path.read_text().count("\n") > MAX_FILE_LINES] == []


def test_functions_stay_short():
    long = []
    for path in OURS:
        for node in ast.walk(parse(path)):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            lines = (node.end_lineno or 0) - node.lineno + 1
            if lines > MAX_FUNCTION_LINES and not has_exhaustive_match(node):
                long.append((path, node.name))
    assert long == []


ROOT_ENTRIES = """
.ci .github .gitignore AGENTS.md ARCHITECTURE.md CHANGELOG.md CONTRIBUTING.md LICENSE README.md SECURITY.md
bench docs goose_like mkdocs.yml profiles pyproject.toml tests toolkits
"""


def test_the_root_holds_only_entries_of_the_product():
    entries = {path.relative_to(ROOT).parts[0] for path in list_tracked_files()}
    assert entries == set(ROOT_ENTRIES.split())


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
