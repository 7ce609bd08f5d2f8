"""`/context`: one bar, and what fills it."""

from io import StringIO

from rich.console import Console

from goose_like.agent.build import build_exchange
from goose_like.agent.slash_context import SlashContext
from goose_like.cli.chat.context_command import draw_context
from goose_like.config.profile import ModelChoice, Profile, ToolkitChoice
from goose_like.core.notifier import Recorder

SKILL = "---\nname: words\ndescription: Count the words of a text.\n---\nCount them.\n"


async def draw(tmp_path, monkeypatch, window: int | None) -> list[str]:
    (tmp_path / "script").write_text("- hello\n")
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    (work / "AGENTS.md").write_text("Use tabs.\n" * 40)
    folder = tmp_path / "home" / "config" / "skills" / "words"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(SKILL)
    model = ModelChoice(model=f"scripted:{tmp_path}/script", window=window)
    toolkits = (ToolkitChoice(name="developer"), ToolkitChoice(name="skills"))
    profile = Profile(name="mine", processor=model, toolkits=toolkits, sandbox="full")
    console = Console(width=80, record=True, markup=False, file=StringIO())
    async with build_exchange(profile, Recorder(), folder=work) as exchange:
        await exchange.reply("go")
        draw_context(SlashContext(exchange, profile, {}, console.print), "")
    return [" ".join(line.split()) for line in console.export_text().splitlines()]


async def test_the_bar_shows_each_kind_and_what_is_free(home, tmp_path, monkeypatch):
    bar, *rows, note = await draw(tmp_path, monkeypatch, 200_000)
    kinds = ["system prompt", "tools", "instruction files", "skills", "reminders", "your messages", "answers and calls"]
    assert [row.split(" ", 1)[1].rsplit(" ", 2)[0] for row in rows] == [*kinds, "free"]
    assert len(bar) == 60
    assert bar.count("█") >= len(kinds)  # each has a cell, although all together are a few hundredths
    figures = [int(row.rsplit(" ", 2)[1].replace(",", "")) for row in rows]
    assert sum(figures) == 200_000
    assert figures[2] > 90
    assert note.endswith("tokens; the window has 200,000")


async def test_a_full_window_has_a_full_bar(home, tmp_path, monkeypatch):
    bar, *_ = await draw(tmp_path, monkeypatch, 1_000)
    assert bar == "█" * 60


async def test_without_a_size_the_bar_is_what_is_used(home, tmp_path, monkeypatch):
    bar, *rows, note = await draw(tmp_path, monkeypatch, None)
    assert "█" in bar
    assert not [row for row in rows if "free" in row]
    assert note.endswith("the size of the window is unknown")
