"""The command `goose-like skill`: list, show, check and write skills."""

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@app.command("list", epilog="Example: goose-like skill list")
def skill_list() -> None:
    """List the skills that can be used here, and what the model sees of them."""
    from .commands import list_skills

    list_skills(Path.cwd())


@app.command("show", epilog="Example: goose-like skill show pdf")
def skill_show(name: Annotated[str, typer.Argument(help="Name of the skill.")]) -> None:
    """Show a skill as the model reads it."""
    from .commands import show_skill

    show_skill(Path.cwd(), name)


@app.command("check", epilog="Example: goose-like skill check .agents/skills/pdf")
def skill_check(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(help="Folders of skills [default: all that can be used here].", metavar="FOLDER..."),
    ] = None,
) -> None:
    """Show what is wrong with skills; ends with 1 if one cannot be used."""
    from .commands import check_skills

    raise typer.Exit(check_skills(Path.cwd(), paths or []))


@app.command("new", epilog="Example: goose-like skill new release-notes")
def skill_new(
    name: Annotated[str, typer.Argument(help="Name of the skill, and of its folder.")],
    is_of_project: Annotated[
        bool, typer.Option("--project", help="In .agents/skills of this project, not for all your projects.")
    ] = False,
    description: Annotated[str, typer.Option(help="What the skill is for, and when to use it.")] = "",
) -> None:
    """Write a skill to fill in."""
    from .commands import write_skill_folder

    print(write_skill_folder(Path.cwd(), name, description, is_of_project=is_of_project))
