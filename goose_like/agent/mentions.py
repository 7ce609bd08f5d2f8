"""Attachments of a user message: images whose paths it contains, and files and folders, as `@path` or `/file:path`."""

import errno
import re
import shlex
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from urllib.parse import unquote, urlsplit

from goose_like.config.paths import expand_home
from goose_like.core.dataclass import dataclass
from goose_like.core.errors import GooseLikeError
from goose_like.core.images import detect_media_type, is_pdf, save_image
from goose_like.core.message import Image, Message, Part, Text
from goose_like.core.pattern import compile_later
from goose_like.core.text_file import TextFile
from goose_like.providers.base import Model
from goose_like.workspace.workspace import Workspace

from .attached_files import read_pdf_text

MAX_IMAGES = 8
"""The largest number of images attached to one message."""
_MAX_EXPLAINED = 5
"""Words with `@` that are looked up as typos. Pasted code has many, such as `@param`."""
_MAX_MENTIONS = 1_000
"""The most words with `@` in one text that may name files."""
_MAX_SHOWN_LETTERS = 100
MAX_FILE_BYTES = 50_000
MAX_TOTAL_BYTES = 200_000
MAX_NAMES = 500
_MAX_READ_BYTES = 32_000_000
_MIN_EXCERPT_BYTES = 1_000

_MENTION = compile_later(r"""(?<![^\s(\["'`])(?:@|/file:)(?:"(?P<quoted>[^"\n]+)"|(?P<bare>[^\s"]+))""")
_PASTED_NAME = compile_later(r"pasted-([0-9a-f]{8})\.(?:png|jpeg|gif|webp)")
_SENTENCE_END = ".,;:!?)]}>*'`"

_IMAGE_SUFFIX = r"\.(?:png|jpe?g|gif|webp)"

_IMAGE_NAME = compile_later(rf"{_IMAGE_SUFFIX}$", re.IGNORECASE)

# A bare path starts only where a word starts and not after an escaped space; otherwise each letter would be tried
# again. Commas in a URL would be too, so a URL is matched as a whole and cut later.
_IMAGE_PATH = compile_later(
    rf"""
    ["'`] (?P<quoted> [^"'`\n]+ {_IMAGE_SUFFIX} ) ["'`]
    | (?<![^\s"'`<>()\[\],;]) (?<!\\.) (?:
        (?P<url> file://[^\s"'`<>]+ )
        | (?P<bare> (?:\\.|[^\s"'`<>()\[\],;\\])+ {_IMAGE_SUFFIX} ) \b
    )
    """,
    re.IGNORECASE | re.VERBOSE,
)
_IMAGE_URL = compile_later(rf".+{_IMAGE_SUFFIX}\b", re.IGNORECASE)


def format_mention(path: str) -> str:
    """Write a path as a mention."""
    if re.search(r"\s", path):
        return f'@"{path}"'
    return f"@{path}"


def format_pasted_image(image: Image) -> str:
    """Write a stored image that is not a file of the user as a mention."""
    suffix = Path(image.name).suffix
    return format_mention(f"pasted-{image.name[:8]}{suffix}")


def find_image_paths(text: str) -> list[str]:
    """Find all paths that end like images, each once: bare, quoted, escaped, or as file:// URLs."""
    if "." not in text:  # no suffix; the pattern takes long to compile
        return []
    paths = map(_read_image_path, _IMAGE_PATH.finditer(text))
    return list(dict.fromkeys(filter(None, paths)))


def _read_image_path(match: re.Match[str]) -> str:
    """Return the path of a match, or an empty string for the URL of something else."""
    if match["bare"]:
        path = re.sub(r"\\(.)", r"\1", match["bare"])
    elif match["quoted"]:
        path = match["quoted"]
    else:
        url = _IMAGE_URL.match(match["url"])
        path = url[0] if url else ""
    if not path.lower().startswith("file://"):
        return path
    return unquote(urlsplit(path).path)


