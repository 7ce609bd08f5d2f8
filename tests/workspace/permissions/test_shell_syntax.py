"""Tests of the simple commands of a shell line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goose_like.workspace.permissions.shell_syntax import parse_line
from goose_like.workspace.permissions.simple_command import ARITHMETIC, UNKNOWN, SimpleCommand, format_command

PUSH = "git push"


def read(line: str) -> list[str]:
    return [format_command(command) for command in parse_line(line)]


@pytest.mark.parametrize(
    "line",
    [
        "ls && git push",
        "ls || git push; ls",
        "cat x | git push",
        "! git push",
        "git push &",
        "{ git push; } > x",
        "(git push) &> x",
        "echo $(git push)",
        'echo "a $(git push) b"',
        "echo `git push`",
        "echo ${x:-$(git push)}",
        "diff <(git push) x",
        "A=$(git push)",
        "export A=$(git push)",
        "((x=$(git push)))",
        "cat > f <<EOF\n$(git push)\nEOF",
        "f() { git push; }; f",
        "function f { git push; }",
        "if true; then git push; fi",
        "for i in a b; do git push; done",
        "until false; do git push; done",
        "case x in a) git push;; esac",
        "git push\n(",
        "eval 'git push'",
        "trap 'git push' EXIT",
        "trap -- 'git push' EXIT",
        "eval -- 'git push'",
        "git >x push",
        "git <<E push\nx\nE",
        "ls && ! git >x push",
        "ls | git <x >y push",
        "ls || git <<E >y push\nE",
        "f() if true; then git push; fi",
        "env -S '-i git push'",
        "env --split '-u A git push'",
        "timeout --sig KILL 5 git push",
        "nice -5 git push",
        "flock x -c 'git push'",
        "script -q -c'git push' x",
        "bash -O extglob -c 'git push'",
        "sh -c 'git push'",
        "nohup sh -c 'git push' >/dev/null 2>&1 &",
        "sudo bash -lc 'git push'",
        "su -c 'git push' bob",
        "watch -n 5 git push",
        "time -p git push",
        "env -i A=b git push",
        "env - git push",
        "env -S 'git push'",
        "env -S'git push'",
        "env --split-string='git push'",
        "sudo -u root -- git push",
        "sudo -E PATH=x git push",
        "timeout -s KILL 5 git push",
        "timeout --signal KILL 5 git push",
        "nice -n5 git push",
        "nice -n 5 git push",
        "stdbuf -oL git push",
        "command git push",
        "exec -a x git push",
        "busybox env git push",
        "find . -name '*.py' -exec git push ';'",
        "fd -x git push",
        "git \\\n  push",
    ],
)
def test_an_inner_command_is_found(line: str) -> None:
    assert PUSH in read(line)


@pytest.mark.parametrize(
    "line",
    [
        "$x",
        "$'git' push",
        "gi? push",
        "{git,push}",
        "git pu\\\nsh",
        "echo 'open",
        'eval "$x"',
        'sh -c "$x"',
        "echo git push | sh",
        "bash <<'EOF'\ngit push\nEOF",
        "bash -s",
        "source <(echo git push)",
        "coproc git push",
        "coproc x { git push; }",
        "time { git push; }",
        "time while git push; do break; done",
        "! ! git push",
        "true\rgit push",
        "true\ngit push\n\\x",
        "true\n\\\n git push",
        "exec =~\ngit push",
        "bash -s x",
        "bash -",
        "bash /dev/stdin",
        ". /dev/stdin",
        "bash <(echo git push)",
        "bash --rcfile /dev/null",
        "bash -o posix",
        "bash $x 'git push'",
        "su",
        "sudo -s",
        "doas -s",
        "script x",
        "xargs -I{} sh -c {}",
        "xargs -I % % push",
        "xargs bash",
        "parallel ::: 'git push'",
        "timeout $x ls",
        "timeout {5,git,push} ls",
        "timeout --unknown git push",
        "sudo --unknown git push",
        "echo `echo \\`git push\\``",
        ': "${x:-`git push`}"',
        "cat <<E\n`git push`\nE",
        "cat <<E; git push\nE;",
        "cat <<E\nE;'\nE\ngit push\n'",
        "cat <<E\n E\n'\nE\ngit push\n'",
        "echo ${x@P}",
        "test -v 'a[$(git push)]'",
        "x='a[$(git push)]'; echo $((x))",
        'x="a[\\$(git push)]"; ((x))',
        "mapfile -C 'git push' -c 1 x",
        "compgen -W '$(git push)'",
        "git -c Alias.x='!git push' x",
        "git --config-env=alias.x=A x",
        "git -c include.path=x y",
        "git bisect run make",
        "git submodule foreach 'git push'",
        "git rebase -i --exec 'git push' x",
        "env -S '$x'",
        "sudo $x",
        "git -c alias.x='!rm' x",
        "ls \0",
        "true " * 100_000,
        "eval " * 30 + "ls",
        "sudo " * 9999 + "ls",
    ],
)
def test_a_part_that_cannot_be_read_is_unknown(line: str) -> None:
    assert UNKNOWN.words[0] in [command.words[0] for command in parse_line(line)]


@pytest.mark.parametrize("part", ["<<E\n", "nice if until -- ||)"])
def test_a_line_that_takes_too_long_is_unknown(part: str) -> None:
    assert parse_line(part * (90_000 // len(part))) == [UNKNOWN]
    assert read("git push") == [PUSH]


def test_runners_within_runners_take_no_exponential_time() -> None:
    for start in ("npx -a ", "env npx -a ", "uv run --with a --with "):
        assert UNKNOWN.words[0] in [command.words[0] for command in parse_line(start * 60 + "x")]
    line = "uv run --with a --with b --with c --with d rm x"
    assert ("rm", "x") in [command.words for command in parse_line(line)]


def test_a_word_of_the_input_of_xargs_is_unknown() -> None:
    assert parse_line("cat x | xargs -rn 1 git")[-1].words == ("git", None)


@pytest.mark.parametrize("line", ["echo 'git push'", "true # git push", "cat <<'E'\n$(git push)\nE", "command -v git"])
def test_a_text_is_no_command(line: str) -> None:
    assert len(parse_line(line)) == 1


def test_variables_and_overwritten_files_are_listed() -> None:
    assert parse_line("A=1 env B=2 ls >x 2>>y") == [
        SimpleCommand(("env", "B=2", "ls"), ("A",), ("x",), ("y",)),
        SimpleCommand(("ls",), ("A", "B")),
    ]
    assert parse_line("cat <<E >| f\nx\nE")[0].overwrites == ("f",)
    assert parse_line("> x")[0].overwrites == ("x",)
    assert parse_line("ls > 2")[0].overwrites == ("2",)
    assert [command.overwrites for command in parse_line("cd x && ls > y")] == [(), ("y",)]
    assert parse_line("f() { ls; } > x")[0].overwrites == ("x",)
    assert parse_line("ls >& x")[0].overwrites == ("x",)
    assert parse_line("ls >&2 2>&1 3>&-")[0] == SimpleCommand(("ls",))


def test_the_variable_of_a_loop_is_set() -> None:
    assert parse_line("for PATH in x; do ls; done")[0].variables == ("PATH",)


def test_unknown_words_follow_an_alias() -> None:
    assert parse_line("alias a='git push'")[-1].words == ("git", "push", None)


@pytest.mark.parametrize(
    "line",
    ["echo $((x))", "((x = 1))", "[[ $x -eq 1 ]]", "[ -v x ]", "echo ${x:y}", "echo ${!x}", "for ((;x;)); do ls; done"],
)
def test_an_expression_with_variables_is_listed(line: str) -> None:
    assert ARITHMETIC in parse_line(line)


@pytest.mark.parametrize(
    "line", ["echo $((1 + 2)) ${x:-1} ${#x} ${x%.py} ${x[@]} ${x[0]}", "[ $x -eq 1 ]", "[[ $x == y ]]"]
)
def test_other_expansions_are_not_listed(line: str) -> None:
    assert ARITHMETIC not in parse_line(line)


def quote(letter: str, style: int) -> str:
    return (letter, f"'{letter}'", f'"{letter}"', f"\\{letter}")[style]


@given(st.lists(st.integers(0, 3), min_size=7, max_size=7))
def test_any_quoting_gives_the_same_words(styles: list[int]) -> None:
    letters = [quote(letter, style) for letter, style in zip("gitpush", styles, strict=True)]
    assert read("".join(letters[:3]) + " " + "".join(letters[3:])) == [PUSH]


def test_characters_outside_ascii_are_parts_of_words() -> None:
    assert read("écho 'ü'\\ö \U0010ffff\u2028x; git\xa0push") == ["'écho' 'üö' '\U0010ffff\u2028x'", "'git\xa0push'"]


@given(
    st.text(st.characters(codec=None) | st.sampled_from("<>|&;(){}[]$`'\"\\#=\n \ufeff\U0010ffff\ud800"), max_size=60)
)
def test_any_text_can_be_parsed(line: str) -> None:
    parse_line(line)
