"""The words behind a prompt's slash command."""

import pytest
from goose_like_toolkits.mcp.prompts import describe_arguments, read_words
from goose_like_toolkits.mcp.prompts_and_resources import PromptArgument, PromptDefinition

from goose_like.core.errors import UsageError

PROMPT = PromptDefinition(
    name="translate",
    arguments=(PromptArgument(name="to", is_required=True), PromptArgument(name="text"), PromptArgument(name="tone")),
)


@pytest.mark.parametrize(
    ("words", "read"),
    [
        ("fr", {"to": "fr"}),
        ("fr hello", {"to": "fr", "text": "hello"}),
        ('fr "good morning"', {"to": "fr", "text": "good morning"}),
        ("fr hello very kind", {"to": "fr", "text": "hello", "tone": "very kind"}),
        ("tone=kind fr hello", {"to": "fr", "text": "hello", "tone": "kind"}),
        ("text=a=b to=fr", {"to": "fr", "text": "a=b"}),
        ("fr it's", {"to": "fr", "text": "it's"}),
    ],
)
def test_words_become_arguments(words, read):
    assert read_words(PROMPT, words) == read


def test_wrong_words_name_the_usage():
    assert describe_arguments(PROMPT) == "TO [TEXT] [TONE]"
    with pytest.raises(UsageError, match=r"to is missing; write: /SERVER:translate TO \[TEXT\] \[TONE\]"):
        read_words(PROMPT, "tone=kind")
    with pytest.raises(UsageError, match="too many words: 'b'; write: /SERVER:greet"):
        read_words(PromptDefinition(name="greet"), "b")
