"""The documents that clients send along, each read once."""

import asyncio
import hashlib
from collections import OrderedDict
from dataclasses import dataclass, field

from goose_like.core.errors import GooseLikeError
from goose_like.core.threads import run_in_thread
from goose_like.workspace.documents.document import Document
from goose_like.workspace.documents.reader import read_document
from goose_like.workspace.workspace import Workspace

from .fetch import fetch_file

_MAX_CACHED = 32


@dataclass(slots=True)
class DocumentReader:
    """Reads documents, at most two at once, and keeps the last ones: each request brings the whole conversation.

    `allowed_hosts` are hosts with private addresses from which files may be fetched.
    """

    workspace: Workspace
    allowed_hosts: tuple[str, ...] = ()
    _documents: OrderedDict[str, Document] = field(default_factory=OrderedDict)
    _slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(2))

    async def fetch(self, url: str) -> bytes:
        """Fetch a file that a client names.

        Raises:
            GooseLikeError: the file cannot be fetched, or may not be fetched from there.
        """
        return await fetch_file(url, self.allowed_hosts)

    async def read(self, data: bytes, kind: str) -> Document:
        """Read a document of a kind. A document that cannot be read has a `problem`."""
        digest = await run_in_thread(hashlib.sha256, data)
        key = kind + digest.hexdigest()
        if key not in self._documents:
            async with self._slots:
                try:
                    document = await read_document(self.workspace, data, kind)
                except GooseLikeError as error:
                    return Document(problem=str(error))
            self._documents[key] = document
            if len(self._documents) > _MAX_CACHED:
                self._documents.popitem(last=False)
        self._documents.move_to_end(key)
        return self._documents[key]
