"""One run of a boss for the command line: the result on stdout, the picture on stderr, an exit code that tells how."""

import asyncio
import json
import shlex
import sys
from dataclasses import dataclass

from goose_like.cli.run import OutputFormat, Stdout, run_finished, stoppable
from goose_like.config.profile import Limits, Profile
from goose_like.core.errors import GooseLikeError
from goose_like.core.events import Answered, Asked, Question
from goose_like.core.history import History
from goose_like.core.notifier import Notifier, Tee
from goose_like.sessions.session import Session
from goose_like.terminal.interaction import echo
from goose_like_toolkits.boss.flow.boss import Boss, Run, detail, outcome
from goose_like_toolkits.boss.flow.outcome import Outcome, Status

from .spec import BossSpec
from .view import picture


@dataclass(frozen=True, slots=True)
class Errand:
    """What a boss is to do. Without a goal it goes on with what the session was for."""

    goal: str
    spec: BossSpec
    profile: Profile
    limits: Limits
    session: Session
    output_format: OutputFormat = "text"
    is_quiet: bool = False


async def run_errand(errand: Errand) -> int:
    """Runs the boss and gives the exit code.

    Raises:
        GooseLikeError: what kept it from starting.
    """
    out, drawn = Stdout(errand.output_format), None if errand.is_quiet else picture(errand.spec)
    front: Notifier = Tee(drawn, out) if drawn else out
    history, code, came = History(), 1, Outcome(result="", summary="", status="failed")
    try:
        opened = Boss(errand.spec).opened(errand.profile, front, session=errand.session, limits=errand.limits)
        async with opened as run:
            history = run.history
            if drawn and history.has_final_result:
                print("it is finished already; its outcome again:", file=sys.stderr)
            if drawn:
                drawn.open(history)
            given, code = await stoppable(_work(run, errand.goal), front, out, _Leave(run, front).begin)
            came = given or outcome(history).model_copy(update={"status": "interrupted"})
            code = code or run.end.exit_code or int(came.status == "failed")
    except GooseLikeError as error:
        code = error.exit_code
        raise
    finally:  # the last word, after all that closing still had to say
        told = run_finished(history.usage, came.status, code)
        front.notify(told)
        summary = {
            **came.model_dump(),
            "rounds": sum(message.role == "assistant" for message in history.messages),
            **json.loads(told.model_dump_json(include={"usage", "cost_usd"})),
            "detail": detail(history),
            "session": errand.session.name,
            "memory": errand.spec.memory_files,
        }
        out.finish(came.result, summary)
    if drawn and (more := _MORE.get(came.status)):
        rounds = f" --max-round {2 * errand.spec.max_round}" if came.status == "max_round" else ""
        command = f"goose-like boss --resume --session {shlex.quote(errand.session.name)}{rounds}"
        print(f"{more}: {command}", file=sys.stderr)
    return code


_MORE: dict[Status, str] = {
    "interrupted": "go on with",
    "failed": "go on with",
    "max_round": "go on with",
    "budget": "go on, with a higher limit, by",
}


async def _work(run: Run, goal: str) -> Outcome:
    with echo(False):  # what is typed must not run into the picture
        return await (run.work(goal) if goal else run.go_on())


class _Leave:
    """What Ctrl-C does while a boss below works: only that one ends, and a note for its caller is asked for."""

    def __init__(self, run: Run, front: Notifier) -> None:
        self._run = run
        self._front = front
        self._note: asyncio.Task[str] | None = None

    def begin(self) -> bool:
        """Whether there is one to end; not so while the note is being written: then all ends."""
        if self._note and not self._note.done():
            self._note.cancel()
            return False
        names = self._run.inner_names
        if len(names) < 2:
            return False
        self._note = asyncio.create_task(self._ask(names[-2]))
        if not self._run.leave(self._note):
            self._note.cancel()
            return False
        return True

    async def _ask(self, caller: str) -> str:
        question = Question(kind="words", subject=caller, text=f"a note for {caller} (Enter: none)")
        self._front.notify(Asked(question=question))
        answer = await self._front.ask(question)
        self._front.notify(Answered(question=question, answer=answer))
        return answer.text
