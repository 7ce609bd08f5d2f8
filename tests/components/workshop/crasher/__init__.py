import ctypes
import os
import signal
import sys

from concopilot.framework.plugin import AbstractPlugin


class Crasher(AbstractPlugin):
    def command(self, command_name, param, **kwargs):
        print("about to end", flush=True)
        if param.how == "fault":
            ctypes.string_at(0)
        elif param.how == "exit":
            os._exit(3)
        elif param.how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        elif param.how == "system_exit":
            sys.exit("I am through")
        raise RuntimeError("that did not work")


def constructor(config):
    return Crasher(config)
