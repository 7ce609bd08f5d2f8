"""File tools: read, write and patch text, and track the content that the model has seen."""

import fnmatch
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from difflib import get_close_matches, unified_diff
from itertools import islice
from pathlib import Path

from goose_like.config.paths import expand_home
from goose_like.core.dataclass import dataclass
from goose_like.core.errors import GooseLikeError
from goose_like.core.events import FileChanged
from goose_like.core.images import MAX_DOCUMENT_BYTES, MAX_IMAGE_BYTES, detect_media_type, is_pdf
from goose_like.core.masking import mask_text
from goose_like.core.text_file import TextFile, create_text, split_lines, take_fitting
from goose_like.core.threads import run_in_thread
from goose_like.core.tool import current_call
from goose_like.sdk.private_files import IN_PRIVATE_TMP
from goose_like.toolkit import ImageResult, Notifier, ToolError, Workspace
from goose_like.workspace.files import CurrentFile

from .checkers import Checkers
from .failing_command import FailingCommand
from .file_part import read_part
from .linters import Linters
from .patching import MAX_COMPARED_LINES, Patch, apply_patches, drop_numbers, has_copied_numbers, number_lines
from .seen_files import SeenFiles, show_name

MAX_FILE_BYTES = 5_000_000
MAX_WORDS = 30
MAX_PATHS = 100
MAX_DIFF_LINES = 80
MAX_DIFF_BYTES = 6_000
UNSAVED = "not saved in the editor yet: commands see older text"
_MAGIC_BYTES = 16
_PATTERN = re.compile(r"[*?\[]")
_UNKNOWN_LETTER = "\ufffd"
HIDDEN_TMP = "the sandbox has its own /tmp and hides the machine's; ask the person to copy the file into the workspace"


