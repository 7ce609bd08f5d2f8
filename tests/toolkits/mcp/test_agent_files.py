import json

import pytest
from goose_like_toolkits.mcp.agent_files import AGENTS, find_agent_servers
from goose_like_toolkits.mcp.config import load_servers
from goose_like_toolkits.mcp.personal_file import add_entries, remove_entry

from goose_like.core.errors import GooseLikeError, UsageError

STDIO = {"command": "server", "args": ["-v"], "env": {"K": "v"}}


@pytest.fixture(autouse=True)
def person(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def write(person, path, content):
    file = person / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content if isinstance(content, str) else json.dumps(content))


CODEX = """
model = "x"
[mcp_servers.a]
command = "server"
args = ["-v"]
env = { K = "v" }
startup_timeout_sec = 9
"""
GOOSE = """
extensions:
  developer: {type: builtin, name: developer, enabled: true}
  a: {type: stdio, cmd: server, args: [-v], envs: {K: v}, enabled: true, timeout: 300}
"""
OPENCODE = {"mcp": {"a": {"type": "local", "command": ["server", "-v"], "environment": {"K": "v"}, "enabled": True}}}


@pytest.mark.parametrize(
    ("agent", "path", "content"),
    [
        ("claude", ".claude.json", {"mcpServers": {"a": STDIO}, "numStartups": 3}),
        ("claude-desktop", ".config/Claude/claude_desktop_config.json", {"mcpServers": {"a": STDIO}}),
        ("codex", ".codex/config.toml", CODEX),
        ("cursor", ".cursor/mcp.json", {"mcpServers": {"a": STDIO}}),
        ("gemini", ".gemini/settings.json", {"mcpServers": {"a": STDIO}, "theme": "dark"}),
        ("goose", ".config/goose/config.yaml", GOOSE),
        ("opencode", ".config/opencode/opencode.json", OPENCODE),
        ("vscode", ".config/Code/User/mcp.json", {"servers": {"a": {"type": "stdio", **STDIO}}, "inputs": []}),
        ("windsurf", ".codeium/windsurf/mcp_config.json", {"mcpServers": {"a": STDIO}}),
    ],
)
def test_each_agent(agent, path, content, person, tmp_path):
    write(person, path, content)
    (found,) = find_agent_servers(tmp_path, agent)
    assert found.problems == ()
    (server,) = found.servers
    assert (server.name, server.command, server.variables) == ("a", ("server", "-v"), {"K": "v"})
    assert find_agent_servers(tmp_path) == [found]
    # The copied entry means the same.
    add_entries({"a": found.entries["a"]})
    (copied,), problems = load_servers({}, None)
    assert problems == []
    assert copied.fingerprint == server.fingerprint


def test_every_agent_is_tested():
    cases = test_each_agent.pytestmark[0].args[1]
    assert {case[0] for case in cases} == set(AGENTS)


def test_servers_of_claude_that_hold_in_one_folder(person, tmp_path):
    projects = {str(tmp_path / "here"): {"mcpServers": {"b": {"command": "b"}}}, "/there": {"mcpServers": {"c": STDIO}}}
    write(person, ".claude.json", {"mcpServers": {"a": STDIO}, "projects": projects})
    (found,) = find_agent_servers(tmp_path / "here", "claude")
    assert [server.name for server in found.servers] == ["a", "b"]


def test_the_url_of_gemini_is_an_old_one(person, tmp_path):
    servers = {"old": {"url": "https://e.org/a"}, "new": {"httpUrl": "https://e.org/b"}}
    write(person, ".gemini/settings.json", {"mcpServers": servers})
    (found,) = find_agent_servers(tmp_path, "gemini")
    assert [server.transport for server in found.servers] == ["sse", "http"]


@pytest.mark.parametrize("text", ["{", "[1]", '{"mcpServers": 3}', '{"mcpServers": {"a": 3}}', "[" * 100_000])
def test_a_broken_file_is_no_crash(text, person, tmp_path):
    write(person, ".cursor/mcp.json", text)
    (found,) = find_agent_servers(tmp_path, "cursor")
    assert found.servers == ()


def test_an_unknown_agent(tmp_path):
    with pytest.raises(UsageError, match="did you mean 'cursor'"):
        find_agent_servers(tmp_path, "cursr")


# --- the person's own file


def test_the_file_is_private_and_keeps_other_keys(home):
    file = home / "config/mcp.json"
    file.parent.mkdir(parents=True)
    file.write_text('{"inputs": [1], "mcpServers": {"b": {"command": "b"}}}')
    shown = add_entries({"a": STDIO})
    assert shown == "~/home/config/mcp.json"
    assert json.loads(file.read_text()) == {"inputs": [1], "mcpServers": {"b": {"command": "b"}, "a": STDIO}}
    assert file.stat().st_mode & 0o077 == 0


def test_a_name_is_taken_once():
    add_entries({"a": STDIO})
    with pytest.raises(UsageError, match="has a server 'a' already; remove it first: goose-like mcp remove a"):
        add_entries({"b": STDIO, "a": STDIO})
    assert [server.name for server in load_servers({}, None)[0]] == ["a"]
    assert remove_entry("a")
    assert not remove_entry("a")
    assert load_servers({}, None) == ([], [])


@pytest.mark.parametrize("text", ["{", "[]", '{"mcpServers": []}'])
def test_a_broken_file_is_not_replaced(text, home):
    file = home / "config/mcp.json"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    with pytest.raises(GooseLikeError, match="correct it"):
        add_entries({"a": STDIO})
    assert file.read_text() == text


def test_removing_from_no_file_creates_none(home):
    assert not remove_entry("a")
    assert not (home / "config/mcp.json").exists()
