"""The files of the editor: text that nobody has saved, and writes that the editor shows at once."""

from collections.abc import Callable
from pathlib import Path

from acp.exceptions import RequestError

from goose_like.core.errors import GooseLikeError

from .content import Json, Send


class ClientFiles:
    """Reads and writes files through the editor as far as it offers that.

    An editor that fails to read a file leaves that to the disk. One that does not answer in time is not asked again.
    """

    def __init__(self, ask: Send, capabilities: Json, folder: Path, log: Callable[[str], None]) -> None:
        """Create the files. `capabilities` are those for files, and `folder` is the project as the editor calls it."""
        self._ask = ask
        self._reads = capabilities.get("readTextFile") is True
        self._writes = capabilities.get("writeTextFile") is True
        self._folder = folder
        self._real_folder = folder.resolve()
        self._log = log

    async def read(self, path: Path) -> str | None:
        """Return the text that the editor shows for a file. None: the file on the disk counts."""
        if not self._reads:
            return None
        try:
            answer = await self._ask("fs/read_text_file", {"path": self._name(path)})
        except TimeoutError:
            self._stop(path)
        except RequestError as error:
            self._log(f"{path} is read from the disk, as the editor failed: {error}")
        except ConnectionError:  # the editor is gone, which ends the turn
            pass
        else:
            content = answer.get("content") if isinstance(answer, dict) else None
            if isinstance(content, str):
                return content
            self._log(f"{path} is read from the disk, as the editor answered without its text")
        return None

    async def write(self, path: Path, text: str) -> bool:
        """Let the editor write a file. Return False if it writes none.

        Raises:
            GooseLikeError: the editor failed, or did not answer.
        """
        if not self._writes:
            return False
        try:
            await self._ask("fs/write_text_file", {"path": self._name(path), "content": text})
        except TimeoutError as error:
            self._stop(path)
            raise GooseLikeError(f"the editor did not answer; see what {path} holds now, and write it again") from error
        except RequestError as error:
            raise GooseLikeError(f"the editor did not write {path}: {error}; tell the person") from error
        except ConnectionError:
            return False
        return True

    def _name(self, path: Path) -> str:
        """Return the path as the editor knows it: its project may be a link."""
        if path.is_relative_to(self._real_folder):
            path = self._folder / path.relative_to(self._real_folder)
        return str(path)

    def _stop(self, path: Path) -> None:
        self._reads = False
        self._writes = False
        self._log(f"the editor did not answer about {path}; from here on, it is not asked about files")