class FileTools:
    """The file tools. A file is overwritten only if the model knows its current content.

    Attributes:
        seen: the files as the model saw them.
        unchecked_path: the last changed file, until a command runs.
        edited: the files that the tools changed in this turn, and whether each parsed before.
        failing: the last command that does more than look, if it failed.
    """

    def __init__(
        self,
        workspace: Workspace,
        notifier: Notifier,
        get_cwd: Callable[[], str],
        max_bytes: int,
        linters: Linters,
        checkers: Checkers,
        seen: SeenFiles,
    ) -> None:
        """Create the tools. `get_cwd` returns the shell's folder, which messages about wrong paths mention."""
        self._workspace = workspace
        self._notifier = notifier
        self._linters = linters
        self._checkers = checkers
        self._get_cwd = get_cwd
        self._max_bytes = max_bytes
        self.unchecked_path = ""
        self.edited: dict[Path, bool] = {}
        self.failing: FailingCommand | None = None
        self.seen = seen

    async def read(self, path: str, start_line: int, end_line: int | None, encoding: str = "") -> str | ImageResult:
        """Return a line of facts, then the wanted lines of a file with their numbers; or the image or PDF in it."""
        real = self.resolve(path)
        if start_line < 1 or (end_line is not None and end_line < start_line):
            raise ToolError("lines count from 1, and end_line is not before start_line")
        if _is_large(real):
            return await run_in_thread(self._read_large, path, real, start_line, end_line, encoding)
        file = await self._load(path, real)
        return await run_in_thread(self._show, path, real, file, start_line, end_line, encoding)

    def _show(
        self, path: str, real: Path, file: CurrentFile, start_line: int, end_line: int | None, encoding: str
    ) -> str | ImageResult:
        data = file.data
        if detect_media_type(data):
            _check_image_size(path, len(data))
            return ImageResult(data, path, f"[{path}: an image, {len(data):,} bytes]")
        if is_pdf(data):
            return _show_pdf(path, data)
        text = self.decode(real, data, encoding)
        if text is None:
            raise ToolError(
                f"{path} is binary, {len(data):,} bytes; look at it in the shell (file, strings, xxd), or name its "
                "`encoding` if it is text"
            )
        lines = split_lines(mask_text(text.shown))  # whole: a part of a key would not be recognized
        if start_line > max(len(lines), 1):
            raise ToolError(f"{path} has only {len(lines)} lines")
        self.seen.add(real, data, encoding)
        if not lines:
            return f"[{path}: empty]"
        wanted = number_lines(lines[start_line - 1 : end_line], start_line)
        shown = take_fitting(wanted, self._max_bytes)
        facts = ["1 line" if len(lines) == 1 else f"{len(lines)} lines"]
        if len(shown) < len(lines):
            last = start_line + len(shown) - 1
            facts.append(f"here {start_line} to {last}")
        facts += _describe_cuts(wanted, shown, start_line)
        facts += _describe_form(text)
        if not file.is_saved:
            facts.append(UNSAVED)
        if len(shown) == len(lines) and not text.shown.endswith("\n"):
            facts.append("no newline at the end")
        head = ", ".join(facts)
        return "\n".join([f"[{path}: {head}]", *shown])

    def _read_large(
        self, path: str, real: Path, start_line: int, end_line: int | None, encoding: str
    ) -> str | ImageResult:
        with _tool_errors(path), self._workspace.open_file(real) as file:
            if detect_media_type(file.read(_MAGIC_BYTES)):
                _check_image_size(path, os.fstat(file.fileno()).st_size)
            file.seek(0)
            if is_pdf(file.read(_MAGIC_BYTES)):
                file.seek(0)
                return _show_pdf(path, file.read(MAX_DOCUMENT_BYTES + 1))
            file.seek(0)
            known = encoding or self.seen.get_encoding(real)
            return read_part(file, path, start_line, end_line, self._max_bytes, known)

    def note_shown_files(self, command: str, answer: str) -> None:
        """Mark a file as known if the command names it and its whole text is in the answer."""
        tmp = str(self._workspace.tmp)
        for path in islice(_list_named_paths(command, self._get_cwd()), MAX_PATHS):
            with suppress(GooseLikeError, OSError, ValueError):
                path_in_tmp = tmp + path.removeprefix("/tmp")
                if not os.path.isfile(path) and not os.path.isfile(path_in_tmp):
                    continue  # most words: to check the rules for each of them would take long
                real = self._workspace.resolve(path)
                data = self._workspace.read_bytes(real, len(answer) * 4)
                text = self.decode(real, data)
                if text is None:
                    continue
                content = text.shown.strip()
                if content and content in answer:
                    self.seen.add(real, data)

    def find_broken(self) -> Iterator[str]:
        """Find the files that parsed before this turn, or are new, and do not parse now."""
        has_parsed = [real for real, parsed in self.edited.items() if parsed]
        for real in has_parsed:
            with suppress(GooseLikeError, OSError):
                data = self._workspace.read_bytes(real, MAX_FILE_BYTES)
                text = self.decode(real, data)
                if text is None:
                    continue
                error = self._linters.find_parse_error(real, text.shown)
                if error:
                    line, reason = error
                    name = show_name(self._format_path(real))
                    yield f"{name} does not parse: line {line}: {reason}."

    def _format_path(self, real: Path) -> str:
        """Return a path relative to the root of the workspace, if it is below."""
        root = self._workspace.root
        if real.is_relative_to(root):
            real = real.relative_to(root)
        return str(real)

    async def write(self, path: str, content: str, encoding: str = "") -> str:
        """Create or replace a file, and describe the change for the model."""
        real = self.resolve(path)
        file = await self._read_current(path, real)
        notes: list[str] = []
        if file is None:
            note = self._find_in_cwd(path)
            if note:
                notes.append(note)
            return await self._save(path, real, None, create_text(content, encoding), notes, encoding)
        data = file.data
        old = self.decode(real, data)
        if old is None:
            raise ToolError(f"{path} is binary; delete it in the shell first if a text is to take its place")
        if has_copied_numbers(content) and not has_copied_numbers(old.shown):
            content = _drop_copied_numbers(path, content, old.shown)
            notes.append("the line numbers of read_file were left out")
        if old.is_guess and not content.isascii():
            old = _confirm_encoding(path, old, data, content, encoding)
        new = old.with_all(content)
        if encoding and create_text("", encoding).encoding != old.encoding:
            new = create_text(new.exact, encoding)
        if new == old:
            self.seen.add(real, data)
            return self._describe_unchanged(path)
        await self._require_known(path, real, data, must_be_read=bool(data))
        return await self._save(path, real, old, new, notes, encoding)

    def _describe_unchanged(self, path: str) -> str:
        """Say what is still wanted, where the model writes what a file holds already."""
        text = f"nothing was changed: {path} holds exactly this already"
        if self.failing is None:
            return f"{text}. If the task needs no change of it, go on; else write all of it with the change"
        failed = f"`{self.failing.command}` failed with it:\n{self.failing.text}"
        return f"{text}, and {failed}\nChange what these lines demand"

    async def patch(self, path: str, patches: list[Patch], encoding: str = "") -> str:
        """Apply the patches that match, and describe the change for the model.

        Raises:
            ToolError: a patch does not match. The message names it, and says which others were applied.
        """
        real = self.resolve(path)
        file = await self._load(path, real)
        data = file.data
        old = self.decode(real, data, encoding)
        if old is None:
            raise ToolError(f"{path} is binary and can't be patched; use a program in the shell")
        if not patches:
            raise ToolError("patches is empty; give at least one {before, after}")
        # `before` proves that the model knows this place, so the rest of the file may be unread or outdated.
        has_seen = self.seen.has_seen(real, data)
        is_outdated = self.seen.find(real) is not None and not has_seen
        known = old.shown if has_seen else self._decode_seen(real, encoding)
        patched = apply_patches(old, patches, known)
        reasons = [f"{reason}." for reason in patched.failures.values()]
        failures = "\n".join(reasons)
        if len(patched.failures) == len(patches):
            end = f"{path} was not changed"
            if is_outdated:
                end = f"nothing was written: {path} had changed since you read it"
            raise ToolError(f"{failures.removesuffix('.')}. {end}")
        notes = list(patched.notes)
        if is_outdated:
            notes.insert(0, "it had changed since you read it")
        answer = await self._save(path, real, old, patched.text, notes, encoding)
        if not has_seen:
            self.seen.forget(real)  # the model has not seen the rest
        if not failures:
            return answer
        numbers = range(1, len(patches) + 1)
        failed = ", ".join(map(str, patched.failures))
        applied = ", ".join(str(number) for number in numbers if number not in patched.failures)
        raise ToolError(f"{answer}\n{failures}\nApplied: {applied}. Not applied: {failed}. Send only what failed again")

    def resolve(self, path: str) -> Path:
        """Resolve a path through all links. Relative paths start at the root of the workspace."""
        if not path.strip():
            raise ToolError("path is empty")
        with _tool_errors(path):
            real = self._workspace.resolve(expand_home(path))
            if _UNKNOWN_LETTER in path:
                return self._find_shown_name(real)
            return real

    def find_entry(self, path: str) -> Path:
        """Find a file or link by its own path: only the links to its folder are followed.

        Raises:
            ToolError: there is none, or it is a folder.
        """
        given = Path(path)
        folder = self.resolve(str(given.parent))
        name = given.name
        with _tool_errors(path):
            names = self._workspace.list_folder(folder)
        place = folder / name
        if not name or name == ".." or f"{name}/" in names:
            raise ToolError(f"{path!r} is a folder; delete it in the shell")
        if name not in names:
            raise ToolError(f"there is no file {path!r}{_suggest_names(place)}")
        if self._workspace.is_ignored(place):
            raise ToolError(f"{path} is hidden from you by .gooseignore or the profile; work without it")
        return place

    def _find_shown_name(self, real: Path) -> Path:
        """Find the file whose name is not UTF-8, by the name that commands show."""
        found = Path(real.anchor)
        for name in real.parts[1:]:
            if _UNKNOWN_LETTER in name and not os.path.lexists(found / name):
                name = self._find_entry(found, name)
            found = found / name
        return self._workspace.resolve(found)

    def _find_entry(self, folder: Path, shown_name: str) -> str:
        """Find the entry of a folder that commands show by this name. Return the name itself if there is none."""
        alike: list[str] = []
        with suppress(GooseLikeError, OSError):
            for entry in self._workspace.list_folder(folder):
                name = entry.removesuffix("/")
                if show_name(name) == shown_name:
                    alike.append(name)
        if len(alike) > 1:
            raise ToolError(f"{shown_name!r} stands for {len(alike)} files here; give one of them another name first")
        return alike[0] if alike else shown_name

    def decode(self, real: Path, data: bytes, encoding: str = "") -> TextFile | None:
        """Decode a file with the encoding that the model names, or named before."""
        known = self.seen.get_encoding(real)
        if not encoding and known:
            with suppress(ToolError):  # the file may have another encoding now
                return TextFile.decode(data, known)
        return TextFile.decode(data, encoding)

    def _decode_seen(self, real: Path, encoding: str) -> str:
        """Decode a file as the model saw it last. Return "" if that is unknown."""
        content = self.seen.get_content(real)
        text = self.decode(real, content, encoding)
        return text.shown if text else ""

    def _is_in_private_tmp(self, real: Path) -> bool:
        return self._workspace.mode != "full" and real.is_relative_to(self._workspace.tmp)

    def _find_in_cwd(self, path: str) -> str:
        """Describe the file that the path would name if it started in the shell's folder."""
        here = Path(self._get_cwd())
        if here == self._workspace.root:
            return ""
        with suppress(GooseLikeError, OSError, ValueError, RuntimeError):
            real = self._workspace.resolve(here / expand_home(path))
            if real != self.resolve(path) and os.path.lexists(real):
                return f"{self._format_path(real)} exists: paths start at the workspace root, not in the shell's folder"
        return ""

    async def _read_current(self, path: str, real: Path) -> CurrentFile | None:
        """Return the content of a file, or None if there is no file."""
        if _is_large(real):
            raise ToolError(f"{path} has more than {MAX_FILE_BYTES:,} bytes; change it with a program in the shell")
        with _tool_errors(path):
            try:
                return await self._workspace.read_current(real, MAX_FILE_BYTES)
            except (FileNotFoundError, NotADirectoryError):
                return None

    def _holds(self, real: Path, data: bytes) -> bool:
        """Check the content of a file on the disk."""
        with suppress(GooseLikeError, OSError):
            return self._workspace.read_bytes(real) == data
        return False

    async def _load(self, path: str, real: Path) -> CurrentFile:
        file = await self._read_current(path, real)
        if file is None:
            if Path(path).name != real.name:
                raise ToolError(f"{path!r} is a link to {self._format_path(real)}, which does not exist")
            text = f"there is no file {path!r}"
            near = self._find_in_cwd(path)
            if near:
                text += f"; {near}"
            else:
                text += _suggest_names(real)
            if self._is_in_private_tmp(real):
                text += f"; {HIDDEN_TMP}"
            raise ToolError(text)
        return file

    async def _require_known(self, path: str, real: Path, data: bytes, *, must_be_read: bool) -> None:
        """Check that the model knows the current content.

        Raises:
            ToolError: the model does not. The message has the content, so that no other call is needed before the next.
        """
        is_known = self.seen.find(real) is not None
        if self.seen.has_seen(real, data) or not (is_known or must_be_read):
            return
        why = "it has changed since you read it" if is_known else "you have not read it as it is now"
        content = await self.read(path, 1, None)
        raise ToolError(
            f"not written, as {why}. Its content follows. If the task needs a change of it, write all of it with the "
            f"change; else leave it as it is:\n{content}"
        )

    async def _save(
        self, path: str, real: Path, old: TextFile | None, new: TextFile, notes: Sequence[str], encoding: str
    ) -> str:
        """Write a text, and describe the change. `encoding` is what the model named, if it did."""
        data = new.encode()
        before = await self._linters.check_file(real, old.shown if old else None)
        await self._checkers.prepare(real)
        with _tool_errors(path):
            await self._workspace.write_bytes(real, data)
        self.unchecked_path = path
        self.edited.setdefault(real, before.parse_error is None)
        self.seen.add(real, data, encoding)
        old_lines = split_lines(old.shown) if old else []
        change = _compare(path, old_lines, split_lines(new.shown))
        call_id = current_call.get("")
        self._notifier.notify(FileChanged(call_id=call_id, path=str(real), diff=change.diff))
        if change.note:
            self._notifier.log(f"{path}: {change.note}")
        facts = [change.counts, *notes]
        if old and old.encoding != new.encoding:
            facts.append(f"now as {new.encoding_note or 'UTF-8'}")
        if self._is_in_private_tmp(real):
            facts.append(IN_PRIVATE_TMP)
        if not self._holds(real, data):
            facts.append("another program has changed it since, such as the person's editor: read it again")
        findings = await self._linters.check_file(real, new.shown)
        report = findings.describe_new(before)
        if not findings.parse_error:
            report += await self._checkers.check(real)
        action = "created" if old is None else "saved"
        details = ", ".join(facts)
        return f"{action} {path} ({details}){report}"


