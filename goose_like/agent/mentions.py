"""Attachments of a user message: images whose paths it contains, and files and folders, as `@path` or `/file:path`."""

import errno
import re
import shlex
from contextlib import suppress
from itertools import islice
from pathlib import Path
from urllib.parse import unquote, urlsplit

from goose_like.core.errors import GooseLikeError
from goose_like.core.images import detect_media_type, save_image
from goose_like.core.message import Image, Message, Part, Text
from goose_like.core.text_file import TextFile
from goose_like.providers.base import Model
from goose_like.workspace.workspace import Workspace

from .mention_typos import explain_unknown_mention

MAX_IMAGES = 8
"""The largest number of images attached to one message."""
_MAX_EXPLAINED = 5
"""Words with `@` that are looked up as typos. Pasted code has many, such as `@param`."""
MAX_FILE_BYTES = 50_000
MAX_TOTAL_BYTES = 200_000
MAX_NAMES = 500
_MAX_READ_BYTES = 32_000_000
_MIN_EXCERPT_BYTES = 1_000

_MENTION = re.compile(r"""(?<![^\s(\["'`])(?:@|/file:)(?:"(?P<quoted>[^"\n]+)"|(?P<bare>[^\s"]+))""")
_PASTED_NAME = re.compile(r"pasted-([0-9a-f]{8})\.(?:png|jpeg|gif|webp)")
_SENTENCE_END = ".,;:!?)]}>*'`"

_IMAGE_SUFFIX = r"\.(?:png|jpe?g|gif|webp)"

_IMAGE_NAME = re.compile(rf"{_IMAGE_SUFFIX}$", re.IGNORECASE)

# A bare path starts only where a word starts and not after an escaped space; otherwise each letter would be tried
# again. Commas in a URL would be too, so a URL is matched as a whole and cut later.
_IMAGE_PATH = re.compile(
    rf"""
    ["'`] (?P<quoted> [^"'`\n]+ {_IMAGE_SUFFIX} ) ["'`]
    | (?<![^\s"'`<>()\[\],;]) (?<!\\.) (?:
        (?P<url> file://[^\s"'`<>]+ )
        | (?P<bare> (?:\\.|[^\s"'`<>()\[\],;\\])+ {_IMAGE_SUFFIX} ) \b
    )
    """,
    re.IGNORECASE | re.VERBOSE,
)
_IMAGE_URL = re.compile(rf".+{_IMAGE_SUFFIX}\b", re.IGNORECASE)


def format_mention(path: str) -> str:
    """Write a path as a mention."""
    return f'@"{path}"' if re.search(r"\s", path) else f"@{path}"


def format_pasted_image(image: Image) -> str:
    """Write a stored image that is not a file of the user as a mention."""
    return format_mention(f"pasted-{image.name[:8]}{Path(image.name).suffix}")


def find_image_paths(text: str) -> list[str]:
    """Find all paths that end like images, each once: bare, quoted, escaped, or as file:// URLs."""
    return list(dict.fromkeys(filter(None, map(_read_image_path, _IMAGE_PATH.finditer(text)))))


def _read_image_path(match: re.Match[str]) -> str:
    """Return the path of a match, or an empty string for the URL of something else."""
    url = _IMAGE_URL.match(match["url"]) if match["url"] else None
    path = match["quoted"] or (url and url[0]) or re.sub(r"\\(.)", r"\1", match["bare"] or "")
    return unquote(urlsplit(path).path) if path.lower().startswith("file://") else path


