"""Configurations of bosses: our short form, the long form of aiflows, and reports about the rest."""

import sys
from pathlib import Path
from typing import Any

import pytest
from goose_like_toolkits.boss.aiflows.configuration import read_configuration
from goose_like_toolkits.boss.aiflows.importer import Configuration
from goose_like_toolkits.boss.aiflows.schema import InterfaceConfig
from goose_like_toolkits.boss.flow.executor import run_branch
from goose_like_toolkits.boss.flow.key_interface import apply_interface
from goose_like_toolkits.boss.spec import Branch, KeyInterface

from goose_like.config.yaml_source import YamlSource, parse_yaml, read_yaml
from goose_like.core.errors import ProfileError
from goose_like.core.tool import ToolError
from tests import ROOT

FIXTURES = ROOT / "tests/fixtures/aiflows"


def read(name: str) -> Configuration:
    file = FIXTURES / name
    return read_configuration(YamlSource("boss", file, read_yaml(file)), imports=False)


def parse_config(text: str) -> Configuration:
    file = Path("boss.yaml")
    return read_configuration(YamlSource("boss", file, parse_yaml(file, text)), imports=False)


def test_three_nested_bosses():
    read_once = read("jarvis.yaml")
    jarvis = read_once.spec
    assert (jarvis.name, jarvis.max_round, jarvis.early_exit_key) == ("Jarvis", 12, "DONE")
    assert list(jarvis.branches) == ["Coder", "ask_user", "re_plan", "update_plan"]
    coder = jarvis.branches["Coder"].boss
    assert jarvis.branches["Coder"].description == "Writes code and runs it."
    assert (coder.name, coder.max_round) == ("Coder", 9)
    assert set(coder.branches) == {"extend_library", "ask_user", "re_plan", "update_plan", "run_code"}
    library = coder.branches["extend_library"].boss
    assert set(library.branches) == {"write_code", "ask_user", "re_plan", "update_plan", "save_code"}
    paths = [boss.memory_files for boss in (jarvis, coder, library)]
    assert len({files["logs"] for files in paths}) == 3
    assert {files["code_library"] for files in paths} == {"library.py"}
    assert all(boss.planner for boss in (jarvis, coder, library))
    assert read_once.unmapped == (
        "`backend` is not used: the profile chooses the models",
        "branch 'intermediate_answer': the controller gives an intermediate answer as text beside its calls",
        "branch 'final_answer' is the action 'finish' here, and has that name",
    )


def test_commands_with_branches_of_all_kinds():
    gpt = read("autogpt.yaml")
    assert (gpt.spec.name, gpt.spec.max_round, gpt.spec.planner) == ("AutoGPT", 20, None)
    assert set(gpt.spec.branches) == {"run_code", "shell", "ask_user"}
    assert gpt.spec.branches["run_code"].description == "Runs a script."
    assert [choice.name for choice in gpt.spec.branches["shell"].toolkits] == ["developer"]
    assert set(gpt.unmapped) == {
        "topology: there is no flow 'Critic'",
        "`backend` is not used: the profile chooses the models",
        "`human_message_prompt_template` is not used: the prompts of a boss are fixed",
        "HumanFeedback: the controller asks the person with `ask_user`, and the person can speak at any time",
        "Memory: vector stores are not available here; use `memory_files`",
        "branch 'look_up': LangChain tools are not run here; give a toolkit or a flow of your own",
        "branch 'run_script' is the action 'run_code' here, and has that name",
        "branch 'search_mail': its `_target_` 'my_company.mail.SearchFlow' is not known here; give a toolkit or, from "
        "Python, a flow of your own",
        "command 'draw': there is no such branch",
    }


def test_tools_beside_the_controller():
    react = read("react.yaml")
    assert (react.spec.max_round, list(react.spec.branches)) == (7, ["ask_user"])
    assert react.spec.branches["ask_user"].description == "Asks the person."
    assert react.unmapped == (
        "branch 'wiki': Wikipedia search is not available here; give a toolkit or a flow of your own",
        "branch 'ask' is the action 'ask_user' here, and has that name",
    )


def test_short_form():
    spec = parse_config("name: Clerk\nmax_rounds: 5\nbranches: {shell: {toolkits: [developer]}, ask_user: }\n").spec
    assert (spec.name, spec.max_round, list(spec.branches)) == ("Clerk", 5, ["shell", "ask_user"])


def test_placeholders_are_dropped():
    spec = parse_config("name: Clerk\nmemory_files: ???\nsubflows_config:\n  Planner:\n  CtrlExMem:\n").spec
    assert (spec.memory_files, spec.max_round) == ({}, 30)


def test_topology_without_planner():
    text = "subflows_config: {Planner: , CtrlExMem: }\ntopology: [{flow: CtrlExMem}]\n"
    assert parse_config(text).spec.planner is None


