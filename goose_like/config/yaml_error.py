"""The error about a YAML text, apart from the reader, whose import is slow."""

_MAX_CHARACTERS = 500


class YamlError(ValueError):
    """A text that is invalid, too large or too deep. `line` counts from 1; None means that the place is unknown."""

    def __init__(self, text: str, line: int | None = None) -> None:
        if len(text) > _MAX_CHARACTERS:  # PyYAML quotes tags, anchors and keys of any length
            text = text[:_MAX_CHARACTERS] + "..."
        super().__init__(text)
        self.line = line
