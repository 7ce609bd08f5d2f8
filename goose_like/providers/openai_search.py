"""Web search on OpenAI's server, in the format of the Responses API.

Source: OpenAI's API reference (responses, the tool `web_search`).
"""

from collections.abc import Mapping
from typing import Any

from .base import SearchAnswer
from .openai_wire import parse_usage
from .wire import SEARCH_PROMPT, Page, complete_search, expect, expect_objects, extract_error_text, read_page


def build_search(query: str, model: str) -> dict[str, Any]:
    """Build the body of a request that lets a model search the web on the server, which keeps nothing."""
    return {
        "model": model,
        "input": SEARCH_PROMPT.format(query),
        "tools": [{"type": "web_search"}],
        "store": False,
        "include": ["web_search_call.action.sources"],
    }


def parse_search(answer: object) -> SearchAnswer:
    """Parse the answer to `build_search`. The cited pages come before the others, which have no title.

    Raises:
        BrokenStreamError: A value has a wrong type, or there is no text.
        ProviderError: The search failed.
    """
    whole = expect(dict, answer, "the answer")
    texts: list[str] = []
    cited: list[Page] = []
    others: list[Page] = []
    problem = ""
    if whole.get("error"):
        problem = extract_error_text(whole["error"])
    for item in expect_objects(whole.get("output"), "output", "an item"):
        match item.get("type"):
            case "web_search_call":
                texts.clear()  # words before the last search are no answer yet
                if item.get("status") == "failed" and not problem:
                    problem = "no reason"
                others += _read_sources(item)
            case "message":
                for part in expect_objects(item.get("content"), "content", "a part"):
                    text = part.get("text") or part.get("refusal")
                    texts.append(expect(str, text, "text"))
                    notes = expect_objects(part.get("annotations"), "annotations", "an annotation")
                    cited += map(read_page, notes)
    usage = expect(dict, whole.get("usage"), "usage")
    # The counts have other names here than in chat completions.
    counts = {
        "prompt_tokens": usage.get("input_tokens"),
        "completion_tokens": usage.get("output_tokens"),
        "prompt_tokens_details": usage.get("input_tokens_details"),
    }
    pages = [*cited, *others]
    return complete_search("\n".join(texts), pages, parse_usage(counts), problem)


def _read_sources(item: Mapping[str, Any]) -> list[Page]:
    """Read the pages that a search looked at."""
    action = expect(dict, item.get("action"), "action")
    sources = expect_objects(action.get("sources"), "sources", "a source")
    return [read_page(source) for source in sources]
