"""The actions `write_code`, `save_code` and `run_code`."""

from pathlib import Path

from goose_like.core.events import StateSaved
from goose_like.core.tool import current_call
from goose_like.sessions.output_limit import LimitedOutput
from goose_like.toolkit import ToolError, Toolkit, TransientResult, tool
from goose_like_toolkits.boss.library.code_library import get_module_name, list_definitions, save_draft
from goose_like_toolkits.boss.library.runner import CodeResult, run_code
from goose_like_toolkits.boss.spec import LIBRARY

from .rounds import Rounds

DRAFT_STATE = "boss.draft"
"""Key in `History.state` of the newest code of `write_code`, for `save_code`."""

_TIME_LIMIT_S = 120.0
_OUTPUT_BYTES = 8_000


class CodeActions:
    """Code of a boss: written as a draft, tested, saved in the library, and run together with it."""

    def __init__(self, host: Toolkit, rounds: Rounds) -> None:
        self._host = host
        self._rounds = rounds

    @tool
    async def write_code(self, code: str, tests: str = "") -> TransientResult:
        """Write functions for the code library as a draft, and try them. `save_code` keeps the newest draft.

        Args:
            code: Python definitions, with docstrings.
            tests: Statements that fail if the code is wrong, such as `assert add(1, 2) == 3`.
        """
        names = list_definitions(code)
        self._add_to_library(code, replace=True)  # checks that the draft can be saved
        if tests.strip():
            result = await self._run(f"{code}\n\n{tests}")
            if not result.is_success:
                raise ToolError(f"the tests fail; correct the code and send it again:\n{result.text}")
        self._host.notifier.notify(StateSaved(toolkit=DRAFT_STATE, value=code))
        state = "passes its tests" if tests.strip() else "has no syntax errors; it was not run"
        text = f"draft of {names} {state}"
        return TransientResult(f"the {text}; `save_code` keeps it", replacement=f"a {text}")

    @tool
    async def save_code(self, replace: bool = False) -> TransientResult:
        """Put the newest draft into the code library.

        Args:
            replace: Allow the draft to replace existing functions.
        """
        code = self._host.session.history.state.get(DRAFT_STATE)
        if not isinstance(code, str):
            raise ToolError("there is no draft; make one with `write_code`")
        if not await self._rounds.replace(LIBRARY, self._add_to_library(code, replace=replace)):
            raise ToolError("somebody changed the library meanwhile; look at it in your memory, and save again")
        names = list_definitions(code)
        return TransientResult(
            f"{names}: in the library; import with `from {self._library.stem} import ...`",
            replacement=f"{names} is in the library",
        )

    @tool(time_limit_s=None)
    async def run_code(self, code: str) -> str:
        """Run Python in a fresh process, which can import the library in its current state.

        Args:
            code: A script; only what it prints is seen.
        """
        result = await self._run(code)
        if not result.is_success:
            raise ToolError(result.text)
        return result.text

    @property
    def _library(self) -> Path:
        return self._rounds.files.paths[LIBRARY]

    def _add_to_library(self, code: str, *, replace: bool) -> str:
        source = self._rounds.texts.get(LIBRARY, "")
        return save_draft(source, code, replace=replace, module=get_module_name(self._library))

    async def _run(self, code: str) -> CodeResult:
        host, source = self._host, self._rounds.texts.get(LIBRARY, "")
        output = LimitedOutput(host.session.output_path(current_call.get("code")), _OUTPUT_BYTES)
        return await run_code(
            code, self._library, source, host.workspace, output, host.report_progress, time_limit_s=_TIME_LIMIT_S
        )
