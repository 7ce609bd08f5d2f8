"""Fixtures for the tests of the loop."""

import pytest

from tests.fakes import ExchangeHarness, is_well_formed


@pytest.fixture
def create_harness(tmp_path):
    """Create harnesses. At the end, the replayed file must equal the live history, with every call answered."""
    made: list[ExchangeHarness] = []

    def make(script, *functions, **options):
        made.append(ExchangeHarness(script, *functions, folder=tmp_path / f"session{len(made)}", **options))
        return made[-1]

    yield make
    for each in made:
        each.exchange.history.close()
        assert is_well_formed(each.messages)
        if each.session._descriptor >= 0:
            assert each.replayed() == each.exchange.history
            each.session.close()
