"""Trust at the terminal: the question at the start of a session, and what `trust add`, `list` and `forget` do."""

import asyncio
import sys
from difflib import unified_diff
from pathlib import Path

from goose_like.config.trust import Approval, Project, allowed, allowed_in, forget, is_trusted, read_project, trust
from goose_like.core.errors import UsageError
from goose_like.core.events import Answered, Asked, Question
from goose_like.terminal.escape import exact
from goose_like.terminal.interaction import has_person, screen
from goose_like.terminal.report_table import print_table


def settled_project(*, is_trusted_now: bool) -> Project | None:
    """What the project around the current folder brings and may: a person is asked about what is new.

    Where nobody is there it is left out, and told. `is_trusted_now` trusts it for this run without a question.
    """
    project = read_project(Path.cwd())
    if project is None:
        return None
    for sentence in project.refused:
        _tell(sentence)
    if is_trusted_now or not project.files or is_trusted(project):
        return project
    if has_person():
        return project if asyncio.run(_ask(project)) else None
    _tell(f"left out, as nobody has trusted it: {_brought(project)}; to use it: --trust, or `goose-like trust add`")
    return None


async def _ask(project: Project) -> bool:
    front = screen(says_answer=False)
    question = Question(kind="trust", subject=str(project.root), text=_asked(project), detail=_detail(project))
    front.notify(Asked(question=question))
    answer = await front.ask(question)
    front.notify(Answered(question=question, answer=answer))
    if answer.choice == "allow_always":
        trust(project)
    return answer.is_allowed


def _asked(project: Project) -> str:
    before = allowed_in(project.root).files or {}
    why = "has changed what you trusted" if before else "brings settings for goose-like"
    return f"this project {why}: {_brought(project)}. Use it?"


def _brought(project: Project) -> str:
    """The names and sizes, and of what was trusted before which is new, changed or gone."""
    before = allowed_in(project.root).files or {}
    told = []
    for name in sorted({*before, *project.files}):
        text = project.files.get(name)
        state = "gone" if text is None else f"{len(text.encode()):,} bytes"
        if before and text is not None:
            state += ", as before" if before.get(name) == text else ", changed" if name in before else ", new"
        told.append(f"{project.file(name)} ({state})")
    return "; ".join(told)


def _detail(project: Project) -> str:
    """The texts; of those that were trusted before what has changed in them."""
    before = allowed_in(project.root).files or {}
    parts: list[str] = []
    for name in sorted({*before, *project.files}):
        old, new = before.get(name, ""), project.files.get(name, "")
        if before:
            parts += unified_diff(old.split("\n"), new.split("\n"), f"trusted {name}", name, lineterm="", n=10_000)
        else:
            parts += [f"{name}:", *new.split("\n")]
    return "\n".join(parts)


def add_trust(folder: str) -> None:
    """Trusts what the project around a folder brings, as it stands there now."""
    project = read_project(Path(folder))
    if project is None or not project.files:
        why = (
            "; ".join(project.refused)
            if project
            else "it has neither .goose-like/profiles.yaml nor .goose-like/commands/*.md"
        )
        raise UsageError(f"there is nothing to trust in {folder!r}: {why}")
    told = _brought(project)
    trust(project)
    print(f"trusted as it is now: {told}")


def _rows() -> list[tuple[Path, Approval | None, str]]:
    """Each thing that was allowed for good: its folder, the question (None: its files), and that in words."""
    rows: list[tuple[Path, Approval | None, str]] = []
    for folder, trusted in sorted(allowed().items()):
        if trusted.files is not None:
            rows.append((folder, None, f"the project's {', '.join(trusted.files)}"))
        rows += [(folder, one, f"{one.kind}: {one.subject}") for one in trusted.approvals]
    return rows


def show_trust() -> None:
    """Everything that was allowed for good, with the numbers that `forget` takes."""
    rows = [(str(number), str(folder), exact(what)) for number, (folder, _, what) in enumerate(_rows(), 1)]
    print_table(("number", "folder", "what is allowed"), rows, "nothing was allowed for good")


def forget_trust(what: str) -> None:
    """Takes back one row of the list, or all that was allowed in a folder.

    Raises:
        UsageError: there is no such row, and nothing was allowed in a folder of that name.
    """
    rows = _rows()
    if what.isdecimal():
        chosen = rows[int(what) - 1 : int(what)] if what != "0" else []
    else:
        chosen = [row for row in rows if row[0] == Path(what).resolve()]
    if not chosen:
        raise UsageError(f"nothing was allowed as {what!r}; see the numbers and folders of `goose-like trust list`")
    for folder, approval, words in chosen:
        forget(folder, approval)
        print(f"forgotten: {exact(words)} in {folder}")


def _tell(sentence: str) -> None:
    print(f"goose-like: {exact(sentence)}", file=sys.stderr)
