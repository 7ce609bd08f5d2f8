"""Workbench: cells run for a session, with its plugins in reach, and what a model reads of each."""

import asyncio
import re
from collections.abc import Callable, Sequence
from contextvars import copy_context
from dataclasses import dataclass
from pathlib import Path

from goose_like.core.output_limit import LimitedOutput, LiveOutput, append_notes
from goose_like.core.tool import current_call
from goose_like.toolkit import ImageResult, Notifier, ToolError, Workspace
from goose_like_toolkits.code.kernel.cell import Cell
from goose_like_toolkits.code.kernel.channels import Message
from goose_like_toolkits.code.kernel.manager import Notebook, Stopped
from goose_like_toolkits.code.kernel.outputs import Outputs
from goose_like_toolkits.code.plugins.registry import Catalogue

from .config import Config
from .saved_state import Saved

# What TaskWeaver's plugins put around text that later prompts shall not hold.
_START, _END = "{{DELIMITER_START_TEMPORAL}}", "{{DELIMITER_END_TEMPORAL}}"

_MOST_HEARD = 500  # in one cell, which may say anything to the host, and without end
_MOST_CHARACTERS = 4_000


@dataclass(frozen=True, slots=True)
class Ran:
    """What came of a cell, for a model. `later` is the same without what plugins said for now alone."""

    text: str
    later: str
    picture: ImageResult | None = None
    error: str = ""

    @classmethod
    def of(cls, text: str, picture: ImageResult | None = None, error: str = "") -> "Ran":
        """The text with its marks taken out."""
        *ended, rest = text.split(_END)
        now, later = list[str](), list[str]()
        for piece in ended:
            before, mark, passing = piece.partition(_START)
            now.append(before + passing if mark else before + _END)
            later.append(before if mark else before + _END)
        return cls("".join([*now, rest]), "".join([*later, rest]), picture, error)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Whose cells they are and where goes what comes of them: files are left in `outputs`.

    `session` is a name. `show` takes output while it comes, `room_bytes` is what the model is shown of it at most.
    """

    session: str
    outputs: Path
    notifier: Notifier
    show: Callable[[str], None]
    room_bytes: int


class Workbench:
    """The kernel of a session with its plugins. `variables` are what plugins find as the session's.

    `heard` is what the kernel's desk said beside.
    """

    def __init__(
        self, workspace: Workspace, catalogue: Catalogue, config: Config, around: Surroundings, saved: Saved
    ) -> None:
        self.variables = {name: str(value) for name, value in config.session_vars.items()} | saved.variables
        self.heard: list[Message] = []
        self._workspace = workspace
        self._catalogue = catalogue
        self._config = config
        self._around = around
        self._logged = 0
        self._one_at_a_time = asyncio.Lock()
        self._told_variables = dict(self.variables)
        self._notebook = Notebook(workspace, config.python, self._setup, self._changes, self._hear, saved.names)

    @property
    def names(self) -> list[str]:
        """The variables that there are."""
        return self._notebook.names

    async def run(self, code: str, timeout_s: float, first: Sequence[Message] = ()) -> Ran:
        """Runs a cell, after asking where that is to be asked. `first` is told to a kernel that has run before.

        Raises:
            ToolError: the cell was ended by its time limit or with its kernel, or no kernel can be started.
            DeniedError: it was not allowed.
        """
        async with self._one_at_a_time:
            await self._workspace.require_permission("command", f"Python:\n{code}", f"run this Python:\n{code}")
            if self._workspace.mode != "read-only":
                await self._workspace.announce_change(None, ["python", "-c", code])
            return await self._run(code, timeout_s, first)

    async def ask(self, message: Message, timeout_s: float) -> Message:
        """What the desk says to a message, of a kernel that has run before.

        Raises:
            ToolError: nothing, or the kernel died of it.
        """
        async with self._one_at_a_time:
            before = len(self.heard)
            folder, room_bytes = self._around.outputs, self._around.room_bytes
            cell = Cell(
                LimitedOutput(folder / "asked.txt", room_bytes), LiveOutput(self._around.show), Outputs(folder, "")
            )
            try:
                await self._notebook.run("None", cell, timeout_s, [message])
            finally:
                cell.close()
            if len(self.heard) == before:
                raise ToolError(f"the kernel said nothing: {cell.output.format_for_model()}")
            return self.heard.pop()

    async def reset(self) -> list[str]:
        """Ends the kernel; gives the names that went with it."""
        async with self._one_at_a_time:
            return await self._notebook.reset()

    async def close(self) -> None:
        """Leaves nothing running."""
        await self._notebook.close()

    async def _run(self, code: str, timeout_s: float, first: Sequence[Message]) -> Ran:
        call = re.sub(r"[^\w-]", "_", current_call.get("code"))
        outputs = Outputs(self._around.outputs, call)
        output = LimitedOutput(outputs.path("python.txt"), self._around.room_bytes)
        context = copy_context()  # messages come elsewhere, and are shown as this call's
        cell = Cell(output, LiveOutput(lambda text: context.run(self._around.show, text)), outputs)
        notes, stopped, self._logged = list[str](), None, 0
        try:
            notes = await self._notebook.run(code, cell, timeout_s, first)
        except Stopped as error:
            stopped = error
            cell.add(error.words)
        finally:
            cell.close()
        text = output.format_for_model()
        reported = await asyncio.to_thread(self._reported, outputs) if self.heard else []
        what = [*reported, *cell.notes]
        raised = [f"raised {cell.error}"] if cell.error and not stopped else []
        left = await self._workspace.inspect_changes()
        notes = [*what, *notes, *raised, *left, *(stopped.notes if stopped else ())]
        answer = append_notes(text, notes) if text or not what else "\n".join(f"[{note}]" for note in notes)
        if stopped:
            raise ToolError(Ran.of(answer).text)
        return Ran.of(answer, cell.picture, cell.error)

    def _setup(self) -> Message:
        rules = self._config.rules(self._catalogue.project.settings)
        self._told_variables = dict(self.variables)
        return {
            "type": "setup",
            "session": self._around.session,
            "plugins": self._catalogue.messages(),
            "variables": self.variables,
            "verify": rules.model_dump(exclude_none=True) if rules else None,
        }

    def _changes(self) -> list[Message]:
        """What a kernel that runs is told before the next cell."""
        changes = [self._catalogue.changes()]
        for name in changes[0]["gone"] if changes[0] else ():
            if why := self._catalogue.why_off(name):
                self._hear({"type": "off", "plugin": name, "why": why})
        if self.variables != self._told_variables:
            self._told_variables = dict(self.variables)
            changes.append({"type": "variables", "variables": self.variables})
        return list(filter(None, changes))

    def _hear(self, message: Message) -> None:
        if message.get("type") == "log":
            self._logged += 1
            if self._logged <= _MOST_HEARD:
                self._around.notifier.log(_clipped(f"{message['tag']}: {message['text']}"))
            if self._logged == _MOST_HEARD:
                self._around.notifier.log("plugins have more to tell; it is passed over until the next cell")
        elif len(self.heard) < _MOST_HEARD:
            self.heard.append({key: _clipped(it) if isinstance(it, str) else it for key, it in message.items()})

    def _reported(self, outputs: Outputs) -> list[str]:
        """What the desk told since the last time, in words for the model; artifacts are copied to the outputs."""
        reports, self.heard = self.heard, []
        return [words for message in reports if (words := self._in_words(message, outputs))]

    def _in_words(self, message: Message, outputs: Outputs) -> str:
        match message:
            case {"type": "artifact", "name": str(name), "file": str(file)}:
                kernel = self._notebook.kernel
                if kernel is None:
                    return f"artifact {name} is lost with the kernel"
                try:
                    path = outputs.copy(kernel.place.artifacts, file.rpartition("/")[2])
                except ToolError as error:
                    return str(error)
                except OSError as error:
                    return f"artifact {name} could not be saved: {error.strerror}"
                about = message.get("description")
                return f"artifact {name}: {path}" + (f" ({about})" if about and about != name else "")
            case {"type": "failed", "plugin": str(plugin), "error": str(error)}:
                return f"plugin {plugin} is off, as it failed: {error}"
            case {"type": "off", "plugin": str(plugin), "why": str(why)}:
                return f"plugin {plugin} is off now: {why}"
            case {"type": "reloaded", "plugin": str(plugin), "lost_state": lost}:
                return f"plugin {plugin} was changed and is loaded anew" + ("; its state is lost" if lost else "")
            case _:
                return ""


def _clipped(text: str) -> str:
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}..."