async def build_message(
    text: str, workspace: Workspace, outputs: Path, model: Model, *, typed: str | None = None
) -> tuple[Message, list[str]]:
    """Build the user message with all attachments, and notes for the user about them.

    Each file follows as a text part, or as an image saved in `outputs`. An `@word` that is no file stays a word.
    `typed` are the only words of the person in a text that a project brings: they alone name files elsewhere.
    """
    sources = [_Source(text, is_own=True)]
    if typed is not None:
        sources = [_Source(typed, is_own=True), _Source(text, is_own=False)]
    attachments = _Attachments(workspace, outputs, takes_documents=model.takes_documents)
    for path, is_own in islice(_iterate_images(sources), MAX_IMAGES):
        await attachments.add(path, is_own)
    unknown: dict[str, str] = {}  # with the lines around them
    for source in sources:
        if "@" not in source.text and "/file:" not in source.text:
            continue
        for match in _iterate_mentions(source.text, attachments.notes):
            word = await _attach_mention(match, attachments, source.is_own)
            if word is not None and source.is_own:
                unknown.setdefault(word, _find_line(source.text, match.start()))
    notes = attachments.notes
    if unknown:
        from .mention_typos import explain_unknown_mention  # few messages have a typo
    for word, line in islice(unknown.items(), _MAX_EXPLAINED):
        notes.append(explain_unknown_mention(word, line, workspace))
    message = Message(role="user", parts=(Text(text=text), *attachments.parts.values()))
    if message.images and not model.takes_images:
        notes.append(f"{model.label} takes no images: it only learns that they are there")
    return message, list(dict.fromkeys(filter(None, notes)))


@dataclass(frozen=True, slots=True)
class _Source:
    """A text that names files. If it `is_own`, the person wrote it."""

    text: str
    is_own: bool


def _iterate_images(sources: Iterable[_Source]) -> Iterator[tuple[str, bool]]:
    """Yield the paths of images, each with the claim that the person wrote it."""
    for source in sources:
        for path in find_image_paths(source.text):
            yield path, source.is_own


def _iterate_mentions(text: str, notes: list[str]) -> Iterator[re.Match[str]]:
    """Yield the first mention of each word, up to a limit, and note where that is.

    A piped log may have a million mentions, and each one costs looks at the disk.
    """
    seen: set[str] = set()
    for match in _MENTION.finditer(text):
        if match[0] in seen:
            continue
        if len(seen) == _MAX_MENTIONS:
            word = match[0][:_MAX_SHOWN_LETTERS]
            reason = f"only the first {_MAX_MENTIONS:,} words with @ are looked up; name files before long text"
            notes.append(f"the model sees no file that {word} or a later word names: {reason}")
            return
        seen.add(match[0])
        yield match


async def _attach_mention(match: re.Match[str], attachments: "_Attachments", is_own: bool) -> str | None:
    """Attach what a mention names, perhaps without the end of a sentence. Return the word if there is no such file."""
    path = match["quoted"] or match["bare"]
    if await attachments.add(path, is_own):
        return None
    if match["quoted"]:
        return path
    word = path.rstrip(_SENTENCE_END)
    is_shorter = word not in ("", path)
    if is_shorter and await attachments.add(word, is_own):
        return None
    return word


def _find_line(text: str, position: int) -> str:
    """Return the line of a text that holds a position."""
    start = text.rfind("\n", 0, position) + 1
    end = text.find("\n", position)
    return text[start:] if end < 0 else text[start:end]


