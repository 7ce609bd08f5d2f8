from concopilot.framework.plugin import AbstractPlugin


class Headline(AbstractPlugin):
    def initialize(self):
        self.pool = self.get_resource(resource_id="default", resource_type="http")

    def command(self, command_name, param, **kwargs):
        return {"text": self.pool.fetch(param.url).splitlines()[0]}


def constructor(config):
    return Headline(config)
