"""Configurations of bosses: our short form, the long form of aiflows, and reports about the rest."""

import sys
from pathlib import Path
from textwrap import indent
from typing import Any

import pytest
from goose_like_toolkits.boss.aiflows.configuration import Configuration, read_configuration
from goose_like_toolkits.boss.aiflows.schema import KeyInterface
from goose_like_toolkits.boss.flow.boss import Boss
from goose_like_toolkits.boss.python_flow import FlowBranch

from goose_like.config.yaml_source import read_yaml
from goose_like.core.errors import ProfileError
from goose_like.core.tool import ToolError
from tests import ROOT

FIXTURES = ROOT / "tests/fixtures/aiflows"


def read(name: str) -> Configuration:
    file = FIXTURES / name
    return read_configuration(read_yaml(file), imports=False)


def parse_config(text: str) -> Configuration:
    file = Path("boss.yaml")
    return read_configuration(read_yaml(file, {file: text}), imports=False)


def test_three_nested_bosses():
    boss, notes = read("jarvis.yaml")
    jarvis = boss.spec
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
    assert notes == (
        "`backend` is not used: the profile chooses the models",
        "branch 'intermediate_answer': 'flow_modules.aiflows.JarvisFlowModule.IntermediateAns_Jarvis' can't run here; "
        "give a toolkit or, from Python, a flow of your own",
        "branch 'final_answer' is the action 'finish' here, and has that name",
    )


def test_commands_with_branches_of_all_kinds():
    boss, notes = read("autogpt.yaml")
    gpt = boss.spec
    assert (gpt.name, gpt.max_round, gpt.planner) == ("AutoGPT", 20, None)
    assert set(gpt.branches) == {"run_code", "shell", "ask_user"}
    assert gpt.branches["run_code"].description == "Runs a script."
    assert [choice.name for choice in gpt.branches["shell"].toolkits] == ["developer"]
    unknown = "can't run here; give a toolkit or, from Python, a flow of your own"
    assert set(notes) == {
        "`backend` is not used: the profile chooses the models",
        "`human_message_prompt_template` is not used: the prompts of a boss are fixed",
        "branch 'HumanFeedback' is the action 'ask_user' here, and has that name",
        "`Memory` is not used: a boss keeps its memory in files",
        f"branch 'look_up': 'flow_modules.aiflows.LCToolFlowModule.LCToolFlow' {unknown}",
        "branch 'run_script' is the action 'run_code' here, and has that name",
        f"branch 'search_mail': 'my_company.mail.SearchFlow' {unknown}",
        "command 'draw': there is no such branch",
    }


def test_tools_beside_the_controller():
    boss, notes = read("react.yaml")
    assert (boss.spec.max_round, boss.spec.branches) == (7, {})
    assert notes == (
        "branch 'wiki': 'flow_modules.aiflows.ControllerExecutorFlowModule.WikiSearchAtomicFlow' can't run here; "
        "give a toolkit or, from Python, a flow of your own",
        "branch 'ask' is the action 'ask_user' here, and has that name",
        "only ask_user is left: the toolkits of the profile take the place of the others",
    )


@pytest.mark.parametrize("name", ["autogpt.yaml", "react.yaml", "jarvis.yaml"])
def test_flow_below_a_key_as_in_the_examples_of_aiflows(name):
    text = indent((FIXTURES / name).read_text(), "  ")
    assert parse_config(f"flow:\n{text}\n") == read(name)
    assert parse_config(f"output_interface: {{_target_: x.Y}}\nflow:\n{text}\n").notes[0] == (
        "`output_interface` beside `flow` is not used: a boss takes a `goal`, and returns `result`, `summary` and "
        "`status`"
    )


@pytest.mark.parametrize("flow", ["AutoGPTFlow", "ControllerExecutorFlow"])
def test_flow_with_the_defaults_of_aiflows(flow):
    spec = parse_config(f"flow:\n  _target_: flow_modules.aiflows.X.{flow}.instantiate_from_default_config\n").boss.spec
    assert (spec.planner, spec.branches) == (None, {})


