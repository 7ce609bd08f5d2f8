"""The end of a text at the first of some sequences, while the text arrives."""

from collections.abc import Sequence


class StopText:
    """A filter that passes text until one of the sequences came, and holds back what may be the start of one."""

    def __init__(self, sequences: Sequence[str]) -> None:
        self.is_found = False
        self._sequences = sequences
        self._held = ""

    def feed(self, text: str) -> str:
        """Take more text, and return the text before the first sequence that is known by now."""
        if self.is_found:
            return ""
        text = self._held + text
        self._held = ""
        places = [text.find(sequence) for sequence in self._sequences if sequence in text]
        if places:
            self.is_found = True
            return text[: min(places)]
        end = len(text) - max(self._count_begun(text), default=0)
        self._held = text[end:]
        return text[:end]

    def flush(self) -> str:
        """Return the text that was held back, as its message has ended."""
        held = self._held
        self._held = ""
        return held

    def _count_begun(self, text: str) -> list[int]:
        """Count, for each sequence, the characters at the end of a text that may begin it."""
        counts = []
        for sequence in self._sequences:
            lengths = range(1, min(len(sequence), len(text) + 1))
            counts += [length for length in lengths if text.endswith(sequence[:length])]
        return counts
