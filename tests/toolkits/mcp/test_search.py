"""Names of tools, the choice of what is sent, and the search."""

import pytest
from goose_like_toolkits.mcp.definitions import Definitions, ToolDefinition
from goose_like_toolkits.mcp.offer_plan import ListedTool, choose_sent, list_tools, name_tool
from goose_like_toolkits.mcp.search import search_tools
from goose_like_toolkits.mcp.server import ServerConfig
from hypothesis import given
from hypothesis import strategies as st

NAMES = st.text(alphabet="ab_-.é ", min_size=1, max_size=70)


def make_server(name: str = "x", tools: tuple[str, ...] = ("*",)) -> ServerConfig:
    return ServerConfig(name=name, origin="a test", command=("true",), tools=tools)


def make_tools(**descriptions: str) -> tuple[ListedTool, ...]:
    tools = tuple(ToolDefinition(name=name, description=text) for name, text in descriptions.items())
    return list_tools(make_server(), Definitions(tools=tools))


@pytest.mark.parametrize(
    ("server", "tool", "name"),
    [
        ("git", "git_status", "mcp__git__git_status"),
        ("my-db", "run-query", "mcp__my-db__run-query"),
        ("a", "_b", "mcp__a___b"),
    ],
)
def test_a_name_is_kept_where_vendors_take_it(server, tool, name):
    assert name_tool(server, tool) == name


@pytest.mark.parametrize(("server", "tool"), [("a.b", "c"), ("a", "c d"), ("a", "x" * 80), ("a__b", "c"), ("a_", "b")])
def test_another_name_ends_with_a_hash(server, tool):
    name = name_tool(server, tool)
    assert name.startswith("mcp__a")
    assert len(name) <= 64
    assert name[-7] == "_"


@given(st.lists(st.tuples(NAMES, NAMES), unique=True, max_size=20))
def test_no_two_tools_have_one_name(pairs):
    names = {name_tool(server, tool) for server, tool in pairs}
    assert len(names) == len(pairs)


def test_patterns_pick_tools_and_equal_names_count_once():
    tools = tuple(ToolDefinition(name=name, description=name) for name in ("git_add", "git_log", "other", "git_add"))
    listed = list_tools(make_server("git", ("git_*",)), Definitions(tools=tools))
    assert [tool.name for tool in listed] == ["mcp__git__git_add", "mcp__git__git_log"]


def test_schemas_and_descriptions_are_cleaned():
    schema = {"type": "object", "$defs": {"X": {"type": "string"}}, "properties": {"a": {"$ref": "#/$defs/X"}}}
    tool = ToolDefinition(name="a", description="one\x1b[2Jtwo" + "x" * 9_000, input_schema=schema)
    (listed,) = list_tools(make_server(), Definitions(tools=(tool,)))
    assert listed.spec.schema == {"type": "object", "properties": {"a": {"type": "string"}}}
    assert "\x1b" not in listed.spec.description
    assert len(listed.spec.description) == 4_000


def test_servers_are_sent_as_a_whole_while_they_fit():
    small = make_tools(a="x" * 100)
    large = make_tools(a="x" * 4_000)
    assert choose_sent({"one": small, "two": large, "three": small}, 300) == {"one", "three"}
    assert choose_sent({"one": small, "two": large, "three": small}, 3_000) == {"one", "two", "three"}


def test_a_search_finds_by_name_words_and_other_forms():
    tools = make_tools(
        create_issue="Open a new issue in a repository",
        listIssues="List what was reported",
        merge="Merge a pull request",
    )

    def find(query: str) -> list[str]:
        return [tool.definition.name for tool in search_tools(tools, query)]

    assert find("create an issue") == ["create_issue", "listIssues"]
    assert find("issues") == ["create_issue", "listIssues"]
    assert find("pull requests") == ["merge"]
    assert find("merge") == ["merge"]
    assert find("mcp__x__listIssues") == ["listIssues"]
    assert find("weather") == []
