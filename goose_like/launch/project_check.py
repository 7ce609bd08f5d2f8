"""The check that a project's AGENTS.md names: the question at the start, and what is stored about it."""

from pathlib import Path

from goose_like.config.project_check import ProjectCheck, find_project_check
from goose_like.config.trust import load_folder_trust, store_check
from goose_like.core.events import Question
from goose_like.core.notifier import Notifier, ask_or_deny


async def settle_project_check(folder: Path, notifier: Notifier, *, is_trusted_now: bool) -> str:
    """Return the check of a folder if it may run; ask about one that the person has not decided about.

    Without an answer it does not run, with a warning. `is_trusted_now` allows it without a question, this time only.
    """
    check = find_project_check(folder)
    if check is None:
        return ""
    may_run = load_folder_trust(check.folder).checks.get(check.command)
    if may_run or is_trusted_now:
        return check.command
    if may_run is not None:
        return ""
    answer = await ask_or_deny(notifier, _make_question(check), notifier.log)
    if answer.by == "nobody":
        unasked = f"the check of AGENTS.md does not run, as you did not decide: {check.command}"
        notifier.log(f"{unasked}; to run it: --trust, or goose-like trust add")
        return ""
    if answer.choice == "allow_always":
        store_check(check.folder, check.command, may_run=True)
    if not answer.is_allowed:
        store_check(check.folder, check.command, may_run=False)
        notifier.log("it does not run, and you are not asked again; to change that: goose-like trust add")
        return ""
    return check.command


def _make_question(check: ProjectCheck) -> Question:
    text = f"the AGENTS.md of this project wants a check after turns with changes: {check.command}. Run it?"
    return Question(kind="trust", subject=str(check.folder), text=text, detail=f"verify: {check.command}")
