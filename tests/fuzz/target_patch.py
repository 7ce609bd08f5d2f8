"""The patcher of the developer toolkit."""

import asyncio
from pathlib import Path

from goose_like_toolkits.developer.checkers import Checkers
from goose_like_toolkits.developer.files import FileTools
from goose_like_toolkits.developer.linters import Linters
from goose_like_toolkits.developer.patching import Patch
from goose_like_toolkits.developer.seen_files import SeenFiles

from goose_like.core.notifier import Notifier
from goose_like.core.text_file import TextFile
from goose_like.toolkit import ToolError
from goose_like.workspace.workspace import Workspace
from tests.fuzz.source import Source

LINES = (
    "def f():", "    return 1", "\treturn 2  ", "", " ", "a", "aa", "aaa", "x = 'é'", "😀", "# ---", "end", "a \t",
    "(.*)[a-z]\\1", "\x0c", "\u2028", "a\rb", "\r", "}", "\x85",
)  # fmt: skip
ENDS = ("\n", "\n", "\r\n", "\r\r\n", "\r")
ENCODINGS = ("utf-8", "utf-8", "utf-8", "utf-8-sig", "utf-16", "latin-1")
PIECES = ("\n", "\r\n", " ", "\t", "a", "aa", "é", "😀", "\ud83d", "\0", "\x0c", "\u2028", "x", "  \n", "\\", "$")


class FuzzTarget:
    """Random files and patches. A patch changes exactly its place, byte for byte, and a refused one changes nothing."""

    def __init__(self, folder: Path) -> None:
        workspace = Workspace(folder, mode="full", approval="yolo", notifier=Notifier())
        linters = Linters(workspace, Notifier(), {})
        seen = SeenFiles(folder, Notifier(), {})
        checkers = Checkers(workspace, ())
        self._tools = FileTools(workspace, Notifier(), lambda: str(folder), 16_000, linters, checkers, seen)
        self._file = folder / "f"
        self._loop = asyncio.new_event_loop()

    def create(self, source: Source) -> tuple[bytes, list[Patch]]:
        """Create the content of a file, and patches for it."""
        end = source.choice(ENDS)
        ends = [end if source.happens(0.9) else source.choice(ENDS) for _ in range(12)]
        text = source.stretch("".join(line + ends[source.below(12)] for line in source.some(LINES, 11)))
        text = text if source.happens(0.8) else text.rstrip("\r\n")
        data = text.encode(source.choice(ENCODINGS), "replace")
        if source.happens(0.1):
            data = source.mutate(data, (b"\xff", b"\0", b"\r", b"\xc3", b"\xef\xbb\xbf"))
        patches = []
        for _ in range(1 + source.happens(0.2)):
            before = source.cut(text)
            if source.happens(0.4):
                before = before.replace("\r\n", "\n")
            if source.happens(0.3):
                before = source.mutate(before, PIECES)
            after = (
                source.mutate(before, PIECES) if source.happens(0.5) else source.choice(("", "new", "a\nb\n", "é\r\n"))
            )
            patches.append(Patch(before=before, after=after))
        return data, patches

    def check(self, value: tuple[bytes, list[Patch]]) -> None:
        data, patches = value
        self._file.write_bytes(data)
        try:
            answer = self._loop.run_until_complete(self._tools.patch("f", patches))
        except ToolError:
            # Of several patches, those that match are kept.
            assert len(patches) > 1 or self._file.read_bytes() == data
            return
        new = self._file.read_bytes()
        assert answer.startswith("saved f (")
        if len(patches) == 1 and "line ends differed" not in answer:
            assert new == replace_place(data, patches[0]), new


def replace_place(data: bytes, patch: Patch) -> bytes:
    """Replace the only place of a patch: the slow way, letter by letter."""
    text = TextFile.decode(data)
    assert text is not None
    exact, leads_to_newline = text.exact, False
    kept: list[int] = []
    for at in range(len(exact) - 1, -1, -1):  # backwards: a return is left out if what follows it leads to a newline
        is_left_out = exact[at] == "\r" and leads_to_newline
        leads_to_newline = exact[at] == "\n" or is_left_out
        kept += [] if is_left_out else [at]
    kept.reverse()
    shown = "".join(exact[at] for at in kept)
    before, after = (drop_returns(part) for part in (patch.before, patch.after))
    start = shown.index(before)
    assert shown.find(before, start + 1) == -1
    kept.append(len(exact))
    # A newline begins with its returns: the place ends after the last letter, and begins with its first return.
    first = kept[start - 1] + 1 if start else 0
    last = kept[start + len(before) - 1] + 1
    changed = exact[:first] + after.replace("\n", text.newline) + exact[last:]
    return text.bom + changed.encode(text.encoding)


def drop_returns(text: str) -> str:
    *lines, last = text.split("\n")
    return "\n".join([*(line.rstrip("\r") for line in lines), last])
