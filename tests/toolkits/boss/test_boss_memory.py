"""The memory of a boss at work, and other people who edit it."""

from typing import Any, ClassVar

import pytest
from goose_like_toolkits.boss.memory.files import MAX_BYTES

from goose_like.core.errors import ProfileError
from goose_like.core.message import Message
from goose_like.providers.base import Request
from tests.toolkits.boss.boss_harness import (
    FILES,
    EchoFlow,
    act,
    finish,
    make_inner_branch,
    make_spec,
    run_boss,
)


async def test_person_edits_the_plan(root):
    plan = root / "plan.md"

    def edit(_: Request) -> Message:
        plan.write_text(plan.read_text().replace("- [ ] two\n", "- [ ] two, but in blue\n- [ ] three\n"))
        return act("update_plan", done=[2])

    spec = make_spec("update_plan") | {"planner": {}}
    script = [
        "- [ ] one\n- [ ] two\n",
        act("update_plan", done=[1]),
        edit,
        act("update_plan", done=[2]),
        finish(),
    ]
    place, _ = await run_boss(spec, script)
    assert plan.read_text() == "- [x] one\n- [x] two, but in blue\n- [ ] three\n"
    assert place.results[1].output.startswith("somebody changed the plan meanwhile")
    [reminder] = place.reminders
    assert reminder.startswith("plan.md: changed by somebody else:\n")
    assert "-- [ ] two\n+- [ ] two, but in blue\n+- [ ] three" in reminder
    assert reminder in [message.text for message in place.provider.requests[3].messages]


async def test_unreadable_memory_is_reported_and_written_later(root):
    plan, logs = root / "plan.md", root / "logs.md"

    def spoil(_: Request) -> Message:
        plan.write_bytes(b"- [ ] \xff\n")
        logs.rename(root / "away.md")
        logs.mkdir()
        return act("echo", n=1)

    def mend(_: Request) -> Message:
        plan.write_text("- [ ] one\n")
        logs.rmdir()
        (root / "away.md").rename(logs)
        return act("echo", n=3)

    spec = make_spec() | {"branches": {"echo": {"parameters": ["n"]}}}
    script = [act("echo", n=0), spoil, act("echo", n=2), mend, act("echo", n=4), finish()]
    place, outcome = await run_boss(spec, script, flows={"echo": EchoFlow()})
    assert outcome.status == "finished"
    assert "memory: has a problem: the memory file 'logs'" in place.reminders[0]
    assert logs.read_text() == "# the goal\n" + "".join(f"- {n} · echo: echoed 1\n" for n in range(1, 6)) + (
        "- 6 · finish: said all done\n"
    )


async def test_unwritable_log_does_not_hide_the_plan(root):
    def spoil(_: Request) -> Message:
        (root / "logs.md").rename(root / "away.md")
        (root / "logs.md").mkdir()
        return act("echo", n=1)

    def mend(_: Request) -> Message:
        (root / "logs.md").rmdir()
        (root / "logs.md").write_bytes(b"x" * (MAX_BYTES - 9) + b"\n")
        (root / "plan.md").write_text("- [ ] seen\n")
        return act("echo", n=2)

    spec = make_spec() | {"branches": {"echo": {"parameters": ["n"]}}}
    place, _ = await run_boss(spec, [spoil, mend, finish()], flows={"echo": EchoFlow()})
    assert "it would have 4,000," in place.reminders[-1]
    assert "- [ ] seen" in place.memories[2]


async def test_failed_log_flow_gets_its_entries_again(root):
    class Writing:
        lines: ClassVar[list[str]] = []
        fails = iter([False, True, True, False, False])

        def run(self, input_data: dict[str, Any]) -> None:
            if next(self.fails, False):
                raise OSError("no room")
            self.lines.append(input_data["logs"])

    spec = make_spec() | {"branches": {"echo": {"parameters": ["n"]}}}
    script = [*(act("echo", n=n) for n in range(4)), finish()]
    place, _ = await run_boss(spec, script, flows={"echo": EchoFlow()}, parts={"MemoryWriting": Writing()})
    assert Writing.lines == [f"- {n} · echo: echoed 1" for n in range(1, 5)]
    assert "no room" in place.reminders[0]


@pytest.mark.parametrize("name", ["plan", "logs"])
async def test_bosses_cannot_share_a_plan_or_a_log(root, name):
    spec = make_spec() | {"branches": {"inner": make_inner_branch()}}
    spec["branches"]["inner"]["boss"]["memory_files"] = {"plan": "a.md", "logs": "b.md", name: f"./{FILES[name]}"}
    with pytest.raises(
        ProfileError, match=f"'{name}' of the boss 'boss' and '{name}' of the boss 'inner' are both '{FILES[name]}'"
    ):
        await run_boss(spec, [])


async def test_one_file_cannot_have_two_names(root):
    with pytest.raises(ProfileError, match="'plan' of the boss 'boss' and 'logs' of the boss 'boss' are both"):
        await run_boss(make_spec(memory_files={"plan": "a.md", "logs": "./a.md"}), [])
