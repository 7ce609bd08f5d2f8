"""Values that take long to compute, kept between processes in files of the state folder.

Starts take them without another check, so commands must not write them: the sandbox hides that folder wherever it lies.
"""

import json
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from goose_like import __version__

from .paths import create_private_folder, kept_folder, read_user_file, replace_private_file

_MAX_ENTRIES = 5_000


class KeptValues:
    """Values of JSON by key, in one file. Its name is that of the values.

    A file that is damaged, or that another version of goose_like wrote, counts as empty. Of more than `max_entries`,
    the newest ones stay.
    """

    def __init__(self, name: str, max_entries: int = _MAX_ENTRIES) -> None:
        self._max_entries = max_entries
        self._file = kept_folder() / f"{name}.json"
        self._entries = self._load()
        self._has_changed = False

    def _load(self) -> dict[str, Any]:
        with suppress(OSError, ValueError, LookupError, TypeError):  # there is none yet, or it is of another kind
            kept = json.loads(read_user_file(self._file))
            if kept["version"] == __version__:
                return dict(kept["entries"])
        return {}

    def get(self, key: str) -> Any:
        """Return the value of a key, None if there is none."""
        return self._entries.get(key)

    def put(self, key: str, value: Any) -> None:
        """Keep a value from the next `save` on."""
        self._entries[key] = value
        self._has_changed = True

    def save(self) -> None:
        """Write new values to the file. Without room for it, they are computed again in the next process."""
        if not self._has_changed:
            return
        self._has_changed = False
        newest = list(self._entries.items())[-self._max_entries :]
        text = json.dumps({"version": __version__, "entries": dict(newest)})
        with suppress(OSError):
            create_private_folder(self._file.parent)
            replace_private_file(self._file, text)


def compute_once(name: str, text: str, compute: Callable[[str], Any]) -> Any:
    """Return the value that `compute` makes of a text, or the one kept in the file `name`.

    An equal text has an equal value. A value that is not of JSON is returned and not kept.
    """
    kept = _open_kept(name, kept_folder())
    key = sha256(text.encode(errors="surrogatepass")).hexdigest()
    found = kept.get(key)
    if found is not None:
        return found
    value = compute(text)
    if json.loads(json.dumps(value)) == value:  # else it has keys that JSON lacks
        kept.put(key, value)
        kept.save()
    return value


@cache
def _open_kept(name: str, folder: Path) -> KeptValues:
    """Open the file of a name once for each folder."""
    return KeptValues(name)
