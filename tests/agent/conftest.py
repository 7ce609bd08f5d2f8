"""Fixtures for the tests of the loop."""

from dataclasses import replace

import pytest

from tests.fakes import ExchangeHarness, is_well_formed


@pytest.fixture
def create_harness(tmp_path):
    """Create harnesses. At the end, the replayed file must equal the live history, with every call answered."""
    harnesses: list[ExchangeHarness] = []

    def make(script, *functions, **options):
        harnesses.append(ExchangeHarness(script, *functions, folder=tmp_path / f"session{len(harnesses)}", **options))
        return harnesses[-1]

    yield make
    for each in harnesses:
        each.exchange.history.close()
        for request in each.provider.requests:
            assert request.all_tools == replace(request, added_tools=None).all_tools
        assert is_well_formed(each.messages)
        if each.session._descriptor >= 0:
            assert each.replay() == each.exchange.history
            each.session.close()
