"""From `initialize` to `finalize`: components made ready in order and given back in reverse, after errors too."""

from collections.abc import Callable, Sequence
from typing import Any

from .faults import told


def initialize_all(components: Sequence[Any]) -> None:
    """Initializes each in its order. When one fails, it and those before it are finalized, the last first.

    Raises:
        BaseException: what that one raised; what went wrong after that is in its notes.
    """
    begun = list[Any]()
    try:
        for component in components:
            begun.append(component)
            component.initialize()
    except BaseException as error:
        for component in reversed(begun):
            after(error, component.finalize)
        raise


def finalize_all(components: Sequence[Any]) -> None:
    """Finalizes each, whatever happens to others of them.

    Raises:
        BaseException: what one of them raised; a group of exceptions if several did.
    """
    errors = list[BaseException]()
    for component in components:
        try:
            component.finalize()
        except BaseException as error:  # a component's code, which may want the whole process to end
            errors.append(error)
    if len(errors) > 1:
        raise BaseExceptionGroup("several components could not be finalized", errors)
    if errors:
        raise errors[0]


def after(error: BaseException, release: Callable[[], object]) -> None:
    """Gives something back after an error, which stays the one that counts."""
    try:
        release()
    except BaseException as second:  # a component's code
        if second is not error:
            words = f"{type(second).__name__}: {told(second)['message']}"
            error.add_note(f"and what it had opened was not given back in order: {words}")
