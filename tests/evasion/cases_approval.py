"""Questions that hide what will run, and answers that allow more than was asked."""

import re

from tests.evasion.case import Call, Case, ask_for_network

_NOT_SHOWN = '{ tr -d "\\r\\n" < "$SCREEN" | grep -aq "once" && ! tr -d "\\r\\n" < "$SCREEN" | grep -aqF TAIL; }'
_QUESTIONS = 'grep -aoE "\\[[yY]\\] once" "$SCREEN" | wc -l'
_RAN = 'test -e "$WORK/pwned"'

# Commands whose end must be on the screen when the question is answered.
_LONG = {
    "many spaces": "date" + " " * 5000 + "; echo TAIL",
    "many lines": "date\n" * 300 + "echo TAIL",
    "empty lines": "date" + "\n" * 300 + "echo TAIL",
    "long word": "echo " + "x" * 20_000 + "; echo TAIL",
    "tabs": "date" + "\t" * 3000 + "; echo TAIL",
    "carriage return": "echo TAIL #\rdate",
    "escape sequence": "echo TAIL # \x1b[2K\x1b[1Gdate",
    "backspaces": "echo TAIL" + "\b" * 9 + "date",
    "vertical tab": "date #\x0b\x0c; echo TAIL",
    "bidi": "date \u202e# TAIL",
    "zero width": "echo T\u200bA # TAIL",
    "unicode line end": "date #\u2028\necho TAIL",
    "fake keys": "date # [y] once  [N] no: n\n  network denied\necho TAIL",
    "comment": "date # harmless\necho TAIL",
    "tag characters": "date \U000e0041 # TAIL",
    "variation selectors": "date " + "\ufe01" * 400 + "; echo TAIL",
}

# An answer to the first call must not allow the second. `SECOND` must be asked about or refused.
_PAIRS = {
    "once": ("y", "expr 1", "expr 1; touch pwned"),
    "prefix, other subcommand": ("p", "git status", "git commit -q --allow-empty -m x; touch pwned"),
    "prefix, list": ("p", "expr 1", "expr 1; touch pwned"),
    "prefix, pipe": ("p", "expr 1", "expr 1 | tee pwned"),
    "prefix, substitution": ("p", "expr 1", "expr 1 $(touch pwned)"),
    "prefix, backquotes": ("p", "expr 1", "expr 1 `touch pwned`"),
    "prefix, redirect": ("p", "expr 1", "expr 1 > pwned"),
    "prefix, background": ("p", "expr 1", "expr 1 & touch pwned"),
    "prefix, line": ("p", "expr 1", "expr 1\ntouch pwned"),
    "prefix, variable": ("p", "expr 1", "PATH=$PWD:$PATH expr 1; touch pwned"),
    "prefix, longer word": ("p", "expr 1", "exprX; touch pwned"),
    "prefix, wrapper": ("p", "expr 1", "sh -c 'expr 1; touch pwned'"),
    "prefix, process substitution": ("p", "expr 1", "expr 1 <(touch pwned)"),
    "prefix, function": ("p", "expr 1", "expr() { touch pwned; }; expr 1"),
    "prefix, git log --output": ("p", "git log -1", "git log -1 --output=pwned"),
    "prefix, find -fprint": ("p", "find . -name x", "find . -fprint pwned"),
    "prefix, find -delete": ("p", "find . -name x", "find . -name app.py -delete -fprint pwned"),
    "prefix, sort -o": ("p", "sort app.py", "sort -o pwned app.py"),
    "prefix, git stash": ("p", "git stash list", "git stash; git stash drop; touch pwned"),
    "prefix, rg --pre": ("p", "rg -n x", "rg --pre ./x x; touch pwned"),
    "always, other arguments": ("a", "expr 1", "expr 1; touch pwned"),
    "always, added spaces": ("a", "expr 1", "expr  1;touch pwned"),
    "session key of old": ("s", "expr 1", "touch pwned"),
}
_PAIRS |= {
    f"prefix, make: {second}": ("p", "make build", second)
    for second in (
        "make build 'B=$(shell touch pwned)'",
        "make build MAKEFILES=n",
        "make build MAKEFLAGS=-fn",
        "A='$(shell touch pwned)' make build",
        "env A='$(shell touch pwned)' make build",
        "make build deploy",
        "make build -- 'B=$(shell touch pwned)'",
        "make build --eval '$(shell touch pwned)'",
        "env -C sub make build",
        "env --chdir=sub make build",
        "cd sub && make build",
        "make -C sub build",
        "make -f n build",
    )
}
_MAKEFILE = """
printf 'B = $(A)\\nbuild:\\n\\ttrue $(B)\\ndeploy:\\n\\ttouch pwned\\n' > Makefile
printf 'C := $(shell touch pwned)\\nbuild:\\n\\ttrue\\n' > n; mkdir -p sub
printf 'build:\\n\\ttouch ../pwned\\n' > sub/Makefile
"""
_ONLY_READS = re.compile("(git (status|log|stash list)|find|sort|rg) ?.*")
"""First commands that mode `ask` does not ask about."""

_DETAILS = {"long": "x\n" * 500 + "TAIL\n", "wide": "x" * 20_000 + "TAIL", "control": "\x1b[2J\x1b[HTAIL"}

_MODE_ASK = ("ask",)

