"""The pages that an answer cites, and lines for people about the tools that a server runs itself."""

from collections.abc import Iterable, Sequence
from dataclasses import field

from goose_like.core.dataclass import dataclass
from goose_like.core.events import Logged
from goose_like.core.message import Part, Text

_MAX_SUBJECT = 200
_MAX_TITLE = 120
_MAX_URL = 2_000

# Both would end a link of Markdown.
_TITLE_CHARACTERS = str.maketrans({"[": "(", "]": ")", "\\": "/", "<": "(", ">": ")", "`": "'"})
_URL_CHARACTERS = str.maketrans({"(": "%28", ")": "%29", "<": "%3C", ">": "%3E", "\\": "%5C"})


def to_printable_line(text: object, size: int) -> str:
    """Return foreign text as one line of at most `size` characters, without control and format characters."""
    line = " ".join(str(text or "").split())
    printable = "".join(filter(str.isprintable, line))
    if len(printable) <= size:
        return printable
    return printable[: size - 1] + "…"


def describe_use(tool: str, subject: object, outcome: str) -> Logged:
    """Describe what a server did with a tool of its own: a query or a URL, and how it ended."""
    shown = to_printable_line(subject, _MAX_SUBJECT)
    end = to_printable_line(outcome, _MAX_SUBJECT)
    return Logged(text=f"{tool} (hosted): {shown} · {end}")


@dataclass(slots=True)
class Sources:
    """The pages that an answer cites, numbered in the order in which they come.

    Titles and URLs are text of strangers: only web addresses count, and neither can leave its place in the list.
    """

    _titles: dict[str, str] = field(default_factory=dict)

    def add(self, url: object, title: object) -> str:
        """Add a page, and return its mark, such as `[2]`. The mark is empty for what is no web address."""
        if not isinstance(url, str) or not _is_web_address(url):
            return ""
        address = url.translate(_URL_CHARACTERS)
        name = to_printable_line(title, _MAX_TITLE).translate(_TITLE_CHARACTERS)
        if not self._titles.get(address):
            self._titles[address] = name
        number = list(self._titles).index(address) + 1
        return f"[{number}]"

    def append_to(self, parts: Sequence[Part]) -> list[Part]:
        """Return the parts of an answer with the list of sources after its last text. Without text there is none."""
        places = [at for at, part in enumerate(parts) if isinstance(part, Text)]
        if not self._titles or not places:
            return list(parts)
        lines = []
        for number, (address, name) in enumerate(self._titles.items(), start=1):
            lines.append(f"{number}. [{name or address}]({address})")
        listed = Text(text="\n\nSources:\n\n" + "\n".join(lines))
        end = places[-1] + 1
        return [*parts[:end], listed, *parts[end:]]


def join_marks(marks: Iterable[str]) -> str:
    """Join the marks of the pages that a text cites, each once."""
    unique = dict.fromkeys(filter(None, marks))
    if not unique:
        return ""
    return " " + "".join(unique)


def _is_web_address(url: str) -> bool:
    is_short = len(url) <= _MAX_URL
    is_web = url.startswith(("https://", "http://"))
    return is_short and is_web and url.isprintable() and " " not in url
