"""Sketch: the names in a file and what it seems to define, found at a quarter of the cost of parsing it."""

import re

from goose_like.core.message import Value

# A capital, an underscore or a parenthesis behind it makes it a name: `profile` alone is a variable, or a comment's.
_USED = re.compile(r"\b(?!\d)(?:[^\WA-Z_]*+[A-Z_]\w++|\w{3,}+(?=\())")

# After a keyword and what may stand before it, also Go's receiver; or as in C, after a type and before a parenthesis.
_DEFINED = re.compile(
    r"^(?:[ \t]*(?:[a-z()]{2,12}[ \t]+){0,4}"
    r"(?:class|const|def|enum|fn|func|function|interface|module|record|struct|trait|type)[ \t*]+(?:\([^()\n]*\)[ \t]*)?"
    r"|\w[\w \t*]{0,80}[ \t*](?=\w+\())([^\W\d]\w*)",
    re.MULTILINE,
)


class Sketch(Value):
    """`defined` is what it seems to define, `names` all that it names, in comments too."""

    defined: frozenset[str]
    names: frozenset[str]


def sketch(_path: str, data: bytes) -> Sketch:
    """Of a text in any language."""
    text = data.decode(errors="replace")
    return Sketch(defined=frozenset(_DEFINED.findall(text)), names=frozenset(_USED.findall(text)))
