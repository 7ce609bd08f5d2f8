"""File tools: read, write and patch text, and track the content that the model has seen."""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from difflib import get_close_matches, unified_diff
from hashlib import sha256
from pathlib import Path

from pydantic import Field

from goose_like.core.errors import GooseLikeError
from goose_like.core.images import detect_media_type
from goose_like.core.masking import mask_text
from goose_like.core.message import FrozenModel
from goose_like.toolkit import ImageResult, Notifier, ToolError, Workspace

from .file_part import read_part
from .linters import Linters
from .text import TextFile, normalize_newlines, split_lines, take_fitting

MAX_FILE_BYTES = 5_000_000
MAX_WORDS = 30
MAX_COMPARED_LINES = 20_000
MAX_PLACES = 1_000
MAX_DIFF_LINES = 80
MAX_DIFF_BYTES = 6_000
IN_PRIVATE_TMP = "in the sandbox's own /tmp, which is removed when the session ends"
HIDDEN_TMP = "the sandbox has its own /tmp and hides the machine's; ask the person to copy the file into the workspace"


class Patch(FrozenModel):
    """One replacement in a file, as the model sends it."""

    before: str = Field(description="exact text in the file, found only once; take whole lines")
    after: str


class FileTools:
    """The file tools. A file is overwritten only if the model knows its current content.

    Attributes:
        known: the digest of each file as the model saw it, by real path, so that all names of a file are one.
        unchecked_path: the last changed file, until a command runs.
        edited: the files that the tools changed in this turn, and whether each parsed before.
    """

    def __init__(
        self, workspace: Workspace, notifier: Notifier, get_cwd: Callable[[], str], max_bytes: int, linters: Linters
    ) -> None:
        """Create the tools. `get_cwd` returns the shell's folder, which messages about wrong paths mention."""
        self._workspace = workspace
        self._notifier = notifier
        self._linters = linters
        self._get_cwd = get_cwd
        self._max_bytes = max_bytes
        self.unchecked_path = ""
        self.edited: dict[Path, bool] = {}
        self.known: dict[Path, bytes] = {}

    def read(self, path: str, start_line: int, end_line: int | None) -> str | ImageResult:
        """Return a line of facts, then the wanted lines of a file; or the image in it.

        Lines have no numbers: a model would copy these into its patches, and they cost a tenth of the tokens.
        """
        real = self.resolve(path)
        if start_line < 1 or (end_line is not None and end_line < start_line):
            raise ToolError("lines count from 1, and end_line is not before start_line")
        if _is_large(real):
            with _tool_errors(path), self._workspace.open_file(real) as file:
                return read_part(file, path, start_line, end_line, self._max_bytes)
        data = self._load(path, real)
        text = TextFile.decode(data)
        if text is None and detect_media_type(data):
            return ImageResult(data, path, f"[{path}: an image, {len(data):,} bytes]")
        if text is None:
            raise ToolError(f"{path} is binary, {len(data):,} bytes; look at it in the shell (file, strings, xxd)")
        lines = split_lines(mask_text(text.shown))  # whole: a part of a key would not be recognized
        if start_line > max(len(lines), 1):
            raise ToolError(f"{path} has only {len(lines)} lines")
        self.known[real] = sha256(data).digest()
        if not lines:
            return f"[{path}: empty]"
        wanted = lines[start_line - 1 : end_line]
        shown = take_fitting(wanted, self._max_bytes)
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
        cwd, tmp = self._get_cwd(), str(self._workspace.tmp)
        for word in command.split()[:MAX_WORDS]:
            with suppress(GooseLikeError, OSError, ValueError):
                path = os.path.join(cwd, word.strip("\"';&|()"))
                if not any(map(os.path.isfile, (path, tmp + path.removeprefix("/tmp")))):
                    continue  # most words: to check the rules for each of them would take long
                real = self._workspace.resolve(path)
                data = self._workspace.read_bytes(real, len(answer) * 4)
                if (text := TextFile.decode(data)) and text.shown.strip() and text.shown.strip() in answer:
                    self.known[real] = sha256(data).digest()

    def find_broken(self) -> Iterator[str]:
        """Find the files that parsed before this turn, or are new, and do not parse now."""
        for real in [real for real, has_parsed in self.edited.items() if has_parsed]:
            with suppress(GooseLikeError, OSError):
                text = TextFile.decode(self._workspace.read_bytes(real, MAX_FILE_BYTES))
                if text and (error := self._linters.find_parse_error(real, text.shown)):
                    name = real.relative_to(root) if real.is_relative_to(root := self._workspace.root) else real
                    yield f"{name} does not parse: line {error[0]}: {error[1]}."

    async def write(self, path: str, content: str) -> str:
        """Create or replace a file, and describe the change for the model."""
        real = self.resolve(path)
        data = self._read_bytes(path, real)
        if data is None:
            return await self._save(path, real, None, TextFile(content), list(filter(None, [self._find_in_cwd(path)])))
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

    async def patch(self, path: str, patches: list[Patch]) -> str:
        """Apply all patches to a file or none, and describe the change for the model."""
        real = self.resolve(path)
        data = self._load(path, real)
        old = TextFile.decode(data)
        if old is None:
            raise ToolError(f"{path} is binary and can't be patched; use a program in the shell")
        if not patches:
            raise ToolError("patches is empty; give at least one {before, after}")
        # `before` proves that the model knows this place, so the rest of the file may be unread or outdated.
        known = self.known.get(real)
        is_outdated = known not in (None, sha256(data).digest())
        notes = ["it had changed since you read it"] if is_outdated else []
        new = old
        for number, patch in enumerate(patches, 1):
            prefix = f"patch {number} of {len(patches)}: " if len(patches) > 1 else ""
            try:
                new, note = _apply_patch(new, normalize_newlines(patch.before), normalize_newlines(patch.after))
            except ToolError as error:
                end = f"nothing was written: {path} had changed since you read it"
                end = end if is_outdated else f"{path} was not changed"
                raise ToolError(f"{prefix}{error}. {end}") from error
            notes += [prefix + note] if note else []
        answer = await self._save(path, real, old, new, notes)
        if known != sha256(data).digest():
            self.known.pop(real, None)  # the model has not seen the rest
        return answer

    def resolve(self, path: str) -> Path:
        """Resolve a path through all links. Relative paths start at the root of the workspace."""
        if not path.strip():
            raise ToolError("path is empty")
        with _tool_errors(path):
            return self._workspace.resolve(Path(path).expanduser())

    def _is_in_private_tmp(self, real: Path) -> bool:
        return self._workspace.mode != "full" and real.is_relative_to(self._workspace.tmp)

    def _find_in_cwd(self, path: str) -> str:
        """Describe the file that the path would name if it started in the shell's folder."""
        root, here = self._workspace.root, Path(self._get_cwd())
        with suppress(GooseLikeError, OSError, ValueError, RuntimeError):
            real = self._workspace.resolve(here / Path(path).expanduser())
            if here != root and real != self.resolve(path) and os.path.lexists(real):
                name = real.relative_to(root) if real.is_relative_to(root) else real
                return f"{name} exists: paths start at the workspace root, not in the shell's folder"
        return ""

    def _read_bytes(self, path: str, real: Path) -> bytes | None:
        """Return the content of a file, or None if there is no file."""
        if _is_large(real):
            raise ToolError(f"{path} has more than {MAX_FILE_BYTES:,} bytes; change it with a program in the shell")
        with _tool_errors(path):
            try:
                return self._workspace.read_bytes(real, MAX_FILE_BYTES)
            except (FileNotFoundError, NotADirectoryError):
                return None

    def _load(self, path: str, real: Path) -> bytes:
        data = self._read_bytes(path, real)
        if data is None:
            near = self._find_in_cwd(path)
            note = f"; {HIDDEN_TMP}" if self._is_in_private_tmp(real) else ""
            raise ToolError(f"there is no file {path!r}{f'; {near}' if near else _suggest_names(real)}{note}")
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

    async def _save(self, path: str, real: Path, old: TextFile | None, new: TextFile, notes: Sequence[str] = ()) -> str:
        data = new.encode()
        before = await self._linters.check_file(real, old.shown if old else None)
        with _tool_errors(path):
            await self._workspace.write_bytes(real, data)
        self.unchecked_path = path
        self.edited.setdefault(real, before.parse_error is None)
        self.known[real] = sha256(data).digest()
        diff, change = _summarize_change(path, split_lines(old.shown) if old else [], split_lines(new.shown))
        self._notifier.log(diff)
        facts = [change, *(["now as UTF-8"] if old and old.encoding != new.encoding else []), *notes]
        if self._is_in_private_tmp(real):
            facts.append(IN_PRIVATE_TMP)
        findings = await self._linters.check_file(real, new.shown)
        action = "created" if old is None else "saved"
        return f"{action} {path} ({', '.join(facts)}){findings.describe_new(before)}"


