"""The kernel of a session with its plugins, and the text that a model reads of each cell."""

import asyncio
import re
from collections.abc import Sequence
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, ValidationError

from goose_like.core.errors import GooseLikeError
from goose_like.core.images import MAX_IMAGE_BYTES, detect_media_type
from goose_like.core.message import FrozenModel
from goose_like.core.threads import run_in_thread
from goose_like.core.tool import current_call
from goose_like.sdk.live_output import LiveOutput, ShowOutput
from goose_like.sdk.private_files import describe_private_files, find_private_files
from goose_like.sessions.output_limit import LimitedOutput, append_notes
from goose_like.toolkit import ImageResult, Notifier, ToolError, Workspace
from goose_like.workspace.venv import VirtualEnvironment
from goose_like_toolkits.code.kernel.cell import CellFiles, CellOutput
from goose_like_toolkits.code.kernel.channels import Message
from goose_like_toolkits.code.kernel.manager import CellStopped, KernelManager
from goose_like_toolkits.code.plugins.registry import PluginRegistry

from .config import Config
from .shell_lines import list_shell_lines

# TaskWeaver's plugins put these marks around text that later prompts must not contain.
_START = "{{DELIMITER_START_TEMPORAL}}"
_END = "{{DELIMITER_END_TEMPORAL}}"

_UNDEFINED = re.compile(r"name '(\w+)' is not defined")

_MAX_MESSAGES = 500  # per cell, because a cell may send messages without end
_MESSAGE_CHARACTERS = 4_000


@dataclass(frozen=True, slots=True)
class CellResult:
    """The result of a cell for a model. `replacement` is the text for later turns, without the marked parts."""

    text: str
    replacement: str
    image: ImageResult | None = None
    error: str = ""

    @classmethod
    def from_marked(cls, text: str, image: ImageResult | None = None, error: str = "") -> "CellResult":
        """Create a result from a text in which plugins marked parts for this turn only."""
        *marked, rest = text.split(_END)
        later = "".join(piece.partition(_START)[0] for piece in marked) + rest
        return cls(_remove_marks(text), _remove_marks(later), image, error)


@dataclass(frozen=True, slots=True)
class SessionOutputs:
    """Destinations for the output of cells: a folder for files, a screen for live output, a limit for the model."""

    session: str
    folder: Path
    notifier: Notifier
    show: ShowOutput
    limit_bytes: int


