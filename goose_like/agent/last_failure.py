"""The failure that a turn would end with: a command or call that nobody repaired and the answer does not name."""

import re
from collections.abc import Mapping, Sequence

from goose_like.core.events import CommandFinished
from goose_like.core.history import History
from goose_like.core.pattern import compile_later
from goose_like.core.tool import Tool
from goose_like.workspace.evidence.ledger import Ledger

from .claims import CheckKind, find_check

_SHOWN_CHARS = 200
_REFUSED = "not "
"""The start of results of calls that were refused, such as "not allowed: ..." or "not written, as ..."."""
_PREVENTED = compile_later(
    "no longer|any ?more|never again|without|no more|fixed|repaired|resolved|corrected|handled|avoids?|prevents?",
    re.IGNORECASE,
)
_NAMES_FAILURE = compile_later(
    r"(could|can|did|do|does|was|were|is|are|has|have|would|will)(n['\u2019]t| not)\b"
    r"|\b(can|won)['\u2019]?t\b"
    r"|\b(cannot|unable|fail\w*|crash\w*|rejects?|refuse[sd]?|denied|raise[sd]?|broken|still|missing)\b"
    r"|\b(non-?zero|exit(s|ed)? (with|code|status)|exit code|\w+(Error|Exception))\b"
    r"|\bno such\b|\bthere (is|are) no\b",
    re.IGNORECASE,
)
"""Words with which an answer tells of a failure."""
_HAS_CONDITION = compile_later(r"(^|[\s;&|(!])(test|\[\[?|\(\()\s")
_RESULT_PROGRAMS = compile_later(r"[zefp]?grep|rg|diff|cmp|comm|which|type|command|hash|pidof|expr|let|false")
"""Programs whose exit code 1 is an answer and no failure."""
_PROBES = compile_later("curl|ping|nc|pgrep|pkill|kill|killall|lsof|ss")
"""Programs whose exit codes all may be answers: a server that has ended, a host that is away."""
_RESULT_OF_GIT = ("diff", "grep", "merge-base", "check-ignore", "show-ref", "rev-parse", "config")


def find_last_failure(ledger: Ledger, history: History, tools: Mapping[str, Tool], answer: str) -> str:
    """Describe the failure at the end of a turn that its answer does not name; empty if there is none."""
    failure = _find_failure(ledger, history, tools)
    if failure and _names_failure(answer):
        return ""
    return failure


def _find_failure(ledger: Ledger, history: History, tools: Mapping[str, Tool]) -> str:
    call = _find_failed_call(history, tools)
    if call:
        return f"Your last call, of {call}, failed."
    entry = ledger.last_command
    if entry is None or entry.is_verification:
        return ""
    if entry.ran_no_test and not entry.exit_code:
        return f"`{_shorten(entry.command)}` ran no test."
    if _has_failed(entry) and not ledger.is_written_since_command:
        return f"{_describe(entry)}, and you did nothing about it."
    # Another command may not matter after a change. A check does.
    failed_check = _find_failed_check(ledger.commands)
    if failed_check:
        return f"{_describe(failed_check)}, and you did not run it again."
    return ""


def _describe(entry: CommandFinished) -> str:
    codes = [code for code in (entry.exit_code, *entry.pipe_codes) if code]
    return f"`{_shorten(entry.command)}` failed with exit code {codes[0]}"


def _find_failed_check(commands: Sequence[CommandFinished]) -> CommandFinished | None:
    """Find a check that failed, and that no later check of its kind has followed."""
    followed: set[CheckKind] = set()
    for entry in reversed(commands):
        check = find_check(entry)
        if check is None:
            continue
        if _has_failed(entry) and not check.kinds <= followed:
            return entry
        followed |= check.kinds
    return None


def _names_failure(answer: str) -> bool:
    """Check for an answer that tells of a failure, or asks the person."""
    if answer.rstrip().endswith("?"):
        return True
    sentences = re.split(r"(?<=[.!;])\s+|\n+", answer)
    for sentence in sentences:
        if _NAMES_FAILURE.search(sentence) and not _PREVENTED.search(sentence):
            return True
    return False


def _find_failed_call(history: History, tools: Mapping[str, Tool]) -> str:
    """Find the name of the tool whose call failed last, if it edits or runs something and nobody forbade it."""
    if not history.failures or not history.messages:
        return ""
    name, _ = list(history.failures)[-1]
    if name not in tools or tools[name].options.find_kind() not in ("edit", "execute"):
        return ""
    for message in reversed(history.messages):
        if message.role != "tool":
            continue
        results = message.tool_results
        is_refused = any(result.output.startswith(_REFUSED) for result in results)
        return name if results[-1].is_error and not is_refused else ""
    return ""


def _has_failed(entry: CommandFinished) -> bool:
    """Check for a command with an exit code that is a failure, and not the answer to a question."""
    check = find_check(entry)
    if check:
        return check.outcome == "failed" or bool(entry.exit_code)
    if not entry.exit_code:
        return False
    from goose_like.workspace.permissions.prefixes import only_reads  # the parser of commands is slow to import

    last_part = re.split(r";|\n", entry.command.strip())[-1]  # its exit code is that of the line
    if only_reads(last_part, is_at_root=True):
        return False
    return not _is_answer(entry.command, entry.exit_code)


def _is_answer(line: str, code: int) -> bool:
    """Check for a line whose exit code answers a question, by a condition or by its last command."""
    if code == 1 and _HAS_CONDITION.search(line):
        return True
    from goose_like.workspace.permissions.shell_syntax import parse_line

    commands = parse_line(line)
    if not commands:
        return False
    last = commands[-1]
    if _PROBES.fullmatch(last.name):
        return True
    if code != 1:
        return False
    if last.name == "git":
        return any(word in _RESULT_OF_GIT for word in last.words)
    return _RESULT_PROGRAMS.fullmatch(last.name) is not None


def _shorten(command: str) -> str:
    line, *rest = command.strip().splitlines()
    if rest or len(line) > _SHOWN_CHARS:
        return f"{line[:_SHOWN_CHARS]} ..."
    return line
