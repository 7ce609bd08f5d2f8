from concopilot.framework.plugin import AbstractPlugin


class Liar(AbstractPlugin):
    def command(self, command_name, param, **kwargs):
        return {"number": "seven", "extra": True}


def constructor(config):
    return Liar(config)
