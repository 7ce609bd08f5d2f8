"""File tools: read, write and patch text, and track the content that the model has seen."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from difflib import SequenceMatcher, get_close_matches, unified_diff
from hashlib import sha256
from pathlib import Path

from pydantic import Field

from goose_like.core.errors import GooseLikeError
from goose_like.core.images import detect_media_type
from goose_like.core.masking import mask_text
from goose_like.core.message import FrozenModel
from goose_like.toolkit import ImageResult, Notifier, ToolError, Workspace

from .linters import Linters
from .text import TextFile, normalize_newlines, split_lines

MAX_FILE_BYTES = 5_000_000
MAX_WORDS = 30
MAX_COMPARED_LINES = 20_000
MAX_DIFF_LINES = 80
MAX_DIFF_BYTES = 6_000


class Patch(FrozenModel):
    """One replacement in a file, as the model sends it."""

    before: str = Field(description="exact text in the file, found only once; take whole lines")
    after: str


class FileTools:
    """The file tools. A file is overwritten only if the model knows its current content.

    Attributes:
        known: the digest of each file as the model saw it, by real path, so that all names of a file are one.
        unchecked_path: the last changed file, until a command runs.
    """

    def __init__(
        self, workspace: Workspace, notifier: Notifier, get_cwd: Callable[[], str], max_bytes: int, linters: Linters
    ) -> None:
        """Create the tools. `get_cwd` returns the folder that relative paths start from."""
        self._workspace = workspace
        self._notifier = notifier
        self._linters = linters
        self._get_cwd = get_cwd
        self._max_bytes = max_bytes
        self.unchecked_path = ""
        self.known: dict[Path, bytes] = {}
        self._lock = asyncio.Lock()  # two patches of one file in one message run one after the other

    def read(self, path: str, start_line: int, end_line: int | None) -> str | ImageResult:
        """Return a line of facts, then the wanted lines of a file; or the image in it.

        Lines have no numbers: a model would copy these into its patches, and they cost a tenth of the tokens.
        """
        real = self.resolve(path)
        data = self._load(path, real)
        text = TextFile.decode(data)
        if text is None and detect_media_type(data):
            return ImageResult(data, path, f"[{path}: an image, {len(data):,} bytes]")
        if text is None:
            raise ToolError(f"{path} is binary, {len(data):,} bytes; look at it in the shell (file, strings, xxd)")
        lines = split_lines(mask_text(text.shown))  # whole: a part of a key would not be recognized
        if start_line < 1 or (end_line is not None and end_line < start_line):
            raise ToolError("lines count from 1, and end_line is not before start_line")
        if start_line > max(len(lines), 1):
            raise ToolError(f"{path} has only {len(lines)} lines")
        self.known[real] = sha256(data).digest()
        if not lines:
            return f"[{path}: empty]"
        wanted = lines[start_line - 1 : end_line]
        shown = _take_fitting(wanted, self._max_bytes)
        facts = [f"{len(lines)} lines" if len(lines) > 1 else "1 line"]
        last = start_line + len(shown) - 1
        if len(shown) < len(lines):
            facts.append(f"here {start_line} to {last}")
        if len(shown) < len(wanted):
            facts.append(f"go on with start_line={last + 1}")
        if shown[-1] != wanted[len(shown) - 1]:
            facts.append(f"line {last} is too long and cut")
        if text.encoding != "utf-8":
            facts.append(text.encoding)
        if text.newline != "\n":
            facts.append("CRLF, kept when you write")
        if len(shown) == len(lines) and not text.shown.endswith("\n"):
            facts.append("no newline at the end")
        return "\n".join([f"[{path}: {', '.join(facts)}]", *shown])

    def note_shown_files(self, command: str, answer: str) -> None:
        """Mark a file as known if the command names it and its whole text is in the answer."""
        for word in command.split()[:MAX_WORDS]:
            with suppress(GooseLikeError, OSError, ValueError):
                real = self._workspace.resolve(Path(self._get_cwd(), word.strip("\"';&|()")))
                data = self._workspace.read_bytes(real, len(answer) * 4)
                if (text := TextFile.decode(data)) and text.shown.strip() and text.shown.strip() in answer:
                    self.known[real] = sha256(data).digest()

    async def write(self, path: str, content: str) -> str:
        """Create or replace a file, and describe the change for the model."""
        async with self._lock:
            return await self._write(path, content)

    async def patch(self, path: str, patches: list[Patch]) -> str:
        """Apply all patches to a file or none, and describe the change for the model."""
        async with self._lock:
            return await self._patch(path, patches)

    async def _write(self, path: str, content: str) -> str:
        real = self.resolve(path)
        data = self._read_bytes(path, real)
        if data is None:
            return await self._save(path, real, None, TextFile(content))
        old = TextFile.decode(data)
        if old is None:
            raise ToolError(f"{path} is binary; delete it in the shell first if a text is to take its place")
        new = old.with_all(content)
        if old.encoding == "latin-1":
            try:
                new.encode()
            except ToolError:
                new = TextFile(new.exact)
        if new == old:
            self.known[real] = sha256(data).digest()
            return f"nothing was changed: {path} holds exactly this already; write what shall be different"
        self._require_known(path, real, data, must_be_read=bool(data))
        return await self._save(path, real, old, new)

    async def _patch(self, path: str, patches: list[Patch]) -> str:
        real = self.resolve(path)
        data = self._load(path, real)
        old = TextFile.decode(data)
        if old is None:
            raise ToolError(f"{path} is binary and can't be patched; use a program in the shell")
        if not patches:
            raise ToolError("patches is empty; give at least one {before, after}")
        # `before` proves that the model knows this place, so the file may be unread, but not outdated.
        self._require_known(path, real, data, must_be_read=False)
        new = old
        for number, patch in enumerate(patches, 1):
            prefix = f"patch {number} of {len(patches)}: " if len(patches) > 1 else ""
            try:
                new = _apply_patch(new, normalize_newlines(patch.before), normalize_newlines(patch.after))
            except ToolError as error:
                raise ToolError(f"{prefix}{error}. {path} was not changed") from error
        return await self._save(path, real, old, new)

    def resolve(self, path: str) -> Path:
        """Resolve a path through all links. Relative paths start in the shell's folder."""
        if not path.strip():
            raise ToolError("path is empty")
        with _tool_errors(path):
            return self._workspace.resolve(Path(self._get_cwd(), Path(path).expanduser()))

    def _read_bytes(self, path: str, real: Path) -> bytes | None:
        """Return the content of a file, or None if there is no file."""
        with _tool_errors(path):
            try:
                return self._workspace.read_bytes(real, MAX_FILE_BYTES)
            except (FileNotFoundError, NotADirectoryError):
                return None

    def _load(self, path: str, real: Path) -> bytes:
        data = self._read_bytes(path, real)
        if data is None:
            raise ToolError(f"there is no file {path!r}{_suggest_names(real)}")
        return data

    def _require_known(self, path: str, real: Path, data: bytes, *, must_be_read: bool) -> None:
        """Check that the model knows the current content.

        Raises:
            ToolError: the model does not. The message has the content, so that no other call is needed before the next.
        """
        known = self.known.get(real)
        if known == sha256(data).digest() or (known is None and not must_be_read):
            return
        why = "you have not read it" if known is None else "it has changed since you read it"
        text = f"not written yet, as {why}. Its content follows; now write the new content"
        raise ToolError(f"{text}:\n{self.read(path, 1, None)}")

    async def _save(self, path: str, real: Path, old: TextFile | None, new: TextFile) -> str:
        data = new.encode()
        before = await self._linters.check_file(real, old.shown if old else None)
        with _tool_errors(path):
            await self._workspace.write_bytes(real, data)
        self.unchecked_path = path
        self.known[real] = sha256(data).digest()
        diff, change = _summarize_change(path, split_lines(old.shown) if old else [], split_lines(new.shown))
        self._notifier.log(diff)
        note = "" if old is None or old.encoding == new.encoding else ", now as UTF-8"
        findings = await self._linters.check_file(real, new.shown)
        return f"{'created' if old is None else 'saved'} {path} ({change}{note}){findings.describe_new(before)}"


