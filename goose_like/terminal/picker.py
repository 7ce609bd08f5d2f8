"""A list to choose from with the arrow keys, which shrinks while the person types. Import this file on first use."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
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
        self._index = self._first = 0
        self._filter = Buffer(multiline=False, on_text_changed=lambda _: self._apply_filter())
        self._set_choices(choices, current)
        running = get_app_or_none()
        self._app: Application[T | None] = Application(
            layout=self._make_layout(),
            key_bindings=self._make_key_bindings(),
            erase_when_done=True,
            input=running.input if running else get_app_session().input,
            output=running.output if running else get_app_session().output,
            color_depth=ColorDepth.from_env(),
            terminal_size_polling_interval=None,
        )
        self._app.ttimeoutlen = 0.05

    async def run(self, reload: Callable[[], Awaitable[Sequence[Choice[T]]]] | None) -> T | None:
        """Show the list until the person chooses or cancels."""
        reloading = asyncio.ensure_future(self._replace_choices(reload())) if reload else None
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
        self._searched = [f"{one.label} {one.keywords}".casefold() for one in choices]
        count = max((len(one.cells) for one in choices), default=0)
        limit = _MAX_CELL if count > 1 else _MAX_ONLY_CELL
        self._widths = [
            min(max(measure_width(one.cells[cell]) for one in choices if cell < len(one.cells)), limit)
            for cell in range(count)
        ]
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
        self._found = [index for index, text in enumerate(self._searched) if all(word in text for word in words)]
        rows = (row for row, index in enumerate(self._found) if self._choices[index].value == current)
        self._index = 0 if current is None else next(rows, 0)
        self._start_preview()

    def _get_chosen(self) -> Choice[T] | None:
        return self._choices[self._found[self._index]] if self._found else None

    def _move(self, rows: int) -> None:
        self._index = max(0, min(self._index + rows, len(self._found) - 1))
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
        field = layout.BufferControl(self._filter)
        has_preview = Condition(lambda: self._has_preview)
        preview = layout.HSplit(
            [
                layout.Window(char="─", height=1, style="dim"),
                layout.Window(layout.FormattedTextControl(self._render_preview), height=PREVIEW_ROWS, wrap_lines=True),
            ]
        )
        rows: list[layout.Container] = [
            layout.Window(layout.FormattedTextControl(self._render_title), height=1),
            layout.Window(field, height=1, get_line_prefix=lambda *_: [("ansicyan", "> ")]),
            layout.Window(layout.FormattedTextControl(self._render_rows), height=lambda: self._row_count),
            layout.ConditionalContainer(preview, has_preview),
            layout.Window(layout.FormattedTextControl(self._render_keys), height=1),
        ]
        return layout.Layout(layout.HSplit(rows), focused_element=field)

    @property
    def _room(self) -> int:
        """The rows for choices and preview together."""
        return max(self._app.output.get_size().rows - 4, 1)

    @property
    def _has_preview(self) -> bool:
        return self._preview is not None and self._room >= PREVIEW_ROWS + 4

    @property
    def _row_count(self) -> int:
        room = self._room - (PREVIEW_ROWS + 1 if self._has_preview else 0)
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
        more = f"{below:,} more below · " if below > 0 else ""
        return [
            ("dim", to_one_line(f"{more}↑↓ move · type to filter · Enter chooses · Esc cancels", self._columns - 1))
        ]

    def _render_rows(self) -> StyleAndTextTuples:
        """Return the visible rows; the chosen one stays in view."""
        if not self._found:
            return [("dim", "  nothing matches; Backspace shows more")]
        count = self._row_count
        self._first = max(0, min(max(self._first, self._index - count + 1), self._index, len(self._found) - count))
        label_width, *cell_widths = self._fit_widths()
        fragments: StyleAndTextTuples = []
        for row in range(self._first, min(self._first + count, len(self._found))):
            choice, is_chosen = self._choices[self._found[row]], row == self._index
            style = "bold ansicyan" if is_chosen else ""
            cells = zip(choice.cells, cell_widths, strict=False)
            fragments += [
                (style, ("▸ " if is_chosen else "  ") + _pad(choice.label, label_width)),
                (style or "dim", "".join(" " * _GAP + _pad(cell, width) for cell, width in cells)),
                ("", "\n"),
            ]
        return fragments[:-1]

    def _fit_widths(self) -> list[int]:
        """Return the columns of the label and of the cells that leave it enough room."""
        room, widths = self._columns - 3, list[int]()
        for width in self._widths:
            if room - width - _GAP < _MIN_LABEL:
                break
            room -= width + _GAP
            widths.append(width)
        return [max(room, 1), *widths]

    def _render_preview(self) -> StyleAndTextTuples:
        if not self._found:
            return []
        text = self._texts.get(self._found[self._index], "…")
        return [("", escape_controls(text[:10_000]).expandtabs(4))]

    # --- keys

    def _make_key_bindings(self) -> KeyBindings:
        keys = KeyBindings()
        for name, rows in (("up", -1), ("c-p", -1), ("down", 1), ("c-n", 1), ("home", -(10**9)), ("end", 10**9)):
            keys.add(name)(lambda _, rows=rows: self._move(rows))
        keys.add("pageup")(lambda _: self._move(-self._row_count))
        keys.add("pagedown")(lambda _: self._move(self._row_count))
        keys.add("enter")(lambda _: self._accept())
        for name in ("escape", "c-c", "c-d"):
            keys.add(name, eager=True)(lambda _: self._exit(None))
        keys.add("c-z")(lambda _: None)  # else it would be typed
        return keys

    def _accept(self) -> None:
        if chosen := self._get_chosen():
            self._exit(chosen.value)

    def _exit(self, value: T | None) -> None:
        if self._app.future and not self._app.future.done():  # keys can follow the first Enter
            self._app.exit(result=value)


def _pad(text: str, width: int) -> str:
    """Return the text as one line of exactly `width` columns."""
    line = to_one_line(text, width)
    return line + " " * (width - measure_width(line))
