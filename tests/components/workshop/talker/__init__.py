"""Asks the user what to do, has the cerebrum decide, carries its messages to the plugins, and shows the answer."""

from concopilot.framework.cerebrum import InteractParameter
from concopilot.framework.identity import Identity
from concopilot.framework.interactor import BasicInteractor
from concopilot.framework.message import Message

SELF = Identity(role="interactor", name="talker")
BRAIN = Identity(role="cerebrum", name="brain")
USER = Identity(role="user", name="user")


class Talker(BasicInteractor):
    def interact_loop(self):
        self.status = self.Status.RUNNING
        interface, history = self.context.user_interface, []
        said = interface.on_msg_to_user(
            Message(sender=SELF, receiver=USER, content_type="text/plain", content=self.config.config.greeting)
        )
        while said is not None and said.content and self.status == self.Status.RUNNING:
            history.append(Message(sender=USER, receiver=BRAIN, content_type="text/plain", content=said.content))
            said = interface.on_msg_to_user(self.answer(history))
        self.status = self.Status.STOPPED

    def answer(self, history):
        config, command = self.config.config, None
        for _ in range(config.rounds):
            response = self.cerebrum.interact(
                InteractParameter(instructions=config.instructions, message_history=list(history), command=command)
            )
            calls = []
            for message in self.message_manager.parse(response, thrd_id="t1"):
                message.sender = BRAIN
                history.append(message)
                if message.content_type == "command":
                    plugin = self.plugin_manager.plugin_name_map[message.receiver.name]
                    calls.append(plugin.on_msg(message))
            history += calls
            if not calls:
                break
            command = config.after_calls
        return Message(sender=SELF, receiver=USER, content_type="text/plain", content=response.content)


def constructor(config, resource_manager, cerebrum, plugin_manager, message_manager):
    return Talker(config, resource_manager, cerebrum, plugin_manager, message_manager)
