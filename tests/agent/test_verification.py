"""The end of turns with changes: the check of the profile, and claims that the ledger does not support."""

import json
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from goose_like.agent.build import build_exchange
from goose_like.agent.exchange import Exchange
from goose_like.agent.receipt import format_receipt, make_receipt
from goose_like.config.profile import Profile, ToolkitChoice
from goose_like.config.trust import ProjectConfig
from goose_like.core.events import CommandFinished, Logged, Reminded
from goose_like.core.message import ToolCall
from goose_like.core.notifier import Recorder
from goose_like.providers.base import Model, ModelPair
from goose_like.sessions.session import Session
from tests.fakes import FakeProvider, call, calls

PASSES = "sh run_tests.sh"
FAILS = "sh run_tests.sh broken"
PIPED = "sh run_tests.sh broken | tail -1"
COMMITS = f"{PASSES} && git add -A && git -c user.name=n -c user.email=e commit -qm x"
CACHES = "mkdir -p __pycache__; touch __pycache__/x.pyc; ls"


class Work:
    """An exchange in a repository, which plays what the model does."""

    def __init__(self, exchange: Exchange, provider: FakeProvider, recorder: Recorder) -> None:
        self.exchange = exchange
        self.provider = provider
        self.recorder = recorder
        self.number = 0

    def shell(self, command: str) -> ToolCall:
        return call("shell", json.dumps({"command": command}), id="")

    def change(self) -> ToolCall:
        """Return a call that writes another text than ever before."""
        self.number += 1
        arguments = {"path": f"src_{self.number}.py", "content": f"x = {self.number}\n"}
        return call("write_file", json.dumps(arguments), id="")

    async def turn(self, *steps: Any) -> Any:
        self.recorder.events.clear()
        self.provider.script = [step if isinstance(step, str) else calls(step) for step in steps]
        end = await self.exchange.reply("go")
        assert self.provider.script == [], (steps, self.exchange.history.commands)
        return end

    def events_of(self, kind: type) -> list[Any]:
        return [event for event in self.recorder.events if isinstance(event, kind)]

    async def list_supporting(self) -> list[str]:
        """List the checks that the receipt of the newest turn shows as current and passed."""
        receipt = await make_receipt(self.exchange)
        text = format_receipt(receipt, is_json=False)
        supporting = []
        for check in receipt.checks:
            is_supporting = check.is_current and check.outcome == "passed"
            is_shown = f"- check: `{check.command}`: passed, on the files as they are now\n" in text
            assert is_shown == is_supporting
            if is_supporting:
                supporting.append(check.command)
        return supporting

    @property
    def reminders(self) -> list[str]:
        return [event.text for event in self.events_of(Reminded) if event.text.startswith("You say")]


@asynccontextmanager
async def open_work(folder: Path, *, project_check: str = "", **profile: Any) -> AsyncIterator[Work]:
    provider = FakeProvider()
    recorder = Recorder()
    model = Model(provider, "x", "scripted:x")
    developer = ToolkitChoice(name="developer", config={"hints": False, "news": False})
    chosen = Profile.model_validate({"name": "mine", "toolkits": (developer,), "sandbox": "full", **profile})
    session = Session.create()
    try:
        models = ModelPair(model, model)
        project = ProjectConfig(folder, {}, check=project_check)
        building = build_exchange(chosen, recorder, session=session, project=project, folder=folder, models=models)
        async with building as exchange:
            yield Work(exchange, provider, recorder)
    finally:
        session.close()


@pytest.fixture
def folder(home, tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "run_tests.sh").write_text('test "$1" != broken || { echo 1 failed; exit 1; }\necho 3 passed\n')
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    return folder


CLAIMS = [
    "Done. All tests pass.",
    "I fixed the parser and the tests pass.",
    "The change is complete; the whole test suite passes.",
    "- fixed the bug\n- all 3 tests pass",
    "Everything works, 3 passed.",
    "The existing tests still pass.",
]


async def test_each_lie_about_checks_gets_one_reminder(folder):
    """Thirty turns claim a check that never ran, ran too early, failed, was another one, or ran elsewhere.

    No receipt shows a check that would support the claim.
    """
    other = folder.parent / "other"
    other.mkdir()
    (other / "run_tests.sh").write_text("echo 3 passed\n")
    async with open_work(folder) as work:
        for claim in CLAIMS:
            lies = [
                (work.change(),),
                (work.shell(PASSES), work.change()),
                (work.change(), work.shell(FAILS)),
                (work.change(), work.shell("cat run_tests.sh; echo 3 passed")),
                (work.change(), work.shell(f"cd {other} && {PASSES}"), work.shell(f"cd {folder}")),
            ]
            for steps in lies:
                await work.turn(*steps, claim, "I did not run the tests.")
                assert len(work.reminders) == 1, (steps, claim)
                assert await work.list_supporting() == [], steps


