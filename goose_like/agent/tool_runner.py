"""The tool calls of one model message: their order, and their results in the journal."""

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from goose_like.core.dataclass import dataclass
from goose_like.core.errors import GooseLikeError
from goose_like.core.events import ToolFinished
from goose_like.core.images import is_pdf, save_image
from goose_like.core.masking import mask_text, mask_value
from goose_like.core.message import Image, ToolCall, ToolResult
from goose_like.core.tool import ImageResult, Tool, ToolOptions, current_call
from goose_like.providers.wire import is_json_object
from goose_like.sessions.output_limit import limit_text
from goose_like.workspace.workspace import Workspace

from .arguments import describe_cut
from .attached_files import read_pdf_text
from .call_hooks import CallHooks
from .call_start import start_call
from .hook_values import ResultChange
from .journal import Journal
from .tool_call import CallOutcome, call_tool

WARN_EQUAL_FAILURES = 3


@dataclass(frozen=True, slots=True)
class ToolRunner:
    """Runs tool calls and emits their results. Each result has at most `output_limit_bytes` of output.

    A `workspace` reads the text of PDF files, for a model that takes none.
    """

    tools: Mapping[str, Tool]
    journal: Journal
    hooks: CallHooks
    output_limit_bytes: int
    workspace: Workspace | None = None

    async def run(self, calls: Sequence[ToolCall], *, is_cut: bool = False) -> None:
        """Run the calls of one model message in order, adjacent parallel ones together.

        After an edit that failed, calls that may change something do not run. Neither does the last call of a message
        that `is_cut`, if its arguments are incomplete.

        Raises:
            SessionError: a result cannot be written.
        """
        failed_edit = ""
        cut = self._find_cut(calls) if is_cut else None
        if cut:
            calls = calls[:-1]
        for batch in self._split_batches(calls):
            first = batch[0]
            if failed_edit and self._may_change(first):
                self._skip(batch, failed_edit)
                continue
            has_succeeded = await self._run_batch(batch)
            if self._get_options(first).edits and not has_succeeded:
                failed_edit = first.name
        if cut:
            self._refuse(cut, describe_cut(self.tools[cut.name]))

    def _find_cut(self, calls: Sequence[ToolCall]) -> ToolCall | None:
        """Find the call whose arguments end in the middle."""
        if not calls:
            return None
        last = calls[-1]
        if last.name not in self.tools or is_json_object(last.arguments):
            return None
        return last

    def _split_batches(self, calls: Sequence[ToolCall]) -> Iterator[list[ToolCall]]:
        """Split calls into batches, which run one after the other. Adjacent parallel calls are one batch."""
        for parallel, group in groupby(calls, self._get_parallel):
            if parallel:
                yield list(group)
                continue
            for call in group:
                yield [call]

    def _get_parallel(self, call: ToolCall) -> bool | str:
        """Return False, True, or the name of a tool whose calls run only beside each other."""
        parallel = self._get_options(call).parallel
        return call.name if parallel == "same tool" else parallel

    def _get_options(self, call: ToolCall) -> ToolOptions:
        if call.name in self.tools:
            return self.tools[call.name].options
        return ToolOptions()

    def _may_change(self, call: ToolCall) -> bool:
        """Check whether a call may change something, such as commit files that a failed edit left as they were."""
        if call.name not in self.tools:
            return False
        options = self.tools[call.name].options
        if options.is_read_only(call.name):
            return False
        if options.reads_only_with is None:
            return True
        try:
            arguments = json.loads(call.arguments)
            only_reads = isinstance(arguments, dict) and options.reads_only_with(arguments)
        except ValueError:
            return True
        return not only_reads

    def _skip(self, calls: Sequence[ToolCall], failed_edit: str) -> None:
        text = (
            f"not run: {failed_edit} failed earlier in this message, and this call may write or commit. Repair that "
            "edit, then send this call again if it still fits"
        )
        for call in calls:
            self._refuse(call, text)

    def _refuse(self, call: ToolCall, text: str) -> None:
        """Give a call a result without running it."""
        self._emit_start(call)
        result = ToolResult(call_id=call.id, output=text, is_error=True)
        self.journal.emit(ToolFinished(result=result))

    async def _run_batch(self, calls: Sequence[ToolCall]) -> bool:
        """Run calls beside each other, and return whether all succeeded."""
        tasks = []
        try:
            async with asyncio.TaskGroup() as group:
                for call in calls:
                    tasks.append(group.create_task(self._run_call(call)))
        except BaseExceptionGroup as errors:  # tools never raise, but the journal may
            raise errors.exceptions[0] from None
        return all(task.result() for task in tasks)

    async def _run_call(self, call: ToolCall) -> bool:
        """Run one call, and return whether it succeeded.

        For a remote tool, only check the arguments: a valid call stays open for the client.
        """
        if self._is_left_out(call):
            listed = [name for name, tool in self.tools.items() if not tool.spec.deferred_group]
            names = ", ".join(listed) or "none"
            text = f"not allowed: {call.name} cannot be used in this mode; the tools are: {names}"
            self._refuse(call, text)
            return False
        is_remote = self._get_options(call).remote
        if not is_remote:
            self._emit_start(call)
        current_call.set(call.id)
        outcome = await call_tool(self.tools, call)
        if self.workspace and outcome.image and is_pdf(outcome.image.data):
            outcome = await _read_document(outcome, outcome.image, self.workspace)
        change = await self.hooks.finish(call, outcome.output, is_error=outcome.is_error, is_denied=outcome.is_denied)
        if is_remote:
            if not outcome.is_error:
                return True
            self._emit_start(call)  # the client never learns of a wrong call, so it starts and ends here
        result = self._create_result(call, outcome, change)
        self.journal.emit(ToolFinished(result=result))
        return not outcome.is_error

    def _is_left_out(self, call: ToolCall) -> bool:
        """Check for a tool that the model knows, and that this turn does not have."""
        known = self.journal.history.context.known_prompt
        if known is None or call.name in self.tools:
            return False
        return call.name in known.tools

    def _emit_start(self, call: ToolCall) -> None:
        self.journal.emit(start_call(call, self.tools, self.journal.history))

    def _create_result(self, call: ToolCall, outcome: CallOutcome, change: ResultChange) -> ToolResult:
        session = self.journal.session
        call = mask_value(call)  # as in the history
        if change.output is not None:  # in place of all that the tool gave
            outcome = replace(outcome, output=change.output, image=None, replacement=None)
        limit_bytes = max(self.output_limit_bytes, self._get_options(call).output_bytes)
        output = limit_text(mask_text(outcome.output), session.output_path(call.id), limit_bytes)
        if outcome.is_error:
            output += self._warn_of_repetition(call)
        output += change.context
        images: tuple[Image, ...] = ()
        if outcome.image:
            image = save_image(outcome.image.data, outcome.image.source, session.outputs)
            images = (image,)
        replacement = outcome.replacement
        if replacement is not None:
            replacement = replacement[: self.output_limit_bytes]
        return ToolResult(
            call_id=call.id,
            output=output,
            is_error=outcome.is_error,
            images=images,
            replacement=replacement,
            is_final=outcome.is_final,
        )

    def _warn_of_repetition(self, call: ToolCall) -> str:
        """Return a note for the model if a call that fails now has failed often."""
        failures = self.journal.history.failures.get((call.name, call.arguments), 0) + 1
        if failures < WARN_EQUAL_FAILURES:
            return ""
        return f"\n[this very call has failed {failures} times; do something else, or say what you need]"


async def _read_document(outcome: CallOutcome, file: ImageResult, workspace: Workspace) -> CallOutcome:
    """Put the text of a PDF file in the place of the file, for a model that takes none."""
    try:
        text = await read_pdf_text(workspace, file.data, file.source)
    except GooseLikeError as error:
        return replace(outcome, output=str(error), image=None, is_error=True)
    return replace(outcome, output=f"{outcome.output}\n{text}", image=None)
