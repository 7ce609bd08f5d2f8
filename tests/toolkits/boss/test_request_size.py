"""Requests of a boss keep their size while log and library grow."""

from statistics import mean

from goose_like.sessions.session import Session
from tests.toolkits.boss.long_boss import PLAN, run_rounds


async def test_request_size_is_bounded(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plan.md").write_text(PLAN)
    session = Session.create("long")
    provider, history = await run_rounds(90, session)
    session.close()
    memories = [len(request.messages[-1].text.encode()) for request in provider.requests]
    assert max(memories) <= 1_600 * 4 + 500, "the budget of the memory, and titles"
    sizes = [len(body) for body in provider.bodies]
    assert mean(sizes[70:90]) <= 1.2 * mean(sizes[10:30])
    assert all(sum(message.role == "assistant" for message in each.messages) <= 3 for each in provider.requests)
    assert sum(len(message.model_dump_json()) for message in history.messages) > 5 * max(sizes)
    library = (tmp_path / "library.py").read_text()
    assert library.count("def part_") == 23
    shown = provider.requests[-1].messages[-1].text
    assert "part_0" in shown
    assert "part_22" in shown
    assert "return [line" not in shown, "signatures and docstrings, no code"
    assert (tmp_path / "logs.md").read_text().count("\n- ") == 90
