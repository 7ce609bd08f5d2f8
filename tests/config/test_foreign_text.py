"""Parsers of JSON and TOML of strangers."""

import pytest

from goose_like.config.foreign_text import parse_json, parse_toml

DEEP = "[" * 100_000


def test_what_others_wrote_is_parsed() -> None:
    assert parse_json('\ufeff{"a": [1, null]}') == {"a": [1, None]}
    assert parse_toml("a = [1]") == {"a": [1]}


@pytest.mark.parametrize("text", ["", "{", '{"a": 1,}', DEEP, '{"a":' * 100_000, '"\\ud800"'])
def test_each_fault_of_json_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match="line 1"):
        parse_json(text)


def test_half_of_a_character_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="surrogates not allowed"):
        parse_json('"\ud800"')


@pytest.mark.parametrize("text", ["a", "a = [1", f"a = {DEEP}", "a = " + "{b = " * 100_000])
def test_each_fault_of_toml_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"line 1|nests too deep|end of document"):
        parse_toml(text)