class SavedState(FrozenModel):
    """Names of the kernel's variables, plugins that the user switched on or off, and session variables."""

    model_config = ConfigDict(extra="ignore")

    names: tuple[str, ...] = ()
    plugins: dict[str, bool] = {}
    variables: dict[str, str] = {}

    @classmethod
    def parse(cls, state: object) -> "SavedState":
        """Parse the saved value of a session; a value of another shape counts as empty."""
        try:
            return cls.model_validate(state)
        except ValidationError:
            return cls()

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object that contains the names even if there are none."""
        changed = self.model_dump(include={"plugins", "variables"}, exclude_defaults=True)
        return {"names": list(self.names), **changed}


class KernelSession:
    """The kernel of a session with its plugins. `variables` are the session variables that plugins read."""

    def __init__(
        self, workspace: Workspace, registry: PluginRegistry, config: Config, outputs: SessionOutputs, saved: SavedState
    ) -> None:
        self.variables = config.session_texts | saved.variables
        self._messages: list[Message] = []
        self._workspace = workspace
        self._registry = registry
        self._config = config
        self._outputs = outputs
        self._log_count = 0
        self._image: ImageResult | None = None  # the last artifact of the cell that is an image
        self._lock = asyncio.Lock()
        self._context = copy_context()
        self._sent_variables = dict(self.variables)
        self._environment = VirtualEnvironment(
            workspace,
            outputs.folder / "packages",
            python=config.python,
            sees_packages=True,
            notifier=outputs.notifier,
        )
        self._installation: asyncio.Task[None] | None = None
        self._manager = KernelManager(
            workspace, self._find_python, self._make_setup, self._list_changes, self._handle, saved.names
        )

    @property
    def names(self) -> list[str]:
        """The names of the user's variables in the kernel."""
        return self._manager.names

    async def run(self, code: str, timeout_s: float) -> CellResult:
        """Run a cell after asking for permission. Raise ToolError if it was stopped, DeniedError if it was denied."""
        async with self._lock:
            await self._workspace.require_permission("command", f"Python:\n{code}", f"run this Python:\n{code}")
            if self._workspace.mode != "read-only":
                await self._workspace.announce_change(None, ["python", "-c", code])
                for line in list_shell_lines(code):  # undo keeps what these delete
                    await self._workspace.announce_change(None, ["bash", "-c", line])
            return await self._run(code, timeout_s)

    async def ask_manager(self, message: Message, timeout_s: float) -> Message:
        """Send a message to the plugin manager of a kernel and return its reply. Raise ToolError if none comes."""
        async with self._lock:
            count = len(self._messages)
            folder = self._outputs.folder
            output = LimitedOutput(folder / "reply.txt", self._outputs.limit_bytes)
            cell = CellOutput(output, LiveOutput(self._outputs.show), CellFiles(folder, ""))
            try:
                await self._manager.run("None", cell, timeout_s, [message])
            finally:
                cell.close()
            if len(self._messages) == count:
                raise ToolError(f"the kernel sent no reply: {output.format_for_model()}")
            return self._messages.pop()

    async def reset(self) -> list[str]:
        """End the kernel and return the names of its variables."""
        async with self._lock:
            return await self._manager.reset()

    async def close(self) -> None:
        """End the kernel and all tasks."""
        await self._manager.close()

    async def _run(self, code: str, timeout_s: float) -> CellResult:
        call = re.sub(r"[^\w-]", "_", current_call.get("code"))
        files = CellFiles(self._outputs.folder, call)
        output = LimitedOutput(files.reserve_path("python.txt"), self._outputs.limit_bytes)
        context = copy_context()  # output arrives in another task but belongs to this call
        screen = _MarkFilter(lambda *output: context.run(self._outputs.show, *output))
        cell = CellOutput(output, LiveOutput(screen.write), files)
        kernel_notes: list[str] = []
        stopped = None
        self._log_count = 0
        self._image = None
        private = find_private_files(self._workspace, code)
        try:
            kernel_notes = await self._manager.run(code, cell, timeout_s)
        except CellStopped as error:
            stopped = error
            cell.write_block(error.last_output)
        finally:
            cell.close()
            screen.close()
        text = output.format_for_model()
        results: list[str] = []
        if self._messages:
            results += await run_in_thread(self._report_messages, files, text)
        results += cell.notes
        notes = [*results, *kernel_notes]
        if cell.error and not stopped:
            notes.append(f"raised {cell.error}")
            notes += self._explain_names(text)
        new_private = [path for path in find_private_files(self._workspace, code) if path not in private]
        notes += describe_private_files(new_private)
        notes += await self._workspace.inspect_changes()
        if stopped:
            notes += stopped.notes
        if results and not text:
            answer = "\n".join(f"[{note}]" for note in notes)
        else:
            answer = append_notes(text, notes)
        if stopped:
            raise ToolError(CellResult.from_marked(answer).text)
        return CellResult.from_marked(answer, cell.image or self._image, cell.error)

    def _explain_names(self, text: str) -> list[str]:
        """Explain each undefined name in an error that is a plugin which is off."""
        notes = []
        for name in dict.fromkeys(_UNDEFINED.findall(text)):
            reason = self._registry.explain_off(name)
            if reason:
                notes.append(f"plugin {name} is off: {reason}")
        return notes

    def _make_setup(self) -> Message:
        verify = None
        rules = self._config.select_rules(self._registry.project.settings)
        if rules:
            verify = rules.model_dump(exclude_none=True)
        self._sent_variables = dict(self.variables)
        return {
            "type": "setup",
            "session": self._outputs.session,
            "plugins": self._registry.list_messages(),
            "variables": self.variables,
            "verify": verify,
        }

    def _list_changes(self) -> list[Message]:
        """Return the messages that a running kernel needs before the next cell."""
        messages = []
        changes = self._registry.take_changes()
        if changes:
            messages.append(changes)
            for name in changes["removed"]:
                if reason := self._registry.explain_off(name):
                    self._handle({"type": "off", "plugin": name, "reason": reason})
        if self.variables != self._sent_variables:
            self._sent_variables = dict(self.variables)
            messages.append({"type": "variables", "variables": self.variables})
        return messages

    def _find_python(self) -> str:
        """Return the interpreter for a new kernel: the one with the packages of this session, if there are any."""
        if self._environment.is_made:
            return str(self._environment.python)
        return self._config.python

    async def _install(self, words: Sequence[str], number: int) -> None:
        """Install packages for the running cell, and answer its kernel. The cell's time limit stands still."""
        kernel = self._manager.kernel
        environment = self._environment
        text = "already installed"
        error = ""
        try:
            with self._workspace.hosts.pause_limits():
                if environment.find_missing(words):
                    installed = await environment.install([words], "the Python kernel")
                    text = "\n".join(installed) or text
        except GooseLikeError as failure:
            error = str(failure)
        folder = ""
        if environment.is_made:
            folder = str(environment.site_packages or "")
        if kernel is None or kernel is not self._manager.kernel:
            return  # the cell that waits for the reply has ended with its kernel
        reply = {"error": error, "text": text, "folder": folder}
        with suppress(OSError):  # another command may have written the file: the cell then reads that
            kernel.folder.write_reply(f"install-{number}.json", reply)

    def _handle(self, message: Message) -> None:
        """Show a log message, start an installation, and keep any other message for the end of the cell."""
        kind = message.get("type")
        if kind == "install":
            words = list(map(str, message["words"]))
            number = int(message["number"])
            if not self._installation or self._installation.done():
                self._installation = asyncio.create_task(self._install(words, number), context=self._context)
        elif kind == "log":
            self._show_log(f"{message['tag']}: {message['text']}")
        elif len(self._messages) < _MAX_MESSAGES:
            self._messages.append({key: _clip_value(value) for key, value in message.items()})

    def _show_log(self, text: str) -> None:
        """Show a message of a plugin to the person, but not without end."""
        self._log_count += 1
        if self._log_count <= _MAX_MESSAGES:
            self._outputs.notifier.log(_clip(_remove_marks(text)))
        if self._log_count == _MAX_MESSAGES:
            self._outputs.notifier.log("plugins log too much; more messages of this cell are not shown")

    def _report_messages(self, files: CellFiles, output: str) -> list[str]:
        """Describe the messages since the last cell for the model, and copy artifacts to the outputs."""
        messages = self._messages
        self._messages = []
        notes = []
        for message in messages:
            note = self._describe_message(message, files, output)
            if note:
                notes.append(note)
        return notes

    def _describe_message(self, message: Message, files: CellFiles, output: str) -> str:
        match message:
            case {"type": "artifact", "name": str(name), "file": str(file)}:
                description = message.get("description")
                if not isinstance(description, str):
                    description = ""
                return self._copy_artifact(name, file, description, files)
            case {"type": "failed", "plugin": str(plugin), "error": str(error)}:
                if error in output:  # the cell called it, and its error says so
                    return ""
                return f"plugin {plugin} failed and is off: {error}"
            case {"type": "off", "plugin": str(plugin), "reason": str(reason)}:
                return f"plugin {plugin} is off now: {reason}"
            case {"type": "reloaded", "plugin": str(plugin)}:
                return f"plugin {plugin} changed and was reloaded, without its former state"
            case _:
                return ""

    def _copy_artifact(self, name: str, file: str, description: str, files: CellFiles) -> str:
        kernel = self._manager.kernel
        if kernel is None:
            return f"artifact {name} is lost with the kernel"
        try:
            _, _, file_name = file.rpartition("/")
            path = files.copy_artifact(kernel.folder.artifacts, file_name)
            self._keep_image(path)
        except ToolError as error:
            return str(error)
        except OSError as error:
            return f"artifact {name} could not be saved: {error.strerror}"
        note = f"artifact {name}: {path}"
        if description and description != name:
            note += f" ({description})"
        return note

    def _keep_image(self, path: Path) -> None:
        """Keep an artifact as the image of the cell, if it is one and a model can take it."""
        if path.stat().st_size > MAX_IMAGE_BYTES:
            return
        data = path.read_bytes()
        if detect_media_type(data):
            self._image = ImageResult(data, str(path))


