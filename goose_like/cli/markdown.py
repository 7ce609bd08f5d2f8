"""Stand-in."""

from rich.text import Text


class MarkdownStream:
    def __init__(self) -> None:
        self._text = ""

    def feed(self, text: str) -> None:
        self._text += text

    def take(self, width: int) -> list[Text]:
        head, end, self._text = self._text.rpartition("\n")
        return [Text(head)] if end else []

    def open(self, width: int, height: int) -> list[Text]:
        return [Text(self._text)] if self._text else []

    def finish(self, width: int) -> list[Text]:
        text, self._text = self._text, ""
        return [Text(text)] if text else []
