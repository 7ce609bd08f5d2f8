"""Tests of permission rules: the rule that decides about a line, a path, a tool or a domain."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goose_like.config.profile import PermissionLists
from goose_like.config.rule_topics import COMMAND, TOPICS, RuleTopic, split_rule
from goose_like.workspace.permissions.policy import Verdict
from goose_like.workspace.permissions.rules import (
    Judgement,
    PermissionRule,
    PermissionRules,
    build_rules,
)
from goose_like.workspace.permissions.simple_command import SimpleCommand

LISTS = PermissionLists(
    deny=(
        "git push --force",
        "rm -rf /*",
        "docker run",
        "curl",
        "path:*.pem",
        "domain:*.Bad.org.",
        "domain:bücher.example",
    ),
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
                "rm -Rf /etc",
                "rm -rfvid /etc",
                "rm $x /etc",
                "docker --context x run y",
                "git $x --force",
                "git $x log push",
                "git -c $x push -f",
                "git -C $x log $1",
                "git -C $x log -1",
                "git --foo $x push",
                "docker --context logs $x",
                "git l{og,} $x",
                "$x log push",
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
                "A=1 b=2 CI=1 ls",
                "timeout 5 nice pytest -q",
                "sh -c 'ls'",
                "bash -lc 'ls'",
                "ls && echo done",
                "npm test",
            ),
        ),
        (
            None,
            (
                "git log push",
                "git log -2 --oneline -- $1",
                "git -C x log $1",
                "git --foo=x log $(cat y) push",
                "echo x | xargs git log",
                "docker logs run",
                "docker logs $x",
                "rm -rf build",
                "git status > x",
                "git status >> x",
                "PATH=. ls",
                "LD_PRELOAD=x ls",
                "RUSTC_WRAPPER=x ls",
                "BASH_ENV=x ls",
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


# --- real bash runs what the rules judge

RunLine = Callable[[str], set[str]]


@pytest.fixture(scope="module")
def run_line(tmp_path_factory: pytest.TempPathFactory) -> RunLine:
    """Run a line in bash, and return the calls of `git`, `ls` and `rm`, which do nothing else here."""
    folder = tmp_path_factory.mktemp("bash")
    for name in ("git", "ls", "rm"):
        (folder / name).write_text(f'#!/bin/sh\necho "{name} $*" >> "$LOG"\n')
        (folder / name).chmod(0o755)
    for name in ("bash", "cat", "env", "find", "flock", "nice", "nohup", "script", "sh", "timeout", "true", "xargs"):
        if program := shutil.which(name):
            (folder / name).symlink_to(program)
    work, log = folder / "work", folder / "log"

    def run(line: str) -> set[str]:
        work.mkdir()
        log.write_text("")
        variables = {"PATH": str(folder), "HOME": str(work), "LOG": str(log)}
        silent: dict[str, int] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
        try:
            subprocess.run(["/bin/bash", "-c", line], cwd=work, env=variables, timeout=60, check=False, **silent)
        finally:
            shutil.rmtree(work)
        return {" ".join(call.split()[:2]) for call in log.read_text().splitlines()}

    return run


DENY = PermissionRules([PermissionRule("deny", "git push")])
ALLOW = PermissionRules([PermissionRule("allow", "ls")])


@pytest.mark.parametrize(
    "line",
    [
        "git push",
        "env git push -S",
        "env -S '-u A git push'",
        "command git push -v",
        "find . -exec git push {} + -exec git push ';'",
        "eval -- 'git push'",
        "trap -- 'git push' EXIT",
        "git >x push",
        "git <<E push\nx\nE",
        "time { git push; }",
        "coproc x { git push; }; wait",
        "ls\ngit push\n\\x",
        ': "${x:-`git push`}"',
        "cat <<E\n`git push`\nE",
        "echo `echo \\`git push\\``",
        "x='$(git push)'; echo ${x@P}",
        "test -v 'a[$(git push)]'",
        "[[ 'a[$(git push)]' -eq 1 ]]",
        "x='a[$(git push)]'; echo $((x))",
        "let 'x[$(git push)]=1'",
        "mapfile -C 'git push' -c 1 x <<< 1",
        "compgen -C 'git push' x",
        "shopt -s expand_aliases\nalias a=git\na push",
        "bash -s x <<< 'git push'",
        "bash /dev/stdin <<< 'git push'",
        "bash --rcfile /dev/null <<< 'git push'",
        "bash <(echo git push)",
        ". /dev/stdin <<< 'git push'",
        "x=-c; bash $x 'git push'",
        "flock x -c 'git push'",
        "script -q -c'git push' x",
        "timeout --sig KILL 5 git push",
        "echo git push | xargs -I{} sh -c {}",
    ],
)
def test_a_line_that_runs_a_denied_command_is_denied_or_asked_about(run_line: RunLine, line: str) -> None:
    assert DENY.judge_line(line).verdict in ("deny", "ask")
    assert "git push" in run_line(line)


@pytest.mark.parametrize(
    "line",
    [
        "ls\n\\rm x",
        "env rm x -S ls",
        "command rm -v x; ls",
        "x='5 rm x'; timeout $x ls",
        "timeout {5,rm,x} ls",
        "test -v 'a[$(rm x)]'; ls",
        "x='a[$(rm x)]'; echo $((x)); ls",
        "ls; echo `echo \\`rm x\\``",
        "time { rm x; }; ls",
    ],
)
def test_a_line_that_runs_more_than_the_rules_allow_is_not_allowed(run_line: RunLine, line: str) -> None:
    assert ALLOW.judge_line(line).verdict != "allow"
    assert any(call.startswith("rm") for call in run_line(line))


@pytest.mark.parametrize(
    "line",
    [
        "for PATH in .; do ls; done",
        "printf -v PATH .; ls",
        "LD_AUDIT=x ls",
        "SHELLOPTS=xtrace PS4=x ls",
        "env time -o x ls",
        "ls > 2",
        "f() { ls; } > x; f",
    ],
)
def test_a_line_that_changes_the_place_of_a_program_or_a_file_is_not_allowed(line: str) -> None:
    assert ALLOW.judge_line(line).verdict != "allow"


PIECES = st.sampled_from([
    "git push", "git", "push", "ls", "rm x", "x='a[$(rm x)]'", "$x", "'", '"', "`", "\\", "$(", ")", "(", "{ ",
    "; }", ";", "\n", " ", "&&", "|", "! ", " #", "<<E\n", "\nE\n", "<<'E'\n", "E", "<<<", "< ", "> ", "f", "<(",
    "((", "))", "[[ ", " ]]", "if ", " then ", " fi", "while ", "do ", "done", "for i in 1;", "case x in ", "esac",
    "x)", ";;", "f() ", "env ", "command ", "eval ", "exec ", "timeout 5 ", "xargs ", "sh -c ", "time ", "$'",
    "{a,b}", "\\\n", "\t", "\r", "-v ", "-S ", "${x:-", "+",
])  # fmt: skip


@given(st.lists(PIECES, min_size=2, max_size=9))
def test_no_line_runs_more_than_its_verdict_says(run_line: RunLine, pieces: list[str]) -> None:
    line = "".join(pieces)
    calls: set[str] = set()
    is_allowed, is_unlimited = ALLOW.judge_line(line).verdict == "allow", DENY.judge_line(line).verdict is None
    if is_allowed or (is_unlimited and "push" in line):
        calls = run_line(line)
    assert not (is_allowed and {call.split()[0] for call in calls} - {"ls"})
    assert not (is_unlimited and "git push" in calls)


WORDS = st.sampled_from(["git", "push", "--force", "-f", "-C", "x", "$x", "?", "{a,b}", "sudo", ";", "&&"])


@given(st.lists(WORDS, max_size=5), st.lists(WORDS, max_size=5))
def test_a_denied_command_is_never_allowed(before: list[str], after: list[str]) -> None:
    rules = PermissionRules([PermissionRule("allow", "*"), PermissionRule("deny", "git push --force")])
    line = " ".join([*before, "\ngit", "push", "--force", *after])
    assert rules.judge_line(line).verdict in ("deny", "ask")


TAILS = st.lists(st.sampled_from(["$x", '"$1"', "$(cat y)", "--", "-n", "push", "{a,push}", "pu*"]), max_size=5)


@given(st.sampled_from(["log", "show -2", "-C . -c a=b diff --stat", "--git-dir x log", "--a=b log"]), TAILS)
def test_a_known_subcommand_settles_the_judgement(known: str, tail: list[str]) -> None:
    assert DENY.judge_line(" ".join(["git", known, *tail])).verdict is None


ARGUMENTS = st.sampled_from(["$x", "push", "log", "-p", "--foo", "-C .", "--a=b", "pus?", "-"])
VALUES = st.sampled_from(["", "push", "log", "-C", "-p", "--foo", ". push", "log push", "--foo x push", "-C . push"])


@given(st.sampled_from(["git", "$x git", "sudo git", "git $x"]), st.lists(ARGUMENTS, max_size=4), VALUES)
def test_an_unknown_word_never_hides_a_denied_command(program: str, arguments: list[str], value: str) -> None:
    """Judge a line with `$x` at least as strictly as the line that it becomes."""
    line = " ".join([program, *arguments])
    if DENY.judge_line(line.replace("$x", value)).verdict:
        assert DENY.judge_line(line).verdict


def test_a_doubt_shows_the_words_as_written() -> None:
    reason = '`git $1 "$2"` may match `deny: git push`'
    assert DENY.judge_line('git $1 "$2"') == Judgement("ask", reason)


def test_a_reason_names_the_command_and_the_rule() -> None:
    reason = "`git push -f` matches `ask: git push` of profile x"
    assert RULES.judge_line("cd x && git push -f") == Judgement("ask", reason)


def test_the_reason_to_allow_names_all_rules_once() -> None:
    reason = "`allow: ls` of profile x and `allow: git status` of profile x"
    assert RULES.judge_line("ls; git status; ls -l") == Judgement("allow", reason)


@pytest.mark.parametrize(
    ("rule", "verdict", "lines"),
    [
        (
            "git push --force",
            "deny",
            ("git push --force", "git push --force=x", "git push --force=a=b", "git push x --force y"),
        ),
        ("git push --force", "ask", ("git push -f", "git push -uf", "git push --forc", "git push --fo", "git push $x")),
        ("git push --force", None, ("git push", "git push -u", "git push --set", "git push force", "git push -- x")),
        ("git clean -xdf", "deny", ("git clean -xdf", "git clean -f -dx", "git clean -x -d -f", "git clean -xdfq")),
        ("git clean -xdf", "ask", ("git clean -Xdf", "git clean -dx --force", "git clean -abxdf", "git clean -x $x")),
        ("git clean -xdf", None, ("git clean -xd", "git clean -x -f", "git clean xdf", "git clean --xdf")),
        ("git checkout main", None, ("git checkout - main", "git checkout x main")),
        ("git checkout main", "ask", ("git checkout ma?n", "git checkout $x")),
        ("git checkout main", "deny", ("git checkout main", "git checkout -b main")),
        ("find -delete", "deny", ("find . -delete", "find -delete .")),
        ("find -delete", "ask", ("find . -dele",)),
        ("find -delete", None, ("find . -d", "find . -print", "find delete", "find . --delete")),
    ],
)
def test_rules_about_options(rule: str, verdict: str | None, lines: tuple[str, ...]) -> None:
    rules = PermissionRules([PermissionRule("deny", rule)])
    assert {line: rules.judge_line(line).verdict for line in lines} == dict.fromkeys(lines, verdict)


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
        ("X.BAD.ORG.", "deny"),
        ("xn--bcher-kva.example:81", "deny"),
        ("BÜCHER.example", "deny"),
        ("::1", None),
    ],
)
def test_rules_about_hosts(host: str, verdict: str | None) -> None:
    assert RULES.judge_host(host).verdict == verdict


def test_the_letters_of_paths_and_tools_count() -> None:
    rules = PermissionRules(build_rules(PermissionLists(deny=("path:Secret.PEM", "tool:MyTool")), "x"), Path("/w"))
    for name in ("Secret.PEM", "secret.pem"):
        assert rules.judge_path(Path("/w", name)).verdict == ("deny" if name == "Secret.PEM" else None)
    for name in ("MyTool", "mytool"):
        assert rules.judge("tool", name).verdict == ("deny" if name == "MyTool" else None)


def test_a_command_is_judged_by_its_line() -> None:
    for kind in ("command", "network"):
        assert RULES.judge_action(kind, "https://example.org", "curl x", "").verdict == "deny"


@pytest.mark.parametrize(("name", "verdict"), [("fetch_page", None), ("shell", "allow")])
def test_a_rule_about_the_running_tool_counts_only_if_it_allows(name: str, verdict: str | None) -> None:
    assert RULES.judge_action("change", "/w/x", None, name).verdict == verdict
    assert RULES.judge_action("domain", "example.com", None, name).verdict is None


def test_a_word_that_nobody_knows_is_not_allowed() -> None:
    assert not PermissionRule("allow", "git *").allows_command(SimpleCommand(("git", None)))


@pytest.mark.parametrize("topic", TOPICS.values(), ids=list(TOPICS))
@pytest.mark.parametrize("verdict", ["deny", "ask", "allow"])
def test_each_topic_can_be_written_and_judged(topic: RuleTopic, verdict: Verdict) -> None:
    text = {"command": "touch", "path": "path:/w/touch"}.get(topic.name, f"{topic.name}:touch")
    rules = PermissionRules(build_rules(PermissionLists(**{verdict: (text,)}), "x"), Path("/w"))
    subject = {"path": "/w/touch"}.get(topic.name, "touch")
    assert topic.judged
    for kind in topic.judged:
        found = rules.judge_action(kind, subject, subject if topic is COMMAND else None, "")
        is_beyond = verdict == "allow" and kind not in topic.allowed
        assert (kind, found.verdict) == (kind, None if is_beyond else verdict)


@pytest.mark.parametrize(
    "text", ["", " ", "path:", "domian:x", "outside:/etc/x", "network:", "install:x", "command:ls"]
)
def test_a_rule_about_nothing_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="a command, or `tool:`, `path:` or `domain:`"):
        split_rule(text)


@pytest.mark.parametrize(
    ("line", "verdict"),
    [
        ("uv run rm -rf src", "deny"),
        ("uv run --with requests rm -rf src", "deny"),
        ("npx -y rm -rf src", "deny"),
        ("poetry run sudo rm -rf src", "deny"),
        ("uv run sh -c 'rm -rf src'", "deny"),
        ("npx --package x $y", "ask"),
        ("npx -c 'rm -rf src'", "deny"),
        ("npx --call='ls; rm -rf src'", "deny"),
        ("npm exec -c 'ls; rm -rf src'", "deny"),
        ("yarn exec 'rm -rf src'", "deny"),
        ("direnv exec . rm -rf src", "deny"),
        ("dotenv run -- rm -rf src", "deny"),
        ("xvfb-run -a rm -rf src", "deny"),
        ("npx -c 'ls src'", None),
        ("uv run pytest -q", "allow"),
        ("uv run --frozen pytest -q", None),
        ("uv run ls", None),
        ("npm run rm -rf src", None),
    ],
)
def test_rules_see_through_package_runners(line, verdict):
    lists = PermissionLists(deny=("rm -rf",), allow=("uv run pytest", "ls"))
    assert PermissionRules(build_rules(lists, "")).judge_line(line).verdict == verdict
