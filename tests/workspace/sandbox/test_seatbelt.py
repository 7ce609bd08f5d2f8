"""The text of a profile for sandbox-exec. A small evaluator of ours applies it, since macOS is not here."""

import re
from pathlib import Path
from typing import Any

import pytest

from goose_like.workspace.sandbox.path_rules import Rule, Rules
from goose_like.workspace.sandbox.seatbelt import (
    CONFIRMATION,
    SANDBOX_EXEC,
    build_seatbelt_command,
    build_seatbelt_profile,
    find_seatbelt_problem,
)

TABLE: dict[Path, Rule] = {
    Path("/"): "read",
    Path("/dev"): "hidden",
    Path("/tmp"): "tmp",
    Path("/tmp/private"): "write",
    Path("/Users/me"): "private",
    Path("/Users/me/.cargo"): "read",
    Path("/Users/me/.cargo/credentials"): "hidden",
    Path("/Users/me/work"): "write",
    Path("/Users/me/work/.git/hooks"): "protected",
    Path('/Users/me/work/a "b" \\c'): "hidden",
}
RULES = Rules(TABLE, Path("/tmp/private"))
_RULE = re.compile(r'\((allow|deny) (file-read\*|file-write\*) \(subpath "((?:[^"\\]|\\.)*)"\)\)')


_TOKEN = re.compile(r'\s*(?:(\(|\))|(#?"(?:[^"\\]|\\.)*")|([a-z0-9*-]+))', re.DOTALL)
# Names of Apple's sandbox(7) and of the profiles in /System/Library/Sandbox/Profiles.
_OPERATIONS = (
    "process-exec",
    "process-fork",
    "process-codesigning-status",
    "process-info",
    "signal",
    "sysctl-read",
    "ipc-posix-sem",
    "ipc-posix-shm",
    "pseudo-tty",
    "mach-lookup",
    "file-read",
    "file-write",
    "file-ioctl",
    "file-read-metadata",
    "file-write-unlink",
    "file-write-create",
    "network-outbound",
    "network-bind",
    "network-inbound",
    "system-socket",
)
_TEXT_FILTERS = ("subpath", "literal", "regex", "global-name", "extension")


def parse(text: str) -> list[Any]:
    """Parse the lists of a profile. A text keeps its quotes.

    Raises:
        ValueError: the text is no sequence of lists.
    """
    open_lists: list[list[Any]] = [[]]
    position = 0
    text = text.rstrip()
    while position < len(text):
        token = _TOKEN.match(text, position)
        if token is None:
            raise ValueError(f"position {position} is no word, text or list")
        position = token.end()
        if token[1] == "(":
            open_lists.append([])
        elif token[1]:
            done = open_lists.pop()
            if not open_lists:
                raise ValueError("a list ends that did not begin")
            open_lists[-1].append(done)
        else:
            open_lists[-1].append(token[2] or token[3])
    if len(open_lists) > 1 or not all(isinstance(each, list) for each in open_lists[0]):
        raise ValueError("a list does not end, or a word stands alone")
    return open_lists[0]


def check_filter(filter_: list[Any]) -> None:
    """Check that a filter of a rule is one that profiles have."""
    name, *values = filter_
    if name == "require-all":
        for value in values:
            check_filter(value)
    elif name in ("remote", "local"):
        assert values == ["ip", '"*:*"']
    elif name == "target":
        assert values == ["same-sandbox"]
    else:
        assert name in _TEXT_FILTERS
        assert values
        assert all(value.endswith('"') for value in values)


def is_allowed(profile: str, operation: str, path: str) -> bool:
    """Apply the rules for subpaths: the last one that fits decides."""
    verdicts = [
        verdict
        for verdict, what, where in _RULE.findall(profile)
        if what == f"file-{operation}*" and Path(path).is_relative_to(re.sub(r"\\(.)", r"\1", where))
    ]
    return bool(verdicts) and verdicts[-1] == "allow"


@pytest.mark.parametrize("path", [*map(str, TABLE), "/usr/bin/git", "/Users/me/.ssh/id", "/Users/me/work/x", "/tmp/x"])
def test_each_path_has_the_rights_of_its_rule(path: str) -> None:
    profile, rule = build_seatbelt_profile(RULES, network=False), RULES.get_rule(Path(path))
    if path != "/dev":
        assert is_allowed(profile, "read", path) == (rule in ("read", "write", "protected"))
        assert is_allowed(profile, "write", path) == (rule == "write")


def test_the_folder_above_a_protected_path_keeps_its_name() -> None:
    profile = build_seatbelt_profile(RULES, network=False)
    assert '(deny file-write-unlink file-write-create (literal "/Users/me/work/.git"))' in profile


@pytest.mark.parametrize("network", [True, False])
def test_the_network_is_there_only_on_request(network: bool) -> None:
    profile = build_seatbelt_profile(RULES, network=network)
    assert profile.startswith("(version 1)\n(deny default)\n")
    assert ("network" in profile) == network
    assert "/proc" not in profile


@pytest.mark.parametrize("network", [True, False])
def test_each_rule_is_of_the_language_of_profiles(network: bool) -> None:
    profile = build_seatbelt_profile(RULES, network=network)
    version, default, *rules = parse(profile)
    assert (version, default) == (["version", "1"], ["deny", "default"])
    for verdict, *words in rules:
        assert verdict in ("allow", "deny")
        operations = [word for word in words if isinstance(word, str)]
        assert operations
        for operation in operations:
            assert operation.rstrip("*") in _OPERATIONS
        for each in words[len(operations) :]:
            check_filter(each)


@pytest.mark.parametrize(
    "text", ["(version 1", "(version 1))", "version 1", '(allow file-read* (literal "/a))', "(a 'b)"]
)
def test_the_parser_refuses(text: str) -> None:
    with pytest.raises(ValueError, match=r"list|word"):
        parse(text)


def test_it_is_used_only_after_a_confirmation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_seatbelt_problem("/nowhere") == "/nowhere is missing"
    for value in ("", "no", "1"):
        monkeypatch.setenv(CONFIRMATION, value)
        assert "never run" in str(find_seatbelt_problem("/bin/sh"))
    monkeypatch.setenv(CONFIRMATION, "yes")
    assert find_seatbelt_problem("/bin/sh") is None


def test_the_program_is_an_absolute_path() -> None:
    assert build_seatbelt_command(RULES, network=False)[:2] == [SANDBOX_EXEC, "-p"]
    assert SANDBOX_EXEC.startswith("/usr/bin/")
