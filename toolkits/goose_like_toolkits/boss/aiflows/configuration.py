"""Read the configuration of a boss, in our short form or in the long form of aiflows."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from goose_like.config.yaml_source import YamlSource, validate
from goose_like.core.errors import ProfileError
from goose_like_toolkits.boss.flow.boss import PARTS, Boss, Part
from goose_like_toolkits.boss.python_flow import DETECT, Detection, Flow, FlowBranch, get_flow_name
from goose_like_toolkits.boss.spec import ACTIONS, FINISH, BossSpec, Branch, RoleSettings

from .schema import FLOW_KEYS, AdaptedFlow, CommandConfig, FlowConfig, TopologyNode
from .target import build_flow, find_action, find_default_branches, get_path, is_bare_loop, is_from_aiflows

_BOSS_PARTS = ("MemoryReading", "Planner", "CtrlExMem")
_LOOP_PARTS = ("Controller", "Executor", "MemoryWriting", "MemoryReading")
_OWN_PROMPT = "the prompts of a boss are fixed"
_UNUSED_KEYS = {
    "backend": "the profile chooses the models",
    "system_message_prompt_template": _OWN_PROMPT,
    "human_message_prompt_template": _OWN_PROMPT,
    "init_human_message_prompt_template": _OWN_PROMPT,
}
_VECTOR_MEMORY = "Memory"
_SHORT_KEYS = {"max_rounds", *BossSpec.model_fields}
_WRAPPER, _WRAPPER_KEYS = "flow", ("input_interface", "output_interface")
_OWN_OUTPUT = "a boss takes a `goal`, and returns `result`, `summary` and `status`"
_TALK = {"ask_user", "re_plan", "update_plan"}
"""Actions with which a boss alone reaches no goal."""


class Configuration(NamedTuple):
    """A boss, and sentences about everything that was left out."""

    boss: Boss
    notes: tuple[str, ...] = ()


def read_configuration(
    given: Mapping[str, Any] | YamlSource, *, imports: bool, owner: object | None = None
) -> Configuration:
    """Read a boss in our short form (`BossSpec`), or in the long form of aiflows.

    With `imports`, the dotted paths of `_target_` are imported: for a program, never for a file. `owner` is an object
    with the method `detect_finish_or_continue`.

    Raises:
        ProfileError: a key or value is wrong, or a flow can't be built. The text has one line per problem.
    """
    whole = given if isinstance(given, YamlSource) else YamlSource("configuration", Path("configuration"), given)
    source, notes = _unwrap(whole)
    data = source.data
    if not isinstance(data, Mapping):
        raise ProfileError(f"{source.locate()}: a boss is described by a mapping, not by {data!r}")
    long, short = sorted((FLOW_KEYS - _SHORT_KEYS) & data.keys()), sorted((_SHORT_KEYS - FLOW_KEYS) & data.keys())
    if long and short:
        raise ProfileError(
            f"{source.locate(short[0])}: {short[0]!r} belongs to the short form and {long[0]!r} to the form of "
            "aiflows; use only one of them"
        )
    if not long and source is whole:
        return Configuration(Boss(validate(BossSpec, source.data, source, "the configuration", _SHORT_KEYS)))
    flow, importer = validate(FlowConfig, source.data, source, "the configuration", FLOW_KEYS), _Importer(imports)
    if (
        find_default_branches(flow.target, "") is None
        and "CtrlExMem" not in flow.subflows_config
        and not _is_loop(flow)
    ):
        raise ProfileError(
            f"{source.locate()}: this describes no boss: its `subflows_config` has neither CtrlExMem nor a Controller; "
            "add one, or make this flow a branch of a boss"
        )
    return Configuration(importer.import_boss(flow, owner=owner), (*notes, *importer.notes))


def _unwrap(source: YamlSource) -> tuple[YamlSource, tuple[str, ...]]:
    """Return the flow below the key `flow`, where the examples of aiflows have it, and sentences about other keys.

    A source without that key returns unchanged. Raise ProfileError for an unknown key beside it.
    """
    data = source.data
    if not isinstance(data, Mapping) or _WRAPPER not in data:
        return source, ()
    for key in data.keys() - {_WRAPPER, *_WRAPPER_KEYS}:
        raise ProfileError(f"{source.locate(key)}: {key!r} stands beside `flow`; move it into `flow`, or remove it")
    notes = [f"`{key}` beside `flow` is not used: {_OWN_OUTPUT}" for key in _WRAPPER_KEYS if data.get(key) is not None]
    return next(part for part in source.split("`flow` to a flow") if part.name == _WRAPPER), tuple(notes)


@dataclass(slots=True)
class _Branches:
    """The branches of a boss. `is_incomplete`: some flows can't run here."""

    is_incomplete: bool = False
    specs: dict[str, Branch] = field(default_factory=dict)
    flows: dict[str, FlowBranch] = field(default_factory=dict)
    bosses: dict[str, Boss] = field(default_factory=dict)


