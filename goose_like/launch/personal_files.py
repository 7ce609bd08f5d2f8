"""Personal files of other agents: the question at the start, and what is stored about them."""

from collections.abc import Sequence
from pathlib import Path

from goose_like.config.paths import describe_read_error, home_folder, read_user_file, shorten_home
from goose_like.config.personal_files import PersonalPlace, find_personal_places
from goose_like.config.trust import load_trust, store_reading
from goose_like.core.events import Question
from goose_like.core.notifier import Notifier, ask_or_deny

_MAX_NAMED = 3


async def settle_personal_files(notifier: Notifier) -> Sequence[PersonalPlace]:
    """Return the places of other agents that may be read; ask about those that the person has not decided about.

    Without an answer they are not read, with a warning. A file that is new in a place needs no new answer.
    """
    places = find_personal_places()
    if not places:
        return ()
    read, undecided = _split_by_choice(places)
    if not undecided:
        return read
    answer = await ask_or_deny(notifier, _make_question(undecided), notifier.log)
    if answer.by == "nobody":
        names = ", ".join(shorten_home(str(place.path)) for place in undecided)
        folders = dict.fromkeys(shorten_home(str(place.path.parent)) for place in undecided)
        notifier.log(f"not read, as you did not decide: {names}; to use them: goose-like trust add {' '.join(folders)}")
        return read
    if answer.choice == "allow_always":
        _store(undecided, is_read=True)
    if not answer.is_allowed:
        _store(undecided, is_read=False)
        notifier.log("they are not read, and you are not asked again; to change that: goose-like trust list")
        return read
    return [place for place in places if place in read or place in undecided]


def _split_by_choice(places: Sequence[PersonalPlace]) -> tuple[list[PersonalPlace], list[PersonalPlace]]:
    """Return the places that the person lets goose_like read, and those about which nothing is stored."""
    read: list[PersonalPlace] = []
    undecided: list[PersonalPlace] = []
    trust = load_trust()
    for place in places:
        stored = trust.get(place.path)
        if stored is None or stored.is_read is None:
            undecided.append(place)
        elif stored.is_read:
            read.append(place)
    return read, undecided


def _store(places: Sequence[PersonalPlace], *, is_read: bool) -> None:
    for place in places:
        store_reading(place.path, is_read)


def trust_personal_files(path: Path) -> Sequence[PersonalPlace]:
    """Store that goose_like reads the places of other agents at or below a path. Return them; none without any."""
    if path == home_folder():  # it may be a project of its own
        return ()
    chosen = [place for place in find_personal_places() if place.path.is_relative_to(path)]
    _store(chosen, is_read=True)
    return chosen


def describe_places(places: Sequence[PersonalPlace]) -> str:
    """Return the places with their sizes or the names of their files."""
    return "; ".join(map(_describe_place, places))


def _describe_place(place: PersonalPlace) -> str:
    path = shorten_home(str(place.path))
    files = place.list_files()
    if place.kind == "instructions":
        return f"{path} ({place.path.stat().st_size:,} bytes)"
    names = [str(file.relative_to(place.path)) for file in files[:_MAX_NAMED]]
    listed = ", ".join(names)
    more_count = len(files) - len(names)
    if more_count:
        listed += f" and {more_count:,} more"
    return f"{path} ({listed})"


def _make_question(places: Sequence[PersonalPlace]) -> Question:
    text = f"You have instructions, commands or helpers for other agents: {describe_places(places)}."
    text += " Use them here and in all your projects?"
    detail = "\n".join(map(_format_texts, places))
    return Question(kind="trust", subject=str(home_folder()), text=text, detail=detail)


def _format_texts(place: PersonalPlace) -> str:
    parts = []
    for file in place.list_files():
        try:
            text = read_user_file(file)
        except (OSError, ValueError) as error:
            text = f"it can't be read: {describe_read_error(error)}"
        parts.append(f"{shorten_home(str(file))}:\n{text}")
    return "\n".join(parts)
