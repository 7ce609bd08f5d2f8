"""The session's screen: what is over is printed once and scrolls away, what goes on stands above the prompt."""

import asyncio
import io
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal

from rich.console import Console, RenderableType
from rich.text import Text as Styled

from goose_like.core.events import (
    Answer,
    Artifact,
    Durable,
    Event,
    Interjected,
    MessageCompleted,
    Question,
    Retrying,
    Task,
    ThinkingDelta,
    ToolFinished,
    TurnFinished,
    TurnStarted,
)
from goose_like.core.message import Message, ToolCall, ToolResult

from .escape import one_line, visible
from .input import Prompt
from .interaction import decided
from .markdown_stream import MarkdownStream
from .renderer import PLAN_TOOL, Screen
from .tool_call import Running

FRAME_S = 1 / 15
TICK_S = 0.1
OPEN_ROWS = 12
PLAN_ROWS = 8
TAIL_ROWS = 5
THINKING_CHARACTERS = 400
BELL_AFTER_S = 10.0
_DOTS = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


class LiveScreen(Screen):
    """Draws a session around its prompt, at most fifteen times a second, however fast events come.

    `finished` are the calls with their results, in the order of the numbers that they are shown with. `queued` gives
    the words that wait for the next step, `put` adds some.
    """

    def __init__(self, prompt: Prompt, notify: Literal["bell", "osc9", "off"] = "bell") -> None:
        self._above, self._below = _Above(), io.StringIO()
        super().__init__(_console(self._above), says_answer=True)
        self.finished: list[tuple[ToolCall, ToolResult]] = []
        self.queued: Callable[[], Sequence[str]] = tuple
        self.put: Callable[[str], None] | None = None
        self.began: float | None = None
        self._prompt = prompt
        self._notify = notify
        self._prompt.live = self._live
        self._answer = MarkdownStream()
        self._thought = self._doing = ""
        self._is_open = False
        self._is_heard = False
        self._marked_ids: set[str] = set()
        self._plan: Sequence[Task] = ()
        self._rows_below: tuple[int, int, str] = (0, 0, "")
        self._frame: asyncio.TimerHandle | None = None
        self._drawn_at = 0.0
        self._loop = asyncio.get_running_loop()

    def notify(self, event: Event) -> None:
        match event:
            case TurnStarted(message=message) | Interjected(message=message):
                self.began = self.began or time.monotonic()
                self._is_heard = False
                self._say(message)
            case ThinkingDelta(text=text):
                self._thought = (self._thought + text)[-THINKING_CHARACTERS:]
            case Retrying():
                self._answer = MarkdownStream()
            case _:
                pass
        super().notify(event)
        if isinstance(event, TurnFinished):
            self._ring()
            self.began = None
        self._draw_soon()

    async def ask(self, question: Question) -> Answer:
        self._ring()
        self.draw()
        return await decided(question, self._prompt.answer, self.show_detail, self.put)

    def show(self, renderable: object) -> None:
        """Prints something above."""
        if isinstance(renderable, str):
            self._line(visible(renderable))
        else:
            self.console.print(renderable)
        self._draw_soon()

    def begin(self) -> None:
        """Shows what is waited for, until a session is open."""
        self._is_open = False

    def open(self, events: Iterable[Durable], plan: Sequence[Task], *, is_new: bool) -> None:
        """Shows a session from now on: what happened in it earlier, as it was drawn then, but for times."""
        self.console.width = self._prompt.size.columns
        self._is_open, self._doing = True, ""
        if is_new:
            self.finished.clear()
        self._replay(events)
        self._plan = plan

    def _replay(self, events: Iterable[Durable]) -> None:
        for event in events:
            if isinstance(event, TurnFinished | TurnStarted | Interjected):
                self._replay_turn(event)
            elif isinstance(event, ToolFinished) and event.result.call_id in self._running:
                running = self._running.pop(event.result.call_id)
                if running.is_command:
                    body, notes = running.read(event.result.output)
                    if notes or not event.result.is_error:  # else it never ran, and its end says all
                        self._show_output(running, "\n".join([*body, ""]))
                self._finish(running, event.result)
            elif isinstance(event, MessageCompleted):
                self._complete(event.message, event.is_cut)
                self._running = {
                    call.id: Running(call, self._labels.get(call.id, "")) for call in event.message.tool_calls
                }
            else:
                super().notify(event)
        self._running.clear()
        self.began = None
        self._draw_soon()

    def _replay_turn(self, event: TurnStarted | Interjected | TurnFinished) -> None:
        if isinstance(event, TurnFinished):
            self._close(event)
        else:
            self._is_heard = False
            self._say(event.message)

    # --- frames

    def _draw_soon(self) -> None:
        if self._frame is None:
            wait_s = max(0.0, self._drawn_at + FRAME_S - time.monotonic())
            self._frame = self._loop.call_later(wait_s, self.draw)

    def draw(self) -> None:
        """Prints what is over and draws what goes on, now."""
        if self._frame:
            self._frame.cancel()
            self._frame = None
        self._drawn_at = time.monotonic()
        self.console.width = self._prompt.size.columns
        for piece in self._answer.take(self.console.width):
            self.console.print(piece, soft_wrap=False)
        text = self._above.getvalue()
        self._above.seek(0)
        self._above.truncate()
        self._rows_below = (0, 0, "")
        if text:
            self._prompt.print(text)
        else:
            self._prompt.redraw()
        if self.began is not None:  # the clock goes on if nothing is heard
            self._frame = self._loop.call_later(TICK_S, self.draw)

    def _live(self, width: int, height: int) -> str:
        """The rows above the input; made once a frame, whatever else makes the prompt draw itself."""
        if self._rows_below[:2] != (width, height):
            console = _console(self._below, width)
            for piece in self._going_on(width, height):
                console.print(piece)
            rows = self._below.getvalue().rstrip("\n").split("\n")
            self._below.seek(0)
            self._below.truncate()
            self._rows_below = (width, height, "\n".join(rows[-height:] if height else ()))
        return self._rows_below[2]

    def _going_on(self, width: int, height: int) -> Iterator[RenderableType]:
        """What is not over, from the answer down to the plan, which is nearest to the input."""
        if rows := self._answer.open(width, min(OPEN_ROWS, height)):
            yield rows
        for running in self._running.values():
            if running.call.name != PLAN_TOOL:
                if running.call.id not in self._marked_ids:
                    yield self._marked(running)
                for line in running.recent(TAIL_ROWS):
                    yield Styled(f"  │{running.label} {one_line(line, width - 6)}", "dim", no_wrap=True)
        if self.began is not None:
            yield from self._waiting(width)
        elif self._doing and not self._is_open:  # what a session waits for before it is there
            yield Styled(one_line(self._doing, width - 2), "dim", no_wrap=True)
        for words in self.queued():
            yield Styled(f"  ⏎ {one_line(words, width - 30)}  (waits; Ctrl-S sends it now)", "cyan", no_wrap=True)
        if any(task.status in ("planned", "in-progress") for task in self._plan):
            yield from self._plan_rows(self._plan, PLAN_ROWS)

    def _waiting(self, width: int) -> Iterator[RenderableType]:
        elapsed = time.monotonic() - (self.began or 0)
        dot = _DOTS[int(elapsed * 10) % len(_DOTS)]
        doing = self._doing
        if self._thought and not self._is_heard:
            doing = f"thinking: {' '.join(self._thought.split())[-max(width - 30, 10) :]}"
        elif self._running and not doing:
            doing = f"running {', '.join(running.call.name for running in self._running.values())}"
        yield Styled(f"{dot} {one_line(doing or 'thinking', width - 12)} · {elapsed:.0f} s", "dim", no_wrap=True)

    # --- what the plain screen does otherwise

    def pause(self) -> None:
        self._doing = ""

    def _wait(self, text: str) -> None:
        self._doing = text

    def _tell_status(self, text: str) -> None:
        self._doing = visible(text)

    def _say(self, message: Message) -> None:
        """What the person said; the files and images that came with it stand behind it."""
        rows = self._rows(visible(message.first_text), 2)
        self._space()
        self._line(Styled("> " + "\n  ".join(rows), "bold cyan"))

    def _space(self) -> None:
        """An empty line, where there is none yet."""
        if not self._above.is_spaced:
            self._line("")

    def _hear(self, text: str) -> None:
        if not self._is_heard:
            self._space()
        self._is_heard, self._doing, self._thought = True, "", ""
        self._answer.feed(text)

    def _complete(self, message: Message, is_cut: bool) -> None:
        if not self._is_heard and message.text:
            self._hear(message.text)
        for piece in self._answer.finish(self.console.width):
            self.console.print(piece, soft_wrap=False)
        self._answer, self._is_heard, self._thought = MarkdownStream(), False, ""
        super()._complete(message, is_cut)

    def _start(self, call: ToolCall) -> None:
        self._running[call.id] = Running(call, self._labels.get(call.id, ""), time.monotonic())
        self._doing = ""

    def _show_output(self, running: Running, text: str) -> None:
        for _ in running.take(text, self._room(4 + len(running.label))):
            pass  # it keeps them

    def _finish(self, running: Running, result: ToolResult) -> None:
        self.finished.append((running.call, result))
        if running.call.name != PLAN_TOOL:
            if running.rest:
                self._show_output(running, "\n")
            self._mark(running)
            for line in running.head:
                self._show_line(running, line)
        super()._finish(running, result)

    def _mark(self, running: Running) -> None:
        """What the call is, once: above what it logs, or else when it is over."""
        if running.call.id not in self._marked_ids:
            self._marked_ids.add(running.call.id)
            self._line(self._marked(running))

    def _log(self, text: str) -> None:
        if len(self._running) == 1:
            (running,) = self._running.values()
            if running.call.name != PLAN_TOOL:
                self._mark(running)
        super()._log(text)

    def _draw_artifact(self, call_id: str, artifact: Artifact) -> None:
        if call_id in self._running:
            self._mark(self._running[call_id])
        super()._draw_artifact(call_id, artifact)

    def _left_out(self, count: int) -> str:
        return f"{super()._left_out(count)} · /show {len(self.finished)}"

    def _draw_plan(self, tasks: Sequence[Task]) -> None:
        self._plan = tasks
        if not any(task.status in ("planned", "in-progress") for task in tasks):
            super()._draw_plan(tasks)  # it is over

    def _close(self, end: TurnFinished) -> None:
        for running in self._running.values():
            if running.call.name != PLAN_TOOL:
                self._mark(running)
                for line in running.recent(TAIL_ROWS):
                    self._show_line(running, line)
        self._marked_ids.clear()
        super()._close(end)
        self._space()

    def _ring(self) -> None:
        if self.began is not None and time.monotonic() - self.began > BELL_AFTER_S:
            self._prompt.tell(self._notify)


class _Above(io.StringIO):
    """What is to be printed; knows whether an empty line was the last of it."""

    is_spaced = True

    def write(self, text: str) -> int:
        if text:
            self.is_spaced = text.endswith("\n\n") or text == "\n"
        return super().write(text)


def _console(file: io.StringIO, width: int = 80) -> Console:
    return Console(
        file=file, width=width, force_terminal=True, highlight=False, markup=False, emoji=False, soft_wrap=True
    )
