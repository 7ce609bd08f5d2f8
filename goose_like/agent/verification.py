"""The end of a turn: the check that the profile demands, claims about checks, and a failure that nobody repaired."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

from goose_like.config.profile import VerifyChoice
from goose_like.core.errors import GooseLikeError
from goose_like.core.events import Reminded, Status, TurnFinished
from goose_like.core.masking import mask_text
from goose_like.core.tool import Tool
from goose_like.sessions.output_limit import LimitedOutput
from goose_like.workspace.evidence.tree_hash import get_files_hash
from goose_like.workspace.processes.process import MAX_OUTPUT_BYTES
from goose_like.workspace.workspace import Workspace

from .budget import Budget
from .claims import find_claims, find_doubt
from .journal import Journal
from .last_failure import find_last_failure

EXIT_CODE = 8
_STOP_GRACE_S = 2.0
_SHOWN_LINES = 12
_CLAIMS = {
    "tests": "that tests pass",
    "lint": "that linting passes",
    "types": "that types are right",
    "build": "that it builds",
}


class Verification:
    """The verification of the turns of one session. `check` is the one that the profile or the project demands."""

    def __init__(
        self,
        check: VerifyChoice | None,
        workspace: Workspace,
        journal: Journal,
        budget: Budget,
        tools: Mapping[str, Tool],
    ) -> None:
        self.failure = ""
        self._check = check or VerifyChoice.make_unchecked(commands=())
        self._workspace = workspace
        self._journal = journal
        self._tools = tools
        self._output_bytes = budget.limits.output_bytes
        self._attempts = 0
        self._run_count = 0
        self._has_doubted = False
        self._passed_tree = ""

    def start_turn(self) -> None:
        """Begin a turn: nothing has failed yet."""
        self.failure = ""
        self._attempts = 0
        self._has_doubted = False
        self._workspace.ledger.start_turn()
        self._workspace.hosts.reached.clear()

    async def find_objection(self, answer: str, *, is_last_step: bool) -> bool:
        """Check the work before an answer ends the turn. Return True if the model has to go on.

        The check of the profile runs after the last change. Once in a turn the model hears of a claim that no check
        supports, or else of a failure that it neither repaired nor named.
        """
        may_try_again = self._attempts < self._check.attempts and not is_last_step
        if await self._fails() and may_try_again:
            self._attempts += 1
            text = f"{self.failure}\n\nMake it succeed, or say in your answer why it cannot."
            if self._check.on_failure:
                text += await self._prepare_next_attempt(self._check.on_failure)
            self._journal.emit(Reminded(text=text, reason="shown"))
            return True
        if is_last_step or self._has_doubted:
            return False
        return await self._doubts(answer) or self._asks_repair(answer)

    def mark_end(self, end: TurnFinished) -> TurnFinished:
        """Return the end of the turn, with the failure of the check if it still fails."""
        if not self.failure:
            return end
        summary = self.failure.partition("\n")[0].rstrip(":")
        return end.model_copy(update={"detail": f"{summary}; see above", "exit_code": EXIT_CODE})

    # --- the check of the profile

    async def _fails(self) -> bool:
        """Run the check if there are changes that it has not seen. Return whether it fails, with the reason."""
        self.failure = ""
        if not self._check.commands or await self._is_settled():
            return False
        for command in self._check.commands:
            self._journal.emit(Status(text=f"checking: {command}"))
            code, output = await self._run(command, self._check.time_s)
            await self._workspace.ledger.settle()
            self._journal.emit(Status(text=""))
            if code != 0:
                self._note_failure(command, code, output)
                return True
        # What the check itself writes is no change to check.
        self._passed_tree = get_files_hash(await self._workspace.read_tree())
        for command in self._check.commands:
            self._journal.log(f"the check `{command}` passed after the last change")
        return False

    async def _is_settled(self) -> bool:
        """Return whether there is nothing to check: no change, or the check has passed for these files."""
        if self._check.unchanged:
            return False
        if not await self._workspace.ledger.has_changes():
            return True
        tree = get_files_hash(await self._workspace.read_tree())
        return tree != "" and tree == self._passed_tree

    def _note_failure(self, command: str, code: int | None, output: str) -> None:
        how = "could not run" if code is None else f"failed with exit code {code}"
        self.failure = f"the check `{command}` {how}:\n{output}"
        lines = output.splitlines()
        shown = [f"the check `{command}` {how}:", *lines[-_SHOWN_LINES:]]
        self._journal.log("\n".join(shown))

    async def _prepare_next_attempt(self, command: str) -> str:
        """Run the command for a failed check, and return what the model reads about it."""
        code, output = await self._run(command, self._check.on_failure_s, is_check=False)
        return f"\n\nThen `{command}` ran, with exit code {code}:\n{output}"

    async def _run(self, command: str, limit_s: float, *, is_check: bool = True) -> tuple[int | None, str]:
        """Run a command in the sandbox, as a command that the person typed. Return its exit code and output."""
        workspace = self._workspace
        before = await workspace.read_tree()
        self._run_count += 1
        name = f"check-{len(self._journal.history.messages)}-{self._run_count}.txt"
        output = LimitedOutput(self._journal.session.outputs / name, self._output_bytes)
        code: int | None = None
        try:
            process = await workspace.spawn(["bash", "-c", command], subject=command, is_own=True)
            try:
                async with asyncio.timeout(limit_s) as limit:
                    with workspace.pause_for_questions(limit):
                        await process.read_all(output.write, MAX_OUTPUT_BYTES)
                        code = await process.wait()
            except BaseException:
                await asyncio.shield(process.stop(_STOP_GRACE_S))
                raise
        except TimeoutError:
            output.write(f"\nstopped after {limit_s:g} s\n".encode())
        except GooseLikeError as error:
            output.write(str(error).encode())
        finally:
            output.close()
            workspace.ledger.add(command, str(workspace.root), before, exit_code=code, is_verification=is_check)
        return code, mask_text(output.format_for_model())

    # --- claims

    async def _doubts(self, answer: str) -> bool:
        """Tell the model that the ledger does not support what it says."""
        claims = find_claims(answer)
        if not claims:
            return False
        workspace = self._workspace
        ledger = workspace.ledger
        tree = await workspace.read_tree()
        changed = [Path(path) for path in ledger.written]
        for kind in claims:
            doubt = find_doubt(kind, self._journal.history.commands, tree, workspace.folders, changed)
            if not doubt:
                continue
            self._has_doubted = True
            text = f"You say {_CLAIMS[kind]}, but {doubt}. Run the check now, or say what is true."
            self._journal.emit(Reminded(text=text))
            return True
        return False

    # --- a failure at the end

    def _asks_repair(self, answer: str) -> bool:
        """Tell the model that its last command or call failed, and that it neither repaired nor named this.

        Where nothing may be changed, a failure is expected.
        """
        if self._workspace.mode == "read-only":
            return False
        failure = find_last_failure(self._workspace.ledger, self._journal.history, self._tools, answer)
        if not failure:
            return False
        self._has_doubted = True
        self._journal.emit(Reminded(text=f"{failure} Repair that, or say in your answer why it stays."))
        return True
