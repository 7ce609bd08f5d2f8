"""Tests of prefixes: what an answer for the session covers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goose_like.workspace.permissions.prefixes import is_covered, list_prefixes


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
        ("cd /x && npm test | tail -3", "cd /x, npm test, tail"),
        ("curl -s x", "curl"),
        ("curl -o x y", "curl -o x"),
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
    "git push": ["git push -f", "git push origin +main", "git push origin :main", "git push --mirror"],
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
    "curl -s x": ["curl -o w x", "curl -sO x", "curl -d @f x", "curl -T f x", "curl -K f", "curl -w %output{w} x"],
    "wget x": ["wget -O w x", "wget --post-file=f x", "wget -i f"],
    "tree": ["tree -o w", "tree -R -o w"],
    "rm x": ["rm -r x", "rm -rf x", "rm *"],
    "mv x y": ["mv -t z x y"],
    "sed s/a/b/ x": ["sed s/a/b/ -i x", "sed s/a/b/ -e w"],
    "python -m pytest -q": ["python -m pytest -p evil", "python -m pytest --basetemp=x", "python -m pip install x"],
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
        ("git push", ["git push origin main", "git push -q"]),
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