def test_short_form():
    spec = parse_config(
        "name: Clerk\nmax_rounds: 5\nbranches: {shell: {toolkits: [developer]}, ask_user: }\n"
    ).boss.spec
    assert (spec.name, spec.max_round, list(spec.branches)) == ("Clerk", 5, ["shell", "ask_user"])


def test_placeholders_are_dropped():
    spec = parse_config("name: Clerk\nmemory_files: ???\nsubflows_config:\n  Planner:\n  CtrlExMem:\n").boss.spec
    assert (spec.memory_files, spec.max_round) == ({}, 30)


def test_topology_without_planner():
    text = "subflows_config: {Planner: , CtrlExMem: }\ntopology: [{flow: CtrlExMem}]\n"
    assert parse_config(text).boss.spec.planner is None


def test_unused_interface_is_reported():
    text = "subflows_config: {CtrlExMem: }\ntopology: [{flow: Planner, input_interface: {keys_to_rename: {a: b}}}]\n"
    assert parse_config(text).notes == (
        "topology: the interfaces of 'Planner' are not used, only those of the Executor",
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name: x\nmax_raund: 3\n", "boss.yaml, line 2: unknown key 'max_raund'; did you mean 'max_round'?"),
        (
            "subflows_config:\n  CtrlExMem:\n    max_runds: 3\n    subflows_config: {}\n",
            "boss.yaml, line 3: unknown key 'subflows_config.CtrlExMem.max_runds'; did you mean 'max_round'?",
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
            "subflows_config:\n  CtrlExMem:\n    max_round: 3\n    max_rounds: 4\n    subflows_config: {}\n",
            "line 4: unknown key 'subflows_config.CtrlExMem.max_rounds'; did you mean",
        ),
        ("max_round: 3\nmax_rounds: 4\n", "line 2: unknown key 'max_rounds'; did you mean"),
        ("max_round: 0\n", "line 1: max_round: expected greater than or equal to 1, not 0"),
        (
            "branches:\n  run_cod:\n",
            "line 1: branches: 'run_cod' has neither `toolkits` nor a `boss`, and is no action",
        ),
        ("flow:\n  max_runds: 3\n  subflows_config: {Controller: }\n", "boss.yaml, line 2: unknown key 'max_runds'"),
        ("flow: {}\nbranches: {}\n", "line 2: 'branches' stands beside `flow`; move it into `flow`, or remove it"),
        ("flow: 3\n", "line 1: a boss is described by a mapping, not by 3"),
        ("flow: {name: x}\n", "line 1: this describes no boss"),
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


def import_boss(config: dict[str, Any]) -> Boss:
    return read_configuration(config, imports=True).boss


def test_dotted_path_is_imported_for_programs_only(tmp_path, monkeypatch):
    (tmp_path / "my_flows.py").write_text("class Search:\n    def run(self, input_data):\n        return 'found'\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    config = executor(search={"_target_": "my_flows.Search", "any_key": 1})
    boss, notes = read_configuration(config, imports=False)
    assert boss.flows == {}
    assert "my_flows" not in sys.modules
    assert notes[0].startswith("branch 'search': 'my_flows.Search' can't run here")
    assert import_boss(config).flows["search"].flow.run({}) == "found"


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("no_such_module_at_all.Search", "No module named 'no_such_module_at_all'"),
        ("json.Search", "module 'json' has no attribute 'Search'"),
        ("Search", "No module named 'Search'"),
    ],
)
def test_path_that_leads_nowhere(target, message):
    with pytest.raises(ProfileError) as raised:
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
    boss = import_boss(executor(search=flow, greet=len))
    assert boss.flows == {"search": FlowBranch(flow), "greet": FlowBranch(len)}
    assert boss.spec.branches == {}


def test_list_of_keys_names_the_arguments():
    boss = import_boss(executor(search={"_target_": Search, "input_interface": ["term"]}))
    assert boss.flows["search"].parameters == ("term",)


