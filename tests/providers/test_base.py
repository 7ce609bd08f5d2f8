"""Tests of the facts about a provider."""

import pytest

from goose_like.providers.base import ProviderInfo


@pytest.mark.parametrize("pattern", ["*-large", "(", "grey["])
def test_a_pattern_of_windows_that_is_no_regular_expression_is_refused_at_once(pattern):
    with pytest.raises(ValueError, match="in `windows` is no regular expression") as caught:
        ProviderInfo("s", windows=(("grey", 1), (pattern, 2)))
    assert repr(pattern) in str(caught.value)


@pytest.mark.parametrize(("name", "window"), [("big-grey-2", 1), ("grey", 2), ("Grey", None), ("", None)])
def test_the_first_pattern_found_anywhere_in_the_name_counts(name, window):
    assert ProviderInfo("s", windows=((r"grey-\d", 1), ("grey", 2))).find_window(name) == window
