import subprocess

from concopilot.framework.plugin import AbstractPlugin


class Escaper(AbstractPlugin):
    def command(self, command_name, param, **kwargs):
        if command_name == "write":
            with open(param.path, "w") as file:
                file.write("I was here")
            return "written"
        if param.by == "program":
            return subprocess.run(["cat", param.path], capture_output=True, text=True, check=True).stdout
        with open(param.path) as file:
            return file.read()


def constructor(config):
    return Escaper(config)
