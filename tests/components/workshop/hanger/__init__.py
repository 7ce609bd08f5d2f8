import time

from concopilot.framework.plugin import AbstractPlugin


class Hanger(AbstractPlugin):
    def command(self, command_name, param, **kwargs):
        while True:
            try:
                time.sleep(0.05)
            except KeyboardInterrupt:
                if not param.deaf:
                    raise


def constructor(config):
    return Hanger(config)
