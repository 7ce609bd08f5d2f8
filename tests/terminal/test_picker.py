"""Tests of the list to choose from, with typed keys and without a screen."""

import asyncio
from contextlib import contextmanager

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.data_structures import Size
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from goose_like.terminal.picker import Choice, pick

UP, DOWN, PAGE_DOWN, END, ESC, CTRL_C = "\x1b[A", "\x1b[B", "\x1b[6~", "\x1b[F", "\x1b", "\x03"
PLANETS = [
    Choice(name, name, (size,), size) for name, size in (("Mars", "small"), ("Earth", "small"), ("Saturn", "large"))
]


class SizedOutput(DummyOutput):
    """Output that keeps only what is written."""

    def __init__(self, columns, rows):
        self.size, self.written = Size(rows, columns), ""

    def get_size(self):
        return self.size

    def write(self, data):
        self.written += data


@contextmanager
def terminal(keys, columns=80, rows=24):
    with create_pipe_input() as pipe, create_app_session(pipe, SizedOutput(columns, rows)) as session:
        pipe.send_text(keys)
        yield pipe, session.output


def pick_with(keys, choices=PLANETS, **options):
    with terminal(keys):
        return asyncio.run(pick("Choose a planet", choices, **options))


@pytest.mark.parametrize(
    ("keys", "chosen"),
    [
        ("\r", "Mars"),
        (DOWN + "\r", "Earth"),
        (DOWN + DOWN + DOWN + UP + "\r", "Earth"),
        (END + "\r", "Saturn"),
        (UP + "\r", "Mars"),
        ("smal ea\r", "Earth"),
        ("LARGE\r", "Saturn"),
        ("pluto\r" + "\x7f" * 5 + DOWN + "\r", "Earth"),
        (ESC, None),
        ("mars" + CTRL_C, None),
        ("\r\r\r", "Mars"),
    ],
)
def test_keys_choose_filter_and_cancel(keys, chosen):
    assert pick_with(keys) == chosen


async def wait_for_text(output, text):
    async with asyncio.timeout(60):
        while text not in output.written:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


def test_the_list_begins_at_the_current_choice():
    assert pick_with("\r", current="Saturn") == "Saturn"
    assert pick_with(UP + "\r", current="Saturn") == "Earth"


def test_a_closed_terminal_cancels():
    with terminal("") as (pipe, _):
        pipe.close()
        assert asyncio.run(pick("Choose", PLANETS)) is None


def test_pages_of_a_long_list():
    choices = [Choice(number, f"row {number}") for number in range(10_000)]
    assert pick_with(PAGE_DOWN + DOWN + "\r", choices) == 16
    assert pick_with("7 row 99\r", choices) == 799


@pytest.mark.parametrize(("columns", "rows"), [(80, 24), (120, 40), (20, 5), (200, 3)])
def test_wide_and_control_characters_stay_within_the_terminal(columns, rows):
    async def describe(value):
        return f"preview of {value}\x1b[31m"

    async def run(pipe):
        choosing = asyncio.create_task(pick("Sessions 会議", choices, preview=describe))
        if rows >= 24:
            await wait_for_text(output, "preview of 0")
        pipe.send_text(DOWN + "\r")
        return await choosing

    choices = [Choice(n, "会議の議事録 " * 9 + "\x1b[2J\n\u202e", ("2 hours", "~/漢字", "x" * 90)) for n in range(30)]
    with terminal("", columns, rows) as (pipe, output):
        assert asyncio.run(run(pipe)) == 1
    assert not {"\x1b", "\u202e"} & set(output.written)
    assert ("preview of 0\\x1b[31m" in output.written) is (rows >= 24)
    assert ("2 hours" in output.written) is (columns >= 80 and rows > 3)


def test_new_choices_keep_the_chosen_row():
    loaded = asyncio.Event()

    async def load():
        loaded.set()
        return [Choice("Mercury", "Mercury"), *PLANETS]

    async def run(pipe):
        choosing = asyncio.create_task(pick("Choose", PLANETS, current="Earth", reload=load))
        await loaded.wait()
        await asyncio.sleep(0.05)
        pipe.send_text(UP + UP + "\r")
        return await choosing

    with terminal("") as (pipe, _):
        assert asyncio.run(run(pipe)) == "Mercury"


def test_a_preview_that_fails_says_why():
    async def fail(value):
        raise ValueError("the file is gone")

    async def run(pipe):
        choosing = asyncio.create_task(pick("Choose", PLANETS, preview=fail))
        await wait_for_text(output, "no preview")
        pipe.send_text("\r")
        return await choosing

    with terminal("") as (pipe, output):
        assert asyncio.run(run(pipe)) == "Mars"
    assert "no preview: the file is gone" in output.written


def test_a_choice_does_not_wait_for_new_choices(capsys, caplog):
    async def load():
        await asyncio.sleep(1000)
        return PLANETS

    assert pick_with(DOWN + "\r", reload=load) == "Earth"
    assert capsys.readouterr().err + caplog.text == ""
