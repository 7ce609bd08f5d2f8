"""Tests of what is known of models by their names."""

import re

from goose_like.providers.known_models import KnownModel, _read_table, find_known_model


def test_every_entry_of_the_table_is_valid():
    entries = [entry for provider in _read_table().values() for entry in provider]
    assert len(entries) > 20
    for entry in entries:
        known = KnownModel.model_validate(entry)
        assert re.compile(known.name)
        assert known.default_effort is None or known.default_effort in known.efforts


def test_the_first_entry_that_fits_counts():
    assert find_known_model("openai", "gpt-5-pro").efforts == ("medium", "high", "xhigh")
    assert find_known_model("bedrock", "eu.anthropic.claude-opus-4-5-v1").window == 200_000
    assert find_known_model("openai", "unheard-of") == KnownModel(name="")
