"""A list to choose from with the arrow keys, which shrinks while the person types. Import this file on first use."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Generic, TypeVar

from prompt_toolkit import layout
from prompt_toolkit.application import Application, create_app_session, get_app_or_none, get_app_session, in_terminal
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.output.color_depth import ColorDepth
from prompt_toolkit.output.vt100 import Vt100_Output

from .escape import escape_controls, measure_width, to_one_line
from .interaction import exit_on_signals

MAX_ROWS = 15
PREVIEW_ROWS = 7
_PREVIEW_DELAY_S = 0.05  # holding an arrow key must not start a preview of every row
_MIN_LABEL = 30
_MAX_CELL = 28
_MAX_ONLY_CELL = 60
_GAP = 2
_FAR = 10**9
_ROWS_BY_KEY = {"up": -1, "c-p": -1, "down": 1, "c-n": 1, "home": -_FAR, "end": _FAR}
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Choice(Generic[T]):
    """A row to choose: its label, and cells that are shown where the terminal is wide enough.

    The filter searches the label, and `keywords`, which are not shown.
    """

    value: T
    label: str
    cells: tuple[str, ...] = ()
    keywords: str = ""


async def pick(
    title: str,
    choices: Sequence[Choice[T]],
    *,
    preview: Callable[[T], Awaitable[str]] | None = None,
    current: T | None = None,
    reload: Callable[[], Awaitable[Sequence[Choice[T]]]] | None = None,
) -> T | None:
    """Return the value that the person chooses, or None if they cancel.

    A running prompt disappears meanwhile. The text of `preview` appears below the list when it is ready. The list
    begins at the row of `current`. The choices that `reload` returns replace the first ones; it must not raise.
    """
    async with in_terminal():
        return await _Picker(title, choices, preview, current).run(reload)


def pick_alone(title: str, choices: Sequence[Choice[T]], **options: Any) -> T | None:
    """Call `pick` without a running event loop. The list appears on standard error.

    Raises:
        SystemExit: SIGTERM or SIGHUP arrived. The terminal is restored.
    """
    output = Vt100_Output.from_pty(sys.stderr, os.environ.get("TERM"))
    output.enable_cpr = False  # answers to cursor position requests would mix with typed keys
    with exit_on_signals(), create_app_session(output=output):
        choosing = pick(title, choices, **options)
        return asyncio.run(choosing)


class _Picker(Generic[T]):
    """The application that shows the list."""

    def __init__(
        self,
        title: str,
        choices: Sequence[Choice[T]],
        preview: Callable[[T], Awaitable[str]] | None,
        current: T | None,
    ) -> None:
        self._title = title
        self._preview = preview
        self._texts: dict[int, str] = {}
        self._loading: asyncio.Task[None] | None = None
        self._index = 0
        self._first = 0
        self._filter = Buffer(multiline=False, on_text_changed=lambda _: self._apply_filter())
        self._set_choices(choices, current)
        terminal = get_app_or_none() or get_app_session()
        self._app: Application[T | None] = Application(
            layout=self._make_layout(),
            key_bindings=self._make_key_bindings(),
            erase_when_done=True,
            input=terminal.input,
            output=terminal.output,
            color_depth=ColorDepth.from_env(),
            terminal_size_polling_interval=None,
        )
        self._app.ttimeoutlen = 0.05

    async def run(self, reload: Callable[[], Awaitable[Sequence[Choice[T]]]] | None) -> T | None:
        """Show the list until the person chooses or cancels."""
        reloading = None
        if reload:
            reloading = asyncio.ensure_future(self._replace_choices(reload()))
        try:
            return await self._app.run_async(handle_sigint=False, set_exception_handler=False)
        except EOFError:  # the terminal is gone
            return None
        finally:
            tasks = [task for task in (reloading, self._loading) if task]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    # --- choices

    def _set_choices(self, choices: Sequence[Choice[T]], current: T | None) -> None:
        """Show other choices and keep the row of `current`."""
        self._choices = choices
        self._searched = [f"{choice.label} {choice.keywords}".casefold() for choice in choices]
        self._widths = _measure_cells(choices)
        self._texts.clear()
        self._apply_filter(current)

    async def _replace_choices(self, reload: Awaitable[Sequence[Choice[T]]]) -> None:
        choices = await reload
        chosen = self._get_chosen()
        self._set_choices(choices, chosen.value if chosen else None)
        self._app.invalidate()

    def _apply_filter(self, current: T | None = None) -> None:
        """Find the choices that have all typed words, in any order."""
        words = self._filter.text.casefold().split()
        self._found = []
        for index, text in enumerate(self._searched):
            if all(word in text for word in words):
                self._found.append(index)
        self._index = 0 if current is None else self._find_row(current)
        self._start_preview()

    def _find_row(self, value: T) -> int:
        """Return the row of a value, or the first row."""
        for row, index in enumerate(self._found):
            if self._choices[index].value == value:
                return row
        return 0

    def _get_chosen(self) -> Choice[T] | None:
        if not self._found:
            return None
        index = self._found[self._index]
        return self._choices[index]

    def _move(self, rows: int) -> None:
        last = len(self._found) - 1
        self._index = max(0, min(self._index + rows, last))
        self._start_preview()

    # --- preview

    def _start_preview(self) -> None:
        if self._loading:
            self._loading.cancel()
            self._loading = None
        if self._preview and self._found and self._found[self._index] not in self._texts:
            self._loading = asyncio.ensure_future(self._load_preview(self._preview))

    async def _load_preview(self, preview: Callable[[T], Awaitable[str]]) -> None:
        await asyncio.sleep(_PREVIEW_DELAY_S)
        index = self._found[self._index]
        try:
            self._texts[index] = await preview(self._choices[index].value)
        except Exception as error:  # a preview must not end the choice
            self._texts[index] = f"no preview: {error}"
        self._app.invalidate()

    # --- screen

    def _make_layout(self) -> layout.Layout:
        title = layout.FormattedTextControl(self._render_title)
        field = layout.BufferControl(self._filter)
        rows = layout.FormattedTextControl(self._render_rows)
        rule = layout.Window(char="─", height=1, style="dim")
        preview = layout.FormattedTextControl(self._render_preview)
        keys = layout.FormattedTextControl(self._render_keys)
        preview_rows = layout.HSplit([rule, layout.Window(preview, height=PREVIEW_ROWS, wrap_lines=True)])
        containers: list[layout.Container] = [
            layout.Window(title, height=1),
            layout.Window(field, height=1, get_line_prefix=lambda *_: [("ansicyan", "> ")]),
            layout.Window(rows, height=lambda: self._row_count),
            layout.ConditionalContainer(preview_rows, Condition(lambda: self._has_preview)),
            layout.Window(keys, height=1),
        ]
        return layout.Layout(layout.HSplit(containers), focused_element=field)

    @property
    def _room(self) -> int:
        """The rows for choices and preview together."""
        return max(self._app.output.get_size().rows - 4, 1)

    @property
    def _has_preview(self) -> bool:
        return self._preview is not None and self._room >= PREVIEW_ROWS + 4

    @property
    def _row_count(self) -> int:
        room = self._room
        if self._has_preview:
            room -= PREVIEW_ROWS + 1
        return max(1, min(len(self._choices), room, MAX_ROWS))

    @property
    def _columns(self) -> int:
        return self._app.output.get_size().columns

    def _render_title(self) -> StyleAndTextTuples:
        count = f"{len(self._found):,} of {len(self._choices):,}"
        title = to_one_line(self._title, self._columns - len(count) - _GAP - 1)
        return [("bold", title), ("", " " * _GAP), ("dim", count)]

    def _render_keys(self) -> StyleAndTextTuples:
        below = len(self._found) - self._first - self._row_count
        text = "↑↓ move · type to filter · Enter chooses · Esc cancels"
        if below > 0:
            text = f"{below:,} more below · {text}"
        return [("dim", to_one_line(text, self._columns - 1))]

    def _render_rows(self) -> StyleAndTextTuples:
        """Return the visible rows; the chosen one stays in view."""
        if not self._found:
            return [("dim", "  nothing matches; Backspace shows more")]
        self._first = self._find_first_row()
        label_width, *cell_widths = self._fit_widths()
        fragments: StyleAndTextTuples = []
        visible = self._found[self._first : self._first + self._row_count]
        for row, index in enumerate(visible, self._first):
            choice = self._choices[index]
            label = _pad(choice.label, label_width)
            cells = _join_cells(choice.cells, cell_widths)
            if row == self._index:
                fragments += [("bold ansicyan", f"▸ {label}"), ("bold ansicyan", cells)]
            else:
                fragments += [("", f"  {label}"), ("dim", cells)]
            fragments.append(("", "\n"))
        return fragments[:-1]

    def _find_first_row(self) -> int:
        """Return the first visible row: the one of before, unless the chosen row is out of view then."""
        count = self._row_count
        first = max(self._first, self._index - count + 1)
        first = min(first, self._index, len(self._found) - count)
        return max(first, 0)

    def _fit_widths(self) -> list[int]:
        """Return the columns of the label and of the cells that leave it enough room."""
        room = self._columns - 3
        widths: list[int] = []
        for width in self._widths:
            if room - width - _GAP < _MIN_LABEL:
                break
            room -= width + _GAP
            widths.append(width)
        return [max(room, 1), *widths]

    def _render_preview(self) -> StyleAndTextTuples:
        if not self._found:
            return []
        index = self._found[self._index]
        text = self._texts.get(index, "…")
        return [("", escape_controls(text[:10_000]).expandtabs(4))]

    # --- keys

    def _make_key_bindings(self) -> KeyBindings:
        keys = KeyBindings()
        for name, rows in _ROWS_BY_KEY.items():
            keys.add(name)(lambda _, rows=rows: self._move(rows))
        keys.add("pageup")(lambda _: self._move(-self._row_count))
        keys.add("pagedown")(lambda _: self._move(self._row_count))
        keys.add("enter")(lambda _: self._accept())
        for name in ("escape", "c-c", "c-d"):
            keys.add(name, eager=True)(lambda _: self._exit(None))
        keys.add("c-z")(lambda _: None)  # else it would be typed
        return keys

    def _accept(self) -> None:
        chosen = self._get_chosen()
        if chosen:
            self._exit(chosen.value)

    def _exit(self, value: T | None) -> None:
        if self._app.future and not self._app.future.done():  # keys can follow the first Enter
            self._app.exit(result=value)


def _measure_cells(choices: Sequence[Choice[Any]]) -> list[int]:
    """Return the columns that the first cells of all choices need, those that the second ones need, and so on."""
    cells = [choice.cells for choice in choices]
    columns = list(zip_longest(*cells, fillvalue=""))
    limit = _MAX_CELL if len(columns) > 1 else _MAX_ONLY_CELL
    widths = []
    for column in columns:
        width = max(map(measure_width, column))
        widths.append(min(width, limit))
    return widths


def _join_cells(cells: Sequence[str], widths: Sequence[int]) -> str:
    """Return the cells that have a width, each behind a gap."""
    text = ""
    for cell, width in zip(cells, widths, strict=False):
        text += " " * _GAP + _pad(cell, width)
    return text


def _pad(text: str, width: int) -> str:
    """Return the text as one line of exactly `width` columns."""
    line = to_one_line(text, width)
    return line + " " * (width - measure_width(line))
