"""CodeToolkit: a stateful Python kernel, and TaskWeaver plugins as functions in it."""

import asyncio
import re
import sys
from contextvars import copy_context
from importlib.util import find_spec
from typing import Any

from goose_like.errors import ProfileError
from goose_like.events import StateSaved
from goose_like.output import Live, Output, told
from goose_like.plugins import did_you_mean
from goose_like.tool import current_call
from goose_like.toolkit import Notifier, Picture, Requirements, ToolError, Toolkit, tool

from .cell import Cell
from .channels import Message
from .notebook import Notebook, Stopped
from .outputs import Outputs

_NAME = "code"
_NOTES_BYTES = 1_000
_CONFIG = frozenset({"tools", "timeout_s", "python", "figures"})
_TIMEOUT_S = 120.0
MAX_TIMEOUT_S = 3600.0


class CodeToolkit(Toolkit):
    """Python that remembers from call to call, run in the session's sandbox."""

    own_config: frozenset[str] = frozenset()

    def __init__(self, notifier: Notifier, requires: Requirements, **kwargs: Any) -> None:
        super().__init__(notifier, requires, **kwargs)
        known = _CONFIG | self.own_config
        if unknown := sorted(set(self.config) - known):
            text = f"toolkit {_NAME!r} has no {unknown[0]!r}; {did_you_mean(unknown[0], known)}"
            raise ProfileError(text, ("config", unknown[0]))
        self._timeout_s = _number(self.config.get("timeout_s", _TIMEOUT_S))
        python = self.config.get("python", sys.executable)
        if not isinstance(python, str) or not python:
            raise ProfileError(f"`python` is the path of an interpreter, not {python!r}", ("config", "python"))
        if not isinstance(shows := self.config.get("figures", True), bool):
            raise ProfileError(f"`figures` is true or false, not {shows!r}", ("config", "figures"))
        needed = ("jupyter_client", *(("ipykernel",) if python == sys.executable else ()))
        if missing := [name for name in needed if find_spec(name) is None]:
            raise ProfileError(f"toolkit {_NAME!r} needs {missing[0]}: pip install 'goose-like[kernel]'")
        self._shows_figures = shows
        self._room = max(self.limits.output_bytes - _NOTES_BYTES, self.limits.output_bytes // 2)
        self._one_at_a_time = asyncio.Lock()
        self._told: list[Message] = []
        saved = self.session.history.state.get(_NAME)
        names = saved.get("names") if isinstance(saved, dict) else None
        self._saved = [str(name) for name in names] if isinstance(names, list) else []
        self._notebook = Notebook(self.workspace, python, self._setup, self._hear, self._saved)

    def prompt(self) -> str:
        """How cells are best used."""
        return (
            "- Work on data with `run_python`: look first (shape, head, dtypes), then go on in small cells; variables, "
            "imports and functions stay.\n"
            "- The value of a cell's last line is shown; print no more than you need. Figures and long tables are "
            "saved as files, and their paths told."
        )

    def live(self) -> list[tuple[str, str]]:
        """Which variables there are."""
        return [("Variables in the Python kernel", ", ".join(self._notebook.names))] if self._notebook.names else []

    async def close(self) -> None:
        await self._notebook.close()

    @tool(time_limit_s=None)
    async def run_python(self, code: str, timeout_s: float | None = None) -> str | Picture:
        """Run Python in a kernel that remembers variables from call to call. Shows prints and the last line's value."""
        limit_s = self._timeout_s if timeout_s is None else timeout_s
        if not 0 < limit_s <= MAX_TIMEOUT_S:
            raise ToolError(f"timeout_s is in seconds, more than 0 and at most {MAX_TIMEOUT_S:g}")
        if not code.strip():
            raise ToolError("the code is empty")
        async with self._one_at_a_time:
            await self.workspace.permit("command", f"Python:\n{code}", f"run this Python:\n{code}")
            if self.workspace.mode != "read-only":
                await self.workspace.tell_change(None, ["python", "-c", code])
            return await self._run(code, limit_s)

    @tool
    async def kernel_reset(self) -> str:
        """End the Python kernel with all its variables; the next cell starts a new one."""
        async with self._one_at_a_time:
            names = await self._notebook.reset()
            self._save()
            return f"the kernel was ended; gone: {', '.join(names) or 'no variables'}"

    async def _run(self, code: str, limit_s: float) -> str | Picture:
        call = re.sub(r"[^\w-]", "_", current_call.get(_NAME))
        outputs = Outputs(self.session.outputs, call)
        output = Output(outputs.path("python.txt"), self._room)
        context = copy_context()  # messages come elsewhere, and are shown as this call's
        cell = Cell(output, Live(lambda text: context.run(self.progress, text)), outputs)
        notes, stopped = list[str](), None
        try:
            notes = await self._notebook.run(code, cell, limit_s)
        except Stopped as error:
            stopped = error
            cell.add(error.words)
        finally:
            cell.close()
            self._save()
        text = output.for_model()
        reported = await asyncio.to_thread(self._reported, outputs) if self._told else []
        what = [*reported, *cell.notes]
        raised = [f"raised {cell.error}"] if cell.error and not stopped else []
        left = await self.workspace.inspect_changes()
        notes = [*what, *notes, *raised, *left, *(stopped.notes if stopped else ())]
        answer = told(text, notes) if text or not what else "\n".join(f"[{note}]" for note in notes)
        if stopped:
            raise ToolError(answer)
        if cell.picture and self._shows_figures:
            return Picture(cell.picture.data, cell.picture.source, answer)
        return answer

    def _setup(self) -> Message:
        return {"type": "setup", "session": self.session.name, "plugins": [], "variables": {}, "verify": None}

    def _hear(self, message: Message) -> None:
        if message.get("type") == "log":
            self.notifier.log(f"{message['tag']}: {message['text']}")
        else:
            self._told.append(message)

    def _reported(self, outputs: Outputs) -> list[str]:
        """What the desk told since the last time, in words for the model; artifacts are copied to the outputs."""
        reports, self._told = self._told, []
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
                return f"artifact {name}: {path}" + (f" ({about})" if about else "")
            case {"type": "failed", "plugin": str(plugin), "error": str(error)}:
                return f"plugin {plugin} is off, as it failed: {error}"
            case {"type": "reloaded", "plugin": str(plugin), "lost_state": lost}:
                return f"plugin {plugin} was changed and is loaded anew" + ("; its state is lost" if lost else "")
            case _:
                return ""

    def _save(self) -> None:
        """A resumed session tells which names there were."""
        if self._notebook.names != self._saved:
            self._saved = list(self._notebook.names)
            self.notifier.notify(StateSaved(toolkit=_NAME, value={"names": list(self._saved)}))


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= MAX_TIMEOUT_S:
        text = f"`timeout_s` is in seconds, more than 0 and at most {MAX_TIMEOUT_S:g}, not {value!r}"
        raise ProfileError(text, ("config", "timeout_s"))
    return float(value)
