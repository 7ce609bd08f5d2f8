"""The last lines of a terminal: what goes on, the input, the status. What is printed scrolls away above them."""

import asyncio
import os
import sys
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Literal

from prompt_toolkit.application import Application, create_app_session
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import Completer, DummyCompleter, DynamicCompleter, ThreadedCompleter
from prompt_toolkit.data_structures import Size
from prompt_toolkit.document import Document
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.filters import Condition, emacs_mode, has_completions, is_searching, vi_insert_mode
from prompt_toolkit.formatted_text import ANSI, StyleAndTextTuples
from prompt_toolkit.history import FileHistory
from prompt_toolkit.input import create_input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout import BufferControl, ConditionalContainer, FormattedTextControl, HSplit, Layout, Window
from prompt_toolkit.layout.dimension import Dimension
from prompt_toolkit.layout.menus import CompletionsMenu
from prompt_toolkit.layout.processors import AppendAutoSuggestion, HighlightSelectionProcessor
from prompt_toolkit.output.color_depth import ColorDepth
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.patch_stdout import patch_stdout
from prompt_toolkit.widgets import SearchToolbar

INPUT_ROWS = 10
_LABEL = "goose> "
LEAVE_WITHIN_S = 2.0


class Prompt:
    """One input line or more, always there: what is typed while something runs is not lost.

    `live(width, height)` gives the rows above the input and `status(width)` the last row, as text with ANSI colours.
    `on_interrupt` is called for Ctrl-C and says whether there was something to stop; `on_steer` for Ctrl-S, with what
    was typed, and says whether it took that; `on_paste` for the key that asks for the clipboard's image; `on_leave`
    when the prompt is taken away.
    """

    def __init__(self, history: Path) -> None:
        self.live: Callable[[int, int], str] = lambda width, height: ""
        self.status: Callable[[int], str] = lambda width: ""
        self.on_interrupt: Callable[[], bool] = lambda: False
        self.on_leave: Callable[[], object] = lambda: None
        self.on_steer: Callable[[str], bool] = lambda words: False
        self.on_paste: Callable[[], None] = lambda: self.print("the session is not open yet; paste once more\n")
        self.completer: Completer = DummyCompleter()
        self._shown: asyncio.Task[None] | None = None
        self._lines: asyncio.Queue[str] = asyncio.Queue()
        self._asked: asyncio.Future[str] | None = None
        self._label = _LABEL
        self._is_closed = False
        self._open = ExitStack()
        self._draft = Document()
        self._held = ""
        self._interrupted_at = 0.0
        self._is_tabbed = False
        self._output = _terminal()
        search = SearchToolbar()
        self._buffer = Buffer(
            multiline=True,
            history=_Past(str(history)),
            completer=ThreadedCompleter(DynamicCompleter(lambda: self.completer)),
            complete_while_typing=Condition(lambda: self._asked is None),
            auto_suggest=AutoSuggestFromHistory(),
            enable_history_search=False,
            accept_handler=self._accept,
            tempfile_suffix=".md",
            on_completions_changed=self._choose_only,
            on_text_changed=self._untab,
        )
        field = BufferControl(
            self._buffer,
            input_processors=[HighlightSelectionProcessor(), AppendAutoSuggestion()],
            search_buffer_control=search.control,
            preview_search=True,
        )
        layout = HSplit(
            [
                ConditionalContainer(
                    Window(FormattedTextControl(lambda: ANSI(self._rows())), dont_extend_height=True, wrap_lines=False),
                    Condition(lambda: bool(self._rows())),
                ),
                Window(
                    field,
                    height=Dimension(min=1, max=INPUT_ROWS),
                    dont_extend_height=True,
                    wrap_lines=True,
                    get_line_prefix=self._prefix,
                ),
                ConditionalContainer(CompletionsMenu(max_height=8, scroll_offset=1), has_completions),
                search,
                Window(FormattedTextControl(self._status), height=1),
            ]
        )
        self.app: Application[None] = Application(
            layout=Layout(layout, focused_element=field),
            key_bindings=self._keys(),
            erase_when_done=True,
            refresh_interval=2.0,  # what the status tells changes by itself
            output=self._output,
            color_depth=ColorDepth.from_env(),
            input=create_input(),
            enable_page_navigation_bindings=False,
        )
        self.app.ttimeoutlen = 0.05  # how long an Esc waits for what may belong to it
        self.app.after_render += lambda _: self._print_held()

    # --- what others do with it

    async def __aenter__(self) -> "Prompt":
        """Shows the prompt; it takes keys now."""
        self._open.enter_context(create_app_session(output=self._output))
        self._open.enter_context(patch_stdout(raw=True))  # a warning must not run into the prompt
        is_drawn = asyncio.Event()
        self.app.after_render += lambda _: is_drawn.set()
        self._shown = asyncio.create_task(self.app.run_async(handle_sigint=False, set_exception_handler=False))
        self._shown.add_done_callback(lambda _: self.close())  # the terminal is gone
        drawn = asyncio.create_task(is_drawn.wait())
        await asyncio.wait([self._shown, drawn], return_when=asyncio.FIRST_COMPLETED)
        drawn.cancel()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.gone()

    async def gone(self) -> None:
        """Takes the prompt away, and waits until the terminal is as it was."""
        self.close()
        if self._shown:
            await asyncio.wait([self._shown])
        self._open.close()
        self._output.write_raw(self._held)
        self._output.flush()
        self._held = ""

    def use_vi_keys(self) -> None:
        self.app.editing_mode = EditingMode.VI

    def close(self) -> None:
        """Takes the prompt away; `next` and `answer` give ''."""
        self._is_closed = True
        self.on_leave()
        self._lines.put_nowait("")
        self._give("")
        if self.app.is_running:
            self.app.exit()

    async def next(self) -> str:
        """The next input, with a line end; '' when the person leaves."""
        return await self._lines.get()

    async def answer(self, label: str) -> str:
        """A line in answer to a question. What was being typed is put aside until then."""
        if editing := self.app._running_in_terminal_f:
            await asyncio.wait([editing])
        if self._is_closed:
            return ""
        asked: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._asked, self._label, self._draft = asked, label, self._buffer.document
        self._buffer.reset()
        self.redraw()
        try:
            return await asked
        finally:
            if self._asked is asked:  # and not the next question, which may be there already
                self._give("")

    def complete(self) -> None:
        """Looks anew for what may complete what is typed."""
        if self._buffer.text and self.app.is_running:
            self._buffer.start_completion()

    def put_back(self, text: str) -> None:
        """Puts words before those that are being typed."""
        typed = self._buffer.text
        self._buffer.set_document(Document(f"{text}\n{typed}" if typed else text))

    def insert(self, word: str) -> None:
        """Puts a word where the cursor is in what is being typed, which a question may have put aside."""
        typed = self._draft if self._asked else self._buffer.document
        before = typed.text_before_cursor
        before += f"{' ' if before and not before[-1].isspace() else ''}{word} "
        changed = Document(before + typed.text_after_cursor, len(before))
        if self._asked:
            self._draft = changed
        else:
            self._buffer.set_document(changed)

    @property
    def size(self) -> Size:
        """Columns and rows of the terminal."""
        return self._output.get_size()

    def tell(self, how: Literal["bell", "osc9", "off"]) -> None:
        """Draws the attention of a person who looks elsewhere: the bell, or a notification of the desktop (OSC 9)."""
        self._output.write_raw({"bell": "\a", "osc9": "\x1b]9;goose-like waits for you\a", "off": ""}[how])
        self._output.flush()

    def copy(self, text: str) -> None:
        """Puts text into the clipboard by way of the terminal (xterm's OSC 52; tmux and most others take it)."""
        self._output.write_raw(f"\x1b]52;c;{b64encode(text.encode()).decode()}\a")
        self._output.flush()

    def redraw(self) -> None:
        """Draws the live rows and the status anew, soon."""
        self.app.invalidate()

    def print(self, text: str) -> None:
        """Prints text (with ANSI colours, whole lines) above, in one write: nothing flickers."""
        self._held += text
        self._print_held()

    def _print_held(self) -> None:
        app = self.app
        if not self._held or not app.is_running or app._running_in_terminal:  # an editor has the terminal
            return
        text, self._held = self._held, ""
        with self._output.at_once():
            app.renderer.erase()
            self._output.write_raw(text.replace("\n", "\r\n"))
            app._redraw()

    # --- what is drawn

    def _rows(self) -> str:
        size = self.size
        return self.live(size.columns, max(size.rows - self._input_rows(size.columns) - 2, 0))

    def _input_rows(self, columns: int) -> int:
        rows = sum(1 + len(line) // max(columns - 2, 1) for line in self._buffer.text.split("\n"))
        return min(rows, INPUT_ROWS) + (8 if self._buffer.complete_state else 0)

    def _status(self) -> ANSI:
        return ANSI(self.status(self.size.columns))

    def _prefix(self, line: int, wrapped: int) -> StyleAndTextTuples:
        is_first = line == 0 and wrapped == 0
        return [("bold" if self._asked else "ansicyan", self._label if is_first else " " * min(len(self._label), 2))]

    # --- what is typed

    def _accept(self, buffer: Buffer) -> bool:
        """Takes the input; whether it should stay where it is."""
        if not buffer.text.strip():
            return True
        self._lines.put_nowait(buffer.text.rstrip("\n") + "\n")
        return False

    def _give(self, answer: str) -> None:
        """Ends the question, and puts back what was being typed before it."""
        asked, self._asked = self._asked, None
        if asked is None:
            return
        if not asked.done():
            asked.set_result(answer)
        self._label = _LABEL
        self._buffer.reset(self._draft)
        self.redraw()

    def _interrupt(self) -> None:
        now = time.monotonic()
        is_again, self._interrupted_at = now - self._interrupted_at < LEAVE_WITHIN_S, now
        if is_again:
            self.close()
        elif not self.on_interrupt():
            if self._buffer.text:
                self._interrupted_at = 0.0  # it was for the input
                self._buffer.reset()
            else:
                self.print("(once more leaves)\n")

    def _untab(self, buffer: Buffer) -> None:
        self._is_tabbed = False

    def _choose_only(self, buffer: Buffer) -> None:
        """Takes the one completion that there is, if Tab asked for it before it was found."""
        state = buffer.complete_state
        if self._is_tabbed and state and len(state.completions) == 1:
            buffer.go_to_completion(0)
            buffer.complete_state = None

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()
        is_typing = ~is_searching
        is_inserting = emacs_mode | vi_insert_mode
        has_choice = Condition(
            lambda: bool(self._buffer.complete_state and self._buffer.complete_state.current_completion)
        )

        @keys.add("enter", filter=is_typing)
        def _(event: KeyPressEvent) -> None:
            if self._asked:
                self._give(self._buffer.text + "\n")  # an answer is nothing to be looked up later
            else:
                self._buffer.validate_and_handle()

        @keys.add("enter", filter=is_typing & has_choice)
        @keys.add("c-y", filter=has_choice)
        def _(event: KeyPressEvent) -> None:
            self._buffer.complete_state = None

        @keys.add("tab", filter=is_typing & is_inserting & ~has_completions)
        def _(event: KeyPressEvent) -> None:
            self._buffer.start_completion(insert_common_part=True)
            self._is_tabbed = True

        @keys.add("escape", "enter", filter=is_typing & emacs_mode)
        def _(event: KeyPressEvent) -> None:
            self._buffer.newline(copy_margin=False)

        @keys.add("c-c")
        def _(event: KeyPressEvent) -> None:
            self._interrupt()

        @keys.add("c-d", filter=Condition(lambda: not self._buffer.text))
        def _(event: KeyPressEvent) -> None:
            if self._asked:
                self._give("")
            else:
                self.close()

        @keys.add("c-s", filter=Condition(lambda: self._asked is None))
        def _(event: KeyPressEvent) -> None:
            words = self._buffer.text.strip()
            if self.on_steer(words):
                self._buffer.reset(append_to_history=bool(words))
            else:
                self._buffer.validate_and_handle()

        @keys.add("c-v", filter=is_typing & is_inserting)
        @keys.add("escape", "v", filter=is_typing & emacs_mode)
        def _(event: KeyPressEvent) -> None:
            self.on_paste()

        @keys.add("c-x", "c-e", filter=is_typing)
        def _(event: KeyPressEvent) -> None:
            self._buffer.open_in_editor()

        @keys.add("c-l")
        def _(event: KeyPressEvent) -> None:
            event.app.renderer.clear()

        return keys


class _Past(FileHistory):
    """What was typed before, in a file; where that can't be written it is forgotten with the session."""

    def store_string(self, string: str) -> None:
        with suppress(OSError):
            os.makedirs(os.path.dirname(self.filename), mode=0o700, exist_ok=True)
            super().store_string(string)


def _terminal() -> "_Output":
    def size() -> Size:
        try:
            columns, rows = os.get_terminal_size(sys.stderr.fileno())
        except OSError:  # it is gone
            columns, rows = 0, 0
        return Size(rows=rows or 24, columns=columns or 80)

    # Where the cursor stands is not asked for: answers would mix with what is typed.
    return _Output(sys.stderr, size, term=os.environ.get("TERM"), enable_cpr=False)


class _Output(Vt100_Output):
    """The terminal, which can be given several changes in one write."""

    _is_held = False

    @contextmanager
    def at_once(self) -> Iterator[None]:
        self._is_held = True
        try:
            yield
        finally:
            self._is_held = False
            self.flush()

    def flush(self) -> None:
        if not self._is_held:
            with suppress(OSError):  # the terminal is gone: SIGHUP ends the session
                super().flush()
