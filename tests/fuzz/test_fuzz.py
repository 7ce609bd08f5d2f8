"""A sample of the fuzz suite. `python -m tests.fuzz` runs as many inputs as wanted."""

import pytest

from tests.fuzz.suite import Suite, list_targets


@pytest.mark.parametrize("name", list_targets())
def test_the_first_inputs_hold(name):
    assert Suite(seed=1).run(name, 300).findings == {}


def test_a_run_goes_on_after_an_interruption(tmp_path):
    state = tmp_path / "state.json"
    assert Suite(1, state).run("event", 20).done == 20
    resumed = Suite(1, state)
    assert resumed.progress["event"].done == 20
    assert resumed.run("event", 50).done == 50
    assert Suite(2, state).progress == {}