@dataclass(slots=True)
class _Importer:
    """The import of one configuration. `notes` are sentences about everything that is left out, each once.

    The dotted paths of `_target_` are imported only with `imports`.
    """

    imports: bool
    notes: dict[str, None] = field(default_factory=dict)

    def import_boss(self, flow: FlowConfig, name: str = "boss", owner: object | None = None) -> Boss:
        """Import one boss with its sub-bosses. Raise ProfileError if a flow can't be built, or lacks a method."""
        loop = flow if _is_loop(flow) else flow.subflows_config.get("CtrlExMem", FlowConfig())
        configs = {**flow.subflows_config, **loop.subflows_config}
        nodes = {node.flow: node for node in (*flow.topology, *loop.topology)}
        self._note_unused(flow, loop, configs, nodes)
        early_exit_key = loop.early_exit_key or flow.early_exit_key or "EARLY_EXIT"
        executor = nodes.get("Executor", TopologyNode(flow="Executor"))
        controller = configs.get("Controller", FlowConfig())
        parts: dict[Part, Flow] = {}
        for part in PARTS:
            if own := self._build_own(configs.get(part, FlowConfig()), f"the boss uses its own {part}"):
                parts[part] = own
        detection, owner = None, owner or self._build_own(loop, "`finish` ends the boss")
        if owner is not None:
            if not callable(getattr(owner, DETECT, None)):
                raise ProfileError(f"{get_flow_name(owner)} has no method {DETECT!r}; write one, as in `CtrlExMemFlow`")
            source = parts.get("Controller", controller)
            end_arguments = controller.commands.get(FINISH, CommandConfig()).input_args
            detection = Detection(owner, source, early_exit_key, end_arguments, executor.input_interface.apply)
        branches = self._import_branches(name, flow, loop, controller.commands, executor)
        has_no_planner = loop is flow or is_bare_loop(flow.target) or (flow.topology and "Planner" not in nodes)
        spec = BossSpec(
            name=flow.name or name,
            description=flow.description,
            memory_files=flow.memory_files or loop.memory_files,
            max_round=loop.max_round or flow.max_round or 30,
            early_exit_key=early_exit_key,
            planner=None if has_no_planner else RoleSettings(),
            branches=branches.specs,
        )
        return Boss(spec, branches.flows, branches.bosses, parts, detection)

    def _build_own(self, config: FlowConfig, substitute: str) -> Flow | None:
        """Build a flow if it is the user's own. Return None for flows of aiflows, and for those that a file names."""
        if is_from_aiflows(config.target):
            return None
        if self.imports:
            return build_flow(config.target, config.config)
        self._note(f"{config.target!r} is not imported from a file; {substitute}")
        return None

    def _import_branches(
        self,
        name: str,
        flow: FlowConfig,
        loop: FlowConfig,
        commands: Mapping[str, CommandConfig],
        executor: TopologyNode,
    ) -> _Branches:
        """Import the default branches, the branches of the Executor, and the flows beside it."""
        listed = dict.fromkeys(find_default_branches(flow.target, name) or (), FlowConfig())
        listed |= loop.subflows_config.get("Executor", FlowConfig()).subflows_config
        listed |= {key: config for key, config in loop.subflows_config.items() if key not in _LOOP_PARTS}
        if listed.pop(_VECTOR_MEMORY, None):
            self._note(f"`{_VECTOR_MEMORY}` is not used: a boss keeps its memory in files")
        branches = _Branches()
        for key, config in listed.items():
            self._import_branch(branches, key, config, commands.get(key, CommandConfig()), executor)
        for key in commands:
            if key not in listed and key != FINISH:
                self._note(f"command {key!r}: there is no such branch")
        is_incomplete = branches.is_incomplete or is_bare_loop(flow.target)
        has_only_talk = is_incomplete and branches.specs.keys() <= _TALK
        if listed and not branches.flows and (has_only_talk or not branches.specs):
            left = f"only {', '.join(branches.specs)}" if branches.specs else "no branch"
            self._note(f"{left} is left: the toolkits of the profile take the place of the others")
            branches.specs.clear()  # a boss without branches has the toolkits of the profile, and all of `_TALK`
        return branches

    def _import_branch(
        self, branches: _Branches, key: str, config: FlowConfig, command: CommandConfig, executor: TopologyNode
    ) -> None:
        is_own, description = not is_from_aiflows(config.target), command.description or config.description
        is_boss = not is_own and find_default_branches(config.target, key) is not None
        action = key if key in ACTIONS and not is_own else find_action(config.target, key)
        if config.toolkits:
            branches.specs[key] = Branch(description=description, toolkits=config.toolkits)
        elif is_boss or "CtrlExMem" in config.subflows_config:
            boss = branches.bosses[key] = self.import_boss(config, key)
            branches.specs[key] = Branch(description=description, boss=boss.spec)
        elif is_own and self.imports:
            flow = build_flow(config.target, config.config)
            inputs, outputs = config.input_interface, (config.output_interface, executor.output_interface)
            if any(each.additional_transformations for each in (inputs, *outputs)):
                self._note(f"branch {key!r}: `additional_transformations` are not used; change the keys in the flow")
            if any(each.has_changes for each in (inputs, *outputs)):
                flow = AdaptedFlow(flow, inputs, outputs)
            branches.flows[key] = FlowBranch(flow, description, command.input_args or inputs.keys)
        elif action:
            if action != key:
                self._note(f"branch {key!r} is the action {action!r} here, and has that name")
            if action != FINISH:
                branches.specs[action] = Branch(description=description)
        else:
            branches.is_incomplete = True
            flow_name = f"{get_path(config.target)!r}" if get_path(config.target) else "a flow without `_target_`"
            self._note(
                f"branch {key!r}: {flow_name} can't run here; give a toolkit or, from Python, a flow of your own"
            )

    def _note_unused(
        self, flow: FlowConfig, loop: FlowConfig, configs: Mapping[str, FlowConfig], nodes: Mapping[str, TopologyNode]
    ) -> None:
        for each in (flow, loop, *configs.values()):
            for key, reason in _UNUSED_KEYS.items():
                if is_from_aiflows(each.target) and getattr(each, key) is not None:
                    self._note(f"`{key}` is not used: {reason}")
        executor = configs.get("Executor", FlowConfig()).target
        if not is_from_aiflows(executor):
            self._note(f"Executor: {executor!r} is not run; the boss runs the branch that its controller chose")
        for name in flow.subflows_config:
            if loop is not flow and name not in _BOSS_PARTS:
                self._note(f"flow {name!r} is not run: a boss has only {', '.join(_BOSS_PARTS)}")
        for node in nodes.values():
            interfaces = (node.input_interface, node.output_interface)
            if node.flow != "Executor" and any(each.has_changes for each in interfaces):
                self._note(f"topology: the interfaces of {node.flow!r} are not used, only those of the Executor")

    def _note(self, sentence: str) -> None:
        self.notes[sentence] = None


def _is_loop(flow: FlowConfig) -> bool:
    """Tell whether a flow itself has the controller or the executor, and thus no planner."""
    return "CtrlExMem" not in flow.subflows_config and bool({"Controller", "Executor"} & flow.subflows_config.keys())
