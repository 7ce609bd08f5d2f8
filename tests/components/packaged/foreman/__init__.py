"""Makes components that its own configuration names, and uses them."""

from concopilot.framework.message import Message
from concopilot.framework.plugin import AbstractPlugin
from concopilot.framework.resource import ResourceManager
from concopilot.util.initializer.component import create_component


class Foreman(AbstractPlugin):
    def config_resources(self, resource_manager: ResourceManager):
        super().config_resources(resource_manager)
        self.resource_manager = resource_manager

    def command(self, command_name, param, **kwargs):
        return getattr(self, command_name)(param)

    def storage(self):
        storage = create_component(self.config.config.storage)
        storage.config_resources(self.resource_manager)
        return storage

    def work(self, param):
        named = self.config.config.copilot
        named.config.message_manager.artifact_id = param.manager
        create_component(named).run()
        return self.storage().get("replies")

    def letters(self, _):
        ways = create_component(self.config.config.duplex)
        seen = [ways.has_user_msg()]
        ways.send_msg_to_agent(Message(content_type="text/plain", content="to the agent"))
        ways.send_msg_to_user(Message(content_type="text/plain", content="to the user"))
        seen += [ways.has_user_msg(), ways.get_user_msg().content, ways.wait_agent_msg().content]
        ways.interrupt()
        return [str(each) for each in (*seen, ways.interrupted)]

    def read(self, param):
        return self.get_resource(resource_type="disk").read_file(param.path)

    def keep(self, param):
        storage = self.storage()
        storage.put("value", param.value)
        return storage.get("value")


def constructor(config):
    return Foreman(config)