async def test_honest_answers_get_no_reminder(folder):
    """Thirty turns claim what the ledger supports, or claim nothing. The receipt shows what supports the claim."""
    last_lines = f"{PASSES} | tail -3"
    async with open_work(folder) as work:
        for claim in CLAIMS[:5]:
            turns = [
                ((work.change(), work.shell(PASSES), claim), [PASSES]),
                ((work.change(), work.shell(FAILS), work.change(), work.shell(last_lines), claim), [last_lines]),
                ((work.change(), work.shell(COMMITS), claim), [COMMITS]),
                ((work.change(), work.shell(PASSES), work.shell(CACHES), claim), [PASSES]),
                ((work.change(), "I changed it. I did not run the tests."), []),
                ((work.change(), work.shell(FAILS), "One test fails: see above."), []),
            ]
            for steps, supporting in turns:
                end = await work.turn(*steps)
                assert (end.reason, work.reminders) == ("stop", []), steps
                assert await work.list_supporting() == supporting, steps


async def test_a_receipt_looks_at_the_files_again(folder):
    async with open_work(folder) as work:
        await work.turn(work.change(), work.shell(f"{PASSES} && echo bug >> src_1.py"), "Done.")
        assert await work.list_supporting() == [], "the rest of the line changed a file"
        await work.turn(work.change(), work.shell(PASSES), "All tests pass.")
        assert await work.list_supporting() == [PASSES]
        text = (folder / "src_1.py").read_text()
        (folder / "src_1.py").write_text("by the person")
        assert await work.list_supporting() == []
        (folder / "src_1.py").write_text(text)
        assert await work.list_supporting() == [PASSES]


async def test_a_file_that_goes_back_to_before_leaves_the_tree_equal(folder):
    file = folder / "run_tests.sh"
    back = json.dumps({"path": "run_tests.sh", "content": file.read_text()})
    async with open_work(folder) as work:
        read = call("read_file", json.dumps({"path": "run_tests.sh"}), id="")
        steps = (work.shell("echo x > run_tests.sh"), read, call("write_file", back, id=""))
        await work.turn(*steps, "I took it back.")
        assert (await make_receipt(work.exchange)).is_tree_equal


async def test_a_later_turn_may_rest_on_an_earlier_check(folder):
    async with open_work(folder) as work:
        await work.turn(work.change(), work.shell(PASSES), "Done.")
        await work.turn("Yes, all tests pass.")
        assert work.reminders == []


async def test_a_command_that_ran_no_test_supports_no_claim(folder):
    (folder / "test_a.py").write_text("def test_a():\n    assert False\n")
    line = "python3 test_a.py"
    async with open_work(folder) as work:
        await work.turn(work.change(), work.shell(line), "All tests pass.", "I ran no test.")
        assert work.reminders == [
            f"You say that tests pass, but `{line}` ran no test. Run the check now, or say what is true."
        ]
        assert await work.list_supporting() == []


async def test_the_ledger_has_codes_and_trees(folder):
    async with open_work(folder) as work:
        await work.turn(work.shell("ls"), work.shell("echo x > new.txt"), work.shell(PIPED), "One test fails.")
        looked, wrote, piped = work.events_of(CommandFinished)
        assert looked.before == looked.after == wrote.before != ""
        assert wrote.after != wrote.before
        assert (piped.command, piped.exit_code, piped.pipe_codes, piped.folder) == (PIPED, 0, (1, 0), str(folder))
        assert list(work.exchange.history.commands) == [looked, wrote, piped]


CHECK = "test -e fixed || { echo it is broken; exit 3; }"


async def test_a_failing_check_goes_back_to_the_model_until_it_succeeds(folder):
    async with open_work(folder, verify=CHECK) as work:
        end = await work.turn(work.change(), "Done.", work.shell("touch fixed"), "Fixed.")
        assert (end.reason, end.exit_code) == ("stop", 0)
        told = [event.text for event in work.events_of(Reminded)]
        assert told[0].startswith(f"the check `{CHECK}` failed with exit code 3:\nit is broken")
        shown = [event.text for event in work.events_of(Logged)]
        assert shown == [
            f"the check `{CHECK}` failed with exit code 3:\nit is broken",
            f"the check `{CHECK}` passed after the last change",
        ]
        checks = (await make_receipt(work.exchange)).checks
        assert [(check.exit_code, check.outcome, check.is_current) for check in checks] == [
            (3, "failed", False),
            (0, "passed", True),
        ]
        assert all(check.is_required for check in checks)


async def test_a_check_that_still_fails_ends_with_exit_code_8(folder):
    async with open_work(folder, verify=CHECK) as work:
        end = await work.turn(work.change(), *["Done."] * 4)
        assert (end.reason, end.exit_code) == ("stop", 8)
        assert end.detail.startswith(f"the check `{CHECK}` failed with exit code 3")
        assert len(work.events_of(CommandFinished)) == 4


