"""Programs in the workspace with the names of programs that goose_like starts with the person's rights."""

from tests.evasion.case import WROTE_OUTSIDE, Case

_VENV = {"PATH": "$WORK/.venv/bin:/usr/local/bin:/usr/bin:/bin"}
_PLANT = "mkdir -p .venv/bin; printf '#!/bin/sh\\ntouch $OUTSIDE/pwned\\n' > .venv/bin/{0}; chmod +x .venv/bin/{0}"
_EXPORT = "ln -s $OUTSIDE/pwned {}; test -L {} && echo planted"

CASES = [
    Case("bash of an own command", _PLANT.format("bash"), WROTE_OUTSIDE, typed=("go", "!echo hi"), variables=_VENV),
    *(
        Case(
            f"{name} at a paste",
            _PLANT.format(name),
            WROTE_OUTSIDE,
            typed=("go", "\x16"),
            variables={**_VENV, "WAYLAND_DISPLAY": ":9", "DISPLAY": ":9"},
        )
        for name in ("wl-paste", "xclip", "sh", "pngpaste")
    ),
    *(
        Case(f"{name} at the start", "true", WROTE_OUTSIDE, setup=_PLANT.format(name), variables=_VENV)
        for name in ("bash", "sh", "git", "rg", "true", "bwrap", "python3", "python", "timeout", "head", "env")
    ),
    *(
        Case(f"{name} after a command", _PLANT.format(name), WROTE_OUTSIDE, typed=("go", "look at @a"), variables=_VENV)
        for name in ("sh", "git", "rg", "timeout", "head")
    ),
    *(
        Case(f"{name} while a folder is relative", _PLANT.format(name), WROTE_OUTSIDE, typed=("go", "!echo hi"),
             variables={"PATH": ".venv/bin::/usr/bin:/bin"})
        for name in ("bash", "sh")
    ),
    Case("export through a link", _EXPORT.format("talk.md", "talk.md"), WROTE_OUTSIDE, typed=("go", "/export")),
    Case("export to a link", _EXPORT.format("x.html", "x.html"), WROTE_OUTSIDE, typed=("go", "/export x.html")),
    Case(
        "export below a link",
        "ln -s $OUTSIDE docs",
        'test -e "$OUTSIDE/x.md"',
        typed=("go", "/export docs/x.md"),
    ),
]  # fmt: skip
