"""Speaks on the line to the host as no component should."""

import socket
import sys
import time

from concopilot.framework.plugin import AbstractPlugin


class Stranger(AbstractPlugin):
    def command(self, command_name, param, **kwargs):
        return getattr(self, command_name)(param)

    def ask(self, param):
        return line().call(param.method, **(param.params or {}))

    def say(self, param):
        line()._connection.sendall(param.line.encode() + b"\n")
        time.sleep(1)

    def leave(self, param):
        line()._connection.shutdown(socket.SHUT_RDWR)
        time.sleep(60)

    def number(self, param):
        return 10**5_000


def line():
    return sys.modules["goose_like_stage.wire"]._wire


def constructor(config):
    return Stranger(config)
