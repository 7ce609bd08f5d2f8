"""The memory within a budget."""

from .memory import Contents


def sections(contents: Contents, *, limit_tokens: int, log_summary: str) -> list[tuple[str, str]]:
    """Titles and texts."""
    texts = contents.texts
    return [(name, text[-limit_tokens:]) for name, text in texts.items()]


def unsummarised(log: str, through: int, tail_bytes: int) -> tuple[str, int]:
    """What should be summed up now."""
    return "", through


def summary_prompt(before: str, part: str) -> str:
    """What to ask."""
    return before + part
