"""The slash command `/add-dir`."""

from goose_like.agent.slash_command import command
from goose_like.agent.slash_context import SlashContext
from goose_like.launch.start import add_folders


@command(usage="[DIR[:rw]]")
def add_folder(context: SlashContext, words: str) -> None:
    """Show a folder beside the workspace, with :rw to change it as well; without DIR, list these folders."""
    workspace = context.exchange.workspace
    if not words:
        lines = [f"{folder}:rw" for folder in workspace.folders]
        lines += [*map(str, workspace.readable_folders), *context.profile.paths.read]
        context.show("\n".join(lines))
        return
    word = words.strip("\"'")
    changed = add_folders(context.profile, workspace.root, [word])
    context.switch_session(profile=changed)
    is_limited = word.endswith(":rw") and workspace.mode == "read-only"
    context.show(f"{word} is added" + ("; nothing is written in this mode" if is_limited else ""))
