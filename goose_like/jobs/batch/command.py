"""The commands `goose-like batch`. They import what they need when they run."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperGroup

from goose_like.launch.command_line import ProfileOptions
from goose_like.launch.options import add_options

EngineName = Literal["local", "ray"]
PlaceName = Literal["worktree", "copy"]


class BatchGroup(TyperGroup):
    """A group whose command `start` may be left out."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse a command, or the arguments of `start`."""
        if args and args[0] not in (*self.commands, "-h", "--help"):
            args = ["start", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=BatchGroup,
    rich_markup_mode=None,
    no_args_is_help=True,
    epilog="Example: goose-like batch review.yaml files.csv -o results.jsonl",
)

ResultsArgument = Annotated[Path, typer.Argument(metavar="RESULTS", help="The file that `-o` named.")]
OutputOption = Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Write one line of JSON an input.")]
WorkersOption = Annotated[int | None, typer.Option(min=1, max=1000, metavar="N", help="Inputs at once [default: 4].")]
AddressOption = Annotated[
    str | None, typer.Option(help="Address of a Ray cluster [default: RAY_ADDRESS, else this machine].")
]
TotalCostOption = Annotated[
    float | None, typer.Option(min=0.0001, metavar="USD", help="Most that all inputs cost together.")
]
TotalTokensOption = Annotated[int | None, typer.Option(min=1, metavar="N", help="Most tokens of all inputs together.")]


@app.command(epilog="Example: goose-like batch fix.yaml repositories.txt -o results.jsonl --workers 8")
@add_options(ProfileOptions)
def start(
    options: ProfileOptions,
    recipe: Annotated[str, typer.Argument(help="Name or file of a recipe.")],
    inputs: Annotated[str, typer.Argument(help="A folder, a .jsonl or .csv file, or a list of repositories.")],
    output: OutputOption,
    workers: WorkersOption = None,
    place: Annotated[
        PlaceName | None, typer.Option(help="Where an input works [default: worktree in a repository, else copy].")
    ] = None,
    engine: Annotated[EngineName, typer.Option(help="local: processes here; ray: a cluster.")] = "local",
    address: AddressOption = None,
    cpus: Annotated[float, typer.Option(min=0.0, metavar="N", help="Processors that Ray keeps for an input.")] = 1.0,
    retries: Annotated[
        int, typer.Option(min=0, metavar="N", help="New attempts after a lost worker or an outage.")
    ] = 3,
    max_steps: Annotated[int | None, typer.Option(min=1, metavar="N", help="Most model requests of an input.")] = None,
    max_cost: Annotated[float | None, typer.Option(min=0.0001, metavar="USD", help="Most that an input costs.")] = None,
    max_tokens: Annotated[int | None, typer.Option(min=1, metavar="N", help="Most tokens of an input.")] = None,
    timeout: Annotated[
        float | None, typer.Option(min=0.001, metavar="SECONDS", help="Most seconds of an input.")
    ] = None,
    total_cost: TotalCostOption = None,
    total_tokens: TotalTokensOption = None,
) -> None:
    """Run a recipe on many inputs. Each has a folder, a session and a share of the budget of its own.

    Exit codes: 0 all inputs done, 1 some failed, 2 usage, 4 total cost, 5 total tokens, 130 SIGINT.
    """
    from .actions import start_batch

    limits = {"steps": max_steps, "cost_usd": max_cost, "tokens": max_tokens, "time_s": timeout}
    code = start_batch(
        recipe,
        inputs,
        output,
        options,
        place=place,
        engine=engine,
        address=address,
        cpus=cpus,
        retries=retries,
        limits={name: value for name, value in limits.items() if value is not None},
        totals={"cost_usd": total_cost, "tokens": total_tokens},
        workers=workers or 4,
    )
    raise typer.Exit(code)


@app.command(epilog="Example: goose-like batch resume results.jsonl")
def resume(
    results: ResultsArgument,
    workers: WorkersOption = None,
    address: AddressOption = None,
    total_cost: TotalCostOption = None,
    total_tokens: TotalTokensOption = None,
) -> None:
    """Finish a batch that was stopped. No finished input runs again. Options replace those of the start."""
    from .actions import resume_batch

    totals = {"cost_usd": total_cost, "tokens": total_tokens}
    raise typer.Exit(resume_batch(results, totals, workers=workers, address=address))


@app.command(epilog="Example: goose-like batch report results.jsonl")
def report(results: ResultsArgument) -> None:
    """Write a web page with a table, the diffs and the transcripts, also while the batch runs."""
    from .actions import report_batch

    print(f"wrote {report_batch(results)}")
