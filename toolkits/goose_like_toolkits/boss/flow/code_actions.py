"""The actions `write_code`, `save_code` and `run_code`."""

from typing import Any

from goose_like.core.events import StateSaved
from goose_like.core.tool import current_call
from goose_like.sessions.output_limit import LimitedOutput
from goose_like.toolkit import ToolError, Toolkit, TransientResult, tool
from goose_like_toolkits.boss.library.code_library import get_module_name, list_definitions, save_draft
from goose_like_toolkits.boss.library.kept_tests import keep_tests
from goose_like_toolkits.boss.library.runner import CodeResult, run_code
from goose_like_toolkits.boss.spec import LIBRARY, TESTS

from .rounds import Rounds

DRAFT_STATE = "boss.draft"
"""Key in `History.state` of the newest `code` and `tests` of `write_code`, for `save_code`."""

_TIME_LIMIT_S = 120.0
_OUTPUT_BYTES = 8_000


class CodeActions:
    """Code of a boss: written as a draft, tested, saved in the library, and run together with it."""

    def __init__(self, host: Toolkit, rounds: Rounds) -> None:
        self._host = host
        self._rounds = rounds

    @tool(kind="execute", title="Test {code}")
    async def write_code(self, code: str, tests: str = "") -> TransientResult:
        """Write functions for the code library as a draft, and test them. `save_code` keeps the newest draft.

        Args:
            code: Python definitions, with docstrings.
            tests: Statements that fail if the code is wrong: `assert add(1, 2) == 3`. Later drafts run them too.
        """
        if self._get_draft():
            # If this draft fails, `save_code` must not save the one before it.
            self._set_draft(None)
        names = list_definitions(code)
        library = self._add_to_library(code, replace=True)  # checks that the draft can be saved
        kept = self._rounds.texts.get(TESTS, "")
        program = keep_tests(kept, names, tests, self._module)
        # An import that fails would break the library for every later draft.
        result = await self._run(program or f"import {self._module}", library)
        if not result.is_success:
            if not program:
                problem = "the library can't be imported with this draft"
            elif kept:
                problem = "the tests fail (those of earlier drafts ran too)"
            else:
                problem = "the tests fail"
            raise ToolError(f"{problem}; correct the code and send it again:\n{result.text}")
        self._set_draft({"code": code, "tests": tests})
        if not program:
            outcome = "can be imported; it was not tested"
        elif tests.strip():
            outcome = "passes its tests"
        else:
            outcome = "passes the tests of earlier drafts, and has none of its own"
        text = f"draft of {', '.join(names)} {outcome}"
        return TransientResult(f"the {text}; `save_code` keeps it", replacement=f"a {text}")

    @tool(kind="edit", title="Save the draft in the code library")
    async def save_code(self, replace: bool = False) -> TransientResult:
        """Put the newest draft into the code library, and its tests beside it.

        Args:
            replace: Allow the draft to replace existing functions.
        """
        draft = self._get_draft()
        if not isinstance(draft, dict):
            raise ToolError("there is no draft that passed its tests; make one with `write_code`")
        code = str(draft["code"])
        names = list_definitions(code)
        kept = self._rounds.texts.get(TESTS, "")
        tests = keep_tests(kept, names, str(draft["tests"]), self._module)
        library = self._add_to_library(code, replace=replace)
        is_saved = await self._rounds.replace(LIBRARY, library) and await self._rounds.replace(TESTS, tests)
        if not is_saved:
            raise ToolError("somebody changed the library meanwhile; look at it in your memory, and save again")
        listed = ", ".join(names)
        return TransientResult(
            f"{listed}: in the library; import with `from {self._module} import ...`",
            replacement=f"saved in the library: {listed}",
        )

    @tool(time_limit_s=None, kind="execute", title="Run {code}")
    async def run_code(self, code: str) -> str:
        """Run Python in a fresh process, which can import the library in its current state.

        Args:
            code: A script; only what it prints is seen.
        """
        result = await self._run(code, self._rounds.texts.get(LIBRARY, ""))
        if not result.is_success:
            raise ToolError(result.text)
        return result.text

    @property
    def _module(self) -> str:
        return get_module_name(self._rounds.files.paths[LIBRARY])

    def _get_draft(self) -> Any:
        return self._host.session.history.state.get(DRAFT_STATE)

    def _set_draft(self, draft: dict[str, str] | None) -> None:
        self._host.notifier.notify(StateSaved(toolkit=DRAFT_STATE, value=draft))

    def _add_to_library(self, code: str, *, replace: bool) -> str:
        source = self._rounds.texts.get(LIBRARY, "")
        tests = self._rounds.texts.get(TESTS, "")
        return save_draft(source, code, replace=replace, module=self._module, tests=tests)

    async def _run(self, code: str, library: str) -> CodeResult:
        """Run code that can import the library with this text."""
        host = self._host
        path = self._rounds.files.paths[LIBRARY]
        output = LimitedOutput(host.session.output_path(current_call.get("code")), _OUTPUT_BYTES)
        return await run_code(
            code, path, library, host.workspace, output, host.report_progress, time_limit_s=_TIME_LIMIT_S
        )
