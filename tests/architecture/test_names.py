"""No package of goose_like knows a toolkit or a tool by name: it asks attributes of the tool."""

import ast

from goose_like.agent.goose09 import load_toolkit
from goose_like.config.entry_points import BUILTIN_ENTRY_POINTS
from tests import ROOT

TOOLKITS = list(BUILTIN_ENTRY_POINTS["goose_like.toolkit"])
NAMES = {*TOOLKITS, *(name for toolkit in TOOLKITS for name in load_toolkit(toolkit).tool_names())}

WORDS = {"boss", "code", "hooks", "screen"}
"""Toolkits whose names are ordinary words, such as an exit code. A literal says nothing about these."""

OTHER_MEANINGS = {
    "acp/server.py": {"mcp"},  # the key of a profile for servers, which an editor brings too
    "cli/app.py": {"mcp"},  # a group of commands
    "config/entry_points.py": set(TOOLKITS) - WORDS,  # the table of parts, and which of them is the default
    "config/profile.py": {"web_search"},  # a tool of vendors
    "launch/slash_registry.py": {"mcp"},  # a command of other agents
    "recipes/content.py": {"shell"},  # goose's word for a check
    "recipes/extensions.py": {"mcp", "skills", "developer", "delegate"},  # the table of goose's names and our toolkits
    "recipes/writing.py": {"shell"},  # goose's word for a check
    "providers/anthropic_search.py": {"web_search"},  # a tool of Anthropic's server
    "providers/known_models.py": {"web_search"},  # a tool of vendors
    "providers/openai_search.py": {"web_search"},  # a tool of OpenAI's server
    "providers/json_tool_calls.py": {"finish"},  # the end of the format, for models without native calls
    "providers/responses_wire.py": {"developer"},  # a role
    "providers/registry.py": {"openbb"},  # a shipped profile
    "serve/command.py": {"openbb"},  # a shipped profile
    "serve/openai/request.py": {"developer"},  # a role
    "serve/openai/responses_body.py": {"developer"},  # a role
    "workspace/repositories/start_files.py": {"skills"},  # a folder of agents
    "serve/openbb/client_tools.py": {"get_widget_data", "get_extra_widget_data", "get_params_options"},  # the client's
}
"""Literals that are no name of our toolkit or tool, by file."""


def test_no_package_knows_a_toolkit_or_tool_by_name():
    known: dict[str, set[str]] = {}
    for path in sorted((ROOT / "goose_like").rglob("*.py")):
        nodes = ast.walk(ast.parse(path.read_text()))
        texts = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
        if names := (texts & NAMES) - WORDS:
            known[str(path.relative_to(ROOT / "goose_like"))] = names
    assert known == OTHER_MEANINGS