def test_other_topology_order_is_reported():
    text = "subflows_config: {CtrlExMem: }\ntopology: [{flow: Planner}, {flow: MemoryReading}, {flow: CtrlExMem}]\n"
    assert parse_config(text).unmapped == (
        "topology: a boss would run Planner, MemoryReading, CtrlExMem; here the order is MemoryReading, Planner, "
        "CtrlExMem",
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name: x\nmax_raund: 3\n", "boss.yaml, line 2: unknown key 'max_raund'; did you mean 'max_round'?"),
        (
            "subflows_config:\n  CtrlExMem:\n    max_runds: 3\n",
            "boss.yaml, line 3: unknown key 'subflows_config.CtrlExMem.max_runds'; did you mean 'max_rounds'?",
        ),
        (
            "subflows_config:\n  CtrlExMem:\n    topology:\n      - flow: Controller\n        gaol: x\n",
            "line 5: unknown key 'subflows_config.CtrlExMem.topology.0.gaol'; did you mean 'goal'?",
        ),
        (
            "branches:\n  shell:\n    toolkit: [developer]\n",
            "line 3: unknown key 'branches.shell.toolkit'; did you mean 'toolkits'?",
        ),
        (
            "branches: {}\nsubflows_config: {}\n",
            "line 1: 'branches' belongs to the short form and 'subflows_config' to the form of aiflows; use only one",
        ),
        (
            "subflows_config:\n  CtrlExMem:\n    max_round: 3\n    max_rounds: 4\n",
            "line 2: subflows_config.CtrlExMem: `max_round` is 3 and `max_rounds` is 4; give one of them",
        ),
        ("max_round: 3\nmax_rounds: 4\n", "line 2: `max_round` is 3 and `max_rounds` is 4; give one of them"),
        ("max_round: 0\n", "line 1: max_round: expected greater than or equal to 1, not 0"),
        ("branches:\n  run_cod:\n", "line 2: branch 'run_cod' has neither `toolkits` nor a `boss`, and is no action"),
        ("- a list\n", "a boss is described by a mapping"),
        ("_target_: aiflows.base_flows.SequentialFlow\nsubflows_config: {one: }\n", "line 1: this describes no boss"),
    ],
)
def test_mistake_is_reported_with_its_line(text, message):
    with pytest.raises(ProfileError) as raised:
        parse_config(text)
    assert message in str(raised.value)


# --- flows of a program


class Search:
    def run(self, input_data):
        return "found"


def executor(**branches: Any) -> dict[str, Any]:
    return {"subflows_config": {"CtrlExMem": {"subflows_config": {"Executor": {"subflows_config": branches}}}}}


def test_dotted_path_is_imported_for_programs_only(tmp_path, monkeypatch):
    (tmp_path / "my_flows.py").write_text("class Search:\n    def run(self, input_data):\n        return 'found'\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    config = executor(search={"_target_": "my_flows.Search", "any_key": 1})
    read_without = read_configuration(config, imports=False)
    assert read_without.flows == {}
    assert "my_flows" not in sys.modules
    assert "its `_target_` 'my_flows.Search' is not known here" in read_without.unmapped[0]
    assert read_configuration(config, imports=True).flows["search"].run({}) == "found"


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("no_such_module_at_all.Search", "there is no module 'no_such_module_at_all' to import"),
        ("json.Search", "'json' has no 'Search'"),
        ("Search", "is no dotted path to a class"),
    ],
)
def test_path_that_leads_nowhere(target, message):
    with pytest.raises(ProfileError, match=r"^configuration: ") as raised:
        read_configuration(executor(search={"_target_": target}), imports=True)
    assert message in str(raised.value)


def test_class_that_fails():
    class Broken:
        def __init__(self):
            raise ValueError("no key")

    with pytest.raises(ProfileError, match="can't build a flow from Broken: ValueError: no key"):
        read_configuration(executor(search=Broken), imports=True)


def test_objects_and_functions_are_flows():
    flow = Search()
    found = read_configuration(executor(search=flow, greet=len), imports=True)
    assert found.flows == {"search": flow, "greet": len}
    assert list(found.spec.branches) == ["search", "greet"]


def test_list_of_keys_names_the_arguments():
    found = read_configuration(executor(search={"_target_": Search, "input_interface": ["term"]}), imports=True)
    assert found.spec.branches["search"].parameters == ("term",)


async def test_interface_of_the_executor_applies_to_each_flow():
    config = executor(search=lambda given: {"found": given["q"]})
    config["subflows_config"]["CtrlExMem"]["topology"] = [
        {
            "flow": "Executor",
            "output_interface": {
                "_target_": "aiflows.interfaces.KeyInterface",
                "keys_to_rename": {"branch_output_data.found": "result"},
                "additional_transformations": [{"_target_": "aiflows.data_transformations.RegexFirst"}],
            },
        }
    ]
    found = read_configuration(config, imports=True)
    assert await run_branch(found.flows["search"], {"q": "x"}, found.spec.branches["search"]) == (
        "x",
        "",
        {"result": "x", "found": "x"},
    )
    assert found.unmapped == ("Executor: the transformation 'RegexFirst' of its interface is not known here",)


