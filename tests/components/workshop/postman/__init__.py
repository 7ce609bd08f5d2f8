from concopilot.framework.message import Message
from concopilot.framework.plugin import AbstractPlugin


class Postman(AbstractPlugin):
    def command(self, command_name, param, **kwargs):
        if command_name == "echo":
            return param
        if command_name == "describe":
            return {"seen": repr(dict(param)), "back": param}
        fields = {
            "sender": {"role": "cerebrum", "id": "c1", "name": "brain"},
            "receiver": {"role": "plugin", "id": self.id, "name": self.name},
            "content_type": "command",
            "content": {"command": "echo", "param": "text"},
            "thrd_id": "t7",
        }
        if param.field:
            fields[param.field] = param.value
        return self.on_msg(Message(**fields))


def constructor(config):
    return Postman(config)
