"""The shell: commands behave as if typed into one bash, although each runs in its own."""

import asyncio
import os
import secrets
import shlex
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from goose_like.core.dataclass import dataclass
from goose_like.core.errors import GooseLikeError
from goose_like.core.pattern import compile_later
from goose_like.sdk.live_output import LiveOutput, ShowOutput
from goose_like.sdk.private_files import describe_private_files, find_private_files
from goose_like.sessions.output_limit import LimitedOutput, append_notes
from goose_like.toolkit import ToolError, Workspace
from goose_like.workspace.permissions.policy import Access
from goose_like.workspace.permissions.shell_state import KnownExports, find_changes, find_planted, shell_state
from goose_like.workspace.processes.process import MAX_OUTPUT_BYTES, Process, create_file, describe_exit
from goose_like.workspace.sandbox.bubblewrap import move_tmp
from goose_like.workspace.sandbox.environment import PROXY_VARIABLES, build_environment

from .command_changes import CommandChanges
from .files import HIDDEN_TMP
from .missing_files import find_missing_folder, has_missed_file, list_names
from .missing_modules import explain_missing_module
from .stuck_check import StuckCheck
from .unrun_tests import NO_TESTS_CODE, find_unrun_tests

MAX_TIMEOUT_S = 3600.0
MAX_WORDS = 200
MAX_STATE_BYTES = 100_000  # every program starts with these variables, and Linux limits them (2 MiB)
MAX_ARGUMENT_BYTES = 120_000  # Linux limits one argument to 128 KiB: MAX_ARG_STRLEN in execve(2)
STOP_GRACE_S = 2.0
CANCEL_GRACE_S = 0.07  # the person waits for the prompt

# bash reads this file (as BASH_ENV) before the command, so that messages and line numbers are those of the command.
# `eval` limits the damage of exports that bash cannot read back. The trap changes neither exit code nor output,
# whatever options and functions the command sets. It is lost if the command uses `exec` or sets an EXIT trap.
_PROLOGUE_DESCRIPTOR = 3
_PROLOGUE = r"""unset BASH_ENV; exec 3<&-
builtin cd -- {cwd} 2>/dev/null
builtin eval -- {exports} 2>/dev/null
[[ . -ef {cwd} ]] && PWD={cwd} || {{ builtin cd -- {root}; builtin echo "["{cwd}" is gone; this ran in $PWD]"; }}
trap '{{ builtin printf "%s " "${{PIPESTATUS[@]}}"; builtin printf "\0%s\0" "$PWD"; builtin jobs -rp
builtin printf "\0"; builtin export -p; builtin export -f; builtin printf "\0"; }} 2>/dev/null 1<>{end}' EXIT
"""
_LASTING = compile_later(r"\b(cd|pushd|popd|export|declare|source|activate)\b")

_NO_NETWORK = compile_later(
    "Network is unreachable|Could not resolve host|[Nn]ame resolution|Name or service not known"
    "|exit code (6 of curl|4 of wget)"  # with their options for less output
)
_MISSING_IN_TMP = compile_later(
    r"(?<![^\s'\"(=])(/var)?/tmp/[^\n:]{1,300}: No such file|No such file or directory: '(/var)?/tmp/"
)
_ASSIGNMENT = compile_later(r"\w+=")
_COMPARING = ("grep", "egrep", "rg", "diff", "cmp")
"""Programs whose exit code 1 is a result and no failure."""
_READ_ONLY = compile_later("Read-only file system|Device or resource busy")
_SYNTAX_ADVICE = (
    "Nothing ran. Correct this and send the whole command again. Quotes inside a text are safe in a here-document with "
    "a quoted word: <<'EOF'"
)


HandOver = Callable[[str, Process, LimitedOutput, ExitStack], str]
"""Hands over a running command, with the resources to close at its end; returns its id."""


@dataclass(frozen=True, slots=True)
class ShellState:
    """The state that lasts between commands: folder, exports as bash prints them, and ids of background jobs.

    Variables that each command has anyway are left out.
    """

    cwd: str
    exports: str = ""
    jobs: tuple[str, ...] = ()
    codes: tuple[int, ...] = ()
    """The exit codes of the commands of the last pipe."""


