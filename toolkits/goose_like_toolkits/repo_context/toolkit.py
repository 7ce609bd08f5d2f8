"""RepoContextToolkit: a map of a project's definitions, and what its most telling files are for."""

import asyncio
import hashlib
from typing import Annotated, Any

from pydantic import Field

from goose_like.config.paths import cache_folder
from goose_like.core.errors import GooseLikeError, ProviderError
from goose_like.toolkit import Notifier, Requirements, ToolError, Toolkit, tool

from .map import Map

_FILES = 20
_LISTED_CHARACTERS = 30_000
_FILE_BYTES = 100_000
_AT_ONCE = 4
_PICK = (
    "Below are the files of a project. Which at most {count} of them tell a new developer most about what it does and "
    "how it is built? Answer with their paths, one a line, and nothing else.\n\n{paths}"
)
_SUM_UP = (
    "Sum up this file of a project for a new developer, in at most three sentences: what it is for, and what in it "
    "others use.\n\n{path}:\n\n{text}"
)


class RepoContextToolkit(Toolkit):
    """A map of the current project, and summaries made by the fast model; what was found is remembered."""

    def __init__(self, notifier: Notifier, requires: Requirements, **kwargs: Any) -> None:
        super().__init__(notifier, requires, **kwargs)
        self._map = Map(self.workspace, notifier, cache_folder() / "repo_context" / "map-1.db")

    def prompt(self) -> str:
        """When to ask."""
        return (
            "To learn what a project is that you don't know, call `summarize_current_project` once. To see where what "
            "is defined in it, call `map_repository`, with words of your task as `about`."
        )

    @tool
    async def map_repository(
        self, path: str = ".", about: str = "", budget: Annotated[int, Field(ge=1_000)] = 8_000
    ) -> str:
        """The classes and functions of a folder or file with their lines, most used ones first.

        Args:
            path: in the workspace; all of it by default.
            about: names, or words that may be part of names, to put first.
            budget: the most characters to answer with.
        """
        return await self._map.draw(path, about, min(budget, self.limits.output_bytes))

    async def close(self) -> None:
        await self._map.close()

    @tool
    async def summarize_current_project(self) -> dict[str, str]:
        """What the most telling files of this project are for, by path. Slow the first time."""
        self.notifier.status("choosing files")
        paths = await self._paths()
        if not paths:
            raise ToolError("there are no files here to sum up; look with the shell")
        listed = "\n".join(paths)[:_LISTED_CHARACTERS]
        answer = await self._ask(_PICK.format(count=_FILES, paths=listed))
        named = [line.strip("-*` ") for line in answer.splitlines()]
        picked = [path for path in dict.fromkeys(named) if path in set(paths)][:_FILES]
        if not picked:
            raise ToolError(f"the fast model named no file that there is; it said: {answer[:200]!r}; use the shell")
        places = asyncio.Semaphore(_AT_ONCE)
        try:
            async with asyncio.TaskGroup() as group:
                tasks = {path: group.create_task(self._sum_up(path, places)) for path in picked}
        except* ProviderError as failed:
            raise ToolError(f"the fast model failed: {failed.exceptions[0]}") from failed
        self.notifier.log(f"summed up {len(picked)} files of {len(paths)}")
        return {path: task.result() for path, task in tasks.items()}

    async def _paths(self) -> list[str]:
        """Every file that git would not ignore, but for hidden ones, which may hold secrets."""
        process = await self.workspace.spawn(["rg", "--files", "--sort", "path"], writes=False)
        output = b""
        while chunk := await process.read():
            output += chunk
        return output.decode(errors="replace").splitlines()

    async def _sum_up(self, path: str, places: asyncio.Semaphore) -> str:
        async with places:
            try:
                text = self.workspace.read_bytes(path, _FILE_BYTES).decode()
            except (GooseLikeError, OSError, UnicodeDecodeError):
                return "(no text, or too long to be summed up)"
            self.notifier.status(f"summing up {path}")
            return await self._ask(_SUM_UP.format(path=path, text=text))

    async def _ask(self, question: str) -> str:
        """The accelerator's answer, from the cache if it was asked this before: the same content is summed up once."""
        model = self.exchange_view.accelerator
        name = hashlib.sha256(f"{model.model.label}\n{question}".encode()).hexdigest()
        file = cache_folder() / "repo_context" / f"{name}.txt"
        if file.is_file():
            return file.read_text(encoding="utf-8")
        answer = await model.ask(question, purpose="project summary")
        file.parent.mkdir(parents=True, exist_ok=True)
        unfinished = file.with_suffix(".new")
        unfinished.write_text(answer, encoding="utf-8")
        unfinished.replace(file)
        return answer
