import json
from dataclasses import replace

import pytest
from goose_like_toolkits.mcp.config import expand_server, list_variables, load_servers
from goose_like_toolkits.mcp.server import ServerConfig

from goose_like.config.secrets import store_key
from goose_like.config.trust import ProjectConfig
from goose_like.core.errors import UsageError
from goose_like.core.masking import mask_text


def write_personal(home, servers):
    file = home / "config" / "mcp.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"mcpServers": servers}))


def make_project(tmp_path, servers):
    text = servers if isinstance(servers, str) else json.dumps({"mcpServers": servers})
    return ProjectConfig(tmp_path, {".mcp.json": text})


def load_one(entry):
    (server,), problems = load_servers({"one": entry}, None)
    assert problems == []
    return server


def test_without_files_there_are_no_servers():
    assert load_servers({}, None) == ([], [])
    assert load_servers({"definition_tokens": 500, "tools": ["read"]}, None) == ([], [])


def test_the_order_is_profile_person_project(home, tmp_path):
    write_personal(home, {"z": {"command": "z"}, "b": {"command": "b"}})
    project = make_project(tmp_path, {"a": {"command": "a"}, "y": {"url": "https://example.org/mcp"}})
    servers, problems = load_servers({"m": {"command": "m"}}, project)
    assert problems == []
    assert [server.name for server in servers] == ["m", "z", "b", "a", "y"]
    assert [server.is_projects for server in servers] == [False, False, False, True, True]
    assert servers[0].origin == "the profile"
    assert servers[1].origin.endswith("config/mcp.json")
    assert servers[3].origin == ".mcp.json"


def test_a_project_never_replaces_a_server_of_the_person(home, tmp_path):
    write_personal(home, {"git": {"command": "mine"}})
    (server,), problems = load_servers({}, make_project(tmp_path, {"git": {"command": "theirs"}}))
    assert server.command == ("mine",)
    assert len(problems) == 1
    assert ".mcp.json: the server 'git' is not used" in problems[0]


def test_a_command_of_a_project_is_another_server_in_another_folder(tmp_path):
    entry = {"s": {"command": "python", "args": ["server.py"]}}
    (here,), _ = load_servers({}, make_project(tmp_path / "a", entry))
    (there,), _ = load_servers({}, make_project(tmp_path / "b", entry))
    assert here.folder == str(tmp_path / "a")
    assert here.fingerprint != there.fingerprint


@pytest.mark.parametrize(
    ("entry", "fields"),
    [
        ({"command": "uvx mcp-server-git --repository ."}, {"command": ("uvx", "mcp-server-git", "--repository", ".")}),
        ({"command": "/opt/server -v"}, {"command": ("/opt/server", "-v")}),
        ({"command": "npx", "args": ["-y", "a b"]}, {"command": ("npx", "-y", "a b")}),
        ({"command": ["npx", "-y"]}, {"command": ("npx", "-y")}),
        ({"command": "a", "env": {"PORT": 80, "ON": True}}, {"variables": {"PORT": "80", "ON": "true"}}),
        ({"command": "a", "args": None, "env": None}, {"command": ("a",), "variables": {}}),
        ({"url": "https://e.org/mcp", "headers": {"X": "1"}}, {"transport": "http", "headers": {"X": "1"}}),
        ({"url": "https://e.org/mcp", "type": "streamable-http"}, {"transport": "http"}),
        ({"url": "https://e.org/sse"}, {"transport": "sse"}),
        ({"url": "https://e.org/sse", "type": "http"}, {"transport": "http"}),
        ({"url": "https://e.org/mcp", "type": "SSE"}, {"transport": "sse"}),
        ({"url": "${BASE}/mcp", "oauth": {"clientId": "c"}}, {"url": "${BASE}/mcp"}),
        ({"url": "https://e.org", "oauth": {"client_id": "c", "client_secret": "${S}"}}, {"client_secret": "${S}"}),
        ({"command": "a", "timeout_s": 5, "start_timeout_s": 9}, {"timeout_s": 5, "start_timeout_s": 9}),
        ({"command": "a", "tools": ["read_*"]}, {"tools": ("read_*",)}),
    ],
)
def test_what_a_profile_may_say(entry, fields):
    server = load_one(entry)
    assert {name: getattr(server, name) for name in fields} == fields


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ("npx", "expected a mapping with `command` or `url`"),
        ({}, "neither `command` nor `url`"),
        ({"command": "a", "url": "https://e.org"}, "both `command` and `url`"),
        ({"url": "e.org/mcp"}, "expected an address such as https://example.org/mcp, not 'e.org/mcp'"),
        ({"url": "https://[::1"}, "expected an address"),
        ({"url": "https://e.org", "type": "stdio"}, "needs `command`"),
        ({"command": "a", "type": "pigeon"}, "expected stdio, http or sse, not 'pigeon'"),
        ({"command": "a 'b"}, "no closing quotation"),
        ({"command": "a", "args": "b"}, "args: expected"),
        ({"command": "a", "env": {"A B": "1"}}, "'A B' is no name of a variable"),
        ({"command": "a", "timeout_s": -1}, "seconds above zero"),
    ],
)
def test_a_broken_entry_is_one_problem_and_the_others_load(entry, problem, home):
    write_personal(home, {"broken": entry, "good": {"command": "g"}})
    servers, problems = load_servers({}, None)
    assert [server.name for server in servers] == ["good"]
    assert len(problems) == 1
    assert "the server 'broken' is left out" in problems[0]
    assert problem in problems[0]


