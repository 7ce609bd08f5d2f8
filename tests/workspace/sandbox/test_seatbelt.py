"""The text of a profile for sandbox-exec. A small evaluator of ours applies it, since macOS is not here."""

import re
from pathlib import Path

import pytest

from goose_like.workspace.sandbox.path_rules import Rule, Rules
from goose_like.workspace.sandbox.seatbelt import SANDBOX_EXEC, build_seatbelt_command, build_seatbelt_profile

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


def test_parentheses_and_quotes_are_balanced() -> None:
    profile = re.sub(r'#?"(?:[^"\\]|\\.)*"', "", build_seatbelt_profile(RULES, network=True))
    assert '"' not in profile
    assert profile.count("(") == profile.count(")")
    assert all(line.count("(") == line.count(")") for line in profile.replace("\n  ", " ").splitlines())


def test_the_program_is_an_absolute_path() -> None:
    assert build_seatbelt_command(RULES, network=False)[:2] == [SANDBOX_EXEC, "-p"]
    assert SANDBOX_EXEC.startswith("/usr/bin/")
