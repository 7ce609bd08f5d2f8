"""Has the cerebrum decide once about what the user said, and keeps what the plugins answered."""

import json

from concopilot.framework.cerebrum import InteractParameter
from concopilot.framework.identity import Identity
from concopilot.framework.interactor import BasicInteractor
from concopilot.framework.message import Message

BRAIN = Identity(role="cerebrum", name="brain")


class Porter(BasicInteractor):
    def interact_loop(self):
        self.status = self.Status.RUNNING
        asked = Message(sender=BRAIN, receiver=Identity(role="user"), content_type="text/plain", content="What to do?")
        said = self.context.user_interface.on_msg_to_user(asked)
        response = self.cerebrum.interact(InteractParameter(command=said.content))
        replies = []
        for message in self.message_manager.parse(response, thrd_id="t1"):
            if message.content_type == "command":
                message.sender = BRAIN
                reply = self.plugin_manager.plugin_name_map[message.receiver.name].on_msg(message)
                replies.append([reply.sender.name, reply.thrd_id, reply.content])
        self.context.storage.put("replies", json.dumps(replies))
        self.status = self.Status.STOPPED


def constructor(config, resource_manager, cerebrum, plugin_manager, message_manager):
    return Porter(config, resource_manager, cerebrum, plugin_manager, message_manager)
