"""The base class of plugins, and the context through which plugins use the session."""

import contextlib
import os
import shutil
import tempfile
import threading
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, Literal

from .artifact import ArtifactType, check_file_name, describe_artifact, write_artifact

LogErrorLevel = Literal["info", "warning", "error"]
Send = Callable[[dict[str, Any]], None]


class Plugin(ABC):
    """The base class of plugins: objects that are called like functions and may keep state between calls."""

    def __init__(self, name: str, ctx: "PluginContext", config: dict[str, Any]) -> None:
        super().__init__()
        self.name = name
        self.ctx = ctx
        self.config = config

    @abstractmethod
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the plugin."""

    def log(self, level: LogErrorLevel, message: str) -> None:
        """Show a message of this plugin to the user."""
        self.ctx.log(level, "Plugin-" + self.name, message)

    def get_env(self, variable_name: str) -> str:
        """Return the variable `PLUGIN_<plugin>_<variable>`. Raise LookupError if it is not set."""
        return self.ctx.get_env(self.name, variable_name)


class PluginContext:
    """The session as plugins see it: identifiers, variables, artifacts and logs. Thread-safe."""

    def __init__(self, send: Send, folder: str = "", session_id: str = "", env_id: str = "local") -> None:
        self._send = send
        self._folder = folder
        self._session_id = session_id
        self._env_id = env_id
        self._session_var: dict[str, str] = {}
        self._env: dict[str, str] = {}  # `<plugin>_<variable>` -> value
        self._execution_idx = 0
        self._artifact_count = 0  # in this execution
        self._lock = threading.Lock()

    @property
    def env_id(self) -> str:
        """Identifier of the environment: `local` or `test`."""
        return self._env_id

    @property
    def session_id(self) -> str:
        """Identifier of the session."""
        return self._session_id

    @property
    def execution_id(self) -> str:
        """Identifier of the current or last cell."""
        return f"exec-{self._execution_idx}"

    @property
    def execution_idx(self) -> int:
        """Number of the current or last cell; the first is 1."""
        return self._execution_idx

    def add_artifact(self, name: str, file_name: str, type: ArtifactType, val: Any, desc: str | None = None) -> str:
        """Write a value into a new file; return the artifact's id. Raise ValueError or TypeError for wrong values."""
        id, path = self._allocate(file_name, type)
        write_artifact(path, type, val)
        if desc is None:
            desc = describe_artifact(type, val)
        self._announce(id, name, path, type, desc)
        return id

    def create_artifact_path(self, name: str, file_name: str, type: ArtifactType, desc: str = "") -> tuple[str, str]:
        """Return id and path of an artifact that the plugin writes. Raise ValueError for a folder in the name."""
        id, path = self._allocate(file_name, type)
        self._announce(id, name, path, type, desc)
        return id, path

    def get_session_var(self, variable_name: str, default: str | None = None) -> str | None:
        """Return a session variable as text."""
        return self._session_var.get(variable_name, default)

    def log(self, level: LogErrorLevel, tag: str, message: str) -> None:
        """Show a message to the user."""
        log = {"type": "log", "level": str(level), "tag": str(tag), "text": str(message)}
        self._send(log)

    def get_env(self, plugin_name: str, variable_name: str) -> str:
        """Return the variable `PLUGIN_<plugin>_<variable>`. Raise LookupError if it is not set."""
        try:
            return self._env[f"{plugin_name}_{variable_name}"]
        except KeyError:
            variable = f"PLUGIN_{plugin_name}_{variable_name}"
            raise LookupError(
                f"the environment variable {variable!r} is not set; set it before you start goose-like"
            ) from None

    def wrap_text_with_delimiter_temporal(self, text: str) -> str:
        """Return the text between marks that keep it out of the prompts of later turns."""
        return "{{DELIMITER_START_TEMPORAL}}" + text + "{{DELIMITER_END_TEMPORAL}}"

    # used by the plugin manager

    def begin_session(self, session_id: str, folder: str) -> None:
        """Set the session and the folder for artifacts."""
        self._session_id = session_id
        self._folder = folder
        os.makedirs(folder, exist_ok=True)

    def begin_execution(self) -> None:
        """Start the next cell, with a new count of artifacts."""
        with self._lock:
            self._execution_idx += 1
            self._artifact_count = 0

    def set_variables(self, variables: dict[str, Any]) -> None:
        """Replace the session variables."""
        self._session_var = {str(name): str(value) for name, value in variables.items()}

    def set_env(self, env: dict[str, str]) -> None:
        """Replace the environment variables of all plugins, with keys `<plugin>_<variable>`."""
        self._env = env

    def __reduce__(self) -> str:
        # A copied or pickled plugin keeps this context: `__module__` names the module with this global.
        return "__context__"

    def _allocate(self, file_name: str, kind: str) -> tuple[str, str]:
        name = check_file_name(file_name)
        if not kind.isidentifier():
            raise ValueError(f"no artifact is of type {kind!r}")
        with self._lock:
            while True:
                number = f"{self._artifact_count:04x}"
                id = f"obj_{self._execution_idx}_{kind}_{number}"
                self._artifact_count += 1
                path = os.path.join(self._folder, f"{id}_{name}")
                if not os.path.lexists(path):  # an earlier kernel started at the same number
                    return id, path

    def _announce(self, id: str, name: str, path: str, kind: str, description: str) -> None:
        artifact = {
            "type": "artifact",
            "id": id,
            "name": str(name),
            "file": path,
            "kind": kind,
            "description": str(description),
        }
        self._send(artifact)


class TestPluginContext(PluginContext):
    """A context for tests of plugins: artifacts and logs are kept in lists, and files keep their names."""

    def __init__(self, temp_dir: str) -> None:
        super().__init__(self._record, temp_dir, session_id="test", env_id="test")
        self._temp_dir = temp_dir
        self._artifacts: list[dict[str, str]] = []
        self._logs: list[tuple[str, str, str]] = []

    @property
    def execution_id(self) -> str:
        """Identifier of the execution: always `test`."""
        return "test"

    def _allocate(self, file_name: str, kind: str) -> tuple[str, str]:
        with self._lock:
            id = f"test_artifact_id_{self._artifact_count}"
            self._artifact_count += 1
        return id, os.path.join(self._temp_dir, check_file_name(file_name))

    def _record(self, message: dict[str, Any]) -> None:
        if message["type"] == "log":
            self._logs.append((message["level"], message["tag"], message["text"]))
        else:
            artifact = {
                "file_name": os.path.basename(message["file"]),
                "id": message["id"],
                "name": message["name"],
                "type": message["kind"],
                "desc": message["description"],
            }
            self._artifacts.append(artifact)


@contextlib.contextmanager
def temp_context(workspace_dir: str | None = None) -> Iterator[TestPluginContext]:
    """Provide a context for tests, with a temporary folder."""
    if workspace_dir:
        folder = os.path.join(workspace_dir, str(uuid.uuid4()))
        os.makedirs(folder)
    else:
        folder = tempfile.mkdtemp()
    try:
        yield TestPluginContext(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