async def test_interface_of_the_executor_applies_to_each_flow():
    config = executor(search=lambda given: {"found": given["q"]})
    config["subflows_config"]["CtrlExMem"]["topology"] = [
        {
            "flow": "Executor",
            "output_interface": {
                "_target_": "aiflows.interfaces.KeyInterface",
                "keys_to_rename": {"branch_output_data.found": "result"},
            },
        }
    ]
    search = import_boss(config).flows["search"]
    assert await search.run({"q": "x"}) == ("x", "", {"result": "x", "found": "x"})


# --- interfaces


@pytest.mark.parametrize(
    ("interface", "before", "after"),
    [
        ({"keys_to_rename": {"a": "b", "gone": "c"}}, {"a": 1}, {"b": 1}),
        ({"keys_to_rename": {"a.b": "c"}}, {"a": {"b": 1}}, {"a": {"b": 1}, "c": 1}),
        ({"keys_to_copy": {"a": "b", "c.d": "e"}}, {"a": [1]}, {"a": [1], "b": [1]}),
        ({"keys_to_set": {"a": 1}}, {"a": 2, "b": 2}, {"a": 1, "b": 2}),
        ({"keys_to_select": ("c", "a")}, {"a": 1, "b": 2, "c": 3}, {"a": 1, "c": 3}),
        ({"keys_to_delete": ("a", "gone")}, {"a": 1, "b": 2}, {"b": 2}),
        # Renamed first, then copied, set, selected, deleted: each sees what the one before left.
        (
            {
                "keys_to_rename": {"a": "b"},
                "keys_to_copy": {"b": "c"},
                "keys_to_set": {"b": 2},
                "keys_to_select": ("b", "c"),
                "keys_to_delete": ("c",),
            },
            {"a": 1, "x": 0},
            {"b": 2},
        ),
    ],
)
def test_key_interface(interface, before, after):
    kept = repr(before)
    assert KeyInterface.model_validate(interface).apply(before) == after
    assert repr(before) == kept


def test_missing_key_to_select():
    with pytest.raises(ToolError, match="no key 'gola' to select; did you mean 'goal'"):
        KeyInterface(keys_to_select=("gola",)).apply({"goal": 1})


async def test_flow_outputs():
    async def later(given):
        return {"summary": "s", "more": given}

    class Slow:
        async def arun(self, input_data):
            return 7

    assert await FlowBranch(Search()).run({}) == ("found", "", {"result": "found"})
    assert await FlowBranch(Slow()).run({}) == ("7", "", {"result": 7})
    result, summary, given = await FlowBranch(later).run({"a": 1})
    assert (result, summary, given) == ('{"summary": "s", "more": {"a": 1}}', "s", {"summary": "s", "more": {"a": 1}})
    with pytest.raises(ToolError, match="has no `run`"):
        await FlowBranch(object()).run({})


def test_transformations_are_reported():
    interface = {"additional_transformations": [{"_target_": "x.RegexFirst"}]}
    config = executor(search={"_target_": Search, "input_interface": interface})
    assert read_configuration(config, imports=True).notes == (
        "branch 'search': `additional_transformations` are not used; change the keys in the flow",
    )


def test_missing_branches_are_reported():
    text = "subflows_config: {CtrlExMem: {subflows_config: {Executor: {subflows_config: {wiki: }}}}}\n"
    assert parse_config(text).notes[-1] == (
        "no branch is left: the toolkits of the profile take the place of the others"
    )


def test_unsupported_flow_may_have_unknown_keys():
    text = (
        "subflows_config:\n  Controller:\n  tool: {_target_: flow_modules.x.LCToolFlowModule.LCToolFlow, chunk: 3}\n"
        "  wiki_search: {name: Wiki}\n"
    )
    assert [note.partition(":")[0] for note in parse_config(text).notes[:2]] == [
        "branch 'tool'",
        "branch 'wiki_search'",
    ]