def _apply_patch(text: TextFile, before: str, after: str) -> TextFile:
    """Replace the only occurrence of `before`.

    Raises:
        ToolError: there is none, or more than one; the message shows similar lines.
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
            raise ToolError(f"`before` is not in the file{_describe_similar(before, shown)}")
        case found:
            at = ", ".join(str(shown.count("\n", 0, start) + 1) for start in found[:10])
            more = ", ..." if len(found) > 10 else ""
            raise ToolError(f"`before` occurs {len(found)} times, at lines {at}{more}; add lines around it")


def _describe_similar(before: str, shown: str) -> str:
    """Describe the places of the file that are most similar, with their exact text."""
    wanted, lines = split_lines(before), split_lines(shown)[:MAX_COMPARED_LINES]
    size = len(wanted)

    def quote(start: int) -> str:
        found = "\n".join(lines[max(start, 0) : max(start, 0) + min(size, 20)])
        return f"line {max(start, 0) + 1}:\n{found[:1500]}"

    bare, bare_wanted = [" ".join(line.split()) for line in lines], [" ".join(line.split()) for line in wanted]
    same = [start for start in range(len(bare) - size + 1) if bare[start : start + size] == bare_wanted]
    if same and any(bare_wanted):
        return f", but with other whitespace it is. The file has at {quote(same[0])}\nTake it as it stands there"
    # The longest line is the most distinctive. Where the file has a similar line, compare the lines around it too.
    anchor = max(range(size), key=lambda index: len(bare_wanted[index]))
    alike = set(get_close_matches(bare_wanted[anchor][:300], {line[:300] for line in bare if line}, n=5, cutoff=0.6))
    starts = [index - anchor for index, line in enumerate(bare) if line[:300] in alike][:50]
    ranked = sorted(starts, key=lambda start: -_get_similarity(bare[max(start, 0) : start + size], bare_wanted))[:2]
    if not ranked:
        return ", nor anything like it; read the file first"
    return ". Nearest is " + "\nand ".join(quote(start) for start in ranked) + "\nTake it as it stands there"


def _get_similarity(found: list[str], wanted: list[str]) -> float:
    return SequenceMatcher(None, "\n".join(found)[:2000], "\n".join(wanted)[:2000], autojunk=False).ratio()


def _summarize_change(path: str, old: list[str], new: list[str]) -> tuple[str, str]:
    """Return a diff for people, cut if it is long, and the numbers of added and removed lines."""
    if len(old) + len(new) > MAX_COMPARED_LINES:
        change = f"{len(new)} lines, before {len(old)}"
        return f"{path}: {change}", change
    before = "a/" + path.lstrip("/") if old else "/dev/null"
    diff = list(unified_diff(old, new, before, "b/" + path.lstrip("/"), lineterm=""))
    added = sum(line.startswith("+") for line in diff[2:])
    removed = sum(line.startswith("-") for line in diff[2:])
    change = f"+{added} -{removed} lines"
    short = _take_fitting(diff[:MAX_DIFF_LINES], MAX_DIFF_BYTES)
    cut = [f"... {len(diff) - len(short)} more lines of this diff"] if len(short) < len(diff) else []
    return "\n".join([*short, *cut]) or f"{path}: only the end of the file or its newlines changed", change


def _take_fitting(wanted: list[str], limit_bytes: int) -> list[str]:
    """Take as many lines from the start as fit. If not even the first line fits, cut it."""
    room = limit_bytes
    for index, line in enumerate(wanted):
        room -= len(line.encode(errors="replace")) + 1
        if room < 0:
            return wanted[:index] or [line.encode(errors="replace")[:limit_bytes].decode(errors="ignore")]
    return wanted


def _suggest_names(real: Path) -> str:
    folder = next(parent for parent in real.parents if parent.is_dir())
    if folder != real.parent:
        return f"; there is no folder {real.parent.name!r} either"
    names = sorted(entry.name for entry in folder.iterdir())
    near = get_close_matches(real.name, names, n=3, cutoff=0.5)
    return f"; near it are {', '.join(near)}" if near else f"; its folder holds {', '.join(names[:10]) or 'nothing'}"


@contextmanager
def _tool_errors(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ToolError(f"{path}: {error.strerror or error}; check the path and its rights in the shell") from error
    except (UnicodeEncodeError, ValueError, RuntimeError) as error:  # half a character, NUL, ~nobody, a loop of links
        raise ToolError(f"{path!a} can't be a path: {error}") from error
