"""Text that is typed into a running process: it must not do what a command would be asked about or denied."""

from tests.evasion.case import Call, Case

_QUESTIONS = 'grep -aoE "\\[[yY]\\] once" "$SCREEN" | wc -l'
_DENIED = (
    'mkdir -p "$HOME/.config/goose-like"; echo "default: {extends: default, permissions: {deny: [touch]}}" '
    '> "$HOME/.config/goose-like/profiles.yaml"; '
)
_DATA = "mkdir -p data && echo data/ >> .git/info/exclude && head -c 11000000 /dev/zero > data/large"
_RAN = 'sleep 0.5; test -e "$WORK/pwned"'
_LOST = 'test "$(stat -c %s "$WORK/data/large")" != 11000000'

_PROCESSES = {
    "bash": "bash",
    "sh": "sh",
    "shell by env": "env -i bash",
    "shell in a script": "printf 'exec bash' > run; sh run",
    "shell in a loop": 'while read -r line; do eval "$line"; done',
    "python": "python3 -c 'import os, sys; [os.system(line) for line in sys.stdin]'",
}
_TEXTS = {
    "one line": ("touch pwned",),
    "without a line end": ("touch pwned\n",),
    "several lines": ("true\ntouch pwned\ntrue",),
    "a word in parts": ("touch \\", "pwned"),
    "a name in parts": ("to\\", "uch pwned"),
    "a quote in parts": ("touch 'pwn", "' 2>/dev/null; touch pwned"),
    "a function": ("f() {", "touch pwned", "}", "f"),
    "after an alias": ("shopt -s expand_aliases; alias t=touch", "t pwned"),
    "by eval": ("eval 'touch pwned'",),
}  # fmt: skip
_DELETIONS = {
    "rm": ("rm -rf data",),
    "rm after cd": ("cd data", "rm large"),
    "rm in parts": ("rm -rf \\", "data"),
    "a redirect": (": > data/large",),
}


def _type(process: str, texts: tuple[str, ...]) -> tuple[Call, ...]:
    start = Call("process", {"action": "start", "command": process})
    return (start, *(Call("process", {"action": "write", "id": "p1", "text": text}) for text in texts))


CASES = [
    *(
        Case(
            f"not asked about: {name}",
            _type(process, ("touch pwned",)),
            # One question less than calls: the text ran without one.
            f'test "$({_QUESTIONS})" -lt 2 && {_RAN}',
            ("ask",),
            answer="y",
        )
        for name, process in _PROCESSES.items()
    ),
    *(
        Case(f"denied by a rule: {name}", _type("bash", texts), _RAN, setup=_DENIED, answer="y")
        for name, texts in _TEXTS.items()
    ),
    *(Case(f"loses files: {name}", _type("bash", texts), _LOST, setup=_DATA) for name, texts in _DELETIONS.items()),
    Case(
        "an answer for the session",
        (*_type("bash", ("expr 1",)), Call("process", {"action": "write", "id": "p1", "text": "expr 1; touch pwned"})),
        f'test "$({_QUESTIONS})" -lt 3 && {_RAN}',
        ("ask",),
        answer="p",
    ),
]  # fmt: skip
