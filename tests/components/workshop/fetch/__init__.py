from concopilot.framework.plugin import AbstractPlugin


class Fetch(AbstractPlugin):
    def command(self, command_name, param, **kwargs):
        return {"text": self.resources[0].fetch(param["url"])}


def constructor(config):
    return Fetch(config)
