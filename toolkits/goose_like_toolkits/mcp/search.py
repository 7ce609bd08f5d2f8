"""The search over the tools of all servers."""

from collections.abc import Iterable, Mapping, Sequence

from goose_like.core.pattern import compile_later

from .offer_plan import ListedTool

_WORD = compile_later(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")


def split_words(text: str) -> list[str]:
    """Split a text or a name into lower-case words, also at capitals: `createIssue` has two."""
    return [word.lower() for word in _WORD.findall(text)]


def search_tools(tools: Sequence[ListedTool], query: str) -> list[ListedTool]:
    """Return the tools that fit a query, the best first. A name of a tool or a server fits exactly."""
    wanted = query.strip()
    named = [tool for tool in tools if wanted in (tool.name, tool.definition.name)]
    if named:
        return named
    words = list(dict.fromkeys(split_words(query)))
    scored: list[tuple[float, ListedTool]] = []
    for tool in tools:
        score = _rate(tool, words)
        if score > 0:
            scored.append((score, tool))
    scored.sort(key=lambda pair: -pair[0])
    return [tool for _, tool in scored]


def _rate(tool: ListedTool, words: Sequence[str]) -> float:
    """Rate how well a tool fits: each word counts once, in the name more than in the description."""
    names = split_words(tool.definition.name)
    texts = split_words(tool.spec.description)
    arguments = split_words(" ".join(tool.spec.schema["properties"]))
    score = 0.0
    for word in words:
        if _has_word(names, word):
            score += 3
        elif word in split_words(tool.server):
            score += 2
        elif _has_word(texts, word) or _has_word(arguments, word):
            score += 1
    return score


def _has_word(words: Iterable[str], wanted: str) -> bool:
    """Check for a word, also in another form: `issues` for `issue`, `creating` for `create`."""
    stem = wanted if len(wanted) < 4 else wanted[: max(4, len(wanted) - 3)]
    return any(word == wanted or (len(stem) > 3 and word.startswith(stem)) for word in words)


def format_found(tools: Sequence[ListedTool], max_characters: int, max_count: int) -> str:
    """Format definitions as far as they fit, and the names of the others."""
    shown: list[str] = []
    others: list[str] = []
    left = max_characters
    for tool in tools:
        text = tool.format()
        left -= len(text)
        is_first = not shown
        has_room = left >= 0 and len(shown) < max_count
        if is_first or has_room:
            shown.append(text)
        else:
            others.append(tool.name)
    lines = list(shown)
    if others:
        listing = ", ".join(others[:50])
        lines.append(f"[also: {listing}; a query with a name shows its arguments]")
    return "\n".join(lines)


def list_by_server(tools: Mapping[str, Sequence[ListedTool]], max_characters: int) -> str:
    """List the names of tools by server, for a search that found nothing."""
    lines = []
    for server, listed in tools.items():
        names = ", ".join(tool.name for tool in listed)
        lines.append(f"{server}: {names or 'no tools'}")
    text = "\n".join(lines)
    if len(text) > max_characters:
        return f"{text[:max_characters]}..."
    return text
