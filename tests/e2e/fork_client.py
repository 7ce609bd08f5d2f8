"""The `goose-like` of a shell: `fork_server` forks, with the streams, folder and environment of this process.

This imports nothing of ours or of a package: a start takes 15 ms.
"""

import json
import os
import signal
import socket
import struct
import sys

NUMBER = struct.Struct("i")


def main(settings_file: str, words: list[str]) -> int:
    """Run the words, by a fork if that is the same as a start, and return the exit code."""
    with open(settings_file) as file:
        settings = json.load(file)
    first_letters = tuple(settings["first_letters"])
    names = [name for name in os.environ if name.startswith(first_letters) and name not in settings["later_read"]]
    first_read = {name: os.environ[name] for name in names}
    if first_read != settings["first_read"]:
        os.execv(settings["python"], [settings["python"], "-m", "goose_like", *words])
    request = {"words": words, "env": dict(os.environ), "folder": os.getcwd(), "has_terminal": False}
    text = json.dumps(request).encode()
    with socket.socket(socket.AF_UNIX) as channel:
        channel.connect(settings["address"])
        socket.send_fds(channel, [NUMBER.pack(len(text))], [0, 1, 2])
        channel.sendall(text)
        pid = NUMBER.unpack(channel.recv(NUMBER.size))[0]
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda got, _: os.kill(pid, got))
        status = NUMBER.unpack(channel.recv(NUMBER.size))[0]
    code = os.waitstatus_to_exitcode(status)
    return 128 - code if code < 0 else code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