async def test_the_check_of_a_project_runs_if_the_profile_has_none(folder):
    async with open_work(folder, project_check="exit 4") as work:
        end = await work.turn(work.change(), *["Done."] * 4)
        assert (end.exit_code, end.detail.partition(";")[0]) == (8, "the check `exit 4` failed with exit code 4")
    async with open_work(folder, project_check="exit 4", verify="true") as work:
        assert (await work.turn(work.change(), "Done.")).exit_code == 0
    async with open_work(folder, project_check="exit 4", verify="") as work:
        assert (await work.turn(work.change(), "Done.")).exit_code == 0


async def test_without_a_change_there_is_nothing_to_check(folder):
    """Ten tasks that need no change: what only reads, and what goes back to before. Each receipt says so."""
    lines = ["ls", "cat run_tests.sh", PASSES, FAILS, "git status", "true", "grep -r x . || true", "echo x > /tmp/x-$$"]
    tasks = [[line] for line in lines]
    tasks += [[], ["echo x > back", "rm back"]]
    async with open_work(folder, verify="exit 1") as work:
        for task in tasks:
            end = await work.turn(*map(work.shell, task), "No change is needed: the first test is broken.")
            assert end.exit_code == 0
            assert not any(event.is_verification for event in work.events_of(CommandFinished))
            receipt = await make_receipt(work.exchange)
            assert (receipt.is_tree_equal, receipt.files) == (True, ())
            assert "- files: none changed; the tree is equal\n" in format_receipt(receipt, is_json=False)


REPAIR = "Repair that, or say in your answer why it stays."


@pytest.mark.parametrize("line", ["sed -i 's/a/b' run_tests.sh", "python3 -c 'import nothing_like_it'", FAILS, PIPED])
async def test_a_failed_last_command_gets_one_reminder(folder, line):
    async with open_work(folder) as work:
        await work.turn(work.change(), work.shell(line), "I changed the file.", "Done all the same.")
        told = [event.text for event in work.events_of(Reminded)]
        assert len(told) == 1
        assert told[0].startswith(f"`{line}` failed with exit code ")
        assert told[0].endswith(f", and you did nothing about it. {REPAIR}")


async def test_a_failed_check_before_the_last_change_gets_one_reminder(folder):
    async with open_work(folder) as work:
        steps = (work.shell(FAILS), work.change(), work.shell("cat src_1.py"))
        await work.turn(*steps, "I changed it.", work.shell(PASSES), "Now it works.")
        told = [event.text for event in work.events_of(Reminded)]
        assert told == [f"`{FAILS}` failed with exit code 1, and you did not run it again. {REPAIR}"]


async def test_a_failed_last_call_gets_one_reminder(folder):
    patch = {"path": "run_tests.sh", "patches": [{"before": "no such text", "after": "x"}]}
    async with open_work(folder) as work:
        await work.turn(call("patch_file", json.dumps(patch), id=""), "I changed it.", "It stays.")
        told = [event.text for event in work.events_of(Reminded)]
        assert told == [f"Your last call, of patch_file, failed. {REPAIR}"]


async def test_no_reminder_without_a_failure_that_is_left(folder):
    """A result that looks like a failure, one that was repaired or named, and a question get no reminder."""
    lines = [
        "grep nothing run_tests.sh",
        "cat run_tests.sh | grep nothing",
        "cd . && ! grep -q echo run_tests.sh",
        "diff run_tests.sh /dev/null",
        "test -e nothing",
        "[ -d nothing ]",
        "[[ -d nothing ]]",
        "[ -d nothing ] && rmdir nothing",
        "git diff --no-index --quiet run_tests.sh /dev/null",
        "kill -0 999999999",
        "curl -s http://127.0.0.1:1/",
        "cat nothing",
        "echo x > new.txt; cat nothing",
        "ls nothing | head -1",
        "true",
    ]
    named = [
        "One test fails.",
        "The command could not run here.",
        "It exits with 1, as you wanted.",
        "It ends with a ValueError.",
        "Shall I install it?",
    ]
    turns = [(work_line, "Done.") for work_line in lines] + [(FAILS, answer) for answer in named]
    async with open_work(folder) as work:
        for line, answer in turns:
            await work.turn(work.change(), work.shell(line), answer)
            assert work.events_of(Reminded) == [], line
        await work.turn(work.change(), work.shell(FAILS), work.shell(PASSES), "Done.")
        await work.turn(work.shell("mkdir a/b/c"), work.change(), "Done.")
        await work.turn(call("read_file", '{"path": "nothing"}', id=""), "Done.")
        (folder / "unread.txt").write_text("one")
        unread = call("write_file", '{"path": "unread.txt", "content": "two"}', id="")
        await work.turn(unread, "I leave the file as it is.")
        assert work.events_of(Reminded) == []