@dataclass(frozen=True, slots=True)
class _Change:
    """A change of a file: the numbers of lines for the model, and a diff for people or a note in its place."""

    counts: str
    diff: str = ""
    note: str = ""


def _compare(path: str, old: list[str], new: list[str]) -> _Change:
    """Compare the lines of a file before and after a change. A long diff is cut."""
    if len(old) + len(new) > MAX_COMPARED_LINES:
        counts = f"{len(new)} lines, before {len(old)}"
        return _Change(counts, note=counts)
    name = path.lstrip("/")
    before = "/dev/null"
    if old:
        before = f"a/{name}"
    diff = list(unified_diff(old, new, before, f"b/{name}", lineterm=""))
    added = sum(line.startswith("+") for line in diff[2:])
    removed = sum(line.startswith("-") for line in diff[2:])
    counts = f"+{added} -{removed} lines"
    if not diff:
        return _Change(counts, note="only the end of the file or its newlines changed")
    short = list(take_fitting(diff[:MAX_DIFF_LINES], MAX_DIFF_BYTES))
    rest_count = len(diff) - len(short)
    if rest_count:
        short.append(f"... {rest_count} more lines of this diff")
    return _Change(counts, "\n".join(short))


def _is_large(real: Path) -> bool:
    with suppress(OSError):
        return real.is_file() and real.stat().st_size > MAX_FILE_BYTES
    return False


