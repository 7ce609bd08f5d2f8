"""Tests of lists of tools: how they are split, and that an entry is a name or a name with a pattern, or nothing."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from goose_like.config.tool_list import ToolList, parse_tool, read_rules

LISTS: TypeAdapter[tuple[str, ...]] = TypeAdapter(ToolList)


@pytest.mark.parametrize(
    ("value", "entries"),
    [
        ("", ()),
        (" , ", ()),
        ("Read", ("Read",)),
        ("Read, Grep,Glob", ("Read", "Grep", "Glob")),
        ("Bash(git log:*) Bash(jq:*)\nRead", ("Bash(git log:*)", "Bash(jq:*)", "Read")),
        ("Bash(a, b), Read", ("Bash(a, b)", "Read")),
        ('Bash(grep -E "(a|b)" src:*), Read', ('Bash(grep -E "(a|b)" src:*)', "Read")),
        ("Bash(git log, Read", ("Bash(git log, Read",)),
        ("Read), Grep", ("Read)", "Grep")),
        (["Read, Grep", "Bash(a b)"], ("Read", "Grep", "Bash(a b)")),
        (["Bash(git log", "Read"], ("Bash(git log", "Read")),
        ([], ()),
    ],
)
def test_entries_of_a_list(value, entries):
    assert LISTS.validate_python(value) == entries


@pytest.mark.parametrize("value", [5, {"Read": True}, [1]])
def test_other_values_are_errors(value):
    with pytest.raises(ValidationError):
        LISTS.validate_python(value)


@pytest.mark.parametrize(
    ("entry", "parsed"),
    [
        ("Read", ("Read", "")),
        ("mcp__x-y", ("mcp__x-y", "")),
        ("Bash(git log:*)", ("Bash", "git log:*")),
        ("Bash( * )", ("Bash", "*")),
        ("Bash(echo $(date):*)", ("Bash", "echo $(date):*")),
        *((entry, None) for entry in ("", "*", "Bash()", "Bash( )", "Bash(", "Bash)", "Bash(git log", "Bash(a)b")),
        *((entry, None) for entry in ("Bash(a)(b)", "(a)", "Bash (a)", "Bash(a))", "Bash((a)", "Bash(a)) (b)", "a.b")),
    ],
)
def test_an_entry_is_a_name_with_a_pattern_or_nothing(entry, parsed):
    assert parse_tool(entry) == parsed


@given(st.text("Ab(), *:$", max_size=20))
def test_no_pattern_is_lost(text):
    """Find each letter of a list again: what an entry names is exactly what the list says."""
    entries = LISTS.validate_python(text)
    assert "".join(entries).replace(" ", "").replace(",", "") == text.replace(" ", "").replace(",", "")
    for entry in entries:
        if parsed := parse_tool(entry):
            name, pattern = parsed
            assert entry in (name, f"{name}({entry[len(name) + 1 : -1]})")
            assert ("(" in entry) == bool(pattern)


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("git push, path:docs/**", ["git push", "path:docs/**"]),
        ("Bash", ["*"]),
        ("bash", ["bash"]),  # the command, not every command
        ("bash(ls)", ["ls"]),
        ("Read Edit(src/*) WebFetch(domain:x.org)", ["path:/w/src/*", "domain:x.org"]),
    ],
)
def test_rules_and_tools_of_other_agents(text, rules):
    assert [*read_rules(text, Path("/w"))] == rules
