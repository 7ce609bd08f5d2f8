"""A document as text."""

from goose_like.core.message import FrozenModel


class Line(FrozenModel):
    """A line of a page with its box, in points from the page's top left."""

    page: int
    text: str
    x0: float
    top: float
    x1: float
    bottom: float


class Document(FrozenModel):
    """A document as text. `lines` are those of a document with pages. `problem` tells why there is no text."""

    text: str = ""
    lines: tuple[Line, ...] = ()
    problem: str = ""
