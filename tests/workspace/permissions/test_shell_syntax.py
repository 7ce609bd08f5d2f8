"""Tests of the simple commands of a shell line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goose_like.workspace.permissions.shell_syntax import UNKNOWN, SimpleCommand, format_command, parse_line

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
        "alias a='git push'",
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
        "coproc git push",
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
    assert parse_line("ls >& x")[0].overwrites == ("x",)
    assert parse_line("ls >&2 2>&1 3>&-")[0] == SimpleCommand(("ls",))


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
