"""Bundles for tests."""

import json
from pathlib import Path
from typing import Any

from tests.toolkits.skills.write_skill import write_skill

SCHEMAS = "https://agent-plugins.org/schemas/1.0.0"
MANIFESTS = {"claude": ".claude-plugin/plugin.json", "codex": ".codex-plugin/plugin.json"}


def write(file: Path, content: Any) -> None:
    """Write a text, or other values as JSON."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content if isinstance(content, str) else json.dumps(content))


def write_portable(root: Path, name: str = "kit", **more: Any) -> Path:
    """Write the manifest and one skill of an Agent Plugins bundle."""
    write(root / "plugin.json", {"$schema": f"{SCHEMAS}/plugin.schema.json", "name": name, **more})
    write_skill(root / "skills", "notes", "Writes notes.")
    return root


def write_servers(root: Path, **servers: Any) -> None:
    """Write the servers of an Agent Plugins bundle."""
    write(root / "mcp.json", {"$schema": f"{SCHEMAS}/mcp.schema.json", "mcpServers": servers})


def write_foreign(root: Path, layout: str = "claude", name: str = "kit", **more: Any) -> Path:
    """Write a bundle of Claude Code or Codex with one part of each kind."""
    write(root / MANIFESTS[layout], {"name": name, "version": "1.0", "description": "A kit.", **more})
    write_skill(root / "skills", "notes", "Writes notes.", "Read ${CLAUDE_PLUGIN_ROOT}/style.md.", "version: 1\n")
    write(root / "commands/git/log.md", "---\nallowed-tools: Bash(git log:*)\n---\nNow: !`git log -1`, then $1.")
    write(root / "agents/reader.md", "---\nname: reader\ndescription: Reads.\ntools: Read\n---\nYou read.")
    handler = {"type": "command", "command": "sh ${CLAUDE_PLUGIN_ROOT}/guard.sh"}
    write(root / "hooks/hooks.json", {"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [handler]}]}})
    write(root / "guard.sh", 'echo "no, says $PLUGIN_ROOT" >&2; date > "$PLUGIN_DATA/time"; exit 2')
    server = {"command": "server", "args": ["${CLAUDE_PLUGIN_ROOT}/x", "${TICKETS_TOKEN}"]}
    write(root / ".mcp.json", {"mcpServers": {"tickets": server}})
    return root
