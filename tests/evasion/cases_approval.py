"""Questions that hide what will run, and answers that allow more than was asked."""

from tests.evasion.case import Call, Case, ask_for_network

_NOT_SHOWN = '{ tr -d "\\r\\n" < "$SCREEN" | grep -aq "once" && ! tr -d "\\r\\n" < "$SCREEN" | grep -aqF TAIL; }'
_QUESTIONS = 'grep -aoE "\\[[yY]\\] once" "$SCREEN" | wc -l'
_RAN = 'test -e "$WORK/pwned"'

# Commands whose end must be on the screen when the question is answered.
_LONG = {
    "many spaces": "true" + " " * 5000 + "; echo TAIL",
    "many lines": "true\n" * 300 + "echo TAIL",
    "empty lines": "true" + "\n" * 300 + "echo TAIL",
    "long word": "echo " + "x" * 20_000 + "; echo TAIL",
    "tabs": "true" + "\t" * 3000 + "; echo TAIL",
    "carriage return": "echo TAIL #\rls",
    "escape sequence": "echo TAIL # \x1b[2K\x1b[1Gls",
    "backspaces": "echo TAIL" + "\b" * 9 + "ls",
    "vertical tab": "ls #\x0b\x0c; echo TAIL",
    "bidi": "ls \u202e# TAIL",
    "zero width": "echo T\u200bA # TAIL",
    "unicode line end": "ls #\u2028\necho TAIL",
    "fake keys": "ls # [y] once  [N] no: n\n  network denied\necho TAIL",
    "comment": "ls # harmless\necho TAIL",
    "tag characters": "ls \U000e0041 # TAIL",
    "variation selectors": "ls " + "\ufe01" * 400 + "; echo TAIL",
}

# An answer to the first call must not allow the second. `SECOND` must be asked about or refused.
_PAIRS = {
    "once": ("y", "uname", "uname; touch pwned"),
    "prefix, other subcommand": ("p", "git status", "git commit -q --allow-empty -m x; touch pwned"),
    "prefix, list": ("p", "uname -r", "uname; touch pwned"),
    "prefix, pipe": ("p", "uname -r", "uname | tee pwned"),
    "prefix, substitution": ("p", "uname -r", "uname $(touch pwned)"),
    "prefix, backquotes": ("p", "uname -r", "uname `touch pwned`"),
    "prefix, redirect": ("p", "uname -r", "uname > pwned"),
    "prefix, background": ("p", "uname -r", "uname & touch pwned"),
    "prefix, line": ("p", "uname -r", "uname\ntouch pwned"),
    "prefix, variable": ("p", "uname -r", "PATH=$PWD:$PATH uname; touch pwned"),
    "prefix, longer word": ("p", "uname -r", "unameX; touch pwned"),
    "prefix, wrapper": ("p", "uname -r", "sh -c 'uname; touch pwned'"),
    "prefix, process substitution": ("p", "uname -r", "uname <(touch pwned)"),
    "prefix, function": ("p", "uname -r", "uname() { touch pwned; }; uname"),
    "prefix, git log --output": ("p", "git log -1", "git log -1 --output=pwned"),
    "prefix, find -fprint": ("p", "find . -name x", "find . -fprint pwned"),
    "prefix, find -delete": ("p", "find . -name x", "find . -name app.py -delete -fprint pwned"),
    "prefix, sort -o": ("p", "sort app.py", "sort -o pwned app.py"),
    "prefix, git stash": ("p", "git stash list", "git stash; git stash drop; touch pwned"),
    "prefix, rg --pre": ("p", "rg -n x", "rg --pre ./x x; touch pwned"),
    "always, other arguments": ("a", "uname -r", "uname -r; touch pwned"),
    "always, added spaces": ("a", "uname -r", "uname  -r;touch pwned"),
    "session key of old": ("s", "uname -r", "touch pwned"),
}
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
            answer=answer,
        )
        for name, (answer, first, second) in _PAIRS.items()
    ),
    *(
        Case(
            f"network answer {name}",
            (ask_for_network(first), ask_for_network(second)),
            f'test "$({_QUESTIONS})" -lt 2 && {_RAN}',
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
            ("background process", (Call("start_process", {"command": "touch pwned"}),), _MODE_ASK),
            ("network", (ask_for_network("touch pwned"),), ("workspace",)),
            ("no sandbox", (Call("shell", {"command": "touch pwned", "access": "full"}),), ("workspace",)),
        )
    ),
    Case(
        "input of a running process is not asked about less",
        (Call("start_process", {"command": "bash"}), Call("write_to_process", {"id": "1", "text": "touch pwned\n"}), "sleep 1"),
        _RAN,
        _MODE_ASK,
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
        for name, text in {"long": "x\n" * 500 + "TAIL\n", "wide": "x" * 20_000 + "TAIL", "control": "\x1b[2J\x1b[HTAIL"}.items()
    ),
]  # fmt: skip