# --- interfaces


@pytest.mark.parametrize(
    ("interface", "before", "after"),
    [
        ({"keys_to_rename": {"a": "b", "gone": "c"}}, {"a": 1}, {"b": 1}),
        ({"keys_to_rename": {"a.b": "c.d"}}, {"a": {"b": 1, "x": 2}}, {"a": {"x": 2}, "c": {"d": 1}}),
        ({"keys_to_copy": {"a": "b"}}, {"a": [1]}, {"a": [1], "b": [1]}),
        ({"keys_to_set": {"a.b": 1}}, {"a": {"c": 2}}, {"a": {"b": 1, "c": 2}}),
        ({"keys_to_select": ("a.b", "c")}, {"a": {"b": 1, "x": 2}, "c": 3, "d": 4}, {"a": {"b": 1}, "c": 3}),
        ({"keys_to_delete": ("a.b", "gone")}, {"a": {"b": 1, "x": 2}}, {"a": {"x": 2}}),
        ({"keys_to_unpack": ("a",)}, {"a": {"b": 1}}, {"b": 1}),
        # Renamed first, then copied, set, selected, deleted: each sees what the one before left.
        (
            {
                "keys_to_rename": {"a": "b"},
                "keys_to_copy": {"b": "c"},
                "keys_to_set": {"b": 2},
                "additional_transformations": ({"keys_to_copy": {"b": "d"}},),
                "keys_to_select": ("b", "c", "d"),
                "keys_to_delete": ("c",),
            },
            {"a": 1, "x": 0},
            {"b": 2, "d": 2},
        ),
    ],
)
def test_key_interface(interface, before, after):
    kept = repr(before)
    assert apply_interface(KeyInterface.model_validate(interface), before) == after
    assert repr(before) == kept


def test_missing_key_to_select():
    with pytest.raises(ToolError, match="no key 'gola' to select; did you mean 'goal'"):
        apply_interface(KeyInterface(keys_to_select=("gola",)), {"goal": 1})


async def test_flow_outputs():
    async def later(given):
        return {"summary": "s", "more": given}

    class Slow:
        async def arun(self, input_data):
            return 7

    assert await run_branch(Search(), {}, Branch()) == ("found", "", {"result": "found"})
    assert await run_branch(Slow(), {}, Branch()) == ("7", "", {"result": 7})
    result, summary, given = await run_branch(later, {"a": 1}, Branch())
    assert (result, summary, given) == ('{"summary": "s", "more": {"a": 1}}', "s", {"summary": "s", "more": {"a": 1}})
    with pytest.raises(ToolError, match="has no `run`"):
        await run_branch(object(), {}, Branch())


@pytest.mark.parametrize(
    ("entry", "interface"),
    [
        ({"_target_": "x.KeyRename", "old_key2new_key": {"a": "b"}}, {"keys_to_rename": {"a": "b"}}),
        ({"_target_": "x.KeyCopy", "old_key2new_key": {"a": "b"}}, {"keys_to_copy": {"a": "b"}}),
        ({"_target_": "x.KeySet", "key2value": {"a": 1}}, {"keys_to_set": {"a": 1}}),
        ({"_target_": "x.KeySelect", "keys_to_select": ["a"]}, {"keys_to_select": ("a",)}),
        ({"_target_": "x.KeyDelete", "keys_to_delete": ["a"]}, {"keys_to_delete": ("a",)}),
        ({"_target_": "x.UnNesting", "input_key": "a"}, {"keys_to_unpack": ("a",)}),
    ],
)
def test_transformation_becomes_an_interface(entry, interface):
    way = InterfaceConfig.model_validate({"additional_transformations": [entry, {"_target_": "x.KeyMatchInput"}]})
    assert way.convert() == (KeyInterface(additional_transformations=(KeyInterface.model_validate(interface),)), [])


@pytest.mark.parametrize("entry", [{"_target_": "x.KeySelect"}, {"_target_": "x.KeySelect", "keys_to_select": 3}])
def test_transformation_without_arguments_is_reported(entry):
    config = InterfaceConfig.model_validate({"additional_transformations": [entry]})
    assert config.convert() == (KeyInterface(), ["KeySelect"])


def test_missing_branches_are_reported():
    text = "subflows_config: {CtrlExMem: {subflows_config: {Executor: {subflows_config: {wiki: }}}}}\n"
    assert parse_config(text).unmapped[-1] == "no branch is left: the toolkits of the profile take their place"


def test_unsupported_flow_may_have_unknown_keys():
    text = (
        "subflows_config:\n  Controller:\n  tool: {_target_: flow_modules.x.LCToolFlowModule.LCToolFlow, chunk: 3}\n"
        "  wiki_search: {name: Wiki}\n"
    )
    assert parse_config(text).unmapped[:2] == (
        "branch 'tool': LangChain tools are not run here; give a toolkit or a flow of your own",
        "branch 'wiki_search': Wikipedia search is not available here; give a toolkit or a flow of your own",
    )
