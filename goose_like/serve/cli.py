"""`goose-like serve`. Imported at every start, so it is light."""

import typer

app = typer.Typer(rich_markup_mode=None, help="Make a profile available to OpenBB Workspace over HTTP.")


@app.callback(invoke_without_command=True)
def serve() -> None:
    """Serves until it is told to stop."""
