"""Texts about tools and their arguments, from docstrings in any style."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from docstring_parser import Docstring


def parse_docstring(text: str) -> "Docstring":
    """Parse a docstring in any style. Trying all styles for each tool would cost 10 ms at each start."""
    import docstring_parser  # the texts of most docstrings are kept

    is_google = ":param" not in text and "---" not in text
    style = docstring_parser.DocstringStyle.GOOGLE if is_google else docstring_parser.DocstringStyle.AUTO
    return docstring_parser.parse(text, style)


def read_docstring(text: str) -> dict[str, str]:
    """Return the texts about arguments by their names, empty ones too. The text about the tool has the name ""."""
    doc = parse_docstring(text)
    paragraphs = filter(None, (doc.short_description, doc.long_description))
    texts = {"": "\n\n".join(paragraphs)}
    for entry in doc.params:
        texts[entry.arg_name] = entry.description or ""
    return texts
