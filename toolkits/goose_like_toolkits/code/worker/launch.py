"""Start of the kernel process: a plain IPython kernel with a plugin manager around its cells."""

import asyncio
import faulthandler
import json
import os
import pdb
import shlex
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

from ipykernel import kernelapp
from ipykernel.iostream import IOPubThread, OutStream
from ipykernel.ipkernel import IPythonKernel
from ipykernel.kernelapp import IPKernelApp
from ipykernel.zmqshell import ZMQInteractiveShell
from IPython.core.error import InputRejected, StdinNotImplementedError
from IPython.core.interactiveshell import ExecutionResult
from IPython.utils.process import system  # type: ignore[attr-defined]
from jupyter_client.session import json_packer
from traitlets import Type
from traitlets.config import Config

from . import COMM_TARGET, READY_LINE
from .cell_errors import format_error, format_warning
from .display import LastNameFinder, NamedDisplayHook, import_presets, set_up_formats
from .install import Installer, find_install
from .plugin_manager import PluginManager
from .verification import install_verification

MAX_WAITING = 16
"""Messages that wait for the host."""
PIECE_CHARACTERS = 100_000


class Shell(ZMQInteractiveShell):
    """A shell with named values, short errors, and the plugin manager around each cell."""

    displayhook_class = Type(NamedDisplayHook)
    plugin_manager: PluginManager | None = None
    installer: Installer | None = None
    own_streams: Mapping[str, Any] = MappingProxyType({})
    pid = 0

    def system_piped(self, cmd: str) -> None:
        """Run a shell line. The host runs `pip install`, because the interpreter's packages are read-only here."""
        line = self.var_expand(cmd, depth=1)
        installer = self.installer
        packages = find_install(line) if installer else None
        if installer and packages is not None:
            installer.install(packages)
        elif line.rstrip().endswith("&"):
            raise OSError("a shell line can't run in the background here; use subprocess.Popen")
        else:
            self.user_ns["_exit_code"] = system(line)

    system = system_piped

    async def run_cell_async(self, raw_cell: str, *arguments: Any, **named: Any) -> ExecutionResult:
        """Run a cell. An error of its preparation becomes the error of the cell."""
        code = named.get("transformed_cell") or raw_cell
        if self.plugin_manager is not None and not named.get("preprocessing_exc_tuple"):
            try:
                import_presets(self.user_ns, code)
                self.plugin_manager.before_cell(code)
            except BaseException:
                named["preprocessing_exc_tuple"] = sys.exc_info()
        try:
            return await super().run_cell_async(raw_cell, *arguments, **named)
        finally:
            if os.getpid() != self.pid:  # a forked child would take the messages of the kernel
                sys.stdout.flush()
                os._exit(0)
            if self.plugin_manager is not None:
                self.plugin_manager.after_cell()
            self.restore_streams()

    def restore_streams(self) -> None:
        """Let later cells print here again if this one replaced a stream."""
        for name, stream in self.own_streams.items():
            if getattr(sys, name, None) is not stream:
                setattr(sys, name, stream)
                print(f"[this cell replaced sys.{name}; later cells print here again]", file=stream)

    def showtraceback(self, exc_tuple: Any = None, *_: Any, **__: Any) -> None:
        """Send an error to the host, except a successful `sys.exit`."""
        kind, error, _traceback = self._get_exc_info(exc_tuple)
        if isinstance(error, SystemExit) and not error.code:
            return
        if isinstance(error, InputRejected):
            text = str(error)
        else:
            text = format_error(error)
        self._showtraceback(kind, error, text.splitlines())

    def showsyntaxerror(self, *_: Any, **__: Any) -> None:
        """Send a syntax error to the host."""
        self.showtraceback()

    def showindentationerror(self) -> None:
        """Send an indentation error to the host, without IPython's advice for people who paste."""
        self.showtraceback()

    def _format_exception_for_storage(self, *_: Any, **__: Any) -> dict[str, Any]:
        # IPython's history is off here, and formatting takes seconds after a deep recursion.
        return {}


class Kernel(IPythonKernel):
    """A kernel without a keyboard."""

    shell_class = Type(Shell)

    @contextmanager
    def _cancel_on_sigint(self, future: Any) -> Iterator[None]:
        # Wake the loop after an interrupt, or a cell that awaits would see it only at the next event.
        with super()._cancel_on_sigint(future):
            cancel = signal.getsignal(signal.SIGINT)
            loop = asyncio.get_running_loop()

            def cancel_now(*arguments: Any) -> None:
                if callable(cancel):
                    cancel(*arguments)
                loop.call_soon_threadsafe(int)

            signal.signal(signal.SIGINT, cancel_now)
            yield

    def raw_input(self, prompt: str = "") -> str:
        """Refuse `input`."""
        asked = ""
        question = prompt.strip()
        if question:
            asked = f" (asked: {question!r})"
        raise StdinNotImplementedError(f"nobody can type here{asked}; put the value into the code")

    def getpass(self, prompt: str = "", *_: Any, **__: Any) -> str:
        """Refuse `getpass.getpass`."""
        return self.raw_input(prompt)


class OutputThread(IOPubThread):
    """The thread that sends output. A cell that is faster than the host waits for it."""

    def schedule(self, f: Callable[[], Any]) -> None:
        """Schedule a call in the thread, after some of the earlier ones ran."""
        while len(self._events) > MAX_WAITING and threading.current_thread() is not self.thread:
            if not self.thread.is_alive():
                break
            time.sleep(0.001)
        super().schedule(f)


