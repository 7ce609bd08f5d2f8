"""The work of the commands `toolkit ...`."""

import inspect
import re
import textwrap
from importlib.resources import files
from pathlib import Path
from string import Template

from goose_like.agent.goose09 import load_toolkit
from goose_like.agent.hook_runner import list_hook_points
from goose_like.agent.present_toolkits import find_present_toolkits
from goose_like.agent.toolkit import Toolkit
from goose_like.agent.toolkit_hooks import toolkit_errors
from goose_like.config.entry_points import (
    describe_unused_entry_point,
    list_entry_points,
    list_other_packages,
    list_overridden_entry_points,
    list_unused_entry_points,
)
from goose_like.config.trust import load_trusted_project
from goose_like.core.errors import GooseLikeError, UsageError
from goose_like.core.notifier import Notifier
from goose_like.core.tool import Tool
from goose_like.providers.json_tool_calls import format_type
from goose_like.sdk.lint import collect_tools, lint_toolkit
from goose_like.terminal.report_table import print_table

_NAME = re.compile(r"[a-z][a-z0-9]*([-_][a-z0-9]+)*")
_MAX_CHARACTERS = 40


def print_toolkits() -> None:
    """Print every installed toolkit with its package."""
    rows = []
    for name, point in list_entry_points("goose_like.toolkit").items():
        try:
            docstring = load_toolkit(name).__doc__ or ""
            description, _, _ = docstring.strip().partition("\n")
        except GooseLikeError as error:
            description = f"broken: {error}"
        rows.append((name, description, point.package))
    print_table(("name", "description", "package"), rows, "")
    here = Path.cwd()
    if present := find_present_toolkits(here, load_trusted_project(here), Notifier()):
        print(f"\nactive here without a line in the profile, as their files exist: {', '.join(present)}")
    if packages := list_other_packages():
        print(f"\nthe code of {', '.join(packages)} runs with your rights, outside the sandbox")
    unused = map(describe_unused_entry_point, list_unused_entry_points())
    for sentence in (*describe_conflicts("goose_like.toolkit"), *unused):
        print(f"\nnot used: {sentence}")


def describe_conflicts(group: str) -> list[str]:
    """Return a sentence for each name that two packages offer."""
    conflicts = []
    for point, other in list_overridden_entry_points(group):
        reason = f"the package {other.package!r} has the same name; uninstall one of them"
        conflicts.append(f"{point.name!r} of the package {point.package!r}, because {reason}")
    return conflicts


def print_toolkit(name: str) -> None:
    """Print a toolkit's tools as the model sees them; neither a model nor the toolkit's requirements are needed."""
    toolkit = load_toolkit(name)
    with toolkit_errors(name):
        tools = collect_tools(toolkit)
        warnings = list(lint_toolkit(toolkit))
    print(_get_own_docstring(toolkit))
    if prompt := _read_prompt(toolkit):
        print(f"\nprompt:\n{textwrap.indent(prompt, '    ')}")
    if hooks := list_hook_points(toolkit):
        print(f"\nhooks: {', '.join(hooks)}")
    for tool in tools:
        _print_tool(tool)
    if warnings:
        print()
    for warning in warnings:
        print(f"warning: {warning}")


def _print_tool(tool: Tool) -> None:
    """Print a tool's description and arguments."""
    print(f"\n{tool.name}: {tool.spec.description}")
    if tool.options.needs:
        print(f"    needs {tool.options.needs}")
    required = tool.spec.schema.get("required", [])
    for name, schema in tool.spec.schema["properties"].items():
        kind = format_type(schema)
        if name not in required:
            kind += ", optional"
        description = schema.get("description", "")
        print(f"    {name} ({kind}) {description}".rstrip())


def _get_own_docstring(kind: type[Toolkit]) -> str:
    """Return the docstring of a class, not one that it inherits."""
    return inspect.cleandoc(vars(kind).get("__doc__") or "")


def _read_prompt(kind: type[Toolkit]) -> str:
    """Return the section for the system prompt, or a hint if it needs a session."""
    bare = object.__new__(kind)
    bare.config = {}
    try:
        return kind.prompt(bare).strip()
    except Exception:  # foreign code, which may use what a session sets
        return "(made in a session)"


def write_toolkit(name: str, parent: Path) -> Path:
    """Create the folder `parent/name` with a package from a template: a toolkit, a test without a model, a README."""
    if not _NAME.fullmatch(name) or len(name) > _MAX_CHARACTERS:
        raise UsageError(f"{name!r} is no valid toolkit name; use lowercase letters, digits and '-', such as my-tools")
    toolkits = list_entry_points("goose_like.toolkit")
    if name in toolkits:
        package = toolkits[name].package
        raise UsageError(f"the package {package!r} already has a toolkit {name!r}; choose another name")
    folder = parent / name
    words = re.split("[-_]", name)
    module = "_".join([*words, "toolkit"])
    values = {
        "name": name,
        "project": "-".join([*words, "toolkit"]),
        "module": module,
        "kind": "".join(map(str.capitalize, words)) + "Toolkit",
    }
    templates = files("goose_like") / "templates" / "toolkit"
    try:
        folder.mkdir(parents=True)
        for template in templates.iterdir():
            text = Template(template.read_text(encoding="utf-8")).substitute(values)
            file_name = template.name.removesuffix(".txt").replace("toolkit.py", f"{module}.py")
            with (folder / file_name).open("x", encoding="utf-8") as file:
                file.write(text)
    except FileExistsError as error:
        raise UsageError(f"{error.filename} already exists; choose another name or --path") from error
    except OSError as error:
        raise UsageError(f"cannot write {folder}: {error.strerror}; choose another --path") from error
    return folder