class _StateFile:
    """A file in which commands leave their state, one after the other.

    A new file for each command would cost a block of the disk each time.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / f".shell-{secrets.token_hex(8)}-end"
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        self._descriptor = os.open(self.path, flags, 0o600)

    @property
    def is_in_place(self) -> bool:
        """False if a command has removed or replaced the file."""
        with suppress(OSError):
            return os.path.samestat(os.fstat(self._descriptor), os.lstat(self.path))
        return False

    def take(self) -> bytes:
        """Read the state and overwrite it, because the disk should not keep variables."""
        data = os.pread(self._descriptor, MAX_STATE_BYTES + 1, 0)
        os.pwrite(self._descriptor, b" " * len(data), 0)
        if len(data) > MAX_STATE_BYTES:
            os.ftruncate(self._descriptor, 0)
        return data

    def close(self) -> None:
        with suppress(OSError):
            self.path.unlink()
        os.close(self._descriptor)


class Shell:
    """Runs commands in the workspace."""

    def __init__(
        self,
        workspace: Workspace,
        show: ShowOutput,
        stuck_check: StuckCheck,
        cwd: str | None = None,
        *,
        wants_other_way: bool = False,
    ) -> None:
        """Create the shell.

        Args:
            workspace: where commands run.
            show: displays a sample of the output while a command runs.
            stuck_check: the judge of silent commands.
            cwd: the first folder; the root of the workspace by default.
            wants_other_way: tell the model to do without a module that is not installed.
        """
        self._wants_other_way = wants_other_way
        self.state = ShellState(cwd or str(workspace.root))
        self._workspace = workspace
        self._show = show
        self._stuck_check = stuck_check
        self._free_files: list[_StateFile] = []
        self._known_exports = KnownExports()

    def close(self) -> None:
        """Remove the files of the shell."""
        while self._free_files:
            self._free_files.pop().close()

    async def start(
        self, command: str, access: Access, held: ExitStack, stdin: int | None = None
    ) -> tuple[Process, _StateFile | None]:
        """Start a command with the shell's folder and variables.

        A command with network access takes over the folder only, and leaves no state. No variable, function or file of
        an earlier command changes it, so that the question shows the person all that will run.

        Args:
            command: the command.
            access: its rights.
            held: gets the release of the files; close it when the command has ended.
            stdin: a descriptor for the input.

        Returns:
            The process, and the file where the command leaves its state at its end, if it does.

        Raises:
            ToolError: the command is invalid.
            GooseLikeError: the command cannot be started or was not allowed.
        """
        size_bytes = _check_command(command)
        if "\n" in command.strip() and size_bytes <= MAX_ARGUMENT_BYTES:
            await self._check_syntax(command)
        folder = self.state.cwd
        argv = ["bash", "-c", command]
        descriptors = {} if stdin is None else {0: stdin}
        if access == "network" and not self._workspace.has_network:
            if size_bytes > MAX_ARGUMENT_BYTES:
                raise ToolError("this is too long for a command with network; write it as a script, and run the script")
            process = await self._workspace.spawn(
                argv, cwd=folder, access=access, descriptors=descriptors, subject=command, folder=folder
            )
            return process, None
        end = self._take_file(held)
        if size_bytes > MAX_ARGUMENT_BYTES:
            script = end.path.with_suffix(".sh")
            held.callback(script.unlink, missing_ok=True)
            _create_file(script, command)
            argv = ["bash", self._workspace.path_in_sandbox(script)]
        end_path = self._workspace.path_in_sandbox(end.path)
        prologue = _build_prologue(self.state, self._workspace.root, end_path)
        env = {"BASH_ENV": f"/dev/fd/{_PROLOGUE_DESCRIPTOR}"}
        start = create_file(prologue.encode(errors="surrogateescape"))
        descriptors[_PROLOGUE_DESCRIPTOR] = start
        token = shell_state.set(partial(self._describe_state, command))
        try:
            process = await self._workspace.spawn(
                argv, env=env, access=access, descriptors=descriptors, subject=command, folder=folder
            )
        finally:
            shell_state.reset(token)
            os.close(start)
        return process, end

    async def _check_syntax(self, command: str) -> None:
        """Let bash read the whole command first: it would run all lines before one that it cannot read.

        A command of one line is read as a whole anyway.

        Raises:
            ToolError: bash cannot read it.
        """
        options = ["-O", "extglob"] if "extglob" in command else []  # a line may turn it on for later ones
        code, output = await self._workspace.run_internal(["bash", *options, "-n", "-c", command])
        if code:
            message = output.decode(errors="replace").strip()
            raise ToolError(f"{message}\n[{_SYNTAX_ADVICE}]")

    def _take_file(self, held: ExitStack) -> _StateFile:
        """Take a file that no running command uses, and give it back when `held` is closed."""
        while self._free_files and not self._free_files[-1].is_in_place:
            self._free_files.pop().close()
        file = self._free_files.pop() if self._free_files else _StateFile(self._workspace.tmp)

        def give_back() -> None:
            file.take()
            self._free_files.append(file)

        held.callback(give_back)
        return file

    def _describe_state(self, command: str) -> str:
        """Describe what earlier commands left that decides what a command runs, for the person; usually nothing."""
        workspace = self._workspace
        first = build_environment(is_confined=workspace.mode != "full", allowed=workspace.settings.variables.allow)
        known: dict[str, list[str]] = {}
        for start in (first, move_tmp(first, workspace.tmp), PROXY_VARIABLES):
            for name, value in start.items():
                known.setdefault(name, []).append(value)
        changes, path = find_changes(self.state.exports, known)
        here = Path(self.state.cwd)

        def resolve(name: str) -> Path:
            return workspace.resolve(here / name)

        folders = (*workspace.folders, workspace.tmp)
        lines = list(find_planted(command, path or first["PATH"], resolve, folders))
        if changes:
            lines.insert(0, changes)
        if not lines:
            return ""
        return "\n".join(["from earlier commands:", *lines])

    async def run(
        self, command: str, timeout_s: float, access: Access, output: LimitedOutput, hand_over: HandOver | None = None
    ) -> str:
        """Run a command, and return its output with notes in brackets for the model.

        At its time limit, or if it seems stuck, the command is stopped or, with `hand_over`, keeps running as a
        background process. Cancelling kills the command and everything that it started.

        Raises:
            ToolError: the command or the time limit is invalid, or the command had to be stopped.
            GooseLikeError: the command cannot be started or was not allowed.
        """
        if not 0 < timeout_s <= MAX_TIMEOUT_S:
            raise ToolError(f"timeout_s is in seconds, more than 0 and at most {MAX_TIMEOUT_S:g}")
        before = self.state
        ledger = self._workspace.ledger
        tree = await self._workspace.read_tree()
        full = _find_full_files(command, Path(before.cwd))
        private = find_private_files(self._workspace, command)
        changes = CommandChanges(self._workspace, command, before.cwd)
        with ExitStack() as held:
            held.callback(output.close)
            process, end = await self.start(command, access, held)
            code, why_stopped = await self._follow(command, process, timeout_s, output, stops=hand_over is None)
            if hand_over and code is None:
                ledger.add(command, before.cwd, tree, exit_code=None)
                name = hand_over(command, process, output, held.pop_all())
                text = output.take_new()
                notes = list(await self._workspace.inspect_changes())
                notes.append(
                    f"{why_stopped}: still running as process {name}, without lasting cd or export; "
                    '`process` shows what is new ("view") or ends it ("stop")'
                )
                return append_notes(text, notes)
            state = self._read_state(end, process.variables) if end else None
            if state and why_stopped:
                state = replace(state, jobs=())  # these were stopped too
        text = output.format_for_model()
        codes = state.codes if state else ()
        unrun = ""
        if code in (0, NO_TESTS_CODE) and not why_stopped:
            folders = (before.cwd, state.cwd if state else before.cwd)
            unrun = find_unrun_tests(self._workspace, command, text, folders)
        exit_code = None if why_stopped else code
        ledger.add(command, before.cwd, tree, exit_code=exit_code, pipe_codes=codes, ran_no_test=bool(unrun))
        new_private = [path for path in find_private_files(self._workspace, command) if path not in private]
        notes = _describe_failures(command, code, codes, text)
        # Without a state the codes of a pipe are unknown: any part of it may have failed.
        may_have_failed = code or any(codes) or (state is None and "|" in command)
        if may_have_failed:
            notes += self._explain_network(process, command, [text, *notes], access)
        if code or why_stopped:
            notes += self._advise(command, text, access, code or 0)
        notes += self._update_state(before, state, command)
        if may_have_failed:
            notes += self._remind_of_folder(text, before)
            notes += explain_missing_module(
                command,
                text,
                Path(before.cwd),
                self._workspace.root,
                has_network=self._workspace.has_network,
                wants_other_way=self._wants_other_way,
            )
        changed = await changes.describe(is_success=exit_code == 0)
        emptied = list(_find_emptied(full))
        # Beside the names of changed files, a weak model overlooks that one of them has become empty.
        notes += filter(None, [unrun, *(emptied or [changed])])
        notes += describe_private_files(new_private)
        notes += await self._workspace.inspect_changes()
        if why_stopped:
            notes.append(why_stopped)
        answer = append_notes(text, notes)
        if why_stopped:
            raise ToolError(answer)
        return answer

    async def _follow(
        self, command: str, process: Process, timeout_s: float, output: LimitedOutput, *, stops: bool
    ) -> tuple[int | None, str]:
        """Follow a command to its end or its stop.

        Returns:
            The exit code, and the reason if the command was stopped. The code is None if the command keeps running.
        """
        live = LiveOutput(self._show)
        try:
            async with asyncio.timeout(timeout_s) as limit:
                with (
                    self._workspace.pause_for_questions(limit),
                    self._stuck_check.watch(command, output, limit) as silence,
                ):

                    def take(chunk: bytes) -> None:
                        silence.reset()
                        output.write(chunk)
                        live.write(chunk)

                    if not await process.read_all(take, MAX_OUTPUT_BYTES):
                        await process.stop(STOP_GRACE_S)
                        return 0, "stopped, since it printed more than 1 GiB; print less, e.g. with `| tail`"
                    return await process.wait(), ""
        except TimeoutError:
            if not limit.expired():
                raise
            if not stops:
                return None, silence.verdict or f"not ended after {timeout_s:g} s"
            await process.stop(STOP_GRACE_S)
            if silence.verdict:
                why = f"stopped: it {silence.verdict}; give what it waits for by options or a pipe, or do it otherwise"
            else:
                why = (
                    f"stopped after the time limit of {timeout_s:g} s; do less at once, give a larger timeout_s "
                    f"(at most {MAX_TIMEOUT_S:g}), or run it as `... > log 2>&1 &` and look into the log"
                )
            return 0, why
        except GooseLikeError as error:  # keep the output so far
            return 0, str(error)
        except asyncio.CancelledError:
            await asyncio.shield(process.stop(CANCEL_GRACE_S))
            raise
        finally:
            live.close()

    def _read_state(self, file: _StateFile, variables: Mapping[str, str]) -> ShellState | None:
        """Read the state that a command left, if it is complete. `variables` are those that it started with."""
        with suppress(OSError, ValueError):
            text = file.take().decode(errors="surrogateescape")
            codes, cwd, jobs, exports, _ = text.split("\0")
            return ShellState(
                cwd,
                exports=self._known_exports.drop(exports, variables),
                jobs=tuple(jobs.split()),
                codes=tuple(map(int, codes.split())),
            )
        return None

    def _update_state(self, before: ShellState, after: ShellState | None, command: str) -> Iterator[str]:
        """Take over the folder and the exports that a command left. Yield notes for the model."""
        if after is None:
            if _LASTING.search(command):
                yield "cd and export did not last: exec, an EXIT trap, a kill, network, 100 kB of variables prevent it"
            return
        self.state = replace(after, jobs=())
        if after.cwd != before.cwd:
            yield f"now in {after.cwd}"
        if after.jobs:
            jobs = ", ".join(after.jobs)
            yield f"in the background, process {jobs} keeps running unseen until you kill it"

    def _remind_of_folder(self, text: str, before: ShellState) -> Iterator[str]:
        """Name the folder of a command that missed a file: models forget that an earlier cd lasts."""
        has_stayed = self.state.cwd == before.cwd
        if not has_stayed or not has_missed_file(text):
            return
        if before.cwd != str(self._workspace.root):
            yield f"this ran in {before.cwd}, where an earlier cd led"
        if Path(before.cwd).is_relative_to(self._workspace.root):
            yield from find_missing_folder(text, self._workspace, Path(before.cwd))
            yield from list_names(self._workspace, Path(before.cwd))

    def _explain_network(self, process: Process, command: str, shown: Sequence[str], access: Access) -> Iterator[str]:
        """Explain that a command which failed had no network. The kernel knows it; without a proxy, the text may."""
        way = "do without it"
        if self._workspace.can_ask_for_network:
            way = 'call shell with access="network"'
        if process.had_no_route:
            self._workspace.record_block("network", command, "it tried to leave the sandbox without the proxy")
            yield f"no network: the sandbox has a proxy for HTTP(S) and no other network; for that {way}"
            return
        has_network = self._workspace.has_network or access != "workspace"
        has_proxy = PROXY_VARIABLES.items() <= process.variables.items()
        if has_proxy and not has_network:
            return
        program = _find_programs(command)[-1]
        text = "\n".join([*shown, f"{shown[-1]} of {program}"])
        if not _NO_NETWORK.search(text):
            return
        if has_network:
            yield "no connection: this machine can't reach the host"
        else:
            yield f"no network: the sandbox has none; {way}"

    def _find_blocked_write(self, text: str) -> str:
        """Find the line of an output that tells of a write which the sandbox blocked."""
        denied = self._workspace.settings.paths.deny_write
        for line in text.splitlines():
            is_denied = "Is a directory" in line and any(name in line for name in denied)
            if is_denied or _READ_ONLY.search(line):
                return line.strip()
        return ""

    def _advise(self, command: str, text: str, access: Access, code: int) -> Iterator[str]:
        if access == "full" or self._workspace.mode == "full":
            return
        yield from self._workspace.explain_limits(code, text)
        if _MISSING_IN_TMP.search(text):
            yield HIDDEN_TMP
        blocked = self._find_blocked_write(text)
        if not blocked:
            return
        self._workspace.record_blocked_write(command, blocked)
        if self._workspace.mode == "read-only":
            yield "this session can change nothing but /tmp; say what you would change"
            return
        exceptions = ", ".join((".git/config", "hooks", *self._workspace.settings.paths.deny_write))
        yield (
            f"the sandbox lets commands write only in /tmp and the workspace (not: {exceptions}); "
            "do it there or tell the person"
        )


def _describe_failures(command: str, code: int | None, codes: Sequence[int], text: str) -> list[str]:
    if code:
        return [describe_exit(code)]
    return list(_describe_pipe(command, codes, text))


def _describe_pipe(command: str, codes: Sequence[int], text: str) -> Iterator[str]:
    """Describe the failures in a pipe that succeeded, because its last command did: `make 2>&1 | tail`."""
    if len(codes) < 2 or not any(codes):
        return
    programs = _find_programs(command)[-len(codes) :]
    if text and programs[-1] == "head":
        return  # other commands fail when `head` has read enough
    unknown_count = len(codes) - len(programs)
    programs = [""] * unknown_count + programs
    for place, (code, program) in enumerate(zip(codes, programs, strict=True), 1):
        is_result = code == 1 and program in _COMPARING
        if is_result or code in (0, 128 + signal.SIGPIPE):
            continue
        who = f"{program}, " if program else ""
        yield f"{describe_exit(code)} of {who}command {place} of the pipe"


def _find_programs(command: str) -> list[str]:
    """Find the programs of the commands that are separated by `|`."""
    words = shlex.shlex(command.replace("\n", ";"), posix=True, punctuation_chars=True)
    words.whitespace_split = True
    words.commenters = ""
    programs = [""]
    with suppress(ValueError):  # an open quote, for which bash has its own message
        for word in words:
            if word in ("|", "|&"):
                programs.append("")
            elif word == ")":
                continue
            elif not word.strip("();&|"):
                programs[-1] = ""  # another command begins
            elif not programs[-1] and not _ASSIGNMENT.match(word):
                programs[-1] = word
    return programs


def _find_full_files(command: str, here: Path) -> list[tuple[str, Path]]:
    """Find the non-empty files that a command with a redirection names."""
    if ">" not in command:
        return []
    words = [word.strip("\"'`;&|<>()") for word in command.split()[:MAX_WORDS]]
    full: list[tuple[str, Path]] = []
    for word in dict.fromkeys(filter(None, words)):
        path = here / word
        if _size_bytes(path) > 0:
            full.append((word, path))
    return full


def _find_emptied(full: list[tuple[str, Path]]) -> Iterator[str]:
    """Note files that the command emptied: `sort x > x` succeeds without a message, and weak models overlook it."""
    for word, path in full:
        if _size_bytes(path) == 0:
            yield f"the file {word} is empty now: `>` emptied it before it was read; write to another file, then mv"


def _size_bytes(path: Path) -> int:
    with suppress(OSError, ValueError):
        if path.is_file():
            return path.stat().st_size
    return -1


def _check_command(command: str) -> int:
    """Return the length of a valid command in bytes.

    Raises:
        ToolError: the command cannot be run.
    """
    if not command.strip():
        raise ToolError("the command is empty")
    if "\0" in command:
        raise ToolError(r"a command can't hold a NUL byte; write it as \0, e.g. with printf")
    try:
        return len(command.encode())
    except UnicodeEncodeError as error:
        raise ToolError(f"the command holds half a character ({command[error.start]!a}); send it whole") from error


def _build_prologue(state: ShellState, root: Path, end: str) -> str:
    return _PROLOGUE.format(
        cwd=shlex.quote(state.cwd),
        exports=shlex.quote(state.exports),
        root=shlex.quote(str(root)),
        end=shlex.quote(end),
    )


def _create_file(file: Path, text: str) -> None:
    """Create a file. Fail on an existing file or link, which a command could have put there."""
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "wb") as new:
        new.write(text.encode(errors="surrogateescape"))
