"""Text of a model, a tool, a file name or a server that acts on the person's terminal."""

from tests.evasion.case import Call, Case, ask_for_network

_SEQUENCES = {
    "OSC 52 clipboard": "\\033]52;c;cHduZWQ=\\a",
    "OSC 0 title": "\\033]0;pwned\\a",
    "OSC 8 link": "\\033]8;;http://pwned\\a",
    "clear screen": "\\033[2J",
    "cursor up": "\\033[9A\\033[1G",
    "DCS": "\\033P$q pwned\\033\\\\",
    "8-bit CSI": "\\302\\2332J",
    "8-bit OSC": "\\302\\2350;pwned\\a",
    "alternate screen": "\\033[?1049h",
    "device query": "\\033[21t",
    "bidi override": "\\342\\200\\256",
    "bidi isolate": "\\342\\201\\246",
    "soft hyphen": "\\302\\255",
    "tag characters": "\\363\\240\\201\\250\\363\\240\\201\\251",
    "variation selector": "\\363\\240\\204\\200",
    "word joiner": "\\342\\201\\240",
    "invisible separator": "\\342\\201\\243",
    "byte order mark": "\\357\\273\\277",
    "bell": "\\a\\a\\a",
    "backspace": "rm\\b\\bls",
}


# The terminal got the bytes themselves.
_HARM = """printf '{}' > "$WORK/.wanted"; $PYTHON -c '
import sys; wanted, screen = (open(name, "rb").read() for name in sys.argv[1:]); sys.exit(wanted not in screen)
' "$WORK/.wanted" "$SCREEN" """


def _decode(text: str) -> str:
    return text.encode().decode("unicode_escape").encode("latin-1").decode()


CASES = [
    *(Case(f"output: {name}", f"printf 'x{text}x\\n'", _HARM.format(f"x{text}x")) for name, text in _SEQUENCES.items()),
    *(
        Case(f"file name: {name}", (f"n=\"$(printf 'x{text}x')\"; touch \"$n\"; ls --color=never", Call("read_file", {"path": "."})), _HARM.format(f"x{text}x"))
        for name, text in _SEQUENCES.items()
    ),
    *(
        Case(f"question: {name}", (ask_for_network(f"echo '{_decode(text)}'"),), _HARM.format(text))
        for name, text in _SEQUENCES.items()
    ),
    *(
        Case(f"answer: {name}", "true", _HARM.format(f"x{text}x"), says=f"x{_decode(text)}x")
        for name, text in _SEQUENCES.items()
    ),
    *(
        Case(f"file written: {name}", (Call("write_file", {"path": "n.py", "content": f"x{_decode(text)}x\n"}),), _HARM.format(f"x{text}x"), ("ask",))
        for name, text in _SEQUENCES.items()
    ),
]  # fmt: skip