def _confirm_encoding(path: str, old: TextFile, data: bytes, content: str, encoding: str) -> TextFile:
    """Read the old text in the encoding that the model names, where its bytes do not tell any.

    Raises:
        ToolError: a letter of the new text might become a wrong byte.
    """
    if encoding:
        with suppress(ToolError):
            return TextFile.decode(data, encoding) or old
    letter = old.find_foreign_letter(content)
    if letter or encoding:
        raise ToolError(
            f"not written: the encoding of {path} is unknown, so its letters might become wrong bytes; read it with "
            "its `encoding` first, and check that it looks right"
        )
    return old


def _drop_copied_numbers(path: str, content: str, old: str) -> str:
    """Remove the numbers that `read_file` puts before lines, if most lines are those of the file.

    Raises:
        ToolError: few lines are, so the numbers may be data.
    """
    bare = drop_numbers(content)
    lines = split_lines(bare)
    known = set(split_lines(old))
    known_count = sum(line in known for line in lines)
    if 2 * known_count >= len(lines):
        return bare
    raise ToolError(
        f"not written: each line of `content` begins with its number, as read_file shows it, but {path} has no such "
        "numbers; write the lines without them"
    )


def _list_named_paths(command: str, cwd: str) -> Iterator[str]:
    """Yield the path that each word of a command may be, and those that a pattern such as `src/*.py` stands for."""
    for word in command.split()[:MAX_WORDS]:
        path = os.path.join(cwd, word.strip("\"';&|()"))
        yield path
        folder, name = os.path.split(path)
        if not _PATTERN.search(name):
            continue
        with suppress(OSError, ValueError):
            matches = fnmatch.filter(os.listdir(folder), name)
            for match in sorted(matches):
                yield os.path.join(folder, match)


