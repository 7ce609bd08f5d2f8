"""Run a boss from the command line: result on stdout, progress on stderr, and an exit code."""

import asyncio
import json
import shlex
import sys

from goose_like.cli.run import RunRequest, StdoutWriter, make_run_finished, run_until_stopped
from goose_like.core.errors import GooseLikeError
from goose_like.core.events import Answered, Asked, Question
from goose_like.core.history import History
from goose_like.core.notifier import Notifier, Tee
from goose_like.sessions.session import Session
from goose_like.terminal.interaction import add_person, open_console, set_echo
from goose_like_toolkits.boss.flow.boss import Boss, BossRun
from goose_like_toolkits.boss.flow.outcome import Outcome, Status, build_outcome, count_rounds, describe_end
from goose_like_toolkits.boss.flow.setup import open_boss

from .spec import BossSpec
from .view import BossScreen

_ADVICE: dict[Status, str] = {
    "interrupted": "continue with",
    "failed": "continue with",
    "max_round": "continue with more rounds",
    "budget": "continue with a higher limit",
}


async def run_boss(spec: BossSpec, request: RunRequest, session: Session) -> int:
    """Run a boss on the text of a request, or continue its session if the text is empty. Return the exit code.

    Raises:
        GooseLikeError: the boss can't start.
    """
    out = StdoutWriter(request.output_format)
    screen = None if request.is_quiet else BossScreen(open_console(), spec)
    front: Notifier = Tee(add_person(screen), out) if screen else out
    history, exit_code, outcome = History(), 1, Outcome(result="", summary="", status="failed")
    try:
        async with open_boss(Boss(spec), request.profile, front, session=session, limits=request.limits) as run:
            history = run.history
            if screen:
                if history.has_final_result:
                    print("this run is finished; its outcome again:", file=sys.stderr)
                screen.load_history(history)
            handler = InterruptHandler(run, front)
            ended, exit_code = await run_until_stopped(_work(run, request.text), front, out, handler.interrupt)
            outcome = ended or build_outcome(history).model_copy(update={"status": "interrupted"})
            exit_code = exit_code or run.exit_code or int(outcome.status == "failed")
    except GooseLikeError as error:
        exit_code = error.exit_code
        raise
    finally:  # after all events of closing
        event = make_run_finished(history.usage, outcome.status, exit_code)
        front.notify(event)
        summary = {
            **outcome.model_dump(),
            "rounds": count_rounds(history),
            **json.loads(event.model_dump_json(include={"usage", "cost_usd"})),
            "detail": describe_end(history),
            "session": session.name,
            "memory": spec.memory_files,
        }
        out.finish(outcome.result, summary)
    if screen and (advice := _ADVICE.get(outcome.status)):
        rounds = f" --max-round {2 * spec.max_round}" if outcome.status == "max_round" else ""
        print(f"{advice}: goose-like boss --resume --session {shlex.quote(session.name)}{rounds}", file=sys.stderr)
    return exit_code


async def _work(run: BossRun, goal: str) -> Outcome:
    with set_echo(False):  # typed keys would spoil the screen
        return await (run.work(goal) if goal else run.resume())


class InterruptHandler:
    """The effect of Ctrl-C while a sub-boss works: stop only that boss, and ask for a note to its caller."""

    def __init__(self, run: BossRun, front: Notifier) -> None:
        self._run = run
        self._front = front
        self._note: asyncio.Task[str] | None = None

    def interrupt(self) -> bool:
        """Stop the innermost sub-boss. Return False if the whole run has to stop: no sub-boss, or a second Ctrl-C."""
        if self._note and not self._note.done():
            self._note.cancel()
            return False
        names = self._run.active_names
        if len(names) < 2:
            return False
        self._note = asyncio.create_task(self._ask_for_note(names[-2]))
        if not self._run.stop_innermost(self._note):
            self._note.cancel()
            return False
        return True

    async def _ask_for_note(self, caller: str) -> str:
        question = Question(kind="text", subject=caller, text=f"a note for {caller} (Enter: none)")
        self._front.notify(Asked(question=question))
        answer = await self._front.ask(question)
        self._front.notify(Answered(question=question, answer=answer))
        return answer.text
