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
_WRAPPER = "flow"
_WRAPPER_KEYS = ("input_interface", "output_interface")
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
    whole = given
    if not isinstance(whole, YamlSource):
        whole = YamlSource("configuration", Path("configuration"), whole)
    source, notes = _unwrap(whole)
    if not isinstance(source.data, Mapping):
        raise ProfileError(f"{source.locate()}: a boss is described by a mapping, not by {source.data!r}")
    if not _is_long(source, source.data) and source is whole:
        spec = validate(BossSpec, source.data, source, "the configuration", _SHORT_KEYS)
        return Configuration(Boss(spec))
    flow = validate(FlowConfig, source.data, source, "the configuration", FLOW_KEYS)
    if not _is_boss(flow):
        raise ProfileError(
            f"{source.locate()}: this describes no boss: its `subflows_config` has neither CtrlExMem nor a Controller; "
            "add one, or make this flow a branch of a boss"
        )
    importer = _Importer(imports)
    boss = importer.import_boss(flow, owner=owner)
    return Configuration(boss, (*notes, *importer.notes))


def _is_long(source: YamlSource, data: Mapping[str, Any]) -> bool:
    """Tell whether a mapping has keys of the long form. Raise ProfileError if it has keys of both forms."""
    long = sorted((FLOW_KEYS - _SHORT_KEYS) & data.keys())
    short = sorted((_SHORT_KEYS - FLOW_KEYS) & data.keys())
    if long and short:
        raise ProfileError(
            f"{source.locate(short[0])}: {short[0]!r} belongs to the short form and {long[0]!r} to the form of "
            "aiflows; use only one of them"
        )
    return bool(long)


def _unwrap(source: YamlSource) -> tuple[YamlSource, tuple[str, ...]]:
    """Return the flow below the key `flow`, where the examples of aiflows have it, and sentences about other keys.

    A source without that key returns unchanged. Raise ProfileError for an unknown key beside it.
    """
    data = source.data
    if not isinstance(data, Mapping) or _WRAPPER not in data:
        return source, ()
    for key in data.keys() - {_WRAPPER, *_WRAPPER_KEYS}:
        raise ProfileError(f"{source.locate(key)}: {key!r} stands beside `flow`; move it into `flow`, or remove it")
    notes = []
    for key in _WRAPPER_KEYS:
        if data.get(key) is not None:
            notes.append(f"`{key}` beside `flow` is not used: {_OWN_OUTPUT}")
    parts = source.split("`flow` to a flow")
    return next(part for part in parts if part.name == _WRAPPER), tuple(notes)


@dataclass(frozen=True, slots=True)
class _BossConfig:
    """The configuration of one boss. `loop` is the flow with its rounds, which may be `flow` itself."""

    flow: FlowConfig
    loop: FlowConfig

    @property
    def flows(self) -> dict[str, FlowConfig]:
        """The flows inside of both, by name."""
        return {**self.flow.subflows_config, **self.loop.subflows_config}

    @property
    def controller(self) -> FlowConfig:
        """The flow that chooses the branches."""
        return self.flows.get("Controller", FlowConfig())

    @property
    def nodes(self) -> dict[str, TopologyNode]:
        """The entries of both topologies, by the name of their flow."""
        return {node.flow: node for node in (*self.flow.topology, *self.loop.topology)}

    @property
    def executor(self) -> TopologyNode:
        """The entry of the Executor, whose interfaces change the keys of each branch."""
        return self.nodes.get("Executor", TopologyNode(flow="Executor"))

    @property
    def early_exit_key(self) -> str:
        """The key that ends the boss."""
        return self.loop.early_exit_key or self.flow.early_exit_key or "EARLY_EXIT"

    @property
    def has_planner(self) -> bool:
        """True unless there are only rounds, or a topology without the planner."""
        if self.loop is self.flow or is_bare_loop(self.flow.target):
            return False
        return not self.flow.topology or "Planner" in self.nodes

    def list_branches(self, name: str) -> dict[str, FlowConfig]:
        """List the default branches of the boss with this name, those of the Executor, and the flows beside it."""
        defaults = find_default_branches(self.flow.target, name) or ()
        branches = dict.fromkeys(defaults, FlowConfig())
        branches |= self.loop.subflows_config.get("Executor", FlowConfig()).subflows_config
        for key, config in self.loop.subflows_config.items():
            if key not in _LOOP_PARTS:
                branches[key] = config
        return branches


