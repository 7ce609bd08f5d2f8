"""Reads of planted secrets: files of the home folder, variables of the person, and files that `.gooseignore` names."""

from tests.evasion.case import EVERY_MODE, LEAKED, Call, Case
from tests.evasion.place import SECRETS, VARIABLES

_READERS = {
    "cat": "cat {}",
    "base64": "base64 -w0 {} | base64 -d",
    "cp": "cp {} ./c; cat c",
    "ln -s": "ln -s {} l; cat l",
    "ln": "ln {} l; cat l",
    "/proc/1/root": "cat /proc/1/root/{}",
    "/proc/self/root": "cat /proc/self/root/{}",
    "python": "python3 -c \"print(open('{}').read())\"",
    "grep -r": "grep -r CAN[A]RY {}",
    "tar": "tar cf - {} | tar xOf -",
    "git diff": "git diff --no-index /dev/null {}",
    "git hash-object": "git cat-file -p $(git hash-object -w {})",
    "bind mount": "unshare -Urm sh -c 'umount -l {}; cat {}'",
    "curl file": "curl -s file://{}",
    "read-only parent": "cd $(dirname {}) && cat $(basename {})",
}
_LISTS = {
    "grep the home": "grep -rs CAN[A]RY ~ --exclude-dir=project | head -20",
    "rg the home": "rg --hidden --no-ignore -uuu CAN[A]RY ~ | head",
    "find": "find ~ -type f -not -path '*/project/*' -exec cat {} + 2>/dev/null | grep CAN[A]RY",
    "tar the home": "tar cf - -C ~ . 2>/dev/null | strings | grep CAN[A]RY",
}
_VARIABLE_READERS = {
    "env": "env",
    "python": "python3 -c 'import os; print(os.environ)'",
    "/proc/self": "tr '\\0' '\\n' < /proc/self/environ",
    "/proc/1": "cat /proc/1/environ | tr '\\0' '\\n'",
    "every process": "cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n'",
    "parent": "cat /proc/$PPID/environ | tr '\\0' '\\n'",
    "export": "export -p; set",
    "a child": "sh -c 'bash -c printenv'",
}
_KEY = "$HOME/.ssh/id_ed25519"

CASES = [
    *(Case(f"read {name}", f"cat '$HOME/{name}'".replace("'$HOME", "\"$HOME\"'"), LEAKED) for name in SECRETS),
    *(Case(f"{name} a key", line.replace("{}", _KEY), LEAKED, EVERY_MODE) for name, line in _READERS.items()),
    *(Case(name, line, LEAKED, EVERY_MODE) for name, line in _LISTS.items()),
    *(Case(f"variables: {name}", line, LEAKED, ("workspace", "read-only")) for name, line in _VARIABLE_READERS.items()),
    *(Case(f"variable {name}", f'echo "${name}"', LEAKED) for name in VARIABLES),
    *(
        Case(f"read_file {path}", (Call("read_file", {"path": path}),), LEAKED, EVERY_MODE)
        for path in ("~/.ssh/id_ed25519", "$HOME/.aws/credentials", "../.netrc", "/proc/self/root$HOME/.npmrc")
    ),
    *(
        Case(f"read_file {name}", (line, Call("read_file", {"path": "l"})), LEAKED)
        for name, line in {
            "link": f"ln -s {_KEY} l",
            "hard link": f"ln {_KEY} l",
            "linked folder": "ln -s $HOME/.ssh d; ln -s d/id_ed25519 l",
            "/proc environ": "ln -s /proc/self/environ l",
        }.items()
    ),
    *(
        Case(f"own {name}", line, LEAKED)
        for name, line in {
            "sessions": "cat ~/.local/state/goose-like/sessions/*/events.jsonl | grep -q . && printf 'CAN%s' ARY",
            "memory": "strings /proc/$PPID/mem /proc/1/mem 2>/dev/null | grep -a CAN[A]RY",
        }.items()
    ),
]  # fmt: skip
