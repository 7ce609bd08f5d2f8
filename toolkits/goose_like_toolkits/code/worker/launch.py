"""Starts the kernel: IPython as one finds it in notebooks, but plain, and with a desk for what the host sends."""

import asyncio
import faulthandler
import json
import os
import pdb
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ipykernel.ipkernel import IPythonKernel
from ipykernel.kernelapp import IPKernelApp
from ipykernel.zmqshell import ZMQInteractiveShell
from IPython.core.error import InputRejected, StdinNotImplementedError
from IPython.core.interactiveshell import ExecutionResult
from jupyter_client.session import json_packer
from traitlets import Type
from traitlets.config import Config

from .cell_errors import told_error, told_warning
from .display import LastName, NamedValues, Presets, set_up_formats
from .plugin_manager import Desk
from .verification.verifier import install

READY = b"the kernel is ready\n"


class Shell(ZMQInteractiveShell):
    """Values with their names, errors in few words, and the desk around each cell."""

    displayhook_class = Type(NamedValues)
    desk: Desk | None = None
    presets: Presets
    pid = 0

    async def run_cell_async(self, raw_cell: str, *arguments: Any, **named: Any) -> ExecutionResult:
        """Runs a cell, unless what is to be done ahead of it fails: that is then the cell's error."""
        code = named.get("transformed_cell") or raw_cell
        if self.desk is not None and not named.get("preprocessing_exc_tuple"):
            try:
                self.presets.before_cell(code)
                self.desk.before_cell(code)
            except BaseException:
                named["preprocessing_exc_tuple"] = sys.exc_info()
        try:
            return await super().run_cell_async(raw_cell, *arguments, **named)
        finally:
            if os.getpid() != self.pid:  # a fork that ran on to here: it would take the kernel's messages
                sys.stdout.flush()
                os._exit(0)
            if self.desk is not None:
                self.desk.after_cell()

    def showtraceback(self, exc_tuple: Any = None, *_: Any, **__: Any) -> None:
        """Tells the host of an error."""
        kind, error, _traceback = self._get_exc_info(exc_tuple)
        if isinstance(error, SystemExit) and not error.code:
            return  # how a program ends that did well
        words = str(error) if isinstance(error, InputRejected) else told_error(error)  # that was not run
        self._showtraceback(kind, error, words.splitlines())

    def showsyntaxerror(self, *_: Any, **__: Any) -> None:
        """Tells the host of an error that Python finds before it runs anything."""
        self.showtraceback()

    def _format_exception_for_storage(self, *_: Any, **__: Any) -> dict[str, Any]:
        """For IPython's history, which is none here; to make it takes seconds after a deep recursion."""
        return {}

    def showindentationerror(self) -> None:
        """Without IPython's advice, which is for people who paste."""
        self.showtraceback()


class Kernel(IPythonKernel):
    """A kernel with nobody at a keyboard."""

    shell_class = Type(Shell)

    @contextmanager
    def _cancel_on_sigint(self, future: Any) -> Iterator[None]:
        """Wakes the loop after an interrupt: else a cell that awaits hears of it only when something else happens."""
        with super()._cancel_on_sigint(future):
            cancel, loop = signal.getsignal(signal.SIGINT), asyncio.get_running_loop()

            def cancel_now(*arguments: Any) -> None:
                if callable(cancel):
                    cancel(*arguments)
                loop.call_soon_threadsafe(int)

            signal.signal(signal.SIGINT, cancel_now)
            yield

    def raw_input(self, prompt: str = "") -> str:
        """In place of `input`."""
        raise StdinNotImplementedError(f"nobody can type here{_asked(prompt)}; put what is needed into the code")

    def getpass(self, prompt: str = "", *_: Any, **__: Any) -> str:
        """In place of `getpass.getpass`."""
        return self.raw_input(prompt)


class App(IPKernelApp):
    """The process. Its sockets lie beside the connection file, and are named by a descriptor of that folder.

    So the folder's path may be longer than a socket's may (108 bytes: sun_path in unix(7)).
    """

    kernel_class = Type(Kernel)
    default_extensions: list[str] = []

    def init_connection_file(self) -> None:
        """Where the sockets are made."""
        super().init_connection_file()
        folder = os.open(os.path.dirname(self.connection_file), os.O_RDONLY | os.O_DIRECTORY)
        self.ip = f"/proc/self/fd/{folder}/k"

    def init_iopub(self, context: Any) -> None:
        """No message may be lost, as the end of a cell is one; the host reads all the time."""
        context.sndhwm = 0
        super().init_iopub(context)

    def log_connection_info(self) -> None:
        """Nobody else connects."""

    def init_pdb(self) -> None:
        """There is no debugger where nobody can type."""


def packed(content: Any) -> bytes:
    """A message's part as JSON. Half of a surrogate pair, which UTF-8 can't hold, is written as an escape.

    ipykernel's own way raises then, in the thread that sends: what was printed is lost, and at times the cell's end.
    """
    try:
        return json_packer(content)
    except UnicodeEncodeError:
        return json.dumps(content, default=str).encode()


def _config() -> Config:
    config = Config()
    config.Session.packer = f"{__name__}.packed"
    config.InteractiveShell.ast_node_interactivity = "last_expr_or_assign"
    config.InteractiveShell.cache_size = 0  # or every value that was shown would stay in memory
    config.InteractiveShell.colors = "nocolor"
    config.InteractiveShell.show_rewritten_input = False
    config.HistoryManager.enabled = False
    config.HistoryManager.hist_file = ":memory:"
    config.InteractiveShellApp.exec_PYTHONSTARTUP = False
    return config


def _asked(prompt: str) -> str:
    return f" (asked: {prompt.strip()!r})" if prompt.strip() else ""


def _no_debugger(*_: Any, **__: Any) -> None:
    raise RuntimeError("there is no debugger here, as nobody can type; print what you want to know")


def main(connection_file: str) -> None:
    """Serves until the process is ended."""
    output = os.dup(1)  # ipykernel takes the first one over
    faulthandler.enable(os.fdopen(os.dup(2), "w"), all_threads=False)
    warnings.filterwarnings("ignore", message="To exit: use")
    warnings.formatwarning = told_warning
    app = App.instance(config=_config(), connection_file=connection_file)
    app.initialize([])
    shell = app.shell
    assert isinstance(shell, Shell)
    assert isinstance(shell.displayhook, NamedValues)
    sys.breakpointhook = pdb.set_trace = _no_debugger
    set_up_formats(shell)
    shell.ast_transformers.append(LastName(shell.displayhook))
    shell.presets = Presets(shell.user_ns)
    shell.pid = os.getpid()
    shell.set_hook("show_in_pager", _page)

    def opened(comm: Any, message: dict[str, Any]) -> None:
        setup = message["content"]["data"]
        install(shell, setup["verify"])
        desk = Desk(shell.user_ns, comm.send)
        comm.on_msg(lambda message: desk.take(message["content"]["data"]))
        desk.take(setup)
        shell.desk = desk

    app.kernel.comm_manager.register_target("goose_like", opened)
    sys.path.insert(0, "")
    os.write(output, READY)
    os.close(output)
    app.start()


def _page(_shell: Any, data: Any, *_: Any, **__: Any) -> None:
    """Help (`name?`) as text among the rest."""
    print(data["text/plain"] if isinstance(data, dict) else data)
