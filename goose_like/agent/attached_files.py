"""Images and PDF files of a conversation: what of them a server takes in one request, and their text."""

from collections.abc import Sequence
from pathlib import Path

from goose_like.core.errors import GooseLikeError
from goose_like.core.events import StateSaved
from goose_like.core.history import History
from goose_like.core.images import measure_image
from goose_like.core.message import Image, Message, leave_out_images, replace_images
from goose_like.providers.base import FileLimits, Model
from goose_like.workspace.workspace import Workspace

from .refused_content import IMAGES_STATE_KEY, list_refused_images

_TEXT_SHARE = 0.1
"""The share of a request that is kept for text."""


async def read_pdf_text(workspace: Workspace, data: bytes, source: str) -> str:
    """Read the text of a PDF file, for a model that takes no PDF files.

    Raises:
        GooseLikeError: it cannot be read, or has no text.
    """
    from goose_like.workspace.documents.reader import read_document  # few sessions need it

    document = await read_document(workspace, data, "pdf")
    if document.problem:
        raise GooseLikeError(f"{source}: {document.problem}")
    return document.text


def select_messages(history: History, model: Model) -> Sequence[Message]:
    """Return the messages for a model, without images and PDF files that it does not take or its server refused."""
    messages = history.context.messages
    if not history.has_images:
        return messages
    if not model.takes_images:
        return [replace_images(message) for message in messages]
    if not model.takes_documents:
        messages = leave_out_images(messages, list_documents(messages), "you can't read PDF files; ask for a tool")
    return leave_out_images(messages, list_refused_images(history))


def list_documents(messages: Sequence[Message]) -> frozenset[str]:
    """List the names of all PDF files."""
    names = set()
    for message in messages:
        names |= {image.name for image in message.images if image.is_document}
    return frozenset(names)


def find_excess(history: History, folder: Path, limits: FileLimits) -> tuple[StateSaved, str] | None:
    """Find the oldest images and PDF files that a server would refuse, half of them at a time.

    So the next request does not leave out more, and its start stays in the server's cache. Return the event that leaves
    them out from now on, and a line for the person.
    """
    refused = list_refused_images(history)
    images: list[Image] = []
    for message in history.context.messages:
        images += [image for image in message.images if image.name not in refused]
    # A file counts as new as its newest place, and goes from all its places at once.
    newest_first = dict.fromkeys(image.name for image in reversed(images))
    names = list(reversed(newest_first))
    kept = names
    while kept and not _fits([image for image in images if image.name in kept], folder, limits):
        kept = kept[(len(kept) + 1) // 2 :]
    count = len(names) - len(kept)
    if not count:
        return None
    event = StateSaved(toolkit=IMAGES_STATE_KEY, value=sorted(refused.union(names[:count])))
    return event, f"the server takes no more images and documents: the oldest ({count}) are left out"


def _fits(images: Sequence[Image], folder: Path, limits: FileLimits) -> bool:
    if len(images) > limits.max_images:
        return False
    size = 0
    for image in images:
        try:
            data = (folder / image.name).read_bytes()
        except OSError:
            continue  # a line of text takes its place
        size += len(data) * 4 // 3
        is_large = max(measure_image(data)) > limits.max_side_px
        if is_large and len(images) > limits.large_images:
            return False
    return size <= limits.max_bytes * (1 - _TEXT_SHARE)
