"""The summary of a conversation by Anthropic's server, which later requests begin with.

Source: the types of Anthropic's SDK and its guide on compaction on demand (beta compact-2026-09-04).
"""

from goose_like.core.errors import BrokenStreamError
from goose_like.core.message import Verbatim

from .anthropic_usage import read_usage
from .anthropic_wire import WIRE
from .base import ServerCompaction
from .wire import expect, expect_objects


def parse_compaction(answer: object, origin: str) -> ServerCompaction:
    """Parse the answer to a request with the key `compaction`.

    Raises:
        BrokenStreamError: A value has a wrong type, or there is no summary.
    """
    whole = expect(dict, answer, "the answer")
    blocks = expect_objects(whole.get("content"), "content", "a block")
    texts = [expect(str, block.get("content"), "content") for block in blocks if block.get("type") == "compaction"]
    summary = "".join(texts)
    if not summary:
        raise BrokenStreamError("the answer holds no summary")
    verbatim = Verbatim(wire=WIRE, origin=origin, items=tuple(blocks))
    return ServerCompaction(verbatim, summary, read_usage(whole.get("usage")))