def _show_pdf(path: str, data: bytes) -> ImageResult:
    if len(data) > MAX_DOCUMENT_BYTES:
        raise ToolError(
            f"{path} is a PDF file of more than {MAX_DOCUMENT_BYTES:,} bytes, which models do not take; take the pages "
            "that you need into a smaller one in the shell, such as with qpdf or pypdf, and read that"
        )
    return ImageResult(data, path, f"[{path}: a PDF file, {len(data):,} bytes]")


def _check_image_size(path: str, size_bytes: int) -> None:
    if size_bytes > MAX_IMAGE_BYTES:
        raise ToolError(
            f"{path} is an image of {size_bytes:,} bytes, and models take at most {MAX_IMAGE_BYTES:,}; make a smaller "
            "copy in the shell, such as with ImageMagick or Pillow, and read that"
        )


def _describe_cuts(wanted: Sequence[str], shown: Sequence[str], start_line: int) -> list[str]:
    """Describe which of the wanted lines are missing, and whether the last one is cut."""
    facts: list[str] = []
    last = start_line + len(shown) - 1
    if len(shown) < len(wanted):
        facts.append(f"go on with start_line={last + 1}")
    if shown[-1] != wanted[len(shown) - 1]:
        facts.append(f"line {last} is too long and cut")
    return facts


def _describe_form(text: TextFile) -> list[str]:
    """Describe the encoding and the newlines of a text where they are not the usual ones."""
    facts: list[str] = []
    if text.encoding_note:
        facts.append(text.encoding_note)
    if text.is_guess:
        facts.append("name its `encoding` to add letters, or if some look wrong")
    if text.newline != "\n":
        facts.append("CRLF, kept when you write")
    return facts


def _suggest_names(real: Path) -> str:
    folder = next(parent for parent in real.parents if parent.is_dir())
    if folder != real.parent:
        return f"; there is no folder {real.parent.name!r} either"
    names = sorted(show_name(entry.name) for entry in folder.iterdir())
    near = get_close_matches(real.name, names, n=3, cutoff=0.5)
    if near:
        return "; near it are " + ", ".join(near)
    if names:
        return "; its folder holds " + ", ".join(names[:10])
    return "; its folder holds nothing"


@contextmanager
def _tool_errors(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ToolError(f"{path}: {error.strerror or error}; check the path and its rights in the shell") from error
    except (UnicodeEncodeError, ValueError, RuntimeError) as error:  # half a character, NUL, a loop of links
        raise ToolError(f"{path!a} can't be a path: {error}") from error
