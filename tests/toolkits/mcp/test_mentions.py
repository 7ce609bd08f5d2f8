"""`@SERVER:URI` in messages."""

import pytest
from goose_like_toolkits.mcp.mentions import MAX_MENTIONS, ResourceMention, find_mentions, format_resource


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("read @docs:file:///a.md.", [("docs", "file:///a.md")]),
        ("@docs:x and (@db:table/1)", [("docs", "x"), ("db", "table/1")]),
        ("@docs:x @docs:x", [("docs", "x")]),
        ("ann@docs:x @other:y @docs: @docs", []),
    ],
)
def test_only_resources_of_known_servers_are_found(text, found):
    assert find_mentions(text, {"docs", "db"}) == [ResourceMention(*pair) for pair in found]


def test_a_message_names_few_resources():
    text = " ".join(f"@docs:{number}" for number in range(100))
    assert len(find_mentions(text, {"docs"})) == MAX_MENTIONS


def test_a_long_resource_is_cut():
    text = format_resource(ResourceMention("docs", "x"), "y" * 60_000)
    assert text.startswith("[x of the MCP server 'docs', as data]\ny")
    assert text.endswith("\n[10,000 more characters]")
