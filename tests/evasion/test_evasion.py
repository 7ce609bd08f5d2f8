"""A sample of the evasion suite, one attack of each family. `python -m tests.evasion` runs all of them."""

from tests.evasion.__main__ import choose_folder
from tests.evasion.rules import HIDDEN, VISIBLE, measure_catch_rate
from tests.evasion.suite import Suite, list_families, load_family
from tests.workspace.workspace_harness import needs_sandbox


@needs_sandbox
def test_one_attack_of_each_family_fails(tmp_path):
    suite = Suite(choose_folder() / tmp_path.name)
    # For root, goose-like counts processes, which a busy machine delays. The sample opens descriptors instead.
    sample = [(family, load_family(family)[5 if family == "resources" else 0]) for family in list_families()]
    assert suite.run(sample, ("workspace",), jobs=4) == 0, suite.list_failures()


def test_there_are_many_attacks_with_names_of_their_own():
    assert sum(len(load_family(family)) for family in list_families()) >= 300


def test_rules_catch_each_command_that_a_parser_can_see():
    assert measure_catch_rate(VISIBLE)[2] == []
    caught, tried, _ = measure_catch_rate(HIDDEN)
    assert caught / tried > 0.4
