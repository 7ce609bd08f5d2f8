"""Code: drafted, tried, kept in the library, run with it."""

from goose_like.core.events import StateSaved
from goose_like.core.output_limit import LimitedOutput
from goose_like.core.tool import current_call
from goose_like.toolkit import ToolError, TransientResult, tool
from goose_like_toolkits.boss.library import code_library as library
from goose_like_toolkits.boss.library.runner import Ran, run
from goose_like_toolkits.boss.spec import LIBRARY

from .rounds import Rounds

DRAFT = "boss.draft"
"""The key in `History.state` of the code that `write_code` made and `save_code` saves."""

_TRIAL_S = 120.0
_ROOM_BYTES = 8_000


class Coding(Rounds):
    """The actions `write_code`, `save_code` and `run_code`."""

    @tool(alone=True)
    async def write_code(self, code: str, tests: str = "") -> TransientResult:
        """Write functions for the code library as a draft, and try them. `save_code` keeps the newest draft.

        Args:
            code: Python definitions, with docstrings.
            tests: Statements that fail if the code is wrong, such as `assert add(1, 2) == 3`.
        """
        names = library.defined(code)
        self._saved(code, replace=True)
        if tests.strip():
            ran = await self._run(f"{code}\n\n{tests}")
            if not ran.is_well:
                raise ToolError(f"the tests fail; send the code anew:\n{ran.told}")
        self.notifier.notify(StateSaved(toolkit=DRAFT, value=code))
        how = "passes its tests" if tests.strip() else "can be read; it was not run"
        return TransientResult(
            f"the draft of {names} {how}; `save_code` keeps it", replacement=f"a draft of {names} {how}"
        )

    @tool(alone=True)
    async def save_code(self, replace: bool = False) -> TransientResult:
        """Put the newest draft into the code library.

        Args:
            replace: Whether functions that are there already may be replaced.
        """
        code = self.session.history.state.get(DRAFT)
        if not isinstance(code, str):
            raise ToolError("there is no draft; make one with `write_code`")
        after = self._saved(code, replace=replace)
        if not await self._notes.put(LIBRARY, after):
            raise ToolError("somebody changed the library meanwhile; look at it in your memory, and save again")
        names = library.defined(code)
        return TransientResult(
            f"{names}: in the library; `from {self._module} import ...` brings it",
            replacement=f"{names} is in the library",
        )

    @tool(alone=True, time_limit_s=None)
    async def run_code(self, code: str) -> str:
        """Run Python in a fresh process. The library is there to be imported, as it is now.

        Args:
            code: A script; only what it prints is seen.
        """
        ran = await self._run(code)
        if not ran.is_well:
            raise ToolError(ran.told)
        return ran.told

    @property
    def _module(self) -> str:
        return library.module_name(self._notes.memory.path(LIBRARY))

    def _saved(self, code: str, *, replace: bool) -> str:
        return library.saved(self._notes.texts.get(LIBRARY, ""), code, replace=replace, module=self._module)

    async def _run(self, code: str) -> Ran:
        memory = self._notes.memory
        file = memory.path(LIBRARY) if LIBRARY in self._spec.memory_files else None
        source = self._notes.texts.get(LIBRARY, "") if file and memory.is_ours(LIBRARY) else None
        output = LimitedOutput(self.session.output_of(current_call.get("code")), _ROOM_BYTES)
        return await run(code, file, self.workspace, output, self.progress, time_limit_s=_TRIAL_S, source=source)
