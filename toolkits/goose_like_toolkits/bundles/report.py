"""The text about a bundle for the person: what it contains, what it may do, and what an update changes."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from difflib import unified_diff
from pathlib import Path

from goose_like.config.bundles import Bundle, Layout
from goose_like.config.front_matter import split_front_matter
from goose_like.config.paths import read_user_file, shorten_home
from goose_like.core.errors import GooseLikeError
from goose_like.core.spelling import format_count
from goose_like.launch.command_files import SHELL_PART
from goose_like.terminal.escape import escape_invisible

from ..hooks.sources import describe_bundle_hooks
from ..hooks.toolkit import describe_hook
from ..mcp.config import parse_bundle_servers
from ..mcp.reach import describe_for_trust
from .contents import Contents

PERMISSIONS = "what runs, and with what"
"""The heading above what a bundle runs, reaches and gets."""

_TITLES: dict[Layout, str] = {
    "agent-plugins": "Agent Plugins 1.0.0",
    "claude": "a plugin of Claude Code",
    "codex": "a plugin of Codex",
}
_MAX_DIFF_LINES = 200
_MAX_TEXT_BYTES = 200_000


def describe_bundle(root: Path, contents: Contents) -> list[str]:
    """Describe a bundle in lines. `root` is the folder of its files."""
    bundle = contents.bundle
    permissions = list_permissions(root, contents)
    title = f"{bundle.name} {bundle.version}".strip()
    lines = [f"{title}: {_TITLES[bundle.layout]}", bundle.description]
    sections = {"it contains": _list_parts(contents), PERMISSIONS: permissions, "not used": contents.problems}
    for heading, section in sections.items():
        rows = [f"  {line}" for line in section]
        if rows:
            lines += [f"{heading}:", *rows]
    return list(map(escape_invisible, filter(None, lines)))


def _list_parts(contents: Contents) -> Iterator[str]:
    bundle = contents.bundle
    skills = [Path(path).parent.name for path in bundle.skills]
    commands = [f"/{bundle.prefix}:{name}" for name in bundle.commands]
    agents = [Path(path).stem for path in bundle.agents]
    hooks = list(contents.hooks)
    parts = {"skill": skills, "command": commands, "agent": agents, "hook": hooks, "server": list(contents.servers)}
    for noun, names in parts.items():
        if names:
            yield f"{format_count(len(names), noun)}: {', '.join(names)}"
    if not any(parts.values()):
        yield "nothing that is used here"


def list_permissions(root: Path, contents: Contents) -> list[str]:
    """List in lines what a bundle runs, reaches and gets. `root` is the folder of its files.

    Add the problems of its servers and hooks to `contents.problems`, which callers read afterwards.
    """
    bundle = contents.bundle
    lines: list[str] = []
    servers, problems = parse_bundle_servers(bundle, contents.servers)
    for server in servers:
        own = {name: value for name, value in server.variables.items() if name not in bundle.variables}
        lines += describe_for_trust(replace(server, variables=own))
    hooks = describe_bundle_hooks(bundle, contents.hooks)
    lines += map(describe_hook, hooks.handlers)
    for problem in (*problems, *hooks.problems):
        if problem not in contents.problems:
            contents.problems.append(problem)
    has_programs = any(server.transport == "stdio" for server in servers)
    if has_programs or hooks.handlers:
        lines.append(f"in the sandbox of commands; may also write in {shorten_home(str(bundle.data))}")
    lines += _list_text_permissions(root, bundle)
    lines = [line.replace(os.path.realpath(bundle.root), "${PLUGIN_ROOT}") for line in lines]
    return lines or ["nothing runs; the model reads its texts"]


def _list_text_permissions(root: Path, bundle: Bundle) -> Iterator[str]:
    """Yield what commands and skills run, and which questions they spare in mode `ask`."""
    for path in (*bundle.commands.values(), *bundle.skills):
        file = root / path
        try:
            text = read_user_file(file)
            source, body = split_front_matter(file, text, ("allowed-tools",))
        except (OSError, ValueError, GooseLikeError):  # the session says why such a file is not used
            continue
        front = source.data if source and isinstance(source.data, Mapping) else {}
        tools = front.get("allowed-tools")
        if isinstance(tools, list):
            tools = ", ".join(map(str, tools))
        if tools:
            yield f"{path} spares questions in mode `ask`: {tools}"
        if path in bundle.commands.values():
            for line in SHELL_PART.findall(body):
                yield f"{path} runs: {line}"


def format_changes(before: Mapping[str, bytes], now: Mapping[str, bytes]) -> list[str]:
    """Return the differences between the files of two copies: diffs of texts, and the names of other files."""
    lines: list[str] = []
    for path in sorted({*before, *now}):
        old = before.get(path, b"")
        new = now.get(path, b"")
        if old == new and (path in before) == (path in now):
            continue
        old_lines = _split_text(old)
        new_lines = _split_text(new)
        if old_lines is None or new_lines is None:
            old_count = len(old)
            new_count = len(new)
            lines.append(f"{path}: {old_count:,} bytes before, {new_count:,} now")
            continue
        diff = list(unified_diff(old_lines, new_lines, f"before/{path}", f"now/{path}", lineterm=""))
        lines += diff[:_MAX_DIFF_LINES]
        more_count = len(diff) - _MAX_DIFF_LINES
        if more_count > 0:
            lines.append(f"[{more_count:,} more lines of {path}]")
    return list(map(escape_invisible, lines))


def _split_text(data: bytes) -> list[str] | None:
    """Split a text into lines. None for other data, and for texts that are too long to read."""
    if len(data) > _MAX_TEXT_BYTES:
        return None
    try:
        return data.decode().splitlines()
    except UnicodeDecodeError:
        return None
