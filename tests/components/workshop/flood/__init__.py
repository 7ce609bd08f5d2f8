from concopilot.framework.plugin import AbstractPlugin


class Flood(AbstractPlugin):
    def command(self, command_name, param, **kwargs):
        return {"rows": [{"number": number, "text": f"row {number}"} for number in range(param.count)]}


def constructor(config):
    return Flood(config)
