"""Sub recipes: a tool for each, which has a helper work on it. The model gives the values that are still open."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from goose_like.config.profile import Profile
from goose_like.core.errors import GooseLikeError
from goose_like.core.message import ToolSpec
from goose_like.core.tool import Tool, ToolOptions, accept_any
from goose_like.providers.json_answer import AnswerSchema
from goose_like.recipes.content import Parameter
from goose_like.recipes.profile import change_profile, name_model
from goose_like.recipes.recipe import FilledRecipe, Recipe, load_recipe, write_values
from goose_like.recipes.trust import find_risky_values
from goose_like.toolkit import ToolError
from goose_like.workspace.workspace import Workspace

from .config import SubRecipeConfig
from .kinds import SubagentKind

_MAX_FILE_BYTES = 1_000_000
_TYPES = {"number": "number", "boolean": "boolean", "object": "object", "array": "array"}


def make_recipe_tool(config: SubRecipeConfig, run: Callable[[Mapping[str, Any]], Awaitable[str]]) -> Tool:
    """Return the tool of a sub recipe. Its arguments are the parameters without a value."""
    outline = _load(config).outline
    open_parameters = [parameter for parameter in outline.parameters if parameter.key not in config.values]
    properties = {}
    required = []
    for parameter in open_parameters:
        properties[parameter.key] = _describe_parameter(parameter)
        if parameter.default is None and parameter.requirement != "optional":
            required.append(parameter.key)
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    description = f"Have a helper run the recipe {config.name!r}: {outline.description}"

    async def call(**arguments: Any) -> str:
        return await run(arguments)

    options = ToolOptions(
        parallel=False if config.is_sequential else "same tool",
        time_limit_s=None,
        kind="think",
        title=f"Recipe: {config.name}",
    )
    return Tool(ToolSpec(config.tool_name, description, schema), call, accept_any, options)


def _load(config: SubRecipeConfig) -> Recipe:
    return load_recipe(config.file, config.texts, is_sub=True)


def _describe_parameter(parameter: Parameter) -> dict[str, Any]:
    described: dict[str, Any] = {"type": _TYPES.get(parameter.input_type, "string")}
    text = parameter.description
    if parameter.input_type == "file":
        text = f"{text} (the path of a file)"
    if text:
        described["description"] = text
    if parameter.options:
        described["enum"] = list(parameter.options)
    return described


def fill_sub_recipe(config: SubRecipeConfig, arguments: Mapping[str, Any], workspace: Workspace) -> FilledRecipe:
    """Fill in a sub recipe with the values of the parent and of the model.

    Raises:
        ToolError: a value is missing or wrong, or would become a part of a command or an address.
    """
    recipe = _load(config)
    given = write_values(arguments)

    def read_file(path: str) -> str:
        # As the model, which must not read secrets this way.
        return workspace.read_bytes(workspace.resolve(path), _MAX_FILE_BYTES).decode()

    try:
        filled = recipe.fill({**given, **config.values}, read_file)
        risky = find_risky_values(filled, config.without)
    except GooseLikeError as error:
        raise ToolError(str(error)) from error
    chosen = [key for key in risky if key not in config.values]
    if chosen:
        raise ToolError(f"{', '.join(chosen)} would become a part of a command or an address; give one plain word")
    return filled


def make_recipe_kind(filled: FilledRecipe, parent: Profile, without: Sequence[str]) -> SubagentKind:
    """Return the kind of helper that works on a sub recipe."""
    schema = filled.content.response.json_schema
    return SubagentKind(
        change_profile(filled, parent, without),
        prompt=filled.instructions,
        model=name_model(filled) or "",
        answer_schema=AnswerSchema.read(schema) if schema else None,
    )
