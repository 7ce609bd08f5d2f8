"""Files: read, write and patch text, knowing what of it the model has seen."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from difflib import SequenceMatcher, get_close_matches, unified_diff
from hashlib import sha256
from pathlib import Path

from pydantic import Field

from goose_like.core.errors import GooseLikeError
from goose_like.core.images import media_type
from goose_like.core.message import Value
from goose_like.toolkit import Notifier, Picture, ToolError, Workspace

from .checks import Checks
from .text import Text, lines, plain

MAX_FILE_BYTES = 5_000_000
MAX_WORDS = 30
MAX_COMPARED_LINES = 20_000
MAX_DIFF_LINES = 80
MAX_DIFF_LETTERS = 6_000


class Patch(Value):
    before: str = Field(description="exact text in the file, found only once; take whole lines")
    after: str


class Files:
    """What the tools for files do. `here` gives the folder that relative paths start from.

    A file is written over only if the model knows what it holds. What it knows is a digest per real path, so that
    a link and its target, and `a` and `./a`, are one.
    """

    def __init__(
        self, workspace: Workspace, notifier: Notifier, here: Callable[[], str], shown_bytes: int, checks: Checks
    ) -> None:
        self._workspace = workspace
        self._notifier = notifier
        self._checks = checks
        self._here = here
        self._shown_bytes = shown_bytes
        self.unchecked = ""  # what was changed last, until somebody runs something
        self.known: dict[Path, bytes] = {}
        self._changing = asyncio.Lock()  # of two patches to one file in one message the second sees the first

    def read(self, path: str, start_line: int, end_line: int | None) -> str | Picture:
        """A line that says what is shown, then the lines themselves, without numbers: a model copies those into its
        patches, they cost a tenth of the tokens, and `rg -n` gives them where they are wanted."""
        real = self.real(path)
        data = self._load(path, real)
        text = Text.decode(data)
        if text is None and media_type(data):
            return Picture(data, path, f"[{path}: an image, {len(data):,} bytes]")
        if text is None:
            raise ToolError(f"{path} is binary, {len(data):,} bytes; look at it in the shell (file, strings, xxd)")
        every = lines(text.shown)
        if start_line < 1 or (end_line is not None and end_line < start_line):
            raise ToolError("lines count from 1, and end_line is not before start_line")
        if start_line > max(len(every), 1):
            raise ToolError(f"{path} has only {len(every)} lines")
        self.known[real] = sha256(data).digest()
        if not every:
            return f"[{path}: empty]"
        wanted = every[start_line - 1 : end_line]
        shown = _fitting(wanted, self._shown_bytes)
        facts = [f"{len(every)} lines" if len(every) > 1 else "1 line"]
        last = start_line + len(shown) - 1
        if len(shown) < len(every):
            facts.append(f"here {start_line} to {last}")
        if len(shown) < len(wanted):
            facts.append(f"go on with start_line={last + 1}")
        if shown[-1] != wanted[len(shown) - 1]:
            facts.append(f"line {last} is too long and cut")
        if text.encoding != "utf-8":
            facts.append(text.encoding)
        if text.newline != "\n":
            facts.append("CRLF, kept when you write")
        if len(shown) == len(every) and not text.shown.endswith("\n"):
            facts.append("no newline at the end")
        return "\n".join([f"[{path}: {', '.join(facts)}]", *shown])

    def saw(self, command: str, answer: str) -> None:
        """A file that a command names, and all of whose text stands in the answer, is known as if it had been read."""
        for word in command.split()[:MAX_WORDS]:
            with suppress(GooseLikeError, OSError, ValueError):
                real = self._workspace.real(Path(self._here(), word.strip("\"';&|()")))
                data = self._workspace.read_bytes(real, len(answer) * 4)
                if (text := Text.decode(data)) and text.shown.strip() and text.shown.strip() in answer:
                    self.known[real] = sha256(data).digest()

    async def write(self, path: str, content: str) -> str:
        async with self._changing:
            return await self._write(path, content)

    async def patch(self, path: str, patches: list[Patch]) -> str:
        async with self._changing:
            return await self._patch(path, patches)

    async def _write(self, path: str, content: str) -> str:
        real = self.real(path)
        data = self._bytes(path, real)
        if data is None:
            return await self._save(path, real, None, Text(content))
        old = Text.decode(data)
        if old is None:
            raise ToolError(f"{path} is binary; delete it in the shell first if a text is to take its place")
        new = old.with_all(content)
        if old.encoding == "latin-1":
            try:
                new.encode()
            except ToolError:
                new = Text(new.exact)
        if new == old:
            self.known[real] = sha256(data).digest()
            return f"nothing was changed: {path} holds exactly this already; write what shall be different"
        self._require_known(path, real, data, is_new_to_it=bool(data))
        return await self._save(path, real, old, new)

    async def _patch(self, path: str, patches: list[Patch]) -> str:
        real = self.real(path)
        data = self._load(path, real)
        old = Text.decode(data)
        if old is None:
            raise ToolError(f"{path} is binary and can't be patched; use a program in the shell")
        if not patches:
            raise ToolError("patches is empty; give at least one {before, after}")
        # `before` proves that the model knows the place; only what it knows of the rest may be out of date.
        self._require_known(path, real, data, is_new_to_it=False)
        new = old
        for number, patch in enumerate(patches, 1):
            which = f"patch {number} of {len(patches)}: " if len(patches) > 1 else ""
            try:
                new = _applied(new, plain(patch.before), plain(patch.after))
            except ToolError as error:
                raise ToolError(f"{which}{error}. {path} was not changed") from error
        return await self._save(path, real, old, new)

    def real(self, path: str) -> Path:
        """Links followed. Relative paths start where the shell is."""
        if not path.strip():
            raise ToolError("path is empty")
        with _in_words(path):
            return self._workspace.real(Path(self._here(), Path(path).expanduser()))

    def _bytes(self, path: str, real: Path) -> bytes | None:
        """What the file holds; None where there is none."""
        with _in_words(path):
            try:
                return self._workspace.read_bytes(real, MAX_FILE_BYTES)
            except (FileNotFoundError, NotADirectoryError):
                return None

    def _load(self, path: str, real: Path) -> bytes:
        data = self._bytes(path, real)
        if data is None:
            raise ToolError(f"there is no file {path!r}{_nearest(real)}")
        return data

    def _require_known(self, path: str, real: Path, data: bytes, *, is_new_to_it: bool) -> None:
        """Raises with what the file holds, so that the next try is an informed one without a call in between."""
        known = self.known.get(real)
        if known == sha256(data).digest() or (known is None and not is_new_to_it):
            return
        why = "you have not read it" if known is None else "it has changed since you read it"
        text = f"not written yet, as {why}. It holds what follows; now write what it shall hold"
        raise ToolError(f"{text}:\n{self.read(path, 1, None)}")

    async def _save(self, path: str, real: Path, old: Text | None, new: Text) -> str:
        data = new.encode()
        before = await self._checks.faults(real, old.shown if old else None)
        with _in_words(path):
            await self._workspace.write_bytes(real, data)
        self.unchecked = path
        self.known[real] = sha256(data).digest()
        diff, change = _compared(path, lines(old.shown) if old else [], lines(new.shown))
        self._notifier.log(diff)
        note = "" if old is None or old.encoding == new.encoding else ", now as UTF-8"
        faults = await self._checks.faults(real, new.shown)
        return f"{'created' if old is None else 'saved'} {path} ({change}{note}){faults.since(before)}"


def _applied(text: Text, before: str, after: str) -> Text:
    """The text with its one `before` replaced.

    Raises:
        ToolError: it is not there just once; the words say where something like it is.
    """
    if not before:
        raise ToolError("`before` is empty; give the lines to replace, or use write_file for a new file")
    if before == after:
        raise ToolError("`before` and `after` are the same; nothing would change")
    shown = text.shown
    starts = [shown.find(before)]
    while starts[-1] >= 0:
        starts.append(shown.find(before, starts[-1] + 1))
    match starts[:-1]:
        case [start]:
            return text.with_part(start, start + len(before), after)
        case []:
            raise ToolError(f"`before` is not in the file{_near_misses(before, shown)}")
        case found:
            at = ", ".join(str(shown.count("\n", 0, start) + 1) for start in found[:10])
            more = ", ..." if len(found) > 10 else ""
            raise ToolError(f"`before` occurs {len(found)} times, at lines {at}{more}; add lines around it")


def _near_misses(before: str, shown: str) -> str:
    """Where the file has almost that, as it stands there."""
    wanted, every = lines(before), lines(shown)[:MAX_COMPARED_LINES]
    size = len(wanted)

    def quote(start: int) -> str:
        found = "\n".join(every[max(start, 0) : max(start, 0) + min(size, 20)])
        return f"line {max(start, 0) + 1}:\n{found[:1500]}"

    bare, bare_wanted = [" ".join(line.split()) for line in every], [" ".join(line.split()) for line in wanted]
    same = [start for start in range(len(bare) - size + 1) if bare[start : start + size] == bare_wanted]
    if same and any(bare_wanted):
        return f", but with other whitespace it is. The file has at {quote(same[0])}\nTake it as it stands there"
    # The longest line tells most; where the file has one like it, the lines around it are compared too.
    anchor = max(range(size), key=lambda index: len(bare_wanted[index]))
    alike = set(get_close_matches(bare_wanted[anchor][:300], {line[:300] for line in bare if line}, n=5, cutoff=0.6))
    starts = [index - anchor for index, line in enumerate(bare) if line[:300] in alike][:50]
    ranked = sorted(starts, key=lambda start: -_likeness(bare[max(start, 0) : start + size], bare_wanted))[:2]
    if not ranked:
        return ", nor anything like it; read the file first"
    return ". Nearest is " + "\nand ".join(quote(start) for start in ranked) + "\nTake it as it stands there"


def _likeness(found: list[str], wanted: list[str]) -> float:
    return SequenceMatcher(None, "\n".join(found)[:2000], "\n".join(wanted)[:2000], autojunk=False).ratio()


def _compared(path: str, old: list[str], new: list[str]) -> tuple[str, str]:
    """A diff for people, cut where it gets long, and how much was added and removed."""
    if len(old) + len(new) > MAX_COMPARED_LINES:
        change = f"{len(new)} lines, before {len(old)}"
        return f"{path}: {change}", change
    before = "a/" + path.lstrip("/") if old else "/dev/null"
    diff = list(unified_diff(old, new, before, "b/" + path.lstrip("/"), lineterm=""))
    added = sum(line.startswith("+") for line in diff[2:])
    removed = sum(line.startswith("-") for line in diff[2:])
    change = f"+{added} -{removed} lines"
    short = _fitting(diff[:MAX_DIFF_LINES], MAX_DIFF_LETTERS)
    cut = [f"... {len(diff) - len(short)} more lines of this diff"] if len(short) < len(diff) else []
    return "\n".join([*short, *cut]) or f"{path}: only the end of the file or its newlines changed", change


def _fitting(wanted: list[str], limit_bytes: int) -> list[str]:
    """As many lines from the first as fit, the first one cut if it doesn't."""
    room = limit_bytes
    for index, line in enumerate(wanted):
        room -= len(line.encode(errors="replace")) + 1
        if room < 0:
            return wanted[:index] or [line.encode(errors="replace")[:limit_bytes].decode(errors="ignore")]
    return wanted


def _nearest(real: Path) -> str:
    """The names in the nearest folder that exists that may have been meant."""
    folder = next(parent for parent in real.parents if parent.is_dir())
    if folder != real.parent:
        return f"; there is no folder {real.parent.name!r} either"
    names = sorted(entry.name for entry in folder.iterdir())
    near = get_close_matches(real.name, names, n=3, cutoff=0.5)
    return f"; near it are {', '.join(near)}" if near else f"; its folder holds {', '.join(names[:10]) or 'nothing'}"


@contextmanager
def _in_words(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ToolError(f"{path}: {error.strerror or error}; check the path and its rights in the shell") from error
    except (UnicodeEncodeError, ValueError, RuntimeError) as error:  # no such text, NUL, ~nobody, a circle of links
        raise ToolError(f"{path!a} can't be a path: {error}") from error
