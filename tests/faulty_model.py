"""A model that does what the person's words say, on OpenAI's wire, with faults; `python faulty_model.py` serves it.

The words hold a `Plan`: what the model answers step by step, and in what ways each step goes wrong before it goes well.
So whoever asks knows what must come, and the model keeps nothing but how often it was asked.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Callable
from typing import Any, Literal

from pydantic import BaseModel

from tests.loopback import Asked, Loopback, Response, called, chunk, events, raw, refusal, usage

STALL_S = 1.0

Fault = Literal["500", "429", "400", "cut", "reset", "garbage", "stall", "silent"]
Call = tuple[str, str]
"""A tool's name, and its arguments as the model writes them."""


class Step(BaseModel, frozen=True):
    """One answer: `said`, so many times. `faults` come first, one a request; words come in that many pieces, `pause_s`
    apart."""

    said: str = ""
    times: int = 1
    calls: tuple[Call, ...] = ()
    faults: tuple[Fault, ...] = ()
    pieces: int = 1
    pause_s: float = 0.0

    @property
    def text(self) -> str:
        return self.said * self.times


class Plan(BaseModel, frozen=True):
    """The model's behaviour for one user message. `name` is no other plan's."""

    name: str
    steps: tuple[Step, ...]

    @property
    def words(self) -> str:
        """The text of the user message."""
        return f"<plan>{self.model_dump_json()}</plan>"


def _text_of(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content or ())


def plan_of(messages: list[dict[str, Any]]) -> tuple[Plan, int] | None:
    """Return the last plan and the index of its next step, or None without a plan.

    A server may fetch data before it asks the model. Those calls have identifiers of the server, and are no step.
    """
    step = 0
    for message in reversed(messages):
        fetched = any(call["id"].startswith("call_") for call in message.get("tool_calls") or ())
        step += message["role"] == "assistant" and not fetched
        if message["role"] == "user" and (found := re.search("<plan>(.*)</plan>", _text_of(message["content"]), re.S)):
            return Plan.model_validate_json(found[1]), step
    return None


class FaultyModel(Loopback):
    """Plays plans."""

    def __init__(self) -> None:
        super().__init__([])
        self._asked = Counter[tuple[str, int]]()

    def _response(self, asked: Asked) -> Response:
        found = plan_of(asked.json["messages"])
        if found is None:
            return _whole(Step(said="Nobody told me what to do."))
        plan, at = found
        step = plan.steps[at] if at < len(plan.steps) else Step(said=f"{plan.name} has no step {at}.")
        tries, self._asked[plan.name, at] = self._asked[plan.name, at], self._asked[plan.name, at] + 1
        return _FAULTS[step.faults[tries]](step) if tries < len(step.faults) else _whole(step, f"{plan.name}.{at}")


def _pieces(step: Step) -> list[dict[str, Any]]:
    size = -(-len(step.text) // step.pieces) or 1
    return [chunk({"content": step.text[at : at + size]}) for at in range(0, len(step.text), size)]


def _whole(step: Step, place: str = "") -> Response:
    calls = ((f"{place}.{at}", name, arguments) for at, (name, arguments) in enumerate(step.calls))
    ending = called(*calls) if step.calls else [chunk(finish="stop"), usage()]
    sent = [events([one], is_done=False) for one in _pieces(step)] + [events(ending)]
    framed = [b"%x\r\n%b\r\n" % (len(one), one) for one in sent]
    headers = {"content-type": "text/event-stream", "transfer-encoding": "chunked"}
    return Response(200, headers, [*framed[:-1], framed[-1] + b"0\r\n\r\n"], step.pause_s)


def _half(step: Step) -> bytes:
    said = events(_pieces(step), is_done=False)
    return said[: len(said) // 2]


_AT_ONCE = {"retry-after": "0"}
_FAULTS: dict[Fault, Callable[[Step], Response]] = {
    "500": lambda _: refusal(500, headers=_AT_ONCE),
    "429": lambda _: refusal(429, headers=_AT_ONCE),
    "400": lambda _: refusal(400, "no way"),
    "cut": lambda step: raw(_half(step)),
    "reset": lambda step: raw(_half(step), is_reset=True, pause_s=0.02),
    "garbage": lambda _: raw(b'data: {"choices": [{"delta": \n\n', broken="garbage"),
    "stall": lambda step: raw(_half(step), hang_s=2 * STALL_S),
    "silent": lambda _: raw(hang_s=2 * STALL_S),
}


async def main() -> None:
    async with FaultyModel() as model:
        print(model.base_url, flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
