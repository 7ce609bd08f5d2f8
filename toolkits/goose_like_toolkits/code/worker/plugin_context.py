"""What a plugin is, and what it works with: the base class of plugins, and the context that each is given."""

import contextlib
import os
import shutil
import tempfile
import threading
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, Literal

from .artifact import ArtifactType, file_name_of, preview, write

LogErrorLevel = Literal["info", "warning", "error"]
Tell = Callable[[dict[str, Any]], None]


class Plugin(ABC):
    """The base class of plugins: an object that is called like a function and may remember from call to call."""

    def __init__(self, name: str, ctx: "PluginContext", config: dict[str, Any]) -> None:
        super().__init__()
        self.name = name
        self.ctx = ctx
        self.config = config

    @abstractmethod
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the plugin does."""

    def log(self, level: LogErrorLevel, message: str) -> None:
        """Notes something for people, as said by this plugin."""
        self.ctx.log(level, "Plugin-" + self.name, message)

    def get_env(self, variable_name: str) -> str:
        """The value of the environment variable `PLUGIN_<plugin>_<variable>`.

        Raises:
            LookupError: when it is not set.
        """
        return self.ctx.get_env(self.name, variable_name)


class PluginContext:
    """What plugins know of the session, and where they put what they make. May be used from any thread."""

    def __init__(self, tell: Tell, folder: str = "", session_id: str = "", env_id: str = "local") -> None:
        self._tell = tell
        self._folder = folder
        self._session_id = session_id
        self._env_id = env_id
        self._session_var: dict[str, str] = {}
        self._env: dict[str, str] = {}  # `<plugin>_<variable>` -> value
        self._execution_idx = 0
        self._made = 0  # artifacts in this execution
        self._lock = threading.Lock()

    @property
    def env_id(self) -> str:
        """Where the session runs."""
        return self._env_id

    @property
    def session_id(self) -> str:
        """Which session this is."""
        return self._session_id

    @property
    def execution_id(self) -> str:
        """Which cell runs, or ran last."""
        return f"exec-{self._execution_idx}"

    @property
    def execution_idx(self) -> int:
        """The number of that cell, the first being 1."""
        return self._execution_idx

    def add_artifact(self, name: str, file_name: str, type: ArtifactType, val: Any, desc: str | None = None) -> str:
        """Writes the value into a file of its own; gives the artifact's id.

        Raises:
            ValueError: when the file name has folders in it, or there is no such type.
            TypeError: when the value can't be of that type.
        """
        id, path = self._place(file_name, type)
        write(path, type, val)
        self._told(id, name, path, type, preview(type, val) if desc is None else desc)
        return id

    def create_artifact_path(self, name: str, file_name: str, type: ArtifactType, desc: str = "") -> tuple[str, str]:
        """An artifact's id, and the path at which the plugin itself writes it.

        Raises:
            ValueError: when the file name has folders in it.
        """
        id, path = self._place(file_name, type)
        self._told(id, name, path, type, desc)
        return id, path

    def get_session_var(self, variable_name: str, default: str | None = None) -> str | None:
        """A variable of the session, which is text whatever it was set to."""
        return self._session_var.get(variable_name, default)

    def log(self, level: LogErrorLevel, tag: str, message: str) -> None:
        """Notes something for people."""
        self._tell({"type": "log", "level": str(level), "tag": str(tag), "text": str(message)})

    def get_env(self, plugin_name: str, variable_name: str) -> str:
        """The value of the environment variable `PLUGIN_<plugin>_<variable>`.

        Raises:
            LookupError: when it is not set.
        """
        try:
            return self._env[f"{plugin_name}_{variable_name}"]
        except KeyError:
            variable = f"PLUGIN_{plugin_name}_{variable_name}"
            raise LookupError(
                f"the environment variable {variable!r} is not set; set it before goose-like is started"
            ) from None

    def wrap_text_with_delimiter_temporal(self, text: str) -> str:
        """The text between marks that say: it matters now, and is left out when it is old."""
        return "{{DELIMITER_START_TEMPORAL}}" + text + "{{DELIMITER_END_TEMPORAL}}"

    # --- for the desk

    def begin_session(self, session_id: str, folder: str) -> None:
        """Says which session this is, and where artifacts lie."""
        self._session_id, self._folder = session_id, folder
        os.makedirs(folder, exist_ok=True)

    def begin_execution(self) -> None:
        """Counts one cell more, whose artifacts are counted anew."""
        with self._lock:
            self._execution_idx += 1
            self._made = 0

    @property
    def variables(self) -> dict[str, str]:
        """The session's variables."""
        return self._session_var

    def set_variables(self, variables: dict[str, Any]) -> None:
        """The session's variables from now on."""
        self._session_var = {str(name): str(value) for name, value in variables.items()}

    def set_env(self, env: dict[str, str]) -> None:
        """What plugins find in their environment from now on: `<plugin>_<variable>` -> value."""
        self._env = env

    def __reduce__(self) -> str:
        # Who copies or pickles a plugin means the plugin: its copy works with this same context, which stands under
        # that name in the module that `__module__` names.
        return "__context__"

    def _place(self, file_name: str, kind: str) -> tuple[str, str]:
        name = file_name_of(file_name)
        if not kind.isidentifier():
            raise ValueError(f"no artifact is of type {kind!r}")
        with self._lock:
            while True:
                id = f"obj_{self._execution_idx}_{kind}_{self._made:04x}"
                self._made += 1
                path = os.path.join(self._folder, f"{id}_{name}")
                if not os.path.lexists(path):  # a kernel before this one counted from one as well
                    return id, path

    def _told(self, id: str, name: str, path: str, kind: str, description: str) -> None:
        told = {"id": id, "name": str(name), "file": path, "kind": kind, "description": str(description)}
        self._tell({"type": "artifact", **told})


class TestPluginContext(PluginContext):
    """A context for a plugin's tests: what it is told is kept in lists, and files are named as they were asked for."""

    def __init__(self, temp_dir: str) -> None:
        super().__init__(self._note, temp_dir, session_id="test", env_id="test")
        self._temp_dir = temp_dir
        self._artifacts: list[dict[str, str]] = []
        self._logs: list[tuple[str, str, str]] = []

    @property
    def execution_id(self) -> str:
        return "test"

    def _place(self, file_name: str, kind: str) -> tuple[str, str]:
        with self._lock:
            id = f"test_artifact_id_{self._made}"
            self._made += 1
        return id, os.path.join(self._temp_dir, file_name_of(file_name))

    def _note(self, message: dict[str, Any]) -> None:
        if message["type"] == "log":
            self._logs.append((message["level"], message["tag"], message["text"]))
        else:
            kept = {"id": "id", "name": "name", "type": "kind", "desc": "description"}
            file_name = os.path.basename(message["file"])
            self._artifacts.append({"file_name": file_name, **{new: message[old] for new, old in kept.items()}})


@contextlib.contextmanager
def temp_context(workspace_dir: str | None = None) -> Iterator[TestPluginContext]:
    """A context for tests, with a folder of its own that is gone afterwards."""
    folder = os.path.join(workspace_dir, str(uuid.uuid4())) if workspace_dir else tempfile.mkdtemp()
    os.makedirs(folder, exist_ok=True)
    try:
        yield TestPluginContext(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
