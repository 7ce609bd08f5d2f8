"""The state of a shell in questions: everything that differs from its start is shown, whoever wrote it."""

from pathlib import Path

import pytest

from goose_like.workspace.permissions.shell_state import KnownExports, drop_known, find_changes, find_planted

KNOWN = {"PATH": ["/usr/bin:/bin"], "LANG": ["C", 'a "b" $c']}
FUNCTION = 'git () \n{ \n    echo FAKE "$@"\n}\ndeclare -fx git'


@pytest.mark.parametrize(
    "text",
    [
        'declare -x PATH="/tmp/pp:/usr/bin:/bin"',
        'declare -x BASH_ENV="/tmp/x"',
        'declare -x LD_PRELOAD="/tmp/x.so"',
        'declare -x GIT_SSH_COMMAND="touch x"',
        'declare -x PROMPT_COMMAND="touch x"',
        "declare -x PATH",
        'declare -x LANG="$(touch x)"',
        'declare -x LANG="`touch x`"',
        'declare -x LANG="C"; touch x',
        "declare -x LANG=$'C'",
        FUNCTION,
        "hash -p /tmp/x git",
        "enable -f /tmp/x.so git",
        "trap 'touch x' DEBUG",
        "shopt -s expand_aliases; alias git='touch x'",
    ],
)
def test_what_differs_is_shown_as_it_is(text: str) -> None:
    exports = f'declare -x LANG="C"\n{text}\ndeclare -x PWD="/w"\ndeclare -x VIRTUAL_ENV="/w/.venv"\n'
    assert find_changes(exports, KNOWN)[0] == text


def test_an_unchanged_shell_shows_nothing() -> None:
    exports = (
        'declare -x LANG="a \\"b\\" \\$c"\ndeclare -x OLDPWD\ndeclare -x PATH="/usr/bin:/bin"\ndeclare -x SHLVL="2"\n'
        'declare -x TRACEPARENT="00-1f-2e-01"\n'
    )
    assert find_changes(exports, KNOWN) == ("", "/usr/bin:/bin")
    assert find_changes("", KNOWN) == ("", None)


def test_only_what_differs_is_set_again() -> None:
    variables = {"LANG": 'a "b" $c', "PATH": "/usr/bin", "EMPTY": ""}
    own = 'declare -x A="1\ndeclare -x PATH=\\"/usr/bin\\""\ndeclare -rx FIXED="1"\ndeclare -x LINES=$\'1\\n2\'\n'
    known = 'declare -x GOOSE_LIKE_COMMAND="1.7"\ndeclare -x LANG="a \\"b\\" \\$c"\ndeclare -x PATH="/usr/bin"\n'
    known += 'declare -x TRACEPARENT="00-1f-2e-01"\n'
    rest = 'declare -x OLDPWD\ndeclare -x PATH="/usr/bin:/bin"\n'
    function = 'f () \n{ \n    cat <<X\ndeclare -x PATH="/usr/bin"\nX\n}\ndeclare -fx f\n'
    assert drop_known(own + known + rest + function, variables) == own + rest + function
    assert drop_known(known.removesuffix("\n"), variables) == ""
    assert drop_known("declare -x", variables) == "declare -x"
    assert drop_known("touch x\n" + known, variables) == "touch x\n" + known


def test_exports_are_read_again_only_after_a_change() -> None:
    known = KnownExports()
    variables = {"LANG": "C"}
    text = (
        'declare -x A="1"\ndeclare -x GOOSE_LIKE_COMMAND="1.{0}"\n'
        'declare -x LANG="{1}"\ndeclare -x TRACEPARENT="00-{0}"\n'
    )
    first = known.drop(text.format(1, "C"), variables)
    assert first == 'declare -x A="1"\n'
    assert known.drop(text.format(2, "C"), dict(variables)) is first
    changed = 'declare -x A="1"\ndeclare -x LANG="D"\n'
    assert known.drop(text.format(3, "D"), variables) == changed
    assert known.drop(text.format(4, "D"), {"LANG": "D"}) == first
    assert known.drop(text.format(5, "D"), {}) == changed


def test_programs_in_folders_that_commands_can_write_to_are_named(tmp_path: Path) -> None:
    places = [tmp_path / name for name in ("own", "planted", "plain")]
    for place in places:
        place.mkdir()
    for file in ("own/ls", "planted/ls", "planted/git", "planted/rm", "planted/notes"):
        (tmp_path / file).write_text("#!/bin/sh\n")
        (tmp_path / file).chmod(0o644 if file.endswith("notes") else 0o755)

    def find(line: str) -> list[str]:
        return find_planted(line, ":".join(map(str, places)), Path, [places[1]])

    planted = places[1]
    assert find("ls; notes; make x") == []
    assert find("git push") == [f"git is {planted}/git"]
    assert find("true && env sudo rm -r x | git x; git y") == [f"rm is {planted}/rm", f"git is {planted}/git"]
    assert find(f"{places[1]}/git push; $x") == []
