"""The tests of a project, which run when a small model wants to finish: it seldom runs them, and then wrongly."""

import shlex
from collections.abc import Callable

from goose_like.core.errors import GooseLikeError
from goose_like.core.pattern import compile_later
from goose_like.sessions.output_limit import LimitedOutput
from goose_like.toolkit import Workspace

from .project_facts import ProjectFacts
from .shell import Shell
from .unrun_tests import NO_TESTS_CODE

LIMIT_S = 60.0
SHOWN_LINES = 30
_FIRST_FAILURE = " -q -x"
"""Options of pytest: stop at the first failure, and print little."""
_DURATION = compile_later(r" in \d+\.\d+s\b")
"""The line of pytest that differs each time. Without it, the same failure is the same text."""


class FoundTests:
    """The tests that a project seems to have."""

    def __init__(
        self, workspace: Workspace, shell: Shell, facts: ProjectFacts, open_output: Callable[[str], LimitedOutput]
    ) -> None:
        self._workspace = workspace
        self._shell = shell
        self._facts = facts
        self._open_output = open_output

    async def find_failure(self) -> str | None:
        """Run the tests if files have changed. Describe their failure; empty if they pass, and None if none ran."""
        if not await self._workspace.ledger.has_changes():
            return None
        command = await self._facts.find_test_command()
        if not command:
            return None
        if command.endswith("-m pytest"):
            command += _FIRST_FAILURE
        root = str(self._workspace.root)
        line = command
        if self._shell.state.cwd != root:
            line = f"(cd {shlex.quote(root)} && {command})"
        try:
            text = await self._shell.run(line, LIMIT_S, "workspace", self._open_output("tests"))
        except GooseLikeError:  # too slow, or nobody allows it
            return None
        entry = self._workspace.ledger.last_command
        if entry is None or entry.ran_no_test or entry.exit_code == NO_TESTS_CODE:
            return None
        if not entry.exit_code:
            return ""
        lines = [line for line in text.splitlines() if not _DURATION.search(line)]
        shown = "\n".join(lines[-SHOWN_LINES:])
        return f"The tests of this project fail: {command}\n{shown}\nRepair what they demand, then finish."
