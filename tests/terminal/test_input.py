"""The prompt of a session: what one frame draws."""

import itertools

from prompt_toolkit.application.current import set_app
from prompt_toolkit.input import DummyInput
from prompt_toolkit.output import DummyOutput

from goose_like.terminal import input as module


def test_one_frame_renders_the_live_rows_once(tmp_path, monkeypatch):
    """The terminal can change its size between two reads of it. The rows and the cursor of a frame must fit."""
    monkeypatch.setattr(module.PromptOutput, "open", DummyOutput)
    monkeypatch.setattr(module, "create_input", DummyInput)
    prompt = module.Prompt(tmp_path / "history")
    counts = itertools.count(1)
    prompt.live = lambda width: "\n" * next(counts)
    live = next(each for each in prompt.app.layout.find_all_controls() if each != prompt.app.layout.current_control)
    with set_app(prompt.app):
        for frame in (1, 2):
            prompt.app.render_counter = frame
            content = live.create_content(80, 24)
            assert (content.cursor_position.y, content.line_count) == (frame, frame + 1)
