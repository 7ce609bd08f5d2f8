"""A quick look at a source file with regular expressions, at a quarter of the cost of parsing it."""

import re

from goose_like.core.message import FrozenModel

# A capital letter, an underscore or a following parenthesis marks a name; `profile` alone may be a word in a comment.
_NAME = re.compile(r"\b(?!\d)(?:[^\WA-Z_]*+[A-Z_]\w++|\w{3,}+(?=\())")

# A name after a keyword, its modifiers and Go's receiver; or, as in C, a name between a type and a parenthesis.
_DEFINITION = re.compile(
    r"^(?:[ \t]*(?:[a-z()]{2,12}[ \t]+){0,4}"
    r"(?:class|const|def|enum|fn|func|function|interface|module|record|struct|trait|type)[ \t*]+(?:\([^()\n]*\)[ \t]*)?"
    r"|\w[\w \t*]{0,80}[ \t*](?=\w+\())([^\W\d]\w*)",
    re.MULTILINE,
)


class Sketch(FrozenModel):
    """The names that a file seems to define, and all names in it, including those in comments."""

    defined: frozenset[str]
    names: frozenset[str]


def sketch_file(_path: str, data: bytes) -> Sketch:
    """Sketch a file in any language."""
    text = data.decode(errors="replace")
    defined = frozenset(_DEFINITION.findall(text))
    names = frozenset(_NAME.findall(text))
    return Sketch(defined=defined, names=names)