def _apply_patch(text: TextFile, before: str, after: str) -> tuple[TextFile, str]:
    """Replace the only occurrence of `before`, and return a note if whitespace at line ends differs.

    Raises:
        ToolError: there is none, or more than one; the message shows similar lines.
    """
    if not before:
        raise ToolError("`before` is empty; give the lines to replace, or use write_file for a new file")
    if before == after:
        raise ToolError("`before` and `after` are the same; nothing would change")
    shown, note = text.shown, ""
    places = _find_exact_places(shown, before)
    if not places and before.strip():
        places, note = _find_places(shown, _build_loose_pattern(before)), "whitespace at line ends differed"
    match places:
        case [(start, end)]:
            return text.with_part(start, end, after), note
        case []:
            raise ToolError(f"`before` is not in the file{_describe_similar(before, shown)}")
        case _:
            at = ", ".join(str(shown.count("\n", 0, start) + 1) for start, _ in places[:10])
            more = ", ..." if len(places) > 10 else ""
            count = f"{len(places)} times" if len(places) < MAX_PLACES else f"{MAX_PLACES} times or more"
            raise ToolError(f"`before` occurs {count}, at lines {at}{more}; add lines around it")


def _find_exact_places(shown: str, before: str) -> list[tuple[int, int]]:
    """Find the first `MAX_PLACES` matches, overlapping ones too."""
    places: list[tuple[int, int]] = []
    start = shown.find(before)
    while start >= 0 and len(places) < MAX_PLACES:
        places.append((start, start + len(before)))
        start = shown.find(before, start + 1)
    return places


