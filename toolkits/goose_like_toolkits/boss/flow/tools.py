"""All tools of a boss, each with the argument `done`, so that marking a finished step costs no request."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial, wraps
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field, create_model

from goose_like.agent.tool_call import invoke
from goose_like.core.tool import Tool, ToolSpec

DONE = "done"
_DONE_SCHEMA = {"type": "array", "items": {"type": "integer"}}

MarkSteps = Callable[[Sequence[int]], Awaitable[None]]
"""Marks steps of the plan as done, by their numbers from 1 on."""


def _to_list(value: Any) -> Any:
    """Read one number as a list, and null as no step."""
    if isinstance(value, int):
        return [value]
    return value or []


_Steps = Annotated[list[int], BeforeValidator(_to_list)]


class BossTools:
    """The tools of one boss: its own actions, and those of its toolkits.

    `open_boss` sets `specs` when the exchange is built. The toolkit of the controller sets `mark_steps`.
    """

    mark_steps: MarkSteps

    def __init__(self) -> None:
        self.specs: tuple[ToolSpec, ...] = ()

    def accept_done(self, tools: Mapping[str, Tool]) -> dict[str, Tool]:
        """Return the tools with the argument `done`. A tool with such an argument of its own stays unchanged."""
        return {name: self._accept_done(tool) for name, tool in tools.items()}

    def _accept_done(self, tool: Tool) -> Tool:
        properties = tool.spec.schema.get("properties", {})
        if DONE in properties:
            return tool
        function: Callable[..., Any] = tool.function

        @wraps(function)
        async def call(**arguments: Any) -> Any:
            steps = arguments.pop(DONE, None)
            if steps:
                await self.mark_steps(steps)
            return await invoke(function, arguments)

        schema = {**tool.spec.schema, "properties": {**properties, DONE: _DONE_SCHEMA}}
        return replace(
            tool,
            spec=replace(tool.spec, schema=schema),
            function=call,
            make_parameters=partial(_add_done, tool.make_parameters),
        )


@lru_cache(maxsize=512)  # each boss has tools of the same classes
def _add_done(make_parameters: Callable[[], type[BaseModel]]) -> type[BaseModel]:
    parameters = make_parameters()
    fields: dict[str, Any] = {"arg_done": (_Steps, Field([], alias=DONE))}
    return create_model(parameters.__name__, __base__=parameters, **fields)