def build_message(
    text: str, workspace: Workspace, outputs: Path, model: Model, *, typed: str | None = None
) -> tuple[Message, list[str]]:
    """Build the user message with all attachments, and notes for the user about them.

    Each file follows as a text part, or as an image saved in `outputs`. An `@word` that is no file stays a word.
    `typed` are the only words of the person in a text that a project brings: they alone name files elsewhere.
    """
    sources = [(text, True)] if typed is None else [(typed, True), (text, False)]
    attachments = _Attachments(workspace, outputs)
    images = [(path, is_own) for source, is_own in sources for path in find_image_paths(source)]
    for path, is_own in images[:MAX_IMAGES]:
        attachments.add(path, is_own)
    unknown: dict[str, str] = {}  # with the lines around them
    for source, is_own in sources:
        for match in _MENTION.finditer(source):
            path = match["quoted"] or match["bare"]
            word = path if match["quoted"] else path.rstrip(_SENTENCE_END)
            is_found = attachments.add(path, is_own)
            if not is_found and word not in ("", path):
                is_found = attachments.add(word, is_own)
            if not is_found and is_own:
                line = source[source.rfind("\n", 0, match.start()) + 1 :].partition("\n")[0]
                unknown.setdefault(word, line)
    for word, line in islice(unknown.items(), _MAX_EXPLAINED):
        attachments.notes.append(explain_unknown_mention(word, line, workspace))
    message = Message(role="user", parts=(Text(text=text), *attachments.parts.values()))
    if message.images and not model.takes_images:
        attachments.notes.append(f"{model.label} takes no images: it only learns that they are there")
    return message, list(dict.fromkeys(filter(None, attachments.notes)))


class _Attachments:
    """The attachments so far, by path, and notes about those that failed."""

    def __init__(self, workspace: Workspace, outputs: Path) -> None:
        self.parts: dict[str, Part] = {}
        self.notes: list[str] = []
        self._workspace = workspace
        self._outputs = outputs
        self._free_bytes = MAX_TOTAL_BYTES

    def add(self, path: str, is_own: bool) -> bool:
        """Attach a path, or note why it cannot be attached. Return False when nothing exists there.

        A path that is not the person's own leads into the workspace.
        """
        try:
            if path not in self.parts:
                self.parts[path] = self._read(path, is_own)
        except (FileNotFoundError, NotADirectoryError):
            # A name in a sentence, a file that does not exist yet, or one that only the user can see.
            if not (place := Path(path).expanduser()).is_file():
                return False
            if is_own and (image := self._read_image_of_machine(place)):
                self.parts[path] = image
                return True
            reason = "commands have a private /tmp; put the file into the workspace, or start with --add-dir"
            self.notes.append(f"the model does not see {path}: {reason} {shlex.quote(str(place.parent))}")
        except (GooseLikeError, OSError) as error:
            if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
                return False
            self.notes.append(f"the model does not see {path}: {error}")
        return True

    def _read(self, path: str, is_own: bool) -> Part:
        if name := _PASTED_NAME.fullmatch(path):
            for file in self._outputs.glob(f"{name[1]}*"):
                return save_image(file.read_bytes(), str(file), self._outputs)
            raise GooseLikeError("it was pasted in another session; paste it again")
        if is_own:
            self._workspace.show_path(path)
        elif not (place := self._workspace.resolve(path)).is_relative_to(self._workspace.root):
            if not place.exists():
                raise FileNotFoundError
            raise GooseLikeError(f"the command of a project names only files of the workspace; type @{path} yourself")
        try:
            names = self._workspace.list_folder(path)
        except NotADirectoryError:
            data = self._workspace.read_bytes(path, _MAX_READ_BYTES)
            # A name such as `x.png` promises an image: a web page or an empty file under it is a mistake.
            is_image = detect_media_type(data) is not None or _IMAGE_NAME.search(path) is not None
            return save_image(data, path, self._outputs) if is_image else self._read_text(path, data)
        more = [f"[{len(names) - MAX_NAMES:,} more]"] if len(names) > MAX_NAMES else []
        return self._read_text(path, "".join(f"{name}\n" for name in [*names[:MAX_NAMES], *more]).encode())

    def _read_image_of_machine(self, place: Path) -> Part | None:
        """Read an image from the machine's own /tmp, where programs put screenshots. Commands do not see it."""
        with suppress(OSError), place.open("rb") as file:
            data = file.read(_MAX_READ_BYTES)
            if detect_media_type(data):
                return save_image(data, str(place), self._outputs)
        return None

    def _read_text(self, path: str, data: bytes) -> Text:
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
            shown = len(decoded.bom) + len(text.encode(decoded.encoding))
            rest = f"tail -c +{shown + 1} {shlex.quote(path)}"
            text += f"\n[the first {shown:,} of {len(data):,} bytes; read on with `{rest}`]\n"
            self.notes.append(f"the model sees the first {shown:,} of {len(data):,} bytes of {path}")
        return Text(text=f"\n[{title}]\n{text}")
