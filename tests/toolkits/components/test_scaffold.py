"""Components that `component new` writes."""

import pytest
from goose_like_toolkits.components.commands.scaffold import write_component
from goose_like_toolkits.components.definition.check import check_file

from goose_like.core.errors import UsageError

TYPES = ("plugin", "resource", "llm", "interactor", "copilot")
OTHER_TYPES = (
    "cerebrum",
    "storage",
    "user_interface",
    "plugin_manager",
    "message_manager",
    "resource_managr",
    "Plugin",
)


@pytest.mark.parametrize("name", TYPES)
def test_every_new_component_has_nothing_to_correct(tmp_path, name):
    files = write_component(name, None, tmp_path, "org.example")
    configs = [file for file in files if file.suffix == ".yaml"]
    codes = [file for file in files if file.suffix == ".py"]
    assert configs
    problems = [problem for file in configs for problem in check_file(file)]
    assert [str(problem) for problem in problems if not problem.is_warning] == []
    for file in codes:
        compile(file.read_text(), str(file), "exec")


@pytest.mark.parametrize("name", OTHER_TYPES)
def test_another_type_is_refused_with_the_ones_that_there_are(tmp_path, name):
    with pytest.raises(UsageError) as caught:
        write_component(name, None, tmp_path, "org.example")
    choice = "plugin, resource, llm, interactor, copilot"
    assert str(caught.value) == f"{name!r} is no type that `new` can write; choose one of: {choice}"
    assert list(tmp_path.iterdir()) == []
