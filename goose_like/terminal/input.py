"""The input line of a session at the bottom of the terminal, with rows of live output above and a status row below."""

import asyncio
import time
from base64 import b64encode
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Literal

from prompt_toolkit import layout
from prompt_toolkit.application import Application, create_app_session
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory, ConditionalAutoSuggest
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import Completer, DummyCompleter, DynamicCompleter, ThreadedCompleter
from prompt_toolkit.data_structures import Point, Size
from prompt_toolkit.document import Document
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.filters import (
    Condition,
    emacs_mode,
    has_completions,
    is_searching,
    vi_insert_mode,
    vi_navigation_mode,
)
from prompt_toolkit.formatted_text import ANSI, StyleAndTextTuples
from prompt_toolkit.input import create_input
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.layout.processors import AppendAutoSuggestion, HighlightSelectionProcessor
from prompt_toolkit.output.color_depth import ColorDepth
from prompt_toolkit.patch_stdout import patch_stdout
from prompt_toolkit.widgets import SearchToolbar

from .prompt_files import InputHistory, PromptOutput
from .prompt_internals import is_suspended, redraw_now, wait_until_resumed

INPUT_ROWS = 10
MENU_ROWS = 8
_LABEL = "goose> "
QUIT_WITHIN_S = 2.0
REWIND_WITHIN_S = 1.0
_ALERTS = {"bell": "\a", "osc9": "\x1b]9;goose-like waits for you\a", "off": ""}
KEY_HELP = (
    ("Enter", "send; while the model works: queue the message for its next step"),
    ("Ctrl-S", "while the model works: stop the step and send now"),
    ("Esc", "stop the turn; twice at an empty prompt: go back to a message"),
    ("Shift-Tab", "next mode: ask, auto, plan"),
    ("Ctrl-O", "unfold or fold the output of the last call; a long one is printed"),
    ("Alt-Enter", "new line; Esc Enter too"),
    ("Tab, arrows", "choose a completion; Enter runs the line, or takes a file chosen by an arrow"),
    ("Ctrl-R, arrows", "search earlier inputs; Up takes a waiting message back first"),
    ("Ctrl-V, Alt-V", "paste an image"),
    ("Ctrl-X Ctrl-E", "open your editor"),
    ("Ctrl-C", "stop the turn, or clear the input; twice: leave"),
    ("Ctrl-D", "leave; while the model works: twice"),
    ("Ctrl-Z", "suspend; fg comes back"),
    ("!COMMAND", "run a shell command and show its output to the model"),
    ("@PATH", "attach a file or folder"),
    ("/help", "list the commands; ? shows or hides these keys"),
)
"""The keys of a session, each with its effect."""