def _find_places(shown: str, pattern: str) -> list[tuple[int, int]]:
    """Find the first `MAX_PLACES` matches of a pattern, overlapping ones too."""
    places: list[tuple[int, int]] = []
    expression = re.compile(pattern)
    found = expression.search(shown)  # not a lookahead: it would try the whole pattern at each character
    while found and len(places) < MAX_PLACES:
        places.append(found.span())
        found = expression.search(shown, found.start() + 1)
    return places


def _build_loose_pattern(before: str) -> str:
    """Build a pattern that matches any spaces and tabs at the ends of lines."""
    lines = (re.escape(line.rstrip(" \t")) for line in before.split("\n"))
    return "[ \t]*\n".join(lines) + ("[ \t]*(?=\n|\\Z)" if before[-1] in " \t" else "")


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
    candidates = _rank({line[:300] for line in bare if line}, bare_wanted[anchor][:300])[:20]
    alike = set(get_close_matches(bare_wanted[anchor][:300], candidates, n=5, cutoff=0.6))
    windows: dict[str, int] = {}
    for index, line in enumerate(bare):
        if line[:300] in alike and len(windows) < 50:
            start = index - anchor
            windows.setdefault("\n".join(bare[max(start, 0) : start + size])[:2000], start)
    ranked = [windows[text] for text in _rank(windows, "\n".join(bare_wanted)[:2000])[:2]]
    if not ranked:
        return ", nor anything like it; read the file first"
    return ". Nearest is " + "\nand ".join(quote(start) for start in ranked) + "\nTake it as it stands there"


def _rank(texts: Iterable[str], wanted: str) -> list[str]:
    """Sort texts by the groups of three letters that they share with another one, in linear time."""

    def split(text: str) -> set[str]:
        return {text[at : at + 3] for at in range(max(len(text) - 2, 1))}

    def estimate(text: str) -> tuple[int, int]:
        found = split(text)
        return -len(found & groups), len(found)

    groups = split(wanted)
    return sorted(texts, key=estimate)


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
    short = take_fitting(diff[:MAX_DIFF_LINES], MAX_DIFF_BYTES)
    cut = [f"... {len(diff) - len(short)} more lines of this diff"] if len(short) < len(diff) else []
    return "\n".join([*short, *cut]) or f"{path}: only the end of the file or its newlines changed", change


def _is_large(real: Path) -> bool:
    with suppress(OSError):
        return real.is_file() and real.stat().st_size > MAX_FILE_BYTES
    return False


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
