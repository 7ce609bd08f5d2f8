"""Requests to small models, in this process or behind llama-server: the answer is one call, written as a tag.

The prompt shows worked examples and the required arguments only, and the newest result repeats the task. Repeated
steps are left out, and raise the temperature. A question for an answer allows no call that writes a file: small models
write one when they do not know what else to do.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from goose_like.core.message import Message
from goose_like.core.pattern import compile_later
from goose_like.core.tool import ToolSpec

from .base import Request
from .json_tool_calls import TextCallParser, convert_request, keep_required_arguments
from .repeated_steps import drop_repeated_steps
from .xml_tool_calls import XmlCallFormat, build_grammar, list_stop_texts, repeat_task, select_examples

# Small models fall into loops. These settings make a repeated passage of more than 48 tokens within the last 192 less
# and less likely. The default breakers (quotes, line ends) are frequent in code, so NUL replaces them.
_NO_LOOPS = {
    "dry_multiplier": 0.8,
    "dry_allowed_length": 48,
    "dry_penalty_last_n": 192,
    "dry_sequence_breakers": ["\0"],
}

_FRESH_TEMPERATURES = (0.7, 1.0, 1.3)
"""The temperatures after one, two and more repeated steps: at 0, the model would repeat the step again and again."""

_QUESTION = compile_later(
    r"""
    (?! .* \b (?:you|we|us|please) \b )                     # asks for work
    (?! (?:how|what) \s+ about \b | what \s+ if \b )        # proposes work
    (?! why \b .* (?:\b (?:not|no) \b | n.t \b) )           # proposes it, too: why is there no test?
    (?! .* (?:, | \b and \b | \b then \b) \s* (?:add|change|create|delete|fix|put|remove|rename|save|write) \b )
    (?:how|what|which|who|whose|when|where|why) \b
    [^.!?\n]* (?:\.\w [^.!?\n]*)*                          # a point within a word, as in a file name, ends nothing
    \?
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""A task that is one question with a question word, and surely asks for an answer only."""


class TaggedRequest:
    """A request, and what llama.cpp needs for it: plain text, and settings beside it."""

    def __init__(self, request: Request, profile_temperature: float | None) -> None:
        self._request = request
        self._profile_temperature = profile_temperature
        self.tools = _shorten_tools(request)
        self.call_format = XmlCallFormat(self.tools)
        self._examples = select_examples(request.examples, self.tools)
        self._messages, self._repetition_count = drop_repeated_steps(request.messages)

    @cached_property
    def plain(self) -> Request:
        """The request as plain text, with its temperature."""
        plain = self._convert(repeat_task(self._messages, has_examples=bool(self._examples)))
        return replace(plain, temperature=self.choose_temperature())

    def choose_temperature(self, loop_count: int = 0) -> float:
        """Choose the temperature after repeated steps, and after passages that the answer repeated so often."""
        temperature = self._request.resolve_temperature(self._profile_temperature) or 0.0
        count = self._repetition_count + loop_count
        if not count:
            return temperature
        place = min(count, len(_FRESH_TEMPERATURES)) - 1
        return max(temperature, _FRESH_TEMPERATURES[place])

    @property
    def beginning(self) -> Request:
        """A request that all prompts with these tools and examples begin with."""
        return replace(self._convert([Message.user(".")]), temperature=0.0)

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of llama.cpp's server that hold the model to one call, without loops."""
        if not self.tools:
            return dict(_NO_LOOPS)
        callable_tools = self.tools
        if _is_question(self._messages):
            callable_tools = [tool for tool in self.tools if not tool.has_long_arguments]
        return {**_NO_LOOPS, "grammar": build_grammar(callable_tools), "stop": list_stop_texts(self.tools)}

    def _convert(self, messages: Sequence[Message]) -> Request:
        request = replace(self._request, tools=self.tools, messages=[*self._examples, *messages])
        return convert_request(request, self.call_format)


def create_parser(request: Request) -> TextCallParser:
    """Create the parser of an answer to a request with tools."""
    return TextCallParser(XmlCallFormat(_shorten_tools(request)))


def _shorten_tools(request: Request) -> list[ToolSpec]:
    return [keep_required_arguments(tool) for tool in request.all_tools]


def _is_question(messages: Sequence[Message]) -> bool:
    """Return whether the newest task is one question: its answer changes no file, however the model looks for it."""
    tasks = [message.first_text for message in messages if message.role == "user"]
    return bool(tasks) and _QUESTION.fullmatch(tasks[-1].strip()) is not None
