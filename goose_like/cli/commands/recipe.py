"""The command `goose-like recipe`: run, list, show, check, explain and write recipes."""

from typing import Annotated

import typer

from goose_like.launch.command_line import ProfileOptions, TaskOptions, list_session_names
from goose_like.launch.options import add_options, add_profile_options

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


def _list_names() -> list[str]:
    from .recipe_actions import list_names

    return list_names()


RecipeArgument = Annotated[
    str, typer.Argument(help="Name or file of a recipe.", metavar="NAME|FILE", autocompletion=_list_names)
]
ParametersOption = Annotated[
    list[str] | None,
    typer.Option("--param", "--params", metavar="KEY=VALUE", help="Value of a parameter; repeatable."),
]
SourceOption = Annotated[
    str | None,
    typer.Option("--from", metavar="REPOSITORY", help="Take it from a git repository: an address, or OWNER/NAME."),
]
WithoutOption = Annotated[
    list[str] | None,
    typer.Option("--without", metavar="EXTENSION", help="Leave out this extension of the recipe; repeatable."),
]


@app.command(epilog="Example: goose-like recipe run release-notes --param version=2.0")
@add_options(TaskOptions, ProfileOptions)
def run(
    wanted: TaskOptions,
    options: ProfileOptions,
    recipe: RecipeArgument,
    param: ParametersOption = None,
    source: SourceOption = None,
    without: WithoutOption = None,
) -> None:
    """Run a recipe. The exit code is 0 only if its checks pass; 8 if they fail, else as in `goose-like run`."""
    from . import recipe_actions

    if wanted.is_unsaved and wanted.session:
        raise typer.BadParameter("--no-session cannot be used with --session")
    chosen = recipe_actions.ChosenRecipe(recipe, param or (), source, without or ())
    raise typer.Exit(recipe_actions.run(chosen, wanted, options))


@app.command("list", epilog="Example: goose-like recipe list")
def list_all(source: SourceOption = None) -> None:
    """List the recipes of this project, of your own folder, or of a git repository."""
    from . import recipe_actions

    recipe_actions.print_recipes(source)


@app.command(epilog="Example: goose-like recipe show release-notes")
def show(recipe: RecipeArgument, source: SourceOption = None, without: WithoutOption = None) -> None:
    """Show what a recipe does, its parameters, and everything that it brings."""
    from . import recipe_actions

    recipe_actions.print_recipe(recipe_actions.ChosenRecipe(recipe, (), source, without or ()))


@app.command(epilog="Example: goose-like recipe check .goose-like/recipes/release-notes.yaml")
def check(recipe: RecipeArgument, source: SourceOption = None, without: WithoutOption = None) -> None:
    """Check a recipe and its sub recipes. Ends with 2 if it cannot run."""
    from . import recipe_actions

    recipe_actions.check(recipe_actions.ChosenRecipe(recipe, (), source, without or ()))


@app.command(epilog="Example: goose-like recipe explain release-notes --param version=2.0")
@add_profile_options
def explain(
    options: ProfileOptions,
    recipe: RecipeArgument,
    param: ParametersOption = None,
    source: SourceOption = None,
    without: WithoutOption = None,
) -> None:
    """Show what would be sent, and with which model, tools, limits and checks. Nothing runs."""
    from . import recipe_actions

    recipe_actions.explain(recipe_actions.ChosenRecipe(recipe, param or (), source, without or ()), options)


@app.command(epilog="Example: goose-like recipe new release-notes")
def new(
    name: Annotated[str, typer.Argument(help="Name of the recipe.")],
    session: Annotated[
        str | None,
        typer.Option("--session", help="Write down what you asked for there.", autocompletion=list_session_names),
    ] = None,
    is_personal: Annotated[
        bool, typer.Option("--personal", help="For all your projects, not in .goose-like/recipes of this one.")
    ] = False,
) -> None:
    """Write a recipe, from a session or to fill in."""
    from . import recipe_actions

    recipe_actions.write(name, session, is_personal=is_personal)
