"""JSON of other programs: halves of characters become characters that UTF-8 has."""

import json

import pytest

from goose_like.core.json_bytes import repair_json


@pytest.mark.parametrize(
    ("text", "repaired"),
    [
        (r'"cut \ud83d"', "cut \N{REPLACEMENT CHARACTER}"),
        (r'"\uDE00 end"', "\N{REPLACEMENT CHARACTER} end"),
        (r'"whole \ud83d\ude00"', "whole \N{GRINNING FACE}"),
        (r'{"\ud83d": ["\ud83d"]}', {"\N{REPLACEMENT CHARACTER}": ["\N{REPLACEMENT CHARACTER}"]}),
        (r'"a path: C:\\users\\udo"', r"a path: C:\users\udo"),
    ],
)
def test_halves_of_characters(text, repaired):
    assert json.loads(repair_json(text.encode())) == repaired


def test_other_data_stays_as_it_is():
    for data in (b"no JSON", b'{"a": 1}', "\N{GRINNING FACE}".encode()):
        assert repair_json(data) is data


def test_broken_json_with_a_half():
    with pytest.raises(ValueError, match="Expecting"):
        repair_json(rb'{"a": \ud83d')