@dataclass(slots=True)
class _Branches:
    """The branches of a boss. `is_incomplete`: some flows can't run here."""

    is_incomplete: bool = False
    specs: dict[str, Branch] = field(default_factory=dict)
    flows: dict[str, FlowBranch] = field(default_factory=dict)
    bosses: dict[str, Boss] = field(default_factory=dict)

    def is_unable(self) -> bool:
        """Tell whether these branches reach no goal, because others can't run here."""
        if self.flows:
            return False
        has_only_talk = self.specs.keys() <= _TALK
        return not self.specs or (self.is_incomplete and has_only_talk)


@dataclass(slots=True)
class _Importer:
    """The import of one configuration. `notes` are sentences about everything that is left out, each once.

    The dotted paths of `_target_` are imported only with `imports`.
    """

    imports: bool
    notes: dict[str, None] = field(default_factory=dict)

    def import_boss(self, flow: FlowConfig, name: str = "boss", owner: object | None = None) -> Boss:
        """Import one boss with its sub-bosses. Raise ProfileError if a flow can't be built, or lacks a method."""
        loop = flow
        if not _is_loop(flow):
            loop = flow.subflows_config.get("CtrlExMem", FlowConfig())
        config = _BossConfig(flow, loop)
        self._note_unused(config)
        parts: dict[Part, Flow] = {}
        for part in PARTS:
            own = self._build_own(config.flows.get(part, FlowConfig()), f"the boss uses its own {part}")
            if own:
                parts[part] = own
        owner = owner or self._build_own(loop, "`finish` ends the boss")
        detection = None
        if owner is not None:
            detection = _make_detection(owner, config, parts.get("Controller"))
        branches = self._import_branches(name, config)
        spec = BossSpec(
            name=flow.name or name,
            description=flow.description,
            memory_files=flow.memory_files or loop.memory_files,
            max_round=loop.max_round or flow.max_round or 30,
            early_exit_key=config.early_exit_key,
            planner=RoleSettings() if config.has_planner else None,
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

    def _import_branches(self, name: str, config: _BossConfig) -> _Branches:
        listed = config.list_branches(name)
        if listed.pop(_VECTOR_MEMORY, None):
            self._note(f"`{_VECTOR_MEMORY}` is not used: a boss keeps its memory in files")
        commands = config.controller.commands
        branches = _Branches(is_incomplete=is_bare_loop(config.flow.target))
        for key, flow in listed.items():
            command = commands.get(key, CommandConfig())
            self._import_branch(branches, key, flow, command, config.executor)
        for key in commands:
            if key not in listed and key != FINISH:
                self._note(f"command {key!r}: there is no such branch")
        if listed and branches.is_unable():
            left = "no branch"
            if branches.specs:
                left = f"only {', '.join(branches.specs)}"
            self._note(f"{left} is left: the toolkits of the profile take the place of the others")
            branches.specs.clear()  # a boss without branches has the toolkits of the profile, and all of `_TALK`
        return branches

    def _import_branch(
        self, branches: _Branches, key: str, config: FlowConfig, command: CommandConfig, executor: TopologyNode
    ) -> None:
        is_own = not is_from_aiflows(config.target)
        description = command.description or config.description
        if config.toolkits:
            branches.specs[key] = Branch(description=description, toolkits=config.toolkits)
            return
        is_boss = not is_own and find_default_branches(config.target, key) is not None
        if is_boss or "CtrlExMem" in config.subflows_config:
            boss = self.import_boss(config, key)
            branches.bosses[key] = boss
            branches.specs[key] = Branch(description=description, boss=boss.spec)
            return
        if is_own and self.imports:
            flow = self._build_branch_flow(key, config, executor)
            parameters = command.input_args or config.input_interface.keys
            branches.flows[key] = FlowBranch(flow, description, parameters)
            return
        action = find_action(config.target, key)
        if not is_own and key in ACTIONS:
            action = key
        if not action:
            branches.is_incomplete = True
            flow_name = "a flow without `_target_`"
            if get_path(config.target):
                flow_name = repr(get_path(config.target))
            self._note(
                f"branch {key!r}: {flow_name} can't run here; give a toolkit or, from Python, a flow of your own"
            )
            return
        if action != key:
            self._note(f"branch {key!r} is the action {action!r} here, and has that name")
        if action != FINISH:
            branches.specs[action] = Branch(description=description)

    def _build_branch_flow(self, key: str, config: FlowConfig, executor: TopologyNode) -> Flow:
        """Build the user's own flow of a branch, with the changes to its keys."""
        flow = build_flow(config.target, config.config)
        inputs = config.input_interface
        outputs = (config.output_interface, executor.output_interface)
        interfaces = (inputs, *outputs)
        if any(each.additional_transformations for each in interfaces):
            self._note(f"branch {key!r}: `additional_transformations` are not used; change the keys in the flow")
        if any(each.has_changes for each in interfaces):
            return AdaptedFlow(flow, inputs, outputs)
        return flow

    def _note_unused(self, config: _BossConfig) -> None:
        for flow in (config.flow, config.loop, *config.flows.values()):
            self._note_unused_keys(flow)
        executor = config.flows.get("Executor", FlowConfig()).target
        if not is_from_aiflows(executor):
            self._note(f"Executor: {executor!r} is not run; the boss runs the branch that its controller chose")
        for name in config.flow.subflows_config:
            if config.loop is not config.flow and name not in _BOSS_PARTS:
                self._note(f"flow {name!r} is not run: a boss has only {', '.join(_BOSS_PARTS)}")
        for node in config.nodes.values():
            has_changes = node.input_interface.has_changes or node.output_interface.has_changes
            if has_changes and node.flow != "Executor":
                self._note(f"topology: the interfaces of {node.flow!r} are not used, only those of the Executor")

    def _note_unused_keys(self, flow: FlowConfig) -> None:
        if not is_from_aiflows(flow.target):
            return
        for key, reason in _UNUSED_KEYS.items():
            if getattr(flow, key) is not None:
                self._note(f"`{key}` is not used: {reason}")

    def _note(self, sentence: str) -> None:
        self.notes[sentence] = None


def _make_detection(owner: object, config: _BossConfig, controller: Flow | None) -> Detection:
    """Make the detection of a flow with the method. Raise ProfileError if the flow lacks it."""
    if not callable(getattr(owner, DETECT, None)):
        raise ProfileError(f"{get_flow_name(owner)} has no method {DETECT!r}; write one, as in `CtrlExMemFlow`")
    end_arguments = config.controller.commands.get(FINISH, CommandConfig()).input_args
    adapt = config.executor.input_interface.apply
    return Detection(owner, controller or config.controller, config.early_exit_key, end_arguments, adapt)


def _is_boss(flow: FlowConfig) -> bool:
    if find_default_branches(flow.target, "") is not None:
        return True
    return "CtrlExMem" in flow.subflows_config or _is_loop(flow)


def _is_loop(flow: FlowConfig) -> bool:
    """Tell whether a flow itself has the controller or the executor, and thus no planner."""
    return "CtrlExMem" not in flow.subflows_config and bool({"Controller", "Executor"} & flow.subflows_config.keys())
