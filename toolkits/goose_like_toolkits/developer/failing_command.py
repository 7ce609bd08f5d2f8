"""What the last command still demands, if it failed: its key lines, for a model that changes nothing."""

from goose_like.core.dataclass import dataclass
from goose_like.core.events import CommandFinished
from goose_like.core.pattern import compile_later

MAX_LINES = 6
MAX_LINE_CHARS = 200
MAX_COMMAND_CHARS = 100

_KEY_LINES = compile_later(
    r"is not installed|^E  |^(FAILED|ERROR|FAIL)\b|Error\b|\berror\b|assert|[Ee]xpected|\bgot\b|not ok"
)
_NOTE = compile_later(r"\[(?!.* is not installed|no test ran: ).*\]")
"""A note of ours, except two that say what is wrong: a missing module (shell.py), and a test that did not run
(unrun_tests.py)."""


@dataclass(frozen=True, slots=True)
class FailingCommand:
    """A command that failed, and the lines of its output that say why."""

    command: str
    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        """The lines as one text."""
        return "\n".join(self.lines)


def find_failing(entry: CommandFinished | None, answer: str) -> FailingCommand | None:
    """Find the failure in the last command and its answer, or None. A test that did not run is a failure too."""
    if entry is None or not any((entry.exit_code, *entry.pipe_codes, entry.ran_no_test)):
        return None
    lines = []
    for line in answer.splitlines():
        if line.strip() and not _NOTE.fullmatch(line):
            lines.append(line[:MAX_LINE_CHARS])
    key_lines = list(filter(_KEY_LINES.search, lines)) or lines
    command = " ".join(entry.command.split())[:MAX_COMMAND_CHARS]
    return FailingCommand(command, tuple(key_lines[-MAX_LINES:]))
