"""Tests of messages as the authors of packages meet them."""

import inspect

import pytest
from pydantic import BaseModel

from goose_like import moderator, provider, toolkit
from goose_like.core.message import FrozenModel

PUBLIC = [getattr(module, name) for module in (provider, moderator, toolkit) for name in module.__all__]
MODELS = {each for each in PUBLIC if isinstance(each, type) and issubclass(each, BaseModel)}


@pytest.mark.parametrize("model", sorted(MODELS, key=lambda model: model.__name__), ids=lambda model: model.__name__)
def test_help_shows_the_fields_of_a_public_model(model):
    assert set(inspect.signature(model).parameters) == set(model.model_fields)


def test_help_shows_the_fields_of_a_model_that_extends_a_built_one():
    class Point(FrozenModel):
        x: int

    assert Point(x=1).x == 1

    class Place(Point):
        name: str = ""

    assert list(inspect.signature(Place).parameters) == ["x", "name"]
    assert list(inspect.signature(Point).parameters) == ["x"]


def test_an_unchecked_record_equals_a_checked_one_and_builds_no_model():
    class Place(FrozenModel):
        name: str
        size: int = 1

    unchecked = Place.make_unchecked(name="here")
    assert not Place.__pydantic_complete__
    assert unchecked == Place(name="here")
    assert Place.__pydantic_complete__


def test_a_provider_meets_only_public_parts():
    parts = {"Text", "Image", "Thinking", "RedactedThinking", "ToolCall", "ToolResult", "NewTools", "EffortChange"}
    assert {*parts, "Verbatim"} <= set(provider.__all__)
