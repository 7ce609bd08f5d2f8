"""A boss of aiflows as one of ours, and sentences on what of it has no place here."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from goose_like.config.yaml_source import Source
from goose_like.core.errors import ProfileError
from goose_like_toolkits.boss.flow.executor import Detect, Executor, Own
from goose_like_toolkits.boss.flow.key_interface import AS_IT_IS
from goose_like_toolkits.boss.spec import ACTIONS, FINISH, BossSpec, Branch, Interface, Part

from .catalog import BOSSES, NESTED, absence_of, action_of, boss_of, is_theirs
from .detection import Detection
from .schema import Command, Flow, Node, Way
from .target import made

Role = Literal["Planner", "Controller", "MemoryReading", "MemoryWriting"]

_BOSS = ("MemoryReading", "Planner", "CtrlExMem")
_LOOP = ("Controller", "Executor", "MemoryWriting", "MemoryReading")
_BESIDE = {
    "HumanFeedback": "the person is asked where the controller chooses `ask_user`, and can speak at any time",
    "Memory": "there is no store of vectors here; what is remembered stands in `memory_files`",
}
_UNUSED = {
    "backend": "the profile says which models are asked",
    "system_message_prompt_template": "what the boss's parts are told is its own",
    "human_message_prompt_template": "what the boss's parts are told is its own",
    "init_human_message_prompt_template": "what the boss's parts are told is its own",
}


@dataclass(frozen=True, slots=True)
class Configuration:
    """A boss, the flows that are given for its branches and parts, and sentences on what could not be mapped.

    `bosses` are the configurations of the branches that are bosses.
    """

    spec: BossSpec
    flows: Mapping[str, Executor] = field(default_factory=dict)
    detect: Detect | None = None
    parts: Mapping[Role, Own] = field(default_factory=dict)
    bosses: Mapping[str, "Configuration"] = field(default_factory=dict)
    unmapped: tuple[str, ...] = ()


@dataclass(slots=True)
class Mapped:
    """The reader of one configuration; `unmapped` grows, each sentence once."""

    source: Source
    imports: bool
    unmapped: dict[str, None] = field(default_factory=dict)

    def boss(self, flow: Flow, path: tuple[str, ...], name: str = "boss", owner: object | None = None) -> Configuration:
        """The boss that a flow is; one that has its Controller among its own subflows plans nothing."""
        subflows = flow.subflows_config
        if not (subflows.keys() & {*_BOSS, *_LOOP} or boss_of(flow.target) or name in NESTED):
            raise ProfileError(
                f"{self.source.place(*path)}: this describes no boss: its `subflows_config` has neither CtrlExMem nor "
                "a Controller"
            )
        is_bare = "CtrlExMem" not in subflows and bool({"Controller", "Executor"} & subflows.keys())
        loop, at = (
            (flow, path) if is_bare else (subflows.get("CtrlExMem", Flow()), (*path, "subflows_config", "CtrlExMem"))
        )
        around, within = _nodes(flow), _nodes(loop)
        parts: dict[Role, Own] = {}
        if not is_bare:
            self._check_order(flow, _BOSS, "a boss")
            for other in (each for each in subflows if each not in _BOSS):
                self._note(f"flow {other!r}: a boss has none beside {', '.join(_BOSS)}; it is not run")
            self._take(parts, ("MemoryReading", "Planner"), flow, around, path)
        self._check_order(loop, _LOOP, "its rounds")
        self._take(parts, ("Controller", "MemoryReading", "MemoryWriting"), loop, within, at)
        for each in (flow, loop, *subflows.values(), *loop.subflows_config.values()):
            self._note_unused(each)
        branches, flows, bosses = self._branches(name, flow, loop, at)
        spec = BossSpec(
            name=flow.name or name,
            description=flow.description,
            memory_files=flow.memory_files or loop.memory_files,
            max_round=loop.max_round or loop.max_rounds or flow.max_round or flow.max_rounds or 30,
            early_exit_key=loop.early_exit_key or flow.early_exit_key or "EARLY_EXIT",
            planner=None if is_bare or (flow.topology and "Planner" not in around) else Part(),
            branches=branches,
        )
        detect = self._detect(loop, within, parts, spec.early_exit_key, at, owner)
        return Configuration(spec, flows, detect, parts, bosses, tuple(self.unmapped))

    # --- the parts

    def _take(
        self,
        parts: dict[Role, Own],
        roles: tuple[Role, ...],
        flow: Flow,
        nodes: Mapping[str, Node],
        path: tuple[str, ...],
    ) -> None:
        """Puts the flows that are the caller's own among the parts."""
        for role in roles:
            part = flow.subflows_config.get(role, Flow())
            if is_theirs(part.target):
                continue
            if not self.imports:
                self._note(f"{role}: a file's flows are not imported ({part.target!r}); the boss has its own {role}")
                continue
            node = nodes.get(role, Node(flow=role))
            ways = [self._interface(way, role) for way in (node.input_interface, node.output_interface)]
            parts[role] = Own(self._made(part, (*path, "subflows_config", role)), *ways)

    def _detect(
        self,
        loop: Flow,
        nodes: Mapping[str, Node],
        parts: Mapping[Role, Own],
        early_exit_key: str,
        path: tuple[str, ...],
        owner: object | None,
    ) -> Detect | None:
        """What the topology has between Controller and Executor; None where that is the boss's own."""
        controller, executor = (nodes.get(name, Node(flow=name)) for name in ("Controller", "Executor"))
        is_own = self.imports and not is_theirs(loop.target)
        if not is_own and loop.target and not is_theirs(loop.target):
            self._note(f"a file's flows are not imported ({loop.target!r}); `finish` ends the boss")
        flow = self._made(loop, path) if is_own and owner is None else owner
        method = controller.output_interface.method or "detect_finish_or_continue"
        source = parts["Controller"].flow if "Controller" in parts else loop.subflows_config.get("Controller", Flow())
        inputs = self._interface(executor.input_interface, "Executor")
        if callable(getattr(flow, method, None)):
            ends = loop.subflows_config.get("Controller", Flow()).commands.get("finish", Command()).input_args
            return Detection(flow, method, source, early_exit_key, input_interface=inputs, ends=ends)
        if is_own or (controller.output_interface.method and self.imports):
            raise ProfileError(
                f"{self.source.place(*path)}: the controller's output goes to {method!r}, which there is not; "
                "write it as a method of the class of CtrlExMem"
            )
        if method != "detect_finish_or_continue":
            self._note(
                f"Controller: its output goes to the method {method!r}, which is not here; `finish` ends the boss"
            )
        outputs = self._interface(controller.output_interface, "Controller")
        if outputs == AS_IT_IS:
            return None
        return Detection(None, "", source, early_exit_key, outputs, inputs)

    # --- the branches

    def _branches(
        self, name: str, flow: Flow, loop: Flow, path: tuple[str, ...]
    ) -> tuple[dict[str, Branch], dict[str, Executor], dict[str, Configuration]]:
        given = self._given(name, flow, loop, path)
        commands = loop.subflows_config.get("Controller", Flow()).commands
        output = _nodes(loop).get("Executor", Node(flow="Executor")).output_interface
        result = self._interface(output, "Executor")
        branches: dict[str, Branch] = {}
        flows: dict[str, Executor] = {}
        bosses: dict[str, Configuration] = {}
        for key, (one, at) in given.items():
            command = commands.get(key, Command())
            branch = Branch(
                description=command.description or one.description,
                parameters=command.input_args or one.input_interface.keys,
                input_interface=self._interface(one.input_interface, key),
                output_interface=_one_after_the_other(self._interface(one.output_interface, key), result),
            )
            action = key if key in ACTIONS and is_theirs(one.target) else action_of(one.target)
            if one.toolkits:
                branches[key] = branch.model_copy(update={"toolkits": one.toolkits})
            elif self._is_boss(key, one):
                bosses[key] = self.boss(one, at, key)
                branches[key] = branch.model_copy(update={"boss": bosses[key].spec})
            elif self.imports and not is_theirs(one.target):
                flows[key] = self._made(one, at)
                branches[key] = branch
            elif action:
                if action != key:
                    self._note(f"branch {key!r} is the action {action!r} here, and called so")
                if action != FINISH:
                    branches[action] = Branch(description=branch.description)
            else:
                self._note(f"branch {key!r}: {absence_of(one.target, key)}")
        for key in commands:
            if key not in given and key != FINISH:
                self._note(f"command {key!r}: there is no such branch")
        if given and not branches:
            self._note("no branch is left: the toolkits of the profile take their place")
        return branches, flows, bosses

    def _given(
        self, name: str, flow: Flow, loop: Flow, path: tuple[str, ...]
    ) -> dict[str, tuple[Flow, tuple[str, ...]]]:
        """The branches with where they stand: the Executor's, what stands beside it, and what is there by default."""
        executor = loop.subflows_config.get("Executor", Flow())
        if not is_theirs(executor.target):
            self._note(f"Executor: {executor.target!r} is not run; the boss takes the branch that its controller chose")
        within = (*path, "subflows_config", "Executor", "subflows_config")
        given = {key: (one, (*within, key)) for key, one in executor.subflows_config.items()}
        for beside, one in loop.subflows_config.items():
            if beside in _BESIDE:
                self._note(f"{beside}: {_BESIDE[beside]}")
            elif beside not in _LOOP:
                given[beside] = (one, (*path, "subflows_config", beside))
        if "HumanFeedback" in loop.subflows_config:
            given.setdefault("ask_user", (Flow(), path))
        defaults = BOSSES.get(boss_of(flow.target) or NESTED.get(name, ""), ())
        return {one: (Flow(), path) for one in defaults} | given

    def _is_boss(self, name: str, flow: Flow) -> bool:
        if flow.target and not is_theirs(flow.target):
            return "CtrlExMem" in flow.subflows_config
        return bool(boss_of(flow.target)) or name in NESTED or "CtrlExMem" in flow.subflows_config

    # --- words

    def _made(self, flow: Flow, path: tuple[str, ...]) -> Executor:
        try:
            thing: Executor = made(flow.target, flow.config)
        except ProfileError as error:
            raise ProfileError(f"{self.source.place(*path, '_target_')}: {error}") from error
        return thing

    def _interface(self, way: Way, whose: str) -> Interface:
        if way.method and way.method != "detect_finish_or_continue":
            self._note(f"{whose}: the method {way.method!r} of its interface is not called here")
        interface, unknown = way.interface()
        for name in unknown:
            self._note(f"{whose}: the transformation {name!r} of its interface is not known here")
        return interface

    def _check_order(self, flow: Flow, order: tuple[str, ...], what: str) -> None:
        names = [node.flow for node in flow.topology]
        for name in names:
            if name not in flow.subflows_config and name not in order:
                self._note(f"topology: there is no flow {name!r}")
        told = [name for name in names if name in order]
        if told != [name for name in order if name in told]:
            self._note(f"topology: {what} would run {', '.join(told)}; here the order is {', '.join(order)}")

    def _note_unused(self, flow: Flow) -> None:
        for key, why in _UNUSED.items():
            if is_theirs(flow.target) and getattr(flow, key) is not None:
                self._note(f"`{key}` is not used: {why}")

    def _note(self, sentence: str) -> None:
        self.unmapped[sentence] = None


def _nodes(flow: Flow) -> dict[str, Node]:
    return {node.flow: node for node in reversed(flow.topology)}  # of two the first counts


def _one_after_the_other(first: Interface, second: Interface) -> Interface:
    if AS_IT_IS in (first, second):
        return second if first == AS_IT_IS else first
    return Interface(additional_transformations=(first, second))
