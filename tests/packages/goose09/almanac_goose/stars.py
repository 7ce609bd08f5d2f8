"""A toolkit that requires another, imports more, and imports late."""

from exchange import Message, Text
from goose.notifier import Notifier
from goose.toolkit import Toolkit
from goose.toolkit.base import Requirements, tool
from goose.toolkit.utils import RULEPREFIX
from goose.utils.ask import ask_an_ai


class Stars(Toolkit):
    """Knows stars."""

    def __init__(self, notifier: Notifier, requires: Requirements) -> None:
        super().__init__(notifier=notifier, requires=requires)
        self.almanac = requires.get("almanac")

    def system(self) -> str:
        return Message.load("prompts/stars.jinja").text

    @tool
    def asked_days(self) -> list[int]:
        """Which days were asked for."""
        return self.almanac.asked

    @tool
    def last_said(self) -> str:
        """What was said last."""
        from exchange.content import ToolUse

        last = self.exchange_view.processor.messages[-1]
        assert isinstance(last.content[0], Text)
        assert isinstance(last.content[1], ToolUse)
        self.notifier.log(RULEPREFIX + "read")
        return last.content[0].text

    @tool
    def think(self, question: str) -> str:
        """Think about the stars.

        Args:
            question (str): What about
        """
        return ask_an_ai(input=question, exchange=self.exchange_view.accelerator, prompt="Be brief.").text