class _MarkFilter:
    """A filter for live output that removes the marks of transient text, also if a mark arrives in two pieces."""

    def __init__(self, show: ShowOutput) -> None:
        self._show = show
        self._held = ""

    def write(self, text: str, skipped_line_count: int = 0) -> None:
        """Show a text, except an end that may be the start of a mark."""
        if skipped_line_count:
            self.close()
        text = _remove_marks(self._held + text)
        end = len(text) - _measure_mark_start(text)
        self._held = text[end:]
        if end or skipped_line_count:
            self._show(text[:end], skipped_line_count)

    def close(self) -> None:
        """Show the rest."""
        if self._held:
            self._show(self._held, 0)
            self._held = ""


def _measure_mark_start(text: str) -> int:
    """Return the number of characters at the end of a text that may be the start of a mark."""
    for size in range(len(_START) - 1, 0, -1):
        if text.endswith((_START[:size], _END[:size])):
            return size
    return 0


def _remove_marks(text: str) -> str:
    return text.replace(_START, "").replace(_END, "")


def _clip_value(value: Any) -> Any:
    return _clip(value) if isinstance(value, str) else value


def _clip(text: str) -> str:
    if len(text) <= _MESSAGE_CHARACTERS:
        return text
    return f"{text[:_MESSAGE_CHARACTERS]}..."
