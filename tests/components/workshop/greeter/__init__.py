from concopilot.framework.plugin import AbstractPlugin


class Greeter(AbstractPlugin):
    def __init__(self, config):
        super().__init__(config)
        self.times = 0

    def command(self, command_name, param, **kwargs):
        self.times += 1
        config = self.config.config
        return {
            "text": f"{config.greeting.word} {param.who}{config.greeting.mark} ({config.key1})",
            "times": self.times,
        }


def constructor(config):
    return Greeter(config)
