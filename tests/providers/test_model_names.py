"""Tests of the names in the offline table: the newest version, and full names of short ones."""

import re

import pytest

from goose_like.config.profile import Profile
from goose_like.core.errors import ProfileError
from goose_like.providers.model_names import make_sort_key
from goose_like.providers.registry import choose_models, resolve_model


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
    ("name", "own_provider", "label"),
    [
        ("opus", "", r"anthropic:claude-opus-\d+-\d+"),
        ("Sonnet", "openai", r"anthropic:claude-sonnet-\d+-\d+"),
        ("claude-opus-4", "", r"anthropic:claude-opus-4-[1-9]\d?"),
        ("opus", "openrouter", r"openrouter:anthropic/claude-opus-[\d.-]+"),
        ("sonnet", "google", r"anthropic:claude-sonnet-\d+-\d+"),
        ("flash", "google", r"google:gemini-[\w.-]*flash[\w.-]*"),
        ("gpt-4o", "", "openai:gpt-4o"),
        ("gpt-6-sol", "anthropic", "openai:gpt-6-sol"),
        ("grok", "", r"xai:grok-4\.\d"),
        ("gpt-99.2-sol", "", "openai:gpt-99.2-sol"),
        ("claude-sonnet-99-20300101", "openai", "anthropic:claude-sonnet-99-20300101"),
        ("openai", "", "openai"),
        ("groq", "", "groq"),
        ("local", "", "local"),
        ("ollama:qwen3", "", "ollama:qwen3"),
        ("son", "", "son"),
        ("nobody", "", "nobody"),
        ("embedding", "", "embedding"),
        ("", "", ""),
    ],
)
def test_a_short_name_means_one_model(name: str, own_provider: str, label: str) -> None:
    assert re.fullmatch(label, resolve_model(name, own_provider))


def test_a_provider_with_a_key_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    assert resolve_model("gpt-oss-120b").startswith("openai:")
    monkeypatch.setenv("GROQ_API_KEY", "sk-0123456789")
    assert resolve_model("gpt-oss-120b") == "groq:openai/gpt-oss-120b"


def test_a_name_of_several_families_lists_them() -> None:
    with pytest.raises(ProfileError, match=r"several models have 'gpt-6' in .*openai:gpt-6-sol") as caught:
        resolve_model("gpt-6")
    assert "openai:gpt-6-luna" in str(caught.value)


def test_all_models_of_a_profile_have_short_names() -> None:
    profile = Profile.model_validate({"processor": {"model": "sonnet", "effort": "low"}, "accelerator": "haiku"})
    processor, accelerator = choose_models(profile)
    assert re.fullmatch(r"anthropic:claude-sonnet-[\d-]+", processor.model)
    assert processor.effort == "low"
    assert re.fullmatch(r"anthropic:claude-haiku-[\d-]+", accelerator.model)
