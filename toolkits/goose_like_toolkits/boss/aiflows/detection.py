"""What stands between a controller's answer and the action: whether to finish, or which branch with what."""

from dataclasses import dataclass
from typing import Any

from goose_like.core.errors import GooseLikeError
from goose_like.core.frames import describe_foreign_error
from goose_like.core.tool import ToolError
from goose_like_toolkits.boss.flow.executor import bound, named
from goose_like_toolkits.boss.flow.key_interface import AS_IT_IS, Payload, applied
from goose_like_toolkits.boss.spec import Interface


@dataclass(frozen=True, slots=True)
class Detection:
    """The topology's way from Controller to Executor: a method of `flow`, and the Executor's input interface.

    `method` may be empty; then the controller's interface of keys is all there is. `ends` are the names of the
    arguments that the controller's table of commands gives to `finish`: a model is told of `result` and `summary`.
    """

    flow: Any
    method: str
    controller: Any
    early_exit_key: str
    output_interface: Interface = AS_IT_IS
    input_interface: Interface = AS_IT_IS
    ends: tuple[str, ...] = ()

    def __call__(self, message: Payload) -> Payload:
        """What is to be done with this answer.

        Raises:
            ToolError: the method raised, or says neither; the text is for the controller.
        """
        given = self._processed({**message, "command_args": self._arguments(message)})
        if given.get(self.early_exit_key):
            return given
        given = applied(self.input_interface, given)
        branch = given.get("branch", given.get("command"))
        inputs = given.get("branch_input_data", given.get("command_args"))
        if not isinstance(branch, str) or not isinstance(inputs, dict | None):
            raise ToolError(
                f"{named(self.flow)}.{self.method or 'topology'} gave {sorted(given)} for the command "
                f"{message.get('command')!r}: neither a branch with its input nor the end; choose another action"
            )
        return {"branch": branch, "branch_input_data": inputs or {}}

    def _arguments(self, message: Payload) -> Payload:
        arguments = dict(message.get("command_args") or {})
        if message.get("command") == "finish" and "result" in arguments:
            return dict.fromkeys(self.ends, arguments["result"]) | arguments
        return arguments

    def _processed(self, message: Payload) -> Payload:
        if not self.method:
            return applied(self.output_interface, message)
        try:
            given = bound(self.flow, self.method, taken=2)(message, self.controller)
        except GooseLikeError:
            raise
        except Exception as error:  # somebody's own code: what it raises is told to the controller
            where = describe_foreign_error(error, type(self.flow).__module__)
            raise ToolError(
                f"{named(self.flow)}.{self.method} failed at the command {message.get('command')!r}: {where}; "
                "send other arguments, or choose another action"
            ) from error
        if not isinstance(given, dict):
            raise ToolError(f"{named(self.flow)}.{self.method} gave {given!r}, not a dict; choose another action")
        return given
