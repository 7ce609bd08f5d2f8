"""The parser of shell lines behind the permission rules."""

import os
import re
import shlex
import shutil
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

from goose_like.workspace.permissions.prefixes import is_covered, list_prefixes
from goose_like.workspace.permissions.rules import PermissionRule, PermissionRules
from tests.evasion.rules import VISIBLE
from tests.fuzz.source import Source

RULES = PermissionRules([PermissionRule("deny", "git push"), PermissionRule("allow", "ls")])
DENIED = "git push"

# Words and operators, of which a line is made. None has a slash: the lines run in a real bash, in a folder of its own.
PIECES = (
    "git push", "git", " push", "ls", "ls ", "x='a[$(git push)]'", "$x", "${x}", "'", '"', "`", "\\", "$(", ")", "(",
    "{ ", "; }", ";", "\n", " ", "&&", "||", "|", "|&", "! ", " #", "<<E\n", "\nE\n", "<<-E\n", "<<'E'\n", "E", "<<<",
    "< ", "> ", ">|", ">&", "&>", "2>&1 ", "f", "<(", ">(", "((", "))", "[[ ", " ]]", "[ ", " ]", "if ", " then ",
    " else ", " elif ", " fi", "while ", "until ", " do ", " done", "for i in 1;", "for ((;;))", "case x in ", " esac",
    "x)", ";;", ";&", "f() ", "function f ", "env ", "command ", "eval ", "exec ", "timeout 5 ", "xargs ", "sh -c ",
    "bash -c ", "time ", "coproc ", "$'", '$"', "{a,b}", "{git,push}", "\\\n", "\t", "\r", "-v ", "-S ", "-- ", "${x:-",
    "}", "+", "=", "x=", "x+=(", "a[1]=", "declare ", "export ", "local ", "let ", "test ", "printf -v x ", "read x",
    "alias g=git\n", "trap ", " EXIT", "builtin ", "nohup ", "nice ", "find . -exec ", " {} ", "\\;", "&", "é",
    "set -- ", "$@", "$1", "$((", "${!x}", "${x@P}", "*", "?", "[g]it", "g\\it", "g''it", "\0", "\x7f", "\x0b", "#",
)  # fmt: skip
WAYS = tuple(way for way in VISIBLE if not re.search(r"-exec|-S|^\\", way))  # those take words, not any line
BARE = tuple(way for way in WAYS if not re.search("['\"`]|eval", way))  # the others need a line without quotes

_BASH_SHARE = 0.06
_PROGRAMS = ("bash", "cat", "env", "find", "nice", "nohup", "sh", "timeout", "true", "xargs")


class FuzzTarget:
    """Lines of shell. A line that runs a denied command is never allowed, or left to the mode of the session.

    Half of the lines hold the command by their form, in up to four layers. The others are made of any pieces: a part of
    those that the rules let pass runs in a real bash, with a `git` that only notes its call.
    """

    def __init__(self, folder: Path) -> None:
        self._work, self._log, programs = folder / "work", folder / "log", folder / "programs"
        programs.mkdir()
        for name in ("git", "ls"):
            (programs / name).write_text('#!/bin/sh\necho "${0##*/} $*" >> "$LOG"\n')
            (programs / name).chmod(0o755)
        for name in _PROGRAMS:
            if program := shutil.which(name):
                (programs / name).symlink_to(program)
        # FUNCNEST: a function that calls itself twice in a pipe would fill the machine with processes.
        self._env = {"PATH": str(programs), "HOME": str(self._work), "LOG": str(self._log), "FUNCNEST": "4"}

    def create(self, source: Source) -> tuple[str, str]:
        """Create a line, and tell how to check it."""
        if source.happens(0.5):
            line = source.choice(VISIBLE).format(DENIED)
            for _ in range(source.below(4)):
                if source.happens(0.3) or "'" in line or "\n" in line:
                    word = shlex.quote(line)
                    line = source.choice(("sh -c {}", "bash -c {}", "eval {}", "sudo bash -lc {}")).format(word)
                else:
                    line = source.choice(BARE if re.search('["`E]', line) else WAYS).format(line)
            return source.choice(("", "ls\n", "ls; ", "x=1; ", "true &&  ")) + line, "denied"
        line = "".join(source.some(PIECES, 12))
        if source.happens(0.3):
            line = source.choice(VISIBLE).format(line)
        return source.stretch(line), "bash" if source.happens(_BASH_SHARE) else "rules"

    def check(self, value: tuple[str, str]) -> None:
        line, how = value
        verdict = RULES.judge_line(line).verdict
        assert how != "denied" or verdict in ("deny", "ask"), verdict
        if how == "bash" and "git" in line and verdict not in ("deny", "ask"):
            assert DENIED not in self._run(line), verdict
        if verdict is None and (prefixes := list_prefixes(line)):
            assert is_covered(line, prefixes), prefixes

    def _run(self, line: str) -> set[str]:
        """Run a line in bash, and return the first two words of each call."""
        if "\0" in line:
            return set()
        self._work.mkdir()
        self._log.write_text("")
        silent = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
        process = subprocess.Popen(
            ["/bin/bash", "-c", line],
            cwd=self._work,
            env=self._env,
            start_new_session=True,
            **silent,  # type: ignore[call-overload]
        )
        try:
            with suppress(subprocess.TimeoutExpired):
                process.wait(1)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            shutil.rmtree(self._work)
        return {" ".join(call.split()[:2]) for call in self._log.read_text().splitlines()}
