"""Tests of prices: known, free or unknown."""

import pytest

from goose_like.config.profile import ModelChoice
from goose_like.core.message import Usage
from goose_like.providers.base import Model
from goose_like.providers.prices import compute_cost_usd, find_context_window
from tests.fakes import FakeProvider

SPENT = Usage(input_tokens=1_000_000, output_tokens=1_000_000)


@pytest.mark.parametrize(
    "label", ["local", "scripted:x", "ollama:qwen3", "lmstudio:qwen3", "vllm:qwen3", "llama-server:gpt-4o"]
)
def test_local_models_cost_nothing(label):
    assert compute_cost_usd({label: SPENT}) == 0.0


def test_a_known_model_has_its_price_and_the_others_none():
    price = compute_cost_usd({"openai:gpt-4o": SPENT})
    assert price is not None
    assert price > 1
    assert compute_cost_usd({"openai:gpt-4o": SPENT, "ollama:qwen3": SPENT}) == price
    for unknown in ("openai:made-up", "nowhere:gpt-4o", "groq:made-up"):
        assert compute_cost_usd({"openai:gpt-4o": SPENT, unknown: SPENT}) is None
        assert compute_cost_usd({unknown: Usage()}) == 0.0


def test_each_kind_of_cached_token_has_its_price():
    def price(**counts):
        usage = Usage(input_tokens=1_000_000, **counts)
        return compute_cost_usd({"anthropic:claude-opus-5-5": usage})

    plain = price()
    assert price(cache_read_tokens=1_000_000) == pytest.approx(plain / 20)
    assert price(cache_write_tokens=1_000_000) == pytest.approx(1.25 * plain)
    assert price(cache_write_tokens=1_000_000, cache_write_long_tokens=1_000_000) == pytest.approx(2 * plain)
    assert price(cache_write_tokens=1_000_000, cache_write_long_tokens=400_000) == pytest.approx(1.55 * plain)


def test_searches_have_a_price():
    spent = Usage(input_tokens=1_000, web_searches=3)
    without = spent.model_copy(update={"web_searches": 0})
    label = "anthropic:claude-opus-5-5"
    cost_usd = compute_cost_usd({label: spent}) - compute_cost_usd({label: without})
    assert cost_usd == pytest.approx(0.03)


def test_a_preset_of_the_user(home):
    (home / "config").mkdir(parents=True)
    file = home / "config/providers.yaml"
    file.write_text("box: {base_url: 'http://box:1/v1', is_free: true}\nollama: {is_free: false}\n")
    assert compute_cost_usd({"box:x": SPENT}) == 0.0
    assert compute_cost_usd({"ollama:made-up": SPENT}) is None


def test_invalid_presets_do_not_affect_other_providers(home):
    (home / "config").mkdir(parents=True)
    (home / "config/providers.yaml").write_text("box: {bass_url: x}\n")
    assert compute_cost_usd({"openai:gpt-4o": SPENT, "local": SPENT}) == compute_cost_usd({"openai:gpt-4o": SPENT})


def test_windows_of_models_that_are_known():
    assert find_context_window("openai:gpt-4o") == 128_000
    assert find_context_window("anthropic:claude-3-5-sonnet-latest") == 200_000
    assert find_context_window("openai:nobody-knows-it") is None
    assert find_context_window("nobody:gpt-4o") is None
    assert find_context_window("local") is None


def test_windows_that_only_other_providers_give():
    assert find_context_window("google:gemini-2.5-pro") == 1_048_576
    assert find_context_window("openrouter:anthropic/claude-3.5-sonnet") == 200_000
    assert find_context_window("ollama:gemini-2.5-pro") is None  # the server decides


@pytest.mark.parametrize("label", ["anthropic:claude-opus-5-5", "openai:gpt-6-sol"])
def test_a_tier_has_a_price_of_its_own(label):
    used = Usage(input_tokens=1_000, output_tokens=1_000)
    usual = compute_cost_usd({label: used})
    assert compute_cost_usd({f"{label} (fast)": used}) > usual
    assert compute_cost_usd({f"{label} (unknown)": used}) is None
    assert compute_cost_usd({label: used}) == usual


def test_a_tier_of_a_model_that_refers_to_another_is_unknown():
    used = Usage(input_tokens=1_000, output_tokens=1_000)
    assert compute_cost_usd({"openai:gpt-5 (priority)": used})
    assert compute_cost_usd({"azure:gpt-5": used})
    for _ in range(2):  # from the table, then as kept
        assert compute_cost_usd({"azure:gpt-5 (priority)": used}) is None


def test_tokens_of_a_tier_are_counted_apart():
    model = Model(FakeProvider(), "claude-opus-5-5", "anthropic:claude-opus-5-5", price_tier="fast")
    assert model.price_label == "anthropic:claude-opus-5-5 (fast)"
    choice = ModelChoice(model="openai:gpt-6-sol", service_tier="auto")
    assert choice.price_tier == ""
