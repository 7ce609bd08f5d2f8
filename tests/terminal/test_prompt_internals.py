"""Tests of the private names of prompt_toolkit, with a real application: a new version may change them."""

import asyncio
from contextlib import asynccontextmanager

from prompt_toolkit.application import Application, in_terminal
from prompt_toolkit.application.current import set_app
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.layout import Layout, Window
from prompt_toolkit.output import DummyOutput

from goose_like.terminal.prompt_internals import is_suspended, redraw_now, wait_until_resumed


@asynccontextmanager
async def running_app():
    with create_pipe_input() as keys:
        app = Application(layout=Layout(Window()), input=keys, output=DummyOutput())
        drawn = asyncio.Event()
        app.after_render += lambda _: drawn.set()
        run = asyncio.create_task(app.run_async())
        await drawn.wait()
        with set_app(app):
            yield app
        app.exit()
        await run


async def test_an_editor_suspends_the_prompt_until_it_ends():
    async with running_app() as app:
        assert not is_suspended(app)
        await wait_until_resumed(app)
        async with in_terminal():
            assert is_suspended(app)
            waiting = asyncio.create_task(wait_until_resumed(app))
            done, _ = await asyncio.wait([waiting], timeout=0.05)
            assert not done
        await asyncio.wait_for(waiting, 60)
        assert not is_suspended(app)


async def test_the_prompt_is_drawn_before_the_call_returns():
    async with running_app() as app:
        count = app.render_counter
        redraw_now(app)
        assert app.render_counter == count + 1


async def test_a_suspended_prompt_is_not_drawn():
    async with running_app() as app, in_terminal():
        count = app.render_counter
        redraw_now(app)
        assert app.render_counter == count