class OutputStream(OutStream):
    """A stream that sends large output in pieces, and keeps little of it in memory."""

    _unsent_count = 0

    def close(self) -> None:
        """Send what was written. A cell that closes the stream must not silence later ones."""
        self.flush()

    def write(self, string: str) -> int:
        """Write a text, and wait until most of it was sent."""
        if not isinstance(string, str) or len(string) + self._unsent_count < PIECE_CHARACTERS:
            count = super().write(string) or 0  # a text of another type is an error
            self._unsent_count += count
            return count
        for start in range(0, len(string), PIECE_CHARACTERS):
            super().write(string[start : start + PIECE_CHARACTERS])
            self.flush()
        self._unsent_count = 0
        return len(string)


class App(IPKernelApp):
    """The process, with sockets beside the connection file in a folder that a file descriptor addresses.

    So the path of the folder may exceed the 108 bytes of a socket path (`sun_path` in unix(7)).
    """

    kernel_class = Type(Kernel)
    default_extensions: list[str] = []

    def init_connection_file(self) -> None:
        """Set the place of the sockets."""
        super().init_connection_file()
        folder = os.open(os.path.dirname(self.connection_file), os.O_RDONLY | os.O_DIRECTORY)
        self.ip = f"/proc/self/fd/{folder}/k"

    def init_iopub(self, context: Any) -> None:
        """Never drop a message, because it may mark the end of a cell. Wait for a slow host instead."""
        vars(kernelapp)["IOPubThread"] = OutputThread  # ipykernel has no setting for it
        context.sndhwm = MAX_WAITING
        context.xpub_nodrop = 1
        super().init_iopub(context)
        context.sndhwm = 0  # of the pipes inside this process

    def log_connection_info(self) -> None:
        """Print nothing: no other client connects."""

    def init_pdb(self) -> None:
        """Leave the debugger off: nobody can type."""


def pack_json(content: Any) -> bytes:
    """Serialize a part of a message. Half a surrogate pair, which UTF-8 cannot encode, becomes an escape.

    With ipykernel's own function the sending thread would fail, and lose output or the end of the cell.
    """
    try:
        return json_packer(content)
    except UnicodeEncodeError:
        return json.dumps(content, default=str).encode()


def _make_config() -> Config:
    config = Config()
    config.IPKernelApp.outstream_class = f"{__name__}.{OutputStream.__name__}"
    config.Session.packer = f"{__name__}.{pack_json.__name__}"
    config.InteractiveShell.ast_node_interactivity = "last_expr_or_assign"
    config.InteractiveShell.cache_size = 0  # a cache would keep every displayed value in memory
    config.InteractiveShell.colors = "nocolor"
    config.InteractiveShell.show_rewritten_input = False
    config.HistoryManager.enabled = False
    config.HistoryManager.hist_file = ":memory:"
    config.InteractiveShellApp.exec_PYTHONSTARTUP = False
    return config


def _refuse_debugger(*_: Any, **__: Any) -> None:
    raise RuntimeError("there is no debugger here, because nobody can type; print the values you want to see")


def _print_page(_shell: Any, data: Any, *_: Any, **__: Any) -> None:
    """Print help (`name?`) as output of the cell."""
    print(data["text/plain"] if isinstance(data, dict) else data)


def main(connection_file: str) -> None:
    """Serve cells until the host ends the process."""
    output = os.dup(1)  # ipykernel captures the first one
    faulthandler.enable(os.fdopen(os.dup(2), "w"), all_threads=False)
    warnings.filterwarnings("ignore", message="To exit: use")
    warnings.filterwarnings("ignore", message="The default engine for reading")  # of pandas, at each `read_excel`
    warnings.formatwarning = format_warning
    app = App.instance(config=_make_config(), connection_file=connection_file)
    app.initialize([])
    shell = app.shell
    assert isinstance(shell, Shell)
    assert isinstance(shell.displayhook, NamedDisplayHook)
    sys.breakpointhook = pdb.set_trace = _refuse_debugger
    set_up_formats(shell)
    shell.ast_transformers.append(LastNameFinder(shell.displayhook))
    shell.pid = os.getpid()
    shell.own_streams = {"stdout": sys.stdout, "stderr": sys.stderr}
    shell.set_hook("show_in_pager", _print_page)
    # IPython's own `%pip` advises to restart the kernel.
    python = shlex.quote(sys.executable)

    def run_pip(line: str) -> None:
        shell.system(f"{python} -m pip {line}")

    shell.magics_manager.register_function(run_pip, magic_name="pip")

    def open_comm(comm: Any, message: dict[str, Any]) -> None:
        setup = message["content"]["data"]
        install_verification(shell, setup["verify"])
        manager = PluginManager(shell.user_ns, comm.send)
        comm.on_msg(lambda message: manager.handle(message["content"]["data"]))
        manager.handle(setup)
        shell.plugin_manager = manager
        shell.installer = Installer(os.path.dirname(setup["artifacts"]), comm.send)

    app.kernel.comm_manager.register_target(COMM_TARGET, open_comm)
    sys.path.insert(0, "")
    os.write(output, READY_LINE)
    os.close(output)
    app.start()
