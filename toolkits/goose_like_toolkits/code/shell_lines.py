"""The shell commands in the code of a cell: `!rm x`, `%%bash` and the like, for undo."""

import re
from collections.abc import Iterator

_SHELL_CELL = re.compile(r"\s*%%(?:bash|sh|!|sx|system|script\b.*)[^\n]*\n")
# IPython also runs `rm x` without a sign, as an alias.
_SHELL_LINE = re.compile(
    r"[ \t]*+(?:[\w.,\[\] ]+=[ \t]*)?(?:!!?|%(?:sx|system)\b|%?(?=(?:rm|rmdir|mv|cp|ln)[ \t]+[^=\s]))[ \t]*(.+)"
)
_INSERTED_VALUE = re.compile(r"\{[^{}]*\}")


def list_shell_lines(code: str) -> Iterator[str]:
    """Yield what a cell gives to a shell. A value that Python inserts, such as `{name}`, becomes a variable."""
    if cell := _SHELL_CELL.match(code):
        yield code[cell.end() :]
        return
    for line in code.replace("\\\n", " ").splitlines():
        if command := _SHELL_LINE.match(line):
            yield _INSERTED_VALUE.sub("$inserted", command[1])