def test_a_misspelt_key_in_a_profile_leaves_the_server_out():
    servers, problems = load_servers({"one": {"command": "a", "tolls": ["read"]}}, None)
    assert servers == []
    assert problems == ["the profile: the server 'one' is left out: unknown key 'tolls'; did you mean 'tools'?"]


def test_keys_of_other_agents(home):
    write_personal(
        home,
        {
            "off": {"command": "a", "disabled": True},
            "off too": {"command": "a", "enabled": False},
            "more": {"command": "a", "alwaysAllow": ["x"], "icon": {}, "timeout": 60000, "env_vars": ["HOME"]},
            "codex": {"url": "https://e.org", "bearer_token_env_var": "T", "env_http_headers": {"X-Org": "ORG"}},
            "goose": {"cmd": "a", "envs": {"K": "v"}, "timeout": 300},
        },
    )
    servers, problems = load_servers({}, None)
    assert problems == []
    more, codex, goose = servers
    assert (more.timeout_s, more.variables) == (60, {"HOME": "${HOME}"})
    assert codex.headers == {"Authorization": "Bearer ${T}", "X-Org": "${ORG}"}
    assert (goose.command, goose.variables, goose.timeout_s) == (("a",), {"K": "v"}, 300)


@pytest.mark.parametrize(
    "text",
    ["{", "[]", '{"mcpServers": []}', "\ufeff{", "[" * 100_000, '{"servers": {}}', '{"one": {"command": "a"}}'],
)
def test_a_broken_file_is_one_problem(text, tmp_path):
    servers, problems = load_servers({}, make_project(tmp_path, text))
    assert servers == []
    assert len(problems) == 1
    assert problems[0].startswith(".mcp.json")


def test_a_personal_file_that_cannot_be_read(home):
    (home / "config" / "mcp.json").mkdir(parents=True)
    servers, (problem,) = load_servers({}, None)
    assert servers == []
    assert "mcp.json can't be read: it is a folder" in problem


def test_variables_are_replaced(monkeypatch):
    monkeypatch.setenv("WHERE", "/data")
    monkeypatch.setenv("HOME", "/home/ann")
    server = load_one(
        {
            "command": "~/bin/server",
            "args": ["${WHERE}/x", "${MISSING:-none}", "${EMPTY:-}", "$WHERE", "${workspaceFolder}"[:-1]],
            "env": {"A": "<${env:WHERE}>"},
            "cwd": "~/work",
        }
    )
    expanded = expand_server(server)
    assert expanded.command == ("/home/ann/bin/server", "/data/x", "none", "", "$WHERE", "${workspaceFolder")
    assert expanded.variables == {"A": "</data>"}
    assert expanded.folder == "/home/ann/work"
    assert list_variables(server) == {"WHERE": False, "MISSING": True, "EMPTY": True}


def test_a_missing_variable_is_named():
    server = load_one({"url": "https://e.org", "headers": {"Authorization": "Bearer ${MY_TOKEN}"}})
    with pytest.raises(UsageError, match=r"'one' needs MY_TOKEN.*goose-like mcp login one"):
        expand_server(server)


def test_stored_keys_are_for_servers_of_the_person_alone(tmp_path):
    store_key("MY_TOKEN", "stored-0123456789")
    entry = {"command": "a", "env": {"TOKEN": "${MY_TOKEN}"}}
    assert expand_server(load_one(entry)).variables == {"TOKEN": "stored-0123456789"}
    (server,), _ = load_servers({}, make_project(tmp_path, {"one": entry}))
    with pytest.raises(UsageError, match=r"MY_TOKEN.*export MY_TOKEN=\.\.\.$"):
        expand_server(server)


def test_secrets_in_the_configuration_are_masked():
    entry = {"command": "a", "env": {"API_TOKEN": "plain-42-secret-text"}}
    expand_server(load_one(entry))
    entry = {"url": "https://e.org", "headers": {"Authorization": "Bearer other-42-secret-text"}}
    expand_server(load_one(entry))
    assert mask_text("plain-42-secret-text other-42-secret-text") == "[masked:API_TOKEN] [masked:Authorization]"


def test_the_fingerprint_does_not_depend_on_values(monkeypatch):
    server = load_one({"command": "a", "env": {"T": "${V}"}})
    monkeypatch.setenv("V", "1")
    first = server.fingerprint
    monkeypatch.setenv("V", "2")
    assert server.fingerprint == first
    assert replace(server, origin="elsewhere", timeout_s=1).fingerprint == first
    assert ServerConfig(name="one", origin="x", command=("b",)).fingerprint != first


def test_the_path_of_a_file_may_have_spaces(tmp_path):
    file = tmp_path / "my server"
    file.touch()
    assert load_one({"command": str(file)}).command == (str(file),)
