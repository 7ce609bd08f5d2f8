"""The class of the toolkit `repo_context`."""

import asyncio
import hashlib
from collections.abc import Iterable
from typing import Annotated, Any, ClassVar

from pydantic import Field
from typing_extensions import override

from goose_like.config.paths import cache_folder
from goose_like.core.errors import GooseLikeError, ProviderError
from goose_like.toolkit import Notifier, Requirements, ToolError, Toolkit, tool

from .repo_map import RepoMap
from .task_hints import read_hints

_MAX_SUMMARIES = 20
_MAX_LISTED_CHARACTERS = 30_000
_MAX_FILE_BYTES = 100_000
_MAX_PARALLEL_REQUESTS = 4
_CHOICE_PROMPT = (
    "Below are the files of a project. Which at most {count} of them tell a new developer most about what it does and "
    "how it is built? Answer with their paths, one a line, and nothing else.\n\n{paths}"
)
_SUMMARY_PROMPT = (
    "Sum up this file of a project for a new developer, in at most three sentences: what it is for, and what in it "
    "others use.\n\n{path}:\n\n{text}"
)


class RepoContextToolkit(Toolkit):
    """A map of the current project, and summaries of its files by the accelerator; both are cached."""

    is_confined: ClassVar[bool] = True

    def __init__(self, notifier: Notifier, requires: Requirements, **kwargs: Any) -> None:
        super().__init__(notifier, requires, **kwargs)
        self._map = RepoMap(self.workspace, notifier, cache_folder() / "repo_context" / "map-1.db")

    @override
    def prompt(self) -> str:
        return (
            "To learn about a project that you don't know, call `summarize_current_project` once. To see where things "
            "are defined in it, call `map_repository`, with words of your task as `about`."
        )

    @tool(parallel=True, kind="search", title="Map {path} {about}", paths=("path",))
    async def map_repository(
        self,
        path: str = ".",
        about: str = "",
        budget: Annotated[int, Field(ge=1_000)] = 8_000,
    ) -> str:
        """List the classes and functions of a folder or file with their lines: those of your task, then the most used.

        Args:
            path: in the workspace; all of it by default.
            about: names, or words that may be part of names, to put first.
            budget: the most characters to answer with.
        """
        hints = read_hints(self.exchange_view.processor.messages, self.workspace.root)
        return await self._map.build(path, about, min(budget, self.limits.output_bytes), hints)

    @override
    async def close(self) -> None:
        await self._map.close()

    @tool(parallel=True, title="Summarize this project")
    async def summarize_current_project(self) -> dict[str, str]:
        """Summarize the most informative files of this project, by path. Slow the first time."""
        self.notifier.status("choosing files")
        paths = await self._list_files()
        if not paths:
            raise ToolError("there are no files here to sum up; look with the shell")
        listed = "\n".join(paths)[:_MAX_LISTED_CHARACTERS]
        answer = await self._ask(_CHOICE_PROMPT.format(count=_MAX_SUMMARIES, paths=listed))
        chosen = _find_paths(answer, paths)[:_MAX_SUMMARIES]
        if not chosen:
            raise ToolError(f"the fast model named no file that there is; it said: {answer[:200]!r}; use the shell")
        slots = asyncio.Semaphore(_MAX_PARALLEL_REQUESTS)
        try:
            async with asyncio.TaskGroup() as group:
                tasks = {path: group.create_task(self._summarize(path, slots)) for path in chosen}
        except* ProviderError as failed:
            raise ToolError(f"the fast model failed: {failed.exceptions[0]}") from failed
        self.notifier.log(f"summed up {len(chosen)} files of {len(paths)}")
        return {path: task.result() for path, task in tasks.items()}

    async def _list_files(self) -> list[str]:
        """List the files that git does not ignore, except hidden ones, which may contain secrets."""
        process = await self.workspace.spawn(["rg", "--files", "--sort", "path"], writes=False)
        output = bytearray()
        if not await process.read_all(output.extend):
            await process.stop(0)
        return output.decode(errors="replace").splitlines()

    async def _summarize(self, path: str, slots: asyncio.Semaphore) -> str:
        async with slots:
            try:
                data = self.workspace.read_bytes(path, _MAX_FILE_BYTES)
                text = data.decode()
            except (GooseLikeError, OSError, UnicodeDecodeError):
                return "(no text, or too long to be summed up)"
            self.notifier.status(f"summing up {path}")
            return await self._ask(_SUMMARY_PROMPT.format(path=path, text=text))

    async def _ask(self, question: str) -> str:
        """Return the accelerator's answer, from the cache if the same model was asked the same question before."""
        model = self.exchange_view.accelerator
        identity = f"{model.model.label}\n{question}"
        key = hashlib.sha256(identity.encode()).hexdigest()
        file = cache_folder() / "repo_context" / f"{key}.txt"
        if file.is_file():
            return file.read_text(encoding="utf-8")
        answer = await model.ask(question, purpose="project summary")
        file.parent.mkdir(parents=True, exist_ok=True)
        unfinished = file.with_suffix(".new")
        unfinished.write_text(answer, encoding="utf-8")
        unfinished.replace(file)
        return answer


def _find_paths(answer: str, paths: Iterable[str]) -> list[str]:
    """Return the paths that a model names, one a line, without those that do not exist."""
    known = set(paths)
    found: dict[str, None] = {}
    for line in answer.splitlines():
        path = line.strip("-*` ")
        if path in known:
            found[path] = None
    return list(found)
