"""The plugin manager in a real Jupyter kernel: messages over a comm between cells, and an interrupt during loading."""

import queue
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager

from tests.toolkits.code.test_worker import KernelDouble, plugin

BOOT = """
import sys
sys.path.append(FOLDER)
def opened(comm, message):
    from goose_like_kernel.plugin_manager import PluginManager
    shell = get_ipython()
    manager = PluginManager(shell.user_ns, comm.send)
    comm.on_msg(lambda message: manager.handle(message["content"]["data"]))
    shell.events.register("pre_run_cell", lambda info: manager.before_cell(info.raw_cell))
    shell.events.register("post_run_cell", lambda result: manager.after_cell())
get_ipython().kernel.comm_manager.register_target("goose_like", opened)
"""


class Jupyter:
    def __init__(self, manager: KernelManager, client: BlockingKernelClient) -> None:
        self.manager = manager
        self.client = client
        self.messages: list[dict[str, Any]] = []

    def send(self, kind: str, **content: Any) -> str:
        message = self.client.session.msg(kind, {"comm_id": "c1", **content})
        self.client.shell_channel.send(message)
        return str(message["header"]["msg_id"])

    def cell(self, code: str, *, interrupt_after: str = "") -> str:
        """Return the text, displays and error of the cell."""
        request, texts = self.client.execute(code), []
        while True:
            message = self.client.get_iopub_msg(timeout=60)
            content = message["content"]
            if message["msg_type"] == "comm_msg":
                self.messages.append(content["data"])
            if message["parent_header"].get("msg_id") != request:
                continue
            match message["msg_type"]:
                case "stream":
                    texts.append(content["text"])
                    if interrupt_after and interrupt_after in content["text"]:
                        self.manager.interrupt_kernel()
                case "execute_result":
                    texts.append(content["data"]["text/plain"])
                case "error":
                    texts.append(f"{content['ename']}: {content['evalue']}")
                case "status" if content["execution_state"] == "idle":
                    return "\n".join(texts)


@pytest.fixture
def kernel(tmp_path: Path) -> KernelDouble:
    return KernelDouble(tmp_path)


@pytest.fixture
def jupyter(kernel: KernelDouble) -> Iterator[Jupyter]:
    manager = KernelManager()
    manager.start_kernel(cwd=str(kernel.folder / "work"))
    client = manager.blocking_client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=60)
        jupyter = Jupyter(manager, client)
        jupyter.cell(BOOT.replace("FOLDER", repr(str(kernel.folder / "package"))))
        jupyter.send("comm_open", target_name="goose_like", data={})
        yield jupyter
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def test_messages_and_cells_in_order(kernel: KernelDouble, jupyter: Jupyter) -> None:
    jupyter.send("comm_msg", data=kernel.make_setup(plugin("reporter"), plugin("standalone"))["take"])
    threads = "from concurrent.futures import ThreadPoolExecutor as Pool\nwith Pool(8) as pool:\n"
    threads += "    list(pool.map(reporter, ['t'] * 40))"
    assert jupyter.cell("standalone('x')") == "'X'"
    assert jupyter.cell(threads) == ""
    jupyter.send("comm_msg", data={"type": "variables", "variables": {"user": "ada"}})
    assert jupyter.cell("reporter.user()[0]") == "'ada'"
    jupyter.send("comm_msg", data={"type": "test", "plugin": "reporter"})
    jupyter.send("comm_msg", data={"type": "plugins", "plugins": [], "removed": ["standalone"]})
    assert jupyter.cell("standalone('x')") == "NameError: name 'standalone' is not defined"
    assert len({report["id"] for report in jupyter.messages if report["type"] == "artifact"}) == 40
    assert [report["names"] for report in jupyter.messages if report["type"] == "names"] == [["Pool", "pool"]]
    assert [len(report["tests"]) for report in jupyter.messages if report["type"] == "tested"] == [4]
    with pytest.raises(queue.Empty):
        jupyter.client.get_iopub_msg(timeout=0)


def test_interrupt_while_loading(kernel: KernelDouble, jupyter: Jupyter) -> None:
    source = (
        "import os, time\nfrom taskweaver.plugin import register_plugin\n"
        "if not os.path.exists('seen'):\n    open('seen', 'w').close(); print('loading', flush=True); time.sleep(600)\n"
        "@register_plugin\ndef slow(): return 'there'\n"
    )
    jupyter.send("comm_msg", data=kernel.make_setup(plugin("slow", source=source))["take"])
    report = jupyter.cell("kept = 1\nslow()", interrupt_after="loading")
    assert "KeyboardInterrupt" in report
    assert jupyter.cell("slow()") == "'there'"
    assert [report["type"] for report in jupyter.messages] == ["names"]
