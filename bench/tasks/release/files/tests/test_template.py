import pytest

from tinytpl import render


def test_render():
    assert render("Hello {name}", name="Ann") == "Hello Ann"


def test_no_value():
    with pytest.raises(KeyError):
        render("{a}")
