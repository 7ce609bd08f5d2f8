"""OpenBBToolkit: the client's functions as remote tools, and tables, charts and pages to show."""

from goose_like.toolkit import Toolkit


class OpenBBToolkit(Toolkit):
    """Tools for a dashboard. `config["query"]` is the request that is answered; without one no widget is known."""
