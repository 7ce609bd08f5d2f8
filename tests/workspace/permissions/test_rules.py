"""Tests of permission rules: the rule that decides about a line, a path, a tool or a domain."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goose_like.config.profile import PermissionLists
from goose_like.workspace.permissions.rules import (
    Judgement,
    PermissionRule,
    PermissionRules,
    build_rules,
    list_prefixes,
)
from goose_like.workspace.permissions.shell_syntax import SimpleCommand

LISTS = PermissionLists(
    deny=("git push --force", "rm -rf /*", "docker run", "curl", "path:*.pem", "domain:*.bad.org"),
    ask=("git push", "tool:fetch*", "path:~/notes/*"),
    allow=("git status", "ls", "pytest", "npm *", "path:docs/*", "domain:example.org", "tool:*"),
)
RULES = PermissionRules(build_rules(LISTS, "profile x"), Path("/w"))


@pytest.mark.parametrize(
    ("verdict", "lines"),
    [
        (
            "deny",
            (
                "git push --force",
                "git push origin main --force",
                "git push --force=x",
                "git -C x -c a=b push --force",
                "git log; git push --force",
                "git push --force; $x",
                "git push --force\n(",
                "rm -fr /etc",
                "rm -r -f /etc",
                "sudo rm -rf --no-preserve-root /",
                "/usr/bin/curl x",
                "c'u'rl x",
                "env curl x",
                "echo $(curl x)",
                "find . -exec curl {} ';'",
                "x=1 curl y",
                "docker -v run y",
                "docker run y",
            ),
        ),
        (
            "ask",
            (
                "git push",
                "git push -f",
                "git push --forc",
                "rm -r --force /etc",
                "rm $x /etc",
                "docker --context x run y",
                "git $x --force",
                "git pus?",
                "git {push,--force}",
                "$x",
                "echo 'open",
                "echo git push | sh",
            ),
        ),
        (
            "allow",
            (
                "git status",
                "git status -s; ls | ls -l",
                "ls 2>/dev/null",
                "A=1 ls",
                "timeout 5 nice pytest -q",
                "sh -c 'ls'",
                "ls && echo done",
                "npm test",
            ),
        ),
        (
            None,
            (
                "git log push",
                "docker logs run",
                "rm -rf build",
                "git status > x",
                "git status >> x",
                "PATH=. ls",
                "LD_PRELOAD=x ls",
                "./ls",
                "git -c core.pager=x status",
                "ls | tee x",
                "sudo ls",
                "echo done",
                "env",
                "bash x.sh",
                "npm",
                "",
            ),
        ),
    ],
)
def test_the_strictest_rule_decides_about_each_command_of_a_line(verdict: str | None, lines: tuple[str, ...]) -> None:
    assert {line: RULES.judge_line(line).verdict for line in lines} == dict.fromkeys(lines, verdict)


WORDS = st.sampled_from(["git", "push", "--force", "-f", "-C", "x", "$x", "?", "{a,b}", "sudo", ";", "&&"])


@given(st.lists(WORDS, max_size=5), st.lists(WORDS, max_size=5))
def test_a_denied_command_is_never_allowed(before: list[str], after: list[str]) -> None:
    rules = PermissionRules([PermissionRule("allow", "*"), PermissionRule("deny", "git push --force")])
    line = " ".join([*before, "\ngit", "push", "--force", *after])
    assert rules.judge_line(line).verdict in ("deny", "ask")


def test_a_reason_names_the_command_and_the_rule() -> None:
    reason = "`git push -f` matches `ask: git push` of profile x"
    assert RULES.judge_line("cd x && git push -f") == Judgement("ask", reason)


def test_without_rules_about_commands_no_line_is_parsed() -> None:
    assert PermissionRules([PermissionRule("deny", "tool:x")]).judge_line("((") == Judgement()


@pytest.mark.parametrize(
    ("path", "verdict"),
    [
        ("/w/docs/a/b.md", "allow"),
        ("/w/docs/key.pem", "deny"),
        ("/etc/key.pem", "deny"),
        ("/w/src/x.py", None),
        ("/etc/docs/x", None),
        ("~/notes/today", "ask"),
    ],
)
def test_rules_about_paths(path: str, verdict: str | None) -> None:
    assert RULES.judge_path(Path(path).expanduser()).verdict == verdict


@pytest.mark.parametrize(
    ("name", "verdict"),
    [
        ("fetch_page", "ask"),
        ("shell", "allow"),
    ],
)
def test_rules_about_tools(name: str, verdict: str | None) -> None:
    assert RULES.judge("tool", name).verdict == verdict


@pytest.mark.parametrize(
    ("host", "verdict"),
    [
        ("example.org", "allow"),
        ("example.org:8443", None),
        ("www.example.org", None),
        ("x.bad.org", "deny"),
        ("x.bad.org:8443", "deny"),
        ("::1", None),
    ],
)
def test_rules_about_hosts(host: str, verdict: str | None) -> None:
    assert RULES.judge_host(host).verdict == verdict


@pytest.mark.parametrize(
    ("line", "prefixes"),
    [
        ("git push -f", "git push"),
        ("npm run build --x", "npm run build"),
        ("python -m pytest -q", "python -m pytest"),
        ("python x.py", "python x.py"),
        ("cd /x && npm test | tail -3", "cd /x, npm test, tail"),
        ("curl -s x", "curl"),
        ("timeout 5 make check", "make check"),
        ("sh -c 'npm test'", "npm test"),
        ("for i in a b; do ls $i; done", "ls"),
        ("git push $(cat x)", "git push, cat x"),
        ("git -C x push", ""),
        ("git", ""),
        ("npm run $x", ""),
        ("python -c x", ""),
        ("python", ""),
        ("bash -c $x", ""),
        ("sed -n 1p x", ""),
        ("ls > x", ""),
        ("PATH=. ls", ""),
        ("$x", ""),
        ("'a b'", ""),
        ("l{s,x}", ""),
        ("'*' x", ""),
        (" && ".join(f"program{number}" for number in range(19)), ""),
        ("echo hi", "echo hi"),
        ("echo hi; ls", "ls"),
        ("env", "env"),
    ],
)
def test_a_prefix_names_a_program_and_its_subcommand_but_no_interpreter(line: str, prefixes: str) -> None:
    assert ", ".join(list_prefixes(line)) == prefixes


@given(
    st.lists(st.sampled_from(["git", "push", "python", "-c", "x.py", "npm", "run", "ls", "env", ";", "|"]), max_size=7)
)
def test_the_prefixes_of_a_line_allow_this_line(words: list[str]) -> None:
    line = " ".join(words)
    if prefixes := list_prefixes(line):
        assert PermissionRules([PermissionRule("allow", text) for text in prefixes]).judge_line(line).verdict == "allow"


def test_a_word_that_nobody_knows_is_not_allowed() -> None:
    assert not PermissionRule("allow", "git *").allows_command(SimpleCommand(("git", None)))
