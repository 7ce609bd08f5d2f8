"""`/recipe`: write down what the person asked for in this session, to run it again."""

from goose_like.agent.slash_command import command
from goose_like.agent.slash_context import SlashContext
from goose_like.config.paths import shorten_home
from goose_like.core.errors import UsageError
from goose_like.recipes.places import list_places
from goose_like.recipes.writing import write_recipe
from goose_like.sessions.index import list_texts
from goose_like.terminal.escape import escape_controls


@command(usage="NAME")
def recipe(context: SlashContext, words: str) -> None:
    """Write a recipe from your messages in this session, with the check of the profile."""
    exchange = context.exchange
    messages = list_texts(exchange.session.folder)
    if not messages:
        raise UsageError("say what to do first, then /recipe NAME")
    if not words:
        raise UsageError("write a name: /recipe NAME")
    check = context.profile.verify
    project, _ = list_places(exchange.workspace.root)
    file = write_recipe(project, words, messages, check.commands if check else ())
    context.show(escape_controls(f"written: {shorten_home(str(file))}; run it: goose-like recipe run {words}"))