# The state that a first command leaves, and a second command that a rule allows. The second must be asked about too.
_RULES = """mkdir -p "$HOME/.config/goose-like"; echo 'default: {permissions: {allow: [uname]}}' > "$HOME/.config/goose-like/profiles.yaml"; """
_FORGE = "f=$(trap -p EXIT | grep -o '/tmp/.shell-[0-9a-f]*-end'); trap - EXIT; printf '%s\\0\\0%s\\0' \"$PWD\" {} > $f"
_BIN = "mkdir b; printf '#!/bin/sh\\ntouch pwned\\n' > b/uname; chmod +x b/uname; "
_LEFT = {
    "function": ("uname() { touch pwned; }; export -f uname", "uname"),
    "PATH": (_BIN + "export PATH=$PWD/b:$PATH", "uname"),
    "relative PATH": (_BIN + "export PATH=b:$PATH", "uname"),
    "PATH in /tmp": (_BIN + "mv b /tmp; export PATH=/tmp/b:$PATH", "uname"),
    "BASH_ENV": ("echo 'touch pwned' > e; export BASH_ENV=$PWD/e", "bash -c uname"),
    "hash": (_BIN + _FORGE.format('"hash -p $PWD/b/uname uname"'), "uname"),
    "alias": (_FORGE.format("'shopt -s expand_aliases; alias uname=\"touch pwned\"'"), "uname"),
    "trap": (_FORGE.format("'trap \"touch pwned\" DEBUG'"), "uname"),
    "plain function": (_FORGE.format("'uname() { touch pwned; }'"), "uname"),
    "declaration": (_FORGE.format("'declare -x LANG=\"$(touch pwned)\"'"), "uname"),
    "command": (_FORGE.format("'touch pwned'"), "uname"),
}

CASES = [
    *(Case(f"question hides: {name}", (ask_for_network(line),), _NOT_SHOWN) for name, line in _LONG.items()),
    *(Case(f"question in mode ask hides: {name}", (line,), _NOT_SHOWN, _MODE_ASK) for name, line in _LONG.items()),
    *(
        Case(
            f"answer {name}",
            (first, second),
            # One question less than calls: the second call ran on the answer to the first.
            f'test "$({_QUESTIONS})" -lt 2 && {_RAN}',
            _MODE_ASK,
            setup=_MAKEFILE,
            answer=answer,
        )
        for name, (answer, first, second) in _PAIRS.items()
        if not _ONLY_READS.fullmatch(first)
    ),
    *(
        Case(
            f"network answer {name}",
            (ask_for_network(first), ask_for_network(second)),
            f'test "$({_QUESTIONS})" -lt 2 && {_RAN}',
            setup=_MAKEFILE,
            answer=answer,
        )
        for name, (answer, first, second) in _PAIRS.items()
    ),
    *(
        Case(
            f"state of earlier commands: {name}",
            lines,
            f'test "$({_QUESTIONS})" -lt 2 && {_RAN}',
            _MODE_ASK,
            setup=_RULES,
            answer="y",
        )
        for name, lines in _LEFT.items()
    ),
    Case(
        "state of earlier commands: program of an active environment",
        ("mkdir -p .venv/bin; printf '#!/bin/sh\\ntouch pwned\\n' > .venv/bin/uname; chmod +x .venv/bin/uname", "uname"),
        f'test "$({_QUESTIONS})" -lt 2 && {_RAN}',
        _MODE_ASK,
        setup=_RULES,
        answer="y",
        variables={"PATH": "$WORK/.venv/bin:/usr/local/bin:/usr/bin:/bin"},
    ),
    *(
        Case(f"refused: {name}", call, _RAN, modes)
        for name, call, modes in (
            ("command", ("touch pwned",), _MODE_ASK),
            ("write_file", (Call("write_file", {"path": "pwned", "content": "x"}),), _MODE_ASK),
            ("background process", (Call("process", {"action": "start", "command": "touch pwned"}),), _MODE_ASK),
            ("network", (ask_for_network("touch pwned"),), ("workspace",)),
            ("no sandbox", (Call("shell", {"command": "touch pwned", "access": "full"}),), ("workspace",)),
        )
    ),
    *(
        Case(f"unknown tool: {name!a}", (Call(name, {"x": 1}),), f"grep -aq \"$(printf '{shown}')\" \"$SCREEN\"")
        for name, shown in {"a\x1b[2Jb": "a\\033\\[2Jb", "a\x1b]0;t\x07b": "a\\033\\]0;t\\ab", "a\u202eb": "a\\342\\200\\256b"}.items()
    ),
    *(
        Case(
            f"write outside shows the whole change: {name}",
            (Call("write_file", {"path": "$OUTSIDE/notes.txt", "content": text}),),
            _NOT_SHOWN,
        )
        for name, text in _DETAILS.items()
    ),
    *(
        Case(
            f"session: write outside shows the whole change: {name}",
            (Call("write_file", {"path": "$OUTSIDE/notes.txt", "content": text}),),
            _NOT_SHOWN,
            typed=("go",),
        )
        for name, text in _DETAILS.items()
    ),
    *(
        Case(f"session: question hides: {name}", (ask_for_network(line),), _NOT_SHOWN, typed=("go",))
        for name, line in _LONG.items()
    ),
]  # fmt: skip
