"""Prices that are kept in the state folder, beside those of the table."""

import json
import subprocess
import sys

import pytest
from genai_prices.data_snapshot import get_snapshot
from hypothesis import given
from hypothesis import strategies as st

from goose_like.core.message import Usage
from goose_like.providers import kept_prices, prices

PLAIN = "openai:gpt-4o"
UNKNOWN = "openai:made-up"
TIERED = "anthropic:claude-sonnet-4-5"
COUNTS = st.integers(0, 3_000_000)
SPENT = Usage(input_tokens=1_000, output_tokens=10)
PROGRAM = """
import sys
from goose_like.core.message import Usage
from goose_like.providers.prices import compute_cost_usd
print(compute_cost_usd({sys.argv[1]: Usage(input_tokens=1_000, output_tokens=10)}), "genai_prices" in sys.modules)
"""


def list_models() -> list[tuple[str, str]]:
    """List the models of the table that can be found by their names, with their providers."""
    models = []
    for provider in get_snapshot().providers:
        models += [(provider.id, model.id) for model in provider.models if provider.find_model(model.id) is not None]
    return models


def run(label: str) -> list[str]:
    command = [sys.executable, "-c", PROGRAM, label]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.split()


@given(st.deferred(lambda: st.sampled_from(list_models())), COUNTS, COUNTS, COUNTS, COUNTS, COUNTS, st.integers(0, 100))
def test_plain_rates_give_the_price_of_the_table(place, fresh, output, read, write, write_long, searches):
    provider, name = place
    model = get_snapshot().find_provider_model(name, None, provider, None)[1]
    rates = kept_prices.find_plain_rates(model)
    used = Usage(
        input_tokens=fresh + read + write + write_long,
        output_tokens=output,
        cache_read_tokens=read,
        cache_write_tokens=write + write_long,
        cache_write_long_tokens=write_long,
        web_searches=searches,
    )
    if rates is not None and "requests_kcount" not in vars(model.prices):
        assert rates.compute_usd(used) == prices._ask_table(provider, name, used)


@pytest.mark.parametrize("label", [PLAIN, UNKNOWN])
def test_a_second_process_needs_no_table(label, home):
    first = run(label)
    second = run(label)
    assert first[1:] == ["True"]
    assert second == [first[0], "False"]


def test_a_price_with_tiers_is_always_asked_for(home):
    assert run(TIERED) == run(TIERED)
    assert run(TIERED)[1] == "True"


@pytest.mark.parametrize(
    "change",
    [
        lambda file: file.write_text(file.read_text().replace('"table": "', '"table": "other ')),
        lambda file: file.write_text(file.read_text()[:-9]),
        lambda file: file.write_text("[]"),
        lambda file: file.write_text(json.dumps(json.loads(file.read_text()) | {"prices": {PLAIN: {"fresh": "much"}}})),
    ],
    ids=["another table", "cut", "no mapping", "no number"],
)
def test_a_file_that_does_not_fit_is_replaced(change, home):
    cost = run(PLAIN)[0]
    file = kept_prices.kept_folder() / "prices.json"
    change(file)
    assert run(PLAIN) == [cost, "True"]
    assert run(PLAIN) == [cost, "False"]
