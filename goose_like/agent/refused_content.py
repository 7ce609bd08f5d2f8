"""Content that a server refuses: found by the text of the refusal, and left out of all later requests.

Without this, an image or a piece of thinking that a server refuses would block the session for good.
"""

import re
from collections.abc import Sequence

from goose_like.core.errors import ProviderError
from goose_like.core.events import StateSaved
from goose_like.core.history import PROMPT_STATE_KEY, History
from goose_like.core.message import Image, Message, RedactedThinking, Thinking
from goose_like.core.pattern import compile_later
from goose_like.providers.wire import TOO_LARGE

IMAGES_STATE_KEY = "refused_images"
"""The key in `History.state` of the names of refused images."""

_ABOUT_IMAGES = compile_later(r"image|picture|photo|vision|multimodal|\bpdf\b|document|input_file", re.I)
_ABOUT_ALL_IMAGES = compile_later(r"(not|n't|no) (support|accept|have)\w* (any )?(image|vision|multimodal)", re.I)
_ABOUT_OLD_IMAGES = compile_later(rf"{TOO_LARGE}|too many images|many-image|at most \d+ images?", re.I)
"""The request holds too many images, or too many bytes."""
_ABOUT_THINKING = compile_later(
    r"thinking|reasoning|encrypted|compaction|thought_signature|bound to a different conversation", re.I
)


def find_refused_content(error: ProviderError, history: History) -> tuple[StateSaved, str] | None:
    """Find the content that a refusal is about, if it is in the conversation.

    Return the event that leaves the content out from now on, and a line for the person.
    """
    if not error.refusal:
        return None
    if _ABOUT_IMAGES.search(error.refusal) or _ABOUT_OLD_IMAGES.search(error.refusal):
        return _leave_out_images(error.refusal, history)
    if _ABOUT_THINKING.search(error.refusal) and any(map(_has_thinking, history.context.messages)):
        # Saving the state of the prompt again removes all thinking so far.
        event = StateSaved(toolkit=PROMPT_STATE_KEY, value=history.state.get(PROMPT_STATE_KEY))
        return event, "the server refuses earlier thinking; it is left out"
    return None


def list_refused_images(history: History) -> frozenset[str]:
    """List the names of the images that a server refused."""
    names = history.state.get(IMAGES_STATE_KEY)
    if not isinstance(names, list):
        return frozenset()
    return frozenset(map(str, names))


def _leave_out_images(refusal: str, history: History) -> tuple[StateSaved, str] | None:
    refused = list_refused_images(history)
    images: list[Image] = []
    for message in history.context.messages:
        images += [image for image in message.images if image.name not in refused]
    if not images:
        return None
    if _ABOUT_ALL_IMAGES.search(refusal):
        chosen = images
    elif _ABOUT_OLD_IMAGES.search(refusal):
        chosen = images[: (len(images) + 1) // 2]
    else:
        chosen = images[-1:]  # the likely cause, as the earlier ones were accepted
    names: Sequence[str] = sorted(refused | {image.name for image in chosen})
    sources = ", ".join(dict.fromkeys(image.source for image in chosen))
    event = StateSaved(toolkit=IMAGES_STATE_KEY, value=list(names))
    return event, f"the server refuses the {chosen[-1].kind} {sources}; it is left out"


def _has_thinking(message: Message) -> bool:
    has_items = message.verbatim is not None
    return has_items or any(isinstance(part, Thinking | RedactedThinking) for part in message.parts)
