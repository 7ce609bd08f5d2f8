"""Turn a boss of aiflows into one of ours, and list the parts that have no counterpart here."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from goose_like.config.yaml_source import YamlSource
from goose_like.core.errors import ProfileError
from goose_like_toolkits.boss.flow.executor import Detect, Executor, FlowPart
from goose_like_toolkits.boss.flow.key_interface import NO_CHANGE
from goose_like_toolkits.boss.spec import ACTIONS, FINISH, BossSpec, Branch, KeyInterface, RoleSettings

from .catalog import BOSS_BRANCHES, BOSSES, explain_absence, find_action, find_boss, is_from_aiflows
from .detection import Detection
from .schema import CommandConfig, FlowConfig, InterfaceConfig, TopologyNode
from .target import build_flow

Role = Literal["Planner", "Controller", "MemoryReading", "MemoryWriting"]
Place = tuple[str, ...]
"""Path of keys to a part of the configuration, for the line in errors."""

_BOSS_ORDER = ("MemoryReading", "Planner", "CtrlExMem")
_ROUND_ORDER = ("Controller", "Executor", "MemoryWriting", "MemoryReading")
_UNSUPPORTED_PARTS = {
    "HumanFeedback": "the controller asks the person with `ask_user`, and the person can speak at any time",
    "Memory": "vector stores are not available here; use `memory_files`",
}
_OWN_PROMPT = "the prompts of a boss are fixed"
_UNUSED_KEYS = {
    "backend": "the profile chooses the models",
    "system_message_prompt_template": _OWN_PROMPT,
    "human_message_prompt_template": _OWN_PROMPT,
    "init_human_message_prompt_template": _OWN_PROMPT,
}


@dataclass(frozen=True, slots=True)
class Configuration:
    """A boss, its flows, and sentences about everything that was left out.

    `flows` and `bosses` are branches by name. `parts` are flows in place of the boss's own parts.
    """

    spec: BossSpec
    flows: Mapping[str, Executor] = field(default_factory=dict)
    detect: Detect | None = None
    parts: Mapping[Role, FlowPart] = field(default_factory=dict)
    bosses: Mapping[str, "Configuration"] = field(default_factory=dict)
    unmapped: tuple[str, ...] = ()


@dataclass(slots=True)
class _Branches:
    specs: dict[str, Branch] = field(default_factory=dict)
    flows: dict[str, Executor] = field(default_factory=dict)
    bosses: dict[str, Configuration] = field(default_factory=dict)


@dataclass(slots=True)
class Importer:
    """The import of one configuration. `unmapped` collects sentences about parts that are left out, each once."""

    source: YamlSource
    imports: bool
    unmapped: dict[str, None] = field(default_factory=dict)

    def import_boss(
        self, flow: FlowConfig, place: Place, name: str = "boss", owner: object | None = None
    ) -> Configuration:
        """Import one boss. A boss with the Controller among its own subflows has no planner."""
        subflows = flow.subflows_config
        if not (subflows.keys() & {*_BOSS_ORDER, *_ROUND_ORDER} or find_boss(flow.target) or name in BOSS_BRANCHES):
            raise ProfileError(
                f"{self.source.locate(*place)}: this describes no boss: its `subflows_config` has neither CtrlExMem "
                "nor a Controller"
            )
        has_no_planner = "CtrlExMem" not in subflows and bool({"Controller", "Executor"} & subflows.keys())
        loop, loop_place = flow, place
        parts: dict[Role, FlowPart] = {}
        if not has_no_planner:
            loop, loop_place = subflows.get("CtrlExMem", FlowConfig()), (*place, "subflows_config", "CtrlExMem")
            self._check_order(flow, _BOSS_ORDER, "a boss")
            for other in (each for each in subflows if each not in _BOSS_ORDER):
                self._note(f"flow {other!r} is not run: a boss has only {', '.join(_BOSS_ORDER)}")
            self._import_parts(parts, ("MemoryReading", "Planner"), flow, place)
        self._check_order(loop, _ROUND_ORDER, "its rounds")
        self._import_parts(parts, ("Controller", "MemoryReading", "MemoryWriting"), loop, loop_place)
        for each in (flow, loop, *subflows.values(), *loop.subflows_config.values()):
            self._note_unused_keys(each)
        branches = self._import_branches(name, flow, loop, loop_place)
        is_planless = has_no_planner or (flow.topology and "Planner" not in _list_nodes(flow))
        spec = BossSpec(
            name=flow.name or name,
            description=flow.description,
            memory_files=flow.memory_files or loop.memory_files,
            max_round=loop.max_round or loop.max_rounds or flow.max_round or flow.max_rounds or 30,
            early_exit_key=loop.early_exit_key or flow.early_exit_key or "EARLY_EXIT",
            planner=None if is_planless else RoleSettings(),
            branches=branches.specs,
        )
        detect = self._import_detection(loop, parts, spec.early_exit_key, loop_place, owner)
        return Configuration(spec, branches.flows, detect, parts, branches.bosses, tuple(self.unmapped))

    # --- parts

    def _import_parts(
        self, parts: dict[Role, FlowPart], roles: tuple[Role, ...], flow: FlowConfig, place: Place
    ) -> None:
        """Add the flows that are the user's own."""
        nodes = _list_nodes(flow)
        for role in roles:
            part = flow.subflows_config.get(role, FlowConfig())
            if is_from_aiflows(part.target):
                continue
            if not self.imports:
                self._note(f"{role}: {part.target!r} is not imported from a file; the boss uses its own {role}")
                continue
            node = nodes.get(role, TopologyNode(flow=role))
            interfaces = [self._convert_interface(one, role) for one in (node.input_interface, node.output_interface)]
            parts[role] = FlowPart(self._build_flow(part, (*place, "subflows_config", role)), *interfaces)

    def _import_detection(
        self,
        loop: FlowConfig,
        parts: Mapping[Role, FlowPart],
        early_exit_key: str,
        place: Place,
        owner: object | None,
    ) -> Detect | None:
        """Import the step between Controller and Executor. Return None if there is none."""
        nodes, config = _list_nodes(loop), loop.subflows_config.get("Controller", FlowConfig())
        controller, executor = (nodes.get(name, TopologyNode(flow=name)) for name in ("Controller", "Executor"))
        is_user_class = not is_from_aiflows(loop.target)
        if is_user_class and not self.imports:
            self._note(f"{loop.target!r} is not imported from a file; `finish` ends the boss")
        is_built = is_user_class and self.imports
        flow = self._build_flow(loop, place) if is_built and owner is None else owner
        method = controller.output_interface.method or "detect_finish_or_continue"
        source = parts["Controller"].flow if "Controller" in parts else config
        inputs = self._convert_interface(executor.input_interface, "Executor")
        if callable(getattr(flow, method, None)):
            end_arguments = config.commands.get("finish", CommandConfig()).input_args
            return Detection(flow, method, source, early_exit_key, input_interface=inputs, end_arguments=end_arguments)
        if is_built or (controller.output_interface.method and self.imports):
            raise ProfileError(
                f"{self.source.locate(*place)}: the controller's output goes to {method!r}, which does not exist; "
                "write it as a method of the class of CtrlExMem"
            )
        if method != "detect_finish_or_continue":
            self._note(f"Controller: the method {method!r} for its output does not exist here; `finish` ends the boss")
        outputs = self._convert_interface(controller.output_interface, "Controller")
        return None if outputs == NO_CHANGE else Detection(None, "", source, early_exit_key, outputs, inputs)

    # --- branches

    def _import_branches(self, name: str, flow: FlowConfig, loop: FlowConfig, place: Place) -> _Branches:
        listed = self._list_branches(name, flow, loop, place)
        commands = loop.subflows_config.get("Controller", FlowConfig()).commands
        output = _list_nodes(loop).get("Executor", TopologyNode(flow="Executor")).output_interface
        output_interface = self._convert_interface(output, "Executor")
        branches = _Branches()
        for key, (config, config_place) in listed.items():
            command = commands.get(key, CommandConfig())
            branch = Branch(
                description=command.description or config.description,
                parameters=command.input_args or config.input_interface.keys,
                input_interface=self._convert_interface(config.input_interface, key),
                output_interface=_chain(self._convert_interface(config.output_interface, key), output_interface),
            )
            self._import_branch(branches, key, config, branch, config_place)
        for key in commands:
            if key not in listed and key != FINISH:
                self._note(f"command {key!r}: there is no such branch")
        if listed and not branches.specs:
            self._note("no branch is left: the toolkits of the profile take their place")
        return branches

    def _import_branch(self, branches: _Branches, key: str, config: FlowConfig, branch: Branch, place: Place) -> None:
        is_user_class = not is_from_aiflows(config.target)
        action = key if key in ACTIONS and not is_user_class else find_action(config.target)
        has_loop = "CtrlExMem" in config.subflows_config
        is_boss = has_loop or (not is_user_class and (bool(find_boss(config.target)) or key in BOSS_BRANCHES))
        if config.toolkits:
            branches.specs[key] = branch.model_copy(update={"toolkits": config.toolkits})
        elif is_boss:
            branches.bosses[key] = self.import_boss(config, place, key)
            branches.specs[key] = branch.model_copy(update={"boss": branches.bosses[key].spec})
        elif self.imports and is_user_class:
            branches.flows[key] = self._build_flow(config, place)
            branches.specs[key] = branch
        elif action:
            if action != key:
                self._note(f"branch {key!r} is the action {action!r} here, and has that name")
            if action != FINISH:
                branches.specs[action] = Branch(description=branch.description)
        else:
            self._note(f"branch {key!r}: {explain_absence(config.target, key)}")

    def _list_branches(
        self, name: str, flow: FlowConfig, loop: FlowConfig, place: Place
    ) -> dict[str, tuple[FlowConfig, Place]]:
        """List default branches, branches of the Executor and flows beside it, each with its place."""
        executor = loop.subflows_config.get("Executor", FlowConfig())
        if not is_from_aiflows(executor.target):
            self._note(f"Executor: {executor.target!r} is not run; the boss runs the branch that its controller chose")
        executor_place = (*place, "subflows_config", "Executor", "subflows_config")
        listed = {key: (one, (*executor_place, key)) for key, one in executor.subflows_config.items()}
        for key, one in loop.subflows_config.items():
            if key in _UNSUPPORTED_PARTS:
                self._note(f"{key}: {_UNSUPPORTED_PARTS[key]}")
            elif key not in _ROUND_ORDER:
                listed[key] = (one, (*place, "subflows_config", key))
        if "HumanFeedback" in loop.subflows_config:
            listed.setdefault("ask_user", (FlowConfig(), place))
        defaults = BOSSES.get(find_boss(flow.target) or BOSS_BRANCHES.get(name, ""), ())
        return {one: (FlowConfig(), place) for one in defaults} | listed

    # --- helpers

    def _build_flow(self, flow: FlowConfig, place: Place) -> Executor:
        try:
            built: Executor = build_flow(flow.target, flow.config)
        except ProfileError as error:
            raise ProfileError(f"{self.source.locate(*place, '_target_')}: {error}") from error
        return built

    def _convert_interface(self, config: InterfaceConfig, owner: str) -> KeyInterface:
        if config.method and config.method != "detect_finish_or_continue":
            self._note(f"{owner}: the method {config.method!r} of its interface is not called here")
        interface, unknown = config.convert()
        for name in unknown:
            self._note(f"{owner}: the transformation {name!r} of its interface is not known here")
        return interface

    def _check_order(self, flow: FlowConfig, order: tuple[str, ...], what: str) -> None:
        names = [node.flow for node in flow.topology]
        for name in names:
            if name not in flow.subflows_config and name not in order:
                self._note(f"topology: there is no flow {name!r}")
        listed = [name for name in names if name in order]
        if listed != [name for name in order if name in listed]:
            self._note(f"topology: {what} would run {', '.join(listed)}; here the order is {', '.join(order)}")

    def _note_unused_keys(self, flow: FlowConfig) -> None:
        for key, reason in _UNUSED_KEYS.items():
            if is_from_aiflows(flow.target) and getattr(flow, key) is not None:
                self._note(f"`{key}` is not used: {reason}")

    def _note(self, sentence: str) -> None:
        self.unmapped[sentence] = None


def _list_nodes(flow: FlowConfig) -> dict[str, TopologyNode]:
    return {node.flow: node for node in reversed(flow.topology)}  # the first of two entries counts


def _chain(first: KeyInterface, second: KeyInterface) -> KeyInterface:
    if NO_CHANGE in (first, second):
        return second if first == NO_CHANGE else first
    return KeyInterface(additional_transformations=(first, second))
