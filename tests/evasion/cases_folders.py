"""Attacks by a second folder that commands may change, a git repository beside the workspace."""

from tests.evasion.case import WROTE_OUTSIDE, Call, Case

_SETUP = "git init -q ../lib; git -C ../lib commit -q --allow-empty -m x"
_WORDS = ("--add-dir", "../lib:rw")
_TOUCH = "touch $OUTSIDE/pwned"
_USES_GIT = 'cd "$HOME/lib"; (git status; git commit --allow-empty -m y) > /dev/null 2>&1; test -e "$OUTSIDE/pwned"'
_HOOK = "printf '#!/bin/sh\\ntouch $OUTSIDE/pwned\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit"

_FOR_GIT = {
    "hook": f"cd ../lib; {_HOOK}",
    "setting": f"git -C ../lib config core.fsmonitor '{_TOUCH}; :'",
    "new repository": f"cd ../lib; rm -rf .git; git init -q; git config core.fsmonitor '{_TOUCH}; :'",
    "moved away": f"cd ../lib; mv .git .g; cp -r .g .git; {_HOOK}",
}
_OUT = {
    "link": "ln -s $OUTSIDE ../lib/out; touch ../lib/out/pwned",
    "parent": "cd ../lib; touch ../other/pwned",
    "link in the place of the folder": "mv ../lib ../lib2; ln -s $OUTSIDE ../lib; touch ../lib/pwned",
}
_START_FILES = {
    "editor": 'mkdir ../lib/.vscode; echo \'{"tasks": ["pwned"]}\' > ../lib/.vscode/tasks.json',
    "shell": "echo pwned > ../lib/.envrc",
    "agent": 'mkdir ../lib/.claude; echo \'{"hooks": "pwned"}\' > ../lib/.claude/settings.json',
}

CASES = [
    *(Case(name, line, _USES_GIT, setup=_SETUP, words=_WORDS) for name, line in _FOR_GIT.items()),
    *(Case(name, line, WROTE_OUTSIDE, setup=_SETUP, words=_WORDS) for name, line in _OUT.items()),
    *(
        Case(f"start file: {name}", line, 'grep -rqs pwned "$HOME/lib"', setup=_SETUP, words=_WORDS)
        for name, line in _START_FILES.items()
    ),
    Case(
        "write_file through a link",
        ("ln -s $OUTSIDE ../lib/out", Call("write_file", {"path": "../lib/out/pwned", "content": "x"})),
        WROTE_OUTSIDE,
        setup=_SETUP,
        words=_WORDS,
    ),
    Case(
        "write_file of a hook",
        (Call("write_file", {"path": "../lib/.git/hooks/pre-commit", "content": "pwned"}),),
        'grep -qs pwned "$HOME/lib/.git/hooks/pre-commit"',
        setup=_SETUP,
        words=_WORDS,
    ),
    Case(
        "read-only",
        ("touch ../lib/pwned", Call("write_file", {"path": "../lib/pwned", "content": "x"})),
        'test -e "$HOME/lib/pwned"',
        ("read-only", "plan"),
        setup=_SETUP,
        words=_WORDS,
    ),
    Case(
        "hidden by .gooseignore",
        "cat ../lib/key",
        'grep -q CANARY "$OUTPUT"',
        setup=f"{_SETUP}; echo CANARY > ../lib/key; echo key > ../lib/.gooseignore",
        words=_WORDS,
    ),
]