class Prompt:
    """An input of one or more lines that stays open while a turn runs.

    The session sets these callbacks:

    - `live(width)` returns the rows above the input, `status(width)` the row below, with ANSI colours.
    - `on_interrupt` handles Ctrl-C and returns whether it stopped something that was not stopping yet.
    - `on_steer` handles Ctrl-S with the typed text and returns whether it took the text.
    - `take_waiting` removes the newest message that waits and returns it, or returns an empty text.
    - `on_paste` handles the key that pastes an image. `on_leave` is called when the prompt closes.
    - `is_working` returns whether Esc would stop something. `on_mode` handles Shift-Tab.
    - `on_unfold` handles Ctrl-O. `on_help` handles `?` at an empty prompt.

    Inputs are kept in the file `history` once `save_history` got the function that masks secrets.
    """

    def __init__(self, history: Path) -> None:
        self.live: Callable[[int], str] = lambda width: ""
        self.status: Callable[[int], str] = lambda width: ""
        self.on_interrupt: Callable[[], bool] = lambda: False
        self.on_leave: Callable[[], object] = lambda: None
        self.on_steer: Callable[[str], bool] = lambda words: False
        self.take_waiting: Callable[[], str] = str
        self.on_paste: Callable[[], None] = lambda: self.print("the session is still starting; paste again\n")
        self.is_working: Callable[[], bool] = lambda: False
        self.on_mode: Callable[[], None] = lambda: None
        self.on_unfold: Callable[[], None] = lambda: None
        self.on_help: Callable[[], None] = lambda: None
        self.completer: Completer = DummyCompleter()
        self._running: asyncio.Task[None] | None = None
        self._lines: asyncio.Queue[str] = asyncio.Queue()
        self._question: asyncio.Future[str] | None = None
        self._is_command: Callable[[str], bool] = lambda line: False
        self._label = _LABEL
        self._is_closed = False
        self._resources = ExitStack()
        self._draft = Document()
        self._unprinted = ""
        self._live_rows = ""
        self._live_frame = -1  # the frame that these rows were rendered for
        self._interrupted_at = 0.0
        self._escaped_at = 0.0
        self._is_tab_pending = False
        self._is_chosen_by_tab = False
        self._output = PromptOutput.open()
        self._history = InputHistory(str(history))
        self.save_history = self._history.save
        asks_nothing = Condition(lambda: self._question is None)
        self._buffer = Buffer(
            multiline=True,
            history=self._history,
            completer=ThreadedCompleter(DynamicCompleter(lambda: self.completer)),
            complete_while_typing=asks_nothing,
            auto_suggest=ConditionalAutoSuggest(AutoSuggestFromHistory(), asks_nothing),
            enable_history_search=False,
            accept_handler=self._accept,
            tempfile_suffix=".md",
            on_completions_changed=self._take_only_completion,
            on_text_changed=self._forget_keys,
        )
        self.app: Application[None] = Application(
            layout=self._make_layout(),
            key_bindings=self._make_key_bindings(),
            erase_when_done=True,
            refresh_interval=2.0,  # the status row changes without events
            terminal_size_polling_interval=None,  # it would erase a list or an editor that has the terminal
            output=self._output,
            color_depth=ColorDepth.from_env(),
            input=create_input(),
            enable_page_navigation_bindings=False,
        )
        self.app.ttimeoutlen = 0.05  # how long Esc waits for a key that belongs to it
        self.app.after_render += lambda _: self._print_pending()

    def _make_layout(self) -> layout.Layout:
        search = SearchToolbar()
        field = layout.BufferControl(
            self._buffer,
            input_processors=[HighlightSelectionProcessor(), AppendAutoSuggestion()],
            search_buffer_control=search.control,
            preview_search=True,
        )
        # In a small terminal the cursor of the live rows keeps the last ones in view.
        live = layout.FormattedTextControl(
            lambda: ANSI(self._render_live()),
            get_cursor_position=lambda: Point(0, self._render_live().count("\n")),
        )
        has_live_rows = Condition(lambda: bool(self._render_live()))
        rows: list[layout.Container] = [
            layout.ConditionalContainer(layout.Window(live, dont_extend_height=True), has_live_rows),
            layout.Window(
                field,
                height=layout.Dimension(min=1, max=INPUT_ROWS),
                dont_extend_height=True,
                wrap_lines=True,
                get_line_prefix=self._get_prefix,
            ),
            layout.ConditionalContainer(layout.CompletionsMenu(max_height=MENU_ROWS, scroll_offset=1), has_completions),
            search.container,
            layout.Window(
                layout.FormattedTextControl(lambda: ANSI(self.status(self.size.columns))),
                height=layout.Dimension(min=1, max=2),
                dont_extend_height=True,
                wrap_lines=True,
            ),
        ]
        return layout.Layout(layout.HSplit(rows), focused_element=field)

    # --- open and close

    async def __aenter__(self) -> "Prompt":
        """Show the prompt and take keys."""
        self._resources.enter_context(create_app_session(output=self._output))
        self._resources.enter_context(patch_stdout(raw=True))  # a warning must not run into the prompt
        is_drawn = asyncio.Event()
        self.app.after_render += lambda _: is_drawn.set()
        self._running = asyncio.create_task(self.app.run_async(handle_sigint=False, set_exception_handler=False))
        self._running.add_done_callback(lambda _: self.close())  # the terminal is gone
        first_draw = asyncio.create_task(is_drawn.wait())
        await asyncio.wait([self._running, first_draw], return_when=asyncio.FIRST_COMPLETED)
        first_draw.cancel()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.shut_down()

    async def shut_down(self) -> None:
        """Close the prompt and wait until the terminal has its earlier state."""
        self.close()
        if self._running:
            await asyncio.wait([self._running])
        self._resources.close()
        self._output.write_raw(self._unprinted)
        self._output.flush()
        self._unprinted = ""

    def close(self) -> None:
        """Remove the prompt; `read_line` and `read_answer` then return an empty string."""
        self._is_closed = True
        self.on_leave()
        self._lines.put_nowait("")
        self._end_question("")
        if self.app.is_running:
            self.app.exit()

    # --- input

    def use_vi_keys(self) -> None:
        """Edit with the keys of vi."""
        self.app.editing_mode = EditingMode.VI

    async def read_line(self) -> str:
        """Return the next input with a line end, or an empty string when the person leaves."""
        return await self._lines.get()

    async def read_answer(self, label: str, is_command: Callable[[str], bool] = lambda line: False) -> str:
        """Return a line that answers a question. A half-typed input waits until then.

        `read_line` returns the lines that `is_command` names; they answer nothing.
        """
        await wait_until_resumed(self.app)
        if self._is_closed:
            return ""
        question: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._question = question
        self._label = label
        self._is_command = is_command
        self._draft = self._buffer.document
        self._buffer.reset()
        self.redraw()
        try:
            return await question
        finally:
            if self._question is question:  # a next question can be open already
                self._end_question("")

    def send_line(self, line: str) -> None:
        """Let `read_line` return a line that a key stands for."""
        self._lines.put_nowait(f"{line}\n")

    def refresh_completions(self) -> None:
        """Look up completions of the typed text again."""
        if self._buffer.text and self.app.is_running:
            self._buffer.start_completion()

    def prepend_text(self, text: str) -> None:
        """Put text before the typed text."""
        typed = self._buffer.text
        if typed:
            text = f"{text}\n{typed}"
        self._buffer.set_document(Document(text))

    def insert_word(self, word: str) -> None:
        """Insert a word at the cursor of the input, also while a question hides the input."""
        if self._question:
            self._draft = _insert_word(self._draft, word)
        else:
            self._buffer.set_document(_insert_word(self._buffer.document, word))

    # --- output

    @property
    def size(self) -> Size:
        """Columns and rows of the terminal."""
        return self._output.get_size()

    def alert(self, how: Literal["bell", "osc9", "off"]) -> None:
        """Call a person who looks elsewhere: with the bell, or with a desktop notification (OSC 9)."""
        self.write_raw(_ALERTS[how])

    def write_raw(self, sequence: str) -> None:
        """Write a sequence that moves nothing on the screen."""
        self._output.write_raw(sequence)
        self._output.flush()

    def copy_text(self, text: str) -> None:
        """Copy text to the clipboard through the terminal (OSC 52; most terminals and tmux support it)."""
        encoded = b64encode(text.encode()).decode()
        self._output.write_raw(f"\x1b]52;c;{encoded}\a")
        self._output.flush()

    def redraw(self) -> None:
        """Draw the live rows and the status row again soon."""
        self.app.invalidate()

    def print(self, text: str) -> None:
        """Print whole lines, with ANSI colours, above the prompt in one write: nothing flickers."""
        self._unprinted += text
        self._print_pending()

    def _print_pending(self) -> None:
        app = self.app
        if not self._unprinted or not app.is_running or is_suspended(app):
            return
        text = self._unprinted
        self._unprinted = ""
        with self._output.hold_writes():
            app.renderer.erase()
            self._output.write_raw(text.replace("\n", "\r\n"))
            redraw_now(app)

    def _render_live(self) -> str:
        """Render the live rows once per frame: its height and its cursor must fit its text, also in a resize."""
        if self._live_frame != self.app.render_counter:
            self._live_frame = self.app.render_counter
            self._live_rows = self.live(self.size.columns)
        return self._live_rows

    def _get_prefix(self, line: int, wrapped: int) -> StyleAndTextTuples:
        prefix = self._label
        if line or wrapped:
            prefix = " " * min(len(self._label), 2)
        style = "bold" if self._question else "ansicyan"
        return [(style, prefix)]

    # --- keys

    def _accept(self, buffer: Buffer) -> bool:
        """Take the input; return whether it should stay in the buffer."""
        if not buffer.text.strip():
            return True
        line = buffer.text.rstrip("\n")
        self._lines.put_nowait(f"{line}\n")
        return False

    def _end_question(self, answer: str) -> None:
        """Answer the open question and restore the half-typed input."""
        question = self._question
        if question is None:
            return
        self._question = None
        if not question.done():
            question.set_result(answer)
        self._label = _LABEL
        self._buffer.reset(self._draft)
        self.redraw()

    def _interrupt(self) -> None:
        """Handle Ctrl-C: stop the work, else clear the input, else leave if it comes twice."""
        is_again = self._press_leave_key()
        if is_again and not self._buffer.text:
            self.close()
        elif not is_again and self.on_interrupt():
            return
        elif self._buffer.text:
            self._buffer.reset()
            self._interrupted_at = 0.0  # it only cleared the input
        else:
            self.print("(press Ctrl-C again to leave)\n")

    def _press_leave_key(self) -> bool:
        """Note the time of Ctrl-C or Ctrl-D. Return whether one came just before, and nothing was typed since."""
        now = time.monotonic()
        is_again = now - self._interrupted_at < QUIT_WITHIN_S
        self._interrupted_at = now
        return is_again

    def _escape(self) -> None:
        """Handle Esc: stop the work, or go back to an earlier message when it is pressed twice at an empty prompt."""
        is_again = self._has_escaped()
        self._escaped_at = time.monotonic()
        if self.is_working():
            self._escaped_at = 0.0  # a second one stops too
            self.on_interrupt()
        elif is_again and not self._buffer.text and not self._question:
            self._escaped_at = 0.0
            self.send_line("/rewind")

    def _has_escaped(self) -> bool:
        """Return whether Esc came just before, and nothing was typed since."""
        return time.monotonic() - self._escaped_at < REWIND_WITHIN_S

    def _escape_twice(self) -> None:
        self._escape()
        self._escape()

    def _submit(self) -> None:
        is_message = self._buffer.text != "" and not self._question
        if is_message and self._has_escaped() and self.app.editing_mode is EditingMode.EMACS:
            self._escaped_at = 0.0
            self._buffer.newline(copy_margin=False)
        elif self._question and not self._is_command(self._buffer.text):
            self._end_question(self._buffer.text + "\n")  # answers stay out of the input history
        else:
            self._buffer.validate_and_handle()

    def _end_input(self) -> None:
        """Handle Ctrl-D at an empty prompt: leave, or end a question. While something works, it must come twice."""
        if self._question:
            self._end_question("")
        elif self._press_leave_key() or not self.is_working():
            self.close()
        else:
            self.print("(the work goes on; press Ctrl-D again to stop it and leave)\n")

    def _steer(self) -> None:
        words = self._buffer.text.strip()
        is_answer = self._question is not None and len(words) == 1
        if not is_answer and self.on_steer(words):
            self._buffer.reset(append_to_history=bool(words))
        else:
            self._buffer.validate_and_handle()

    def _go_up(self, count: int) -> None:
        """Handle Up at an empty prompt: edit the newest waiting message, or else an earlier input."""
        text = self.take_waiting()
        if text:
            self._buffer.set_document(Document(text))
        else:
            self._buffer.auto_up(count)

    def _choose_next(self) -> None:
        self._buffer.complete_next()
        self._is_chosen_by_tab = True

    def _start_tab(self) -> None:
        self._buffer.start_completion(insert_common_part=True)
        self._is_tab_pending = True

    def _forget_keys(self, buffer: Buffer) -> None:
        """Forget keys that only count together with the very next one."""
        self._is_tab_pending = False
        self._is_chosen_by_tab = False
        self._escaped_at = 0.0
        self._interrupted_at = 0.0

    def _take_only_completion(self, buffer: Buffer) -> None:
        """Take a single completion if Tab was pressed before it was found."""
        state = buffer.complete_state
        if self._is_tab_pending and state and len(state.completions) == 1:
            buffer.go_to_completion(0)
            buffer.complete_state = None

    def _open_editor(self) -> None:
        self._buffer.open_in_editor()

    def _close_menu(self) -> None:
        self._buffer.complete_state = None

    def _takes_choice(self) -> bool:
        """Return whether Enter takes the chosen completion only: a file for a message that is still being written."""
        if self._is_chosen_by_tab or self._buffer.text.startswith("/"):
            return False
        return self._has_choice()

    def _has_choice(self) -> bool:
        state = self._buffer.complete_state
        return state is not None and state.current_completion is not None

    def _make_key_bindings(self) -> KeyBindings:
        """Return the key bindings; of several for one key the last with a true filter counts."""
        buffer = self._buffer
        is_typing = ~is_searching
        is_inserting = is_typing & (emacs_mode | vi_insert_mode)
        is_emacs = is_typing & emacs_mode
        is_empty = Condition(lambda: not buffer.text and self._question is None)
        takes_choice = is_typing & Condition(self._takes_choice)
        keys = KeyBindings()
        keys.add("enter", filter=is_typing)(lambda _: self._submit())
        keys.add("enter", filter=takes_choice)(lambda _: self._close_menu())
        keys.add("c-y", filter=Condition(self._has_choice))(lambda _: self._close_menu())
        keys.add("tab", filter=is_inserting & ~has_completions)(lambda _: self._start_tab())
        keys.add("tab", filter=is_inserting & has_completions)(lambda _: self._choose_next())
        keys.add("escape", "enter", filter=is_emacs)(lambda _: buffer.newline(copy_margin=False))
        keys.add("c-c")(lambda _: self._interrupt())
        keys.add("c-d", filter=Condition(lambda: not buffer.text))(lambda _: self._end_input())
        keys.add("c-s", filter=is_typing)(lambda _: self._steer())
        keys.add("up", filter=is_typing & is_empty)(lambda event: self._go_up(event.arg))
        keys.add("c-v", filter=is_inserting)(lambda _: self.on_paste())
        keys.add("escape", "v", filter=is_emacs)(lambda _: self.on_paste())
        keys.add("c-x", "c-e", filter=is_typing)(lambda _: self._open_editor())
        keys.add("c-o")(lambda _: self.on_unfold())
        keys.add("c-z", filter=is_typing)(lambda event: event.app.suspend_to_background())
        keys.add("s-tab", filter=is_typing & ~has_completions)(lambda _: self.on_mode())
        keys.add("?", filter=is_inserting & is_empty)(lambda _: self.on_help())
        # A key behind Esc in the same read belongs to it (Alt-Enter). Alone, Esc must not eat the next key.
        is_alone = Condition(lambda: not self.app.key_processor.input_queue)
        takes_escape = is_typing & ~has_completions & (emacs_mode | vi_navigation_mode)
        keys.add("escape", filter=takes_escape, eager=is_alone)(lambda _: self._escape())
        keys.add("escape", "escape", filter=takes_escape)(lambda _: self._escape_twice())
        keys.add("escape", filter=is_emacs & has_completions)(lambda _: self._close_menu())
        keys.add("c-l")(lambda event: event.app.renderer.clear())
        return keys


def _insert_word(typed: Document, word: str) -> Document:
    """Return a text with a word at its cursor, between blanks."""
    before = typed.text_before_cursor
    if before[-1:].strip():
        before += " "
    before += f"{word} "
    return Document(before + typed.text_after_cursor, len(before))