class _Attachments:
    """The attachments so far, by path, and notes about those that failed."""

    def __init__(self, workspace: Workspace, outputs: Path, *, takes_documents: bool) -> None:
        self.parts: dict[str, Part] = {}
        self.notes: list[str] = []
        self._workspace = workspace
        self._outputs = outputs
        self._takes_documents = takes_documents
        self._free_bytes = MAX_TOTAL_BYTES

    async def add(self, path: str, is_own: bool) -> bool:
        """Attach a path, or note why it cannot be attached. Return False when nothing exists there.

        A path that is not the person's own leads into the workspace.
        """
        try:
            if path not in self.parts:
                self.parts[path] = await self._read(path, is_own)
        except (FileNotFoundError, NotADirectoryError):
            return self._add_hidden(path, is_own)
        except (GooseLikeError, OSError) as error:
            if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
                return False
            self.notes.append(f"the model does not see {path}: {error}")
        return True

    def _add_hidden(self, path: str, is_own: bool) -> bool:
        """Attach an image that commands do not see, or note that they do not see a file.

        Return False for a name in a sentence, and for a file that does not exist yet.
        """
        place = expand_home(path)
        if not place.is_file():
            return False
        image = None
        if is_own:
            image = self._read_image_of_machine(place)
        if image:
            self.parts[path] = image
            return True
        reason = "commands have a private /tmp; put the file into the workspace, or start with --add-dir"
        folder = shlex.quote(str(place.parent))
        self.notes.append(f"the model does not see {path}: {reason} {folder}")
        return True

    async def _read(self, path: str, is_own: bool) -> Part:
        name = _PASTED_NAME.fullmatch(path)
        if name:
            return self._read_pasted_image(name[1])
        if is_own:
            self._workspace.show_path(path)
        else:
            self._check_inside(path)
        try:
            names = self._workspace.list_folder(path)
        except NotADirectoryError:
            return await self._read_file(path)
        lines = names[:MAX_NAMES]
        if len(names) > MAX_NAMES:
            lines.append(f"[{len(names) - MAX_NAMES:,} more]")
        text = "".join(f"{line}\n" for line in lines)
        return self._read_text(path, text.encode())

    def _read_pasted_image(self, digest: str) -> Part:
        for file in self._outputs.glob(f"{digest}*"):
            return save_image(file.read_bytes(), str(file), self._outputs)
        raise GooseLikeError("it was pasted in another session; paste it again")

    def _check_inside(self, path: str) -> None:
        """Check that a path leads into the workspace."""
        place = self._workspace.resolve(path)
        if place.is_relative_to(self._workspace.root):
            return
        if not place.exists():
            raise FileNotFoundError
        raise GooseLikeError(f"the command of a project names only files of the workspace; type @{path} yourself")

    async def _read_file(self, path: str) -> Part:
        file = await self._workspace.read_current(path, _MAX_READ_BYTES)
        data = file.data
        # A name such as `x.png` promises an image: a web page or an empty file under it is a mistake.
        if detect_media_type(data) is not None or _IMAGE_NAME.search(path):
            return save_image(data, path, self._outputs)
        if not is_pdf(data):
            return self._read_text(path, data)
        if self._takes_documents:
            return save_image(data, path, self._outputs)
        text = await read_pdf_text(self._workspace, data, path)
        return self._read_text(path, text.encode(), rest="its later pages with a tool")

    def _read_image_of_machine(self, place: Path) -> Part | None:
        """Read an image from the machine's own /tmp, where programs put screenshots. Commands do not see it."""
        with suppress(OSError), place.open("rb") as file:
            data = file.read(_MAX_READ_BYTES)
            if detect_media_type(data):
                return save_image(data, str(place), self._outputs)
        return None

    def _read_text(self, path: str, data: bytes, rest: str = "") -> Text:
        """Return the text of a file. `rest` says how to read on, if not with `tail`."""
        limit = min(MAX_FILE_BYTES, self._free_bytes)
        if limit < min(len(data), _MIN_EXCERPT_BYTES):
            raise GooseLikeError(f"the files of one message may have {MAX_TOTAL_BYTES:,} bytes; let the model read it")
        self._free_bytes -= min(len(data), limit)
        decoded = TextFile.decode(data)
        if decoded is None:
            raise GooseLikeError("it is binary; ask for a tool that reads it")
        title = f"{path}: {decoded.encoding_note}" if decoded.encoding_note else path
        text = decoded.exact
        if len(data) > limit:
            # Without half a character at its end.
            text = data[len(decoded.bom) : limit].decode(decoded.encoding, errors="ignore")
            shown_bytes = len(decoded.bom) + len(text.encode(decoded.encoding))
            shown = f"the first {shown_bytes:,} of {len(data):,} bytes"
            rest = rest or f"on with `tail -c +{shown_bytes + 1} {shlex.quote(path)}`"
            text += f"\n[{shown}; read {rest}]\n"
            self.notes.append(f"the model sees {shown} of {path}")
        return Text(text=f"\n[{title}]\n{text}")
