"""The step between controller and executor: `detect_finish_or_continue` of aiflows, or an interface of keys."""

from dataclasses import dataclass
from typing import Any

from goose_like.core.tool import ToolError
from goose_like_toolkits.boss.flow.executor import RETRY_ADVICE, bind_method, convert_errors, get_flow_name
from goose_like_toolkits.boss.flow.key_interface import NO_CHANGE, Payload, apply_interface
from goose_like_toolkits.boss.spec import KeyInterface


@dataclass(frozen=True, slots=True)
class Detection:
    """A method of `flow`, or without `method` the output interface of the controller, then the executor's interface.

    `end_arguments` are the argument names of `finish` in the controller's table of commands. Each gets the `result`.
    """

    flow: Any
    method: str
    controller: Any
    early_exit_key: str
    output_interface: KeyInterface = NO_CHANGE
    input_interface: KeyInterface = NO_CHANGE
    end_arguments: tuple[str, ...] = ()

    def __call__(self, message: Payload) -> Payload:
        """Decide on a controller's answer.

        Raises:
            ToolError: the method failed or returned neither a branch nor the end. The text is for the controller.
        """
        decision = self._call_method({**message, "command_args": self._complete_arguments(message)})
        if decision.get(self.early_exit_key):
            return decision
        decision = apply_interface(self.input_interface, decision)
        branch = decision.get("branch", decision.get("command"))
        inputs = decision.get("branch_input_data", decision.get("command_args"))
        if not isinstance(branch, str) or not isinstance(inputs, dict | None):
            raise ToolError(
                f"{get_flow_name(self.flow)}.{self.method or 'topology'} gave {sorted(decision)} for the command "
                f"{message.get('command')!r}: neither a branch with its input nor the end; choose another action"
            )
        return {"branch": branch, "branch_input_data": inputs or {}}

    def _complete_arguments(self, message: Payload) -> Payload:
        arguments = dict(message.get("command_args") or {})
        if message.get("command") == "finish" and "result" in arguments:
            return dict.fromkeys(self.end_arguments, arguments["result"]) | arguments
        return arguments

    def _call_method(self, message: Payload) -> Payload:
        if not self.method:
            return apply_interface(self.output_interface, message)
        name = f"{get_flow_name(self.flow)}.{self.method}"
        problem = f"{name} failed at the command {message.get('command')!r}"
        with convert_errors(problem, type(self.flow).__module__, RETRY_ADVICE):
            decision = bind_method(self.flow, self.method, parameter_count=2)(message, self.controller)
        if not isinstance(decision, dict):
            raise ToolError(f"{name} gave {decision!r}, not a dict; choose another action")
        return decision
