"""Tests of the names in the offline table: the newest version, and full names of short ones."""

import re

import pytest

from goose_like.core.errors import ProfileError
from goose_like.providers.model_names import find_full_name, make_sort_key
from goose_like.providers.registry import find_provider_class, list_provider_names


def test_newer_versions_come_first():
    names = ["claude-opus-5", "claude-3-5-haiku-latest", "claude-opus-5-5", "llama-70b", "gpt-4o-2024-05-13", "gpt-4.1"]
    assert sorted(names, key=make_sort_key) == [
        "claude-opus-5-5",
        "claude-opus-5",
        "gpt-4o-2024-05-13",
        "gpt-4.1",
        "claude-3-5-haiku-latest",
        "llama-70b",
    ]


@pytest.mark.parametrize(
    ("words", "provider", "label"),
    [
        ("opus", "anthropic", r"anthropic:claude-opus-\d+-\d+"),
        ("Sonnet", "openai", r"anthropic:claude-sonnet-\d+-\d+"),
        ("claude-opus-4", "anthropic", r"anthropic:claude-opus-4-[1-9]\d?"),
        ("opus", "openrouter", r"openrouter:anthropic/claude-opus-[\d.-]+"),
        ("sonnet", "google", r"anthropic:claude-sonnet-\d+-\d+"),
        ("gemini", "anthropic", r"google:gemini-[\w.-]+"),
        ("gpt-4o", "scripted", "openai:gpt-4o"),
        ("son", "anthropic", None),
        ("embedding", "openai", None),
    ],
)
def test_words_of_a_name_find_its_newest_model(words, provider, label):
    found = find_full_name(words, [provider, *list_provider_names()])
    assert re.fullmatch(label, found or "") if label else found is None


def test_an_unknown_provider_that_names_a_model_gets_its_full_name():
    for wrong, right in (("opus", "anthropic:claude-opus-"), ("gpt-4o", "openai:gpt-4o"), ("o3", "openai:o3")):
        with pytest.raises(ProfileError, match=rf"unknown provider '{wrong}'; did you mean {right}\S*\?$"):
            find_provider_class(wrong)
    for wrong in ("", "nothing"):
        with pytest.raises(ProfileError, match="; there are: anthropic"):
            find_provider_class(wrong)
