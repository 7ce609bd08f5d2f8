"""What a person's words bring along: images that they name, and files and folders that they mention as `@path`."""

import codecs
import errno
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

from goose_like.core.errors import GooseLikeError
from goose_like.core.images import LIMIT_BYTES as LIMIT_IMAGE_BYTES
from goose_like.core.images import keep_image, media_type, named_images
from goose_like.core.message import Image, Message, Part, Text
from goose_like.providers.base import Model
from goose_like.workspace.workspace import Workspace

IMAGES = 8
"""How many images of one message are shown."""
LIMIT_FILE_BYTES = 50_000
LIMIT_ALL_BYTES = 200_000
LIMIT_NAMES = 500
_LIMIT_READ_BYTES = 32_000_000
_LEAST_BYTES = 1_000

_MENTION = re.compile(r"""(?<![^\s(\["'`])@(?:"(?P<quoted>[^"\n]+)"|(?P<bare>[^\s"]+))""")
_PASTED = re.compile(r"pasted-([0-9a-f]{8})\.(?:png|jpeg|gif|webp)")
_AFTER = ".,;:!?)]}>*'`"


def mention(path: str) -> str:
    """A path as it is written in a message."""
    return f'@"{path}"' if re.search(r"\s", path) else f"@{path}"


def pasted(image: Image) -> str:
    """An image that was kept and is no file of the person's, as it is written in a message."""
    return mention(f"pasted-{image.name[:8]}{Path(image.name).suffix}")


def message_with(words: str, workspace: Workspace, outputs: Path, model: Model) -> tuple[Message, list[str]]:
    """The person's words as a message with what they name, and what the person is told of that.

    Each file is a text after the words, or an image, which is kept in `outputs`. An `@word` that is no file is a word.
    """
    bag = _Bag(workspace, outputs)
    for path in named_images(words)[:IMAGES]:
        bag.take(path, bag.image)
    for spellings in _mentioned(words):
        for path in spellings:
            if bag.take(path, bag.anything):
                break
    message = Message(role="user", parts=(Text(text=words), *bag.parts.values()))
    if message.images and not model.takes_images:
        bag.told.append(f"{model.label} takes no images: it is only told that they are there")
    return message, list(dict.fromkeys(bag.told))


def _mentioned(words: str) -> Iterator[list[str]]:
    """Each mention as the paths that may be meant: as it stands there, and without what ends a sentence."""
    for match in _MENTION.finditer(words):
        spellings = [match["quoted"] or match["bare"]]
        while match["bare"] and spellings[-1][-1] in _AFTER and len(spellings[-1]) > 1:
            spellings.append(spellings[-1][:-1])
        yield spellings


class _Bag:
    """What was taken so far, by path, and the sentences on what was not."""

    def __init__(self, workspace: Workspace, outputs: Path) -> None:
        self.parts: dict[str, Part] = {}
        self.told: list[str] = []
        self._workspace = workspace
        self._outputs = outputs
        self._room_bytes = LIMIT_ALL_BYTES

    def take(self, path: str, read: Callable[[str], Part]) -> bool:
        """Whether there is something at the path; it is taken, or the person is told why not."""
        try:
            if path not in self.parts:
                self.parts[path] = read(path)
        except (FileNotFoundError, NotADirectoryError):
            # A name in a sentence, or of a file that is to be made; or one that only the person sees.
            if not Path(path).expanduser().is_file():
                return False
            self.told.append(f"the model is not shown {path}: its /tmp is another; put it into the workspace")
        except (GooseLikeError, OSError) as error:
            if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
                return False
            self.told.append(f"the model is not shown {path}: {error}")
        return True

    def image(self, path: str) -> Part:
        return keep_image(self._workspace.read_bytes(path, LIMIT_IMAGE_BYTES), path, self._outputs)

    def anything(self, path: str) -> Part:
        if name := _PASTED.fullmatch(path):
            return self._pasted(name[1])
        try:
            names = self._workspace.names(path)
        except NotADirectoryError:
            data = self._workspace.read_bytes(path, _LIMIT_READ_BYTES)
            return keep_image(data, path, self._outputs) if media_type(data) else self._text(path, data)
        more = [f"[{len(names) - LIMIT_NAMES:,} more]"] if len(names) > LIMIT_NAMES else []
        return self._text(path, "".join(f"{name}\n" for name in [*names[:LIMIT_NAMES], *more]).encode())

    def _pasted(self, beginning: str) -> Part:
        for file in self._outputs.glob(f"{beginning}*"):
            return keep_image(file.read_bytes(), str(file), self._outputs)
        raise GooseLikeError("it was pasted in another session; paste it again")

    def _text(self, path: str, data: bytes) -> Text:
        limit = min(LIMIT_FILE_BYTES, self._room_bytes)
        if limit < min(len(data), _LEAST_BYTES):
            raise GooseLikeError(f"the files of one message may have {LIMIT_ALL_BYTES:,} bytes; it can read it itself")
        head = data[:limit]
        if is_cut := len(data) > limit:
            head = head[: head.rfind(b"\n") + 1] or head
        try:
            text = codecs.getincrementaldecoder("utf-8-sig")().decode(head, final=not is_cut)
        except UnicodeDecodeError as error:
            raise GooseLikeError("it is no UTF-8 text; ask for a tool that reads it") from error
        if "\0" in text:
            raise GooseLikeError("it is binary; ask for a tool that reads it")
        self._room_bytes -= len(head)
        if is_cut:
            shown, lines = head.count(b"\n"), data.count(b"\n") + (not data.endswith(b"\n"))
            read_on = f"tail -c +{len(head) + 1} {shlex.quote(path)}"
            text += f"\n[{lines - shown:,} of {lines:,} lines are left out; read on with `{read_on}`]\n"
            self.told.append(f"the model is shown the first {len(head):,} of {len(data):,} bytes of {path}")
        return Text(text=f"\n[{path}]\n{text}")
