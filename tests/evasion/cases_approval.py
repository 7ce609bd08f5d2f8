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
    "always, other arguments": ("a", "uname -r", "uname -r; touch pwned"),
    "always, added spaces": ("a", "uname -r", "uname  -r;touch pwned"),
    "session key of old": ("s", "uname -r", "touch pwned"),
}
_MODE_ASK = ("ask",)

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
