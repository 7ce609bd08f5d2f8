from concopilot.framework.plugin import AbstractPlugin


class Notes(AbstractPlugin):
    def command(self, command_name, param, **kwargs):
        disk = self.get_resource(resource_type="disk")
        path = param.name + self.config.config.suffix
        try:
            there = disk.read_file(path)
        except FileNotFoundError:
            there = ""
        if command_name == "read":
            return {"text": there}
        text = (there if param.append else "") + param.text
        disk.write_file(path, text)
        return {"characters": len(text)}


def constructor(config):
    return Notes(config)
