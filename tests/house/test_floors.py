"""The house: who may import whom, what ARCHITECTURE.md must name, what never enters the repository."""

import ast
import re
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CORE = ROOT / "goose_like"

FLOORS = {
    1: "aside message memory errors places plain spawner repositories environment contents frames store schema",
    2: "events fault plugins output images trust difference source tree ignored serve/query serve/sse serve/seal "
    "serve/assets",
    3: "readings yaml_nodes artifact cli/guard tool command profile history notifier sandbox records reversal lines "
    "plan cli/visible cli/rows cli/files serve/metrics serve/body serve/results",
    4: "policy provider spawn inspection jail reach keys profile_schema undo sessions providers/wire shorter "
    "command_file cli/code cli/phrases serve/ledger serve/carried serve/client_calls "
    "serve/artifacts serve/citations serve/request serve/surroundings",
    5: "workspace session view providers/openai_wire providers/anthropic_wire providers/door "
    "providers/weights providers/rows profiles_file inbox providers/absent cli/tables cli/slash serve/settings "
    "serve/stream serve/discovery serve/folding cli/plot",
    6: "prices journal summary fork mentions narrowed transfer/transcript transfer/goose09 cli/blocks cli/prompt "
    "cli/clipboard cli/artifact "
    "providers/constrained providers/scripted providers/probe providers/connection serve/guard",
    7: "toolkit moderator nested cli/running cli/markdown cli/table providers/openai providers/anthropic "
    "providers/tagged transfer/archive transfer/markdown transfer/page",
    8: "guarded models exchange synopsis compat testing oversights cli/render cli/completion cli/pages",
    9: "build desk cli/status cli/terminal cli/scaffold providers/local",
    10: "cli/login cli/going_back cli/complete cli/own_command cli/reports cli/trust cli/once "
    "cli/live cli/edit cli/sessions serve/service serve/servable",
    11: "cli/start cli/seat cli/session serve/turn serve/drain",
    12: "cli/chat cli/commands serve/app",
    13: "cli/opening serve/run",
    14: "cli/main serve/cli",
    15: "__main__",
}
"""From the ground up. A file imports only from lower floors; within the providers each is its own stair."""

LATE_IMPORTS = re.compile(
    r"cli/main|cli/opening|serve/cli|plain|prices|keys|providers/.*|__main__|toolkits/developer/web|"
    r"toolkits/boss/cli|toolkits/taskweaver/cli|toolkits/concopilot/(cli|conpack|toolkit|described/entry|repositories/(remote|repository))|"
    r"toolkits/taskweaver/project|toolkits/taskweaver/plugins/.*"
)
"""Where an import may stand within a function: commands, what is heavy and rarely needed, and what may be missing."""

FILES = sorted(CORE.rglob("*.py"))
MODULES = {str(path.relative_to(CORE).with_suffix("")): path for path in FILES if path.name != "__init__.py"}
OURS = [*FILES, *sorted((ROOT / "toolkits").rglob("*.py"))]


def floor_of(module: str) -> int:
    return next((floor for floor, names in FLOORS.items() if module in names.split()), 0)


def imported(module: str) -> set[str]:
    """The modules of goose_like that a module imports anywhere in its text."""
    found = set()
    for node in ast.walk(ast.parse(MODULES[module].read_text())):
        if isinstance(node, ast.Import):
            assert not any(alias.name.startswith("goose_like") for alias in node.names), f"{module}: import relatively"
        if isinstance(node, ast.ImportFrom):
            if node.level == 0:
                assert not (node.module or "").startswith("goose_like"), f"{module}: import relatively"
                continue
            package = Path(module).parts[: -node.level]
            base = "/".join([*package, *(node.module or "").split(".")]).strip("/")
            names = [f"{base}/{alias.name}".strip("/") for alias in node.names]
            found |= {base, *names} & set(MODULES)
    return found


def test_every_file_has_its_floor():
    listed = [name for names in FLOORS.values() for name in names.split()]
    assert len(listed) == len(set(listed))
    assert sorted(set(MODULES) - set(listed)) == []


@pytest.mark.parametrize("module", sorted(MODULES))
def test_imports_come_from_lower_floors(module):
    too_high = {name for name in imported(module) if floor_of(name) >= floor_of(module)}
    assert too_high == set()


def test_no_circles():
    graph = {module: imported(module) for module in MODULES}
    assert graph["exchange"] >= {"journal", "tool"}  # the reader of imports reads
    list(TopologicalSorter(graph).static_order())


def test_the_core_imports_no_toolkit_and_only_the_top_imports_rich():
    for module, path in MODULES.items():
        text = path.read_text()
        assert "import goose_like_toolkits" not in text, module
        assert "from goose_like_toolkits" not in text, module
        if module != "plain" and not module.startswith("cli/"):
            assert not re.search(r"^\s*(import|from) rich\b", text, re.MULTILINE), module


@pytest.mark.parametrize("path", OURS, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_stand_at_the_top(path):
    tree = ast.parse(path.read_text())
    assert not any(isinstance(node, ast.Name) and node.id == "TYPE_CHECKING" for node in ast.walk(tree))
    is_core = path.is_relative_to(CORE)
    if LATE_IMPORTS.fullmatch(str(path.relative_to(CORE if is_core else ROOT).with_suffix(""))):
        return
    late = [
        node.lineno
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    assert late == []


@pytest.mark.parametrize("path", OURS, ids=lambda path: str(path.relative_to(ROOT)))
def test_public_names_have_docstrings(path):
    """Modules, and their functions and classes; not records and errors, whose names and fields say all."""
    tree = ast.parse(path.read_text())
    if not tree.body:
        return
    assert ast.get_docstring(tree), "the module has no door-plate"
    missing = [
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        and not node.name.startswith("_")
        and node.name != "main"
        and not (isinstance(node, ast.ClassDef) and node.bases)
        and not any(isinstance(decorator, ast.Name) and decorator.id == "overload" for decorator in node.decorator_list)
        and not ast.get_docstring(node)
    ]
    assert missing == []


def test_architecture_names_every_file():
    text = (ROOT / "ARCHITECTURE.md").read_text()
    names = [path.relative_to(ROOT) for path in OURS if path.name != "__init__.py"]
    # Spelt with its folder or, where the text is already about that folder, without.
    assert [str(path) for path in names if not re.search(rf"\b{re.escape(path.name)}", text)] == []


def tracked() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout")
    return [ROOT / name for name in listed.stdout.decode().split("\0") if name and (ROOT / name).is_file()]


def test_no_registry_and_no_path_of_a_machine_is_written_anywhere():
    hosts = [
        "pypi." + "org",
        "python" + "hosted.org",
        "registry.npm" + "js",
        "--index" + "-url",
        "--extra-index" + "-url",
    ]
    paths = ["/" + "work/main", "/" + "work/shared", "/" + "tmp/dev", "/" + "root/", f"{ROOT}/"]
    forbidden = re.compile("|".join(map(re.escape, [*hosts, *paths])))
    found = [
        f"{path.relative_to(ROOT)}:{number}: {match[0]}"
        for path in tracked()
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1)
        if (match := forbidden.search(line))
    ]
    assert found == []


def test_nothing_large_is_tracked():
    assert [str(path) for path in tracked() if path.stat().st_size > 200_000] == []


def test_importing_the_core_does_no_work():
    """No vendor's SDK, no screen and no price table before they are needed."""
    heavy = {"openai", "anthropic", "rich", "genai_prices", "xllamacpp"}
    program = f"import sys, goose_like.agent.build; print(*sorted({heavy} & set(sys.modules)))"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stdout == "\n"
