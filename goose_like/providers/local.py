"""A model inside this process, by llama.cpp's own server engine (xllamacpp): no key, no network.

The engine can't be left out of constrained form: small models write a call of a tool as prose. It is loaded when first
used, answers one request at a time, and its HTTP port is closed to everyone (see `_load`).
"""

import asyncio
import atexit
import math
import os
import threading
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

from goose_like.config.profile import ModelChoice
from goose_like.core.errors import GooseLikeError, ModelUnavailableError, ProviderError
from goose_like.core.events import Status

from .base import Delta, ProviderInfo, Request
from .json_tool_calls import TextCallParser, convert_request, keep_required_arguments
from .openai_wire import OpenAIStreamParser
from .weights import find_or_assemble, find_parts, is_ready
from .xml_tool_calls import XmlCallFormat, build_grammar, list_stop_texts, repeat_task, select_examples

WINDOW_TOKENS = 16_384
"""Of a profile without `window`. The memory of the embedded model: 1.1 GB of weights, and 30 kB a token of window."""

_OUTPUT_TOKENS = 2048
_INSTALL = "pip install 'goose-like[local]'"

# Small models fall into loops. A passage of more than 48 tokens that comes again within the last 192 grows ever less
# likely; what breaks such passages apart by default (quotes, line ends) is all over code, hence the NUL.
_NO_LOOPS = {
    "dry_multiplier": 0.8,
    "dry_allowed_length": 48,
    "dry_penalty_last_n": 192,
    "dry_sequence_breakers": ["\0"],
}

_Item = Mapping[str, Any] | Status | BaseException | None


class LocalProvider:
    """The embedded model (`local`) or any GGUF file (`local:/path/to/model.gguf`)."""

    info: ClassVar[ProviderInfo] = ProviderInfo(
        summary="a small code model inside this process: no key, no network, or any GGUF (local:/path/to/model.gguf)",
        processor="",
        accelerator="",
    )

    def __init__(self, choice: ModelChoice) -> None:
        self._choice = choice
        self._engine: Any = None
        self._busy = threading.Lock()
        self._closing = threading.Event()

    @staticmethod
    def find_setup_error(choice: ModelChoice) -> GooseLikeError | None:
        """What to install before this choice works; None when it is ready."""
        if find_spec("xllamacpp") is None:
            return ModelUnavailableError(f"the engine is not installed: {_INSTALL}")
        try:
            if choice.name:
                _model_file(choice.name)
            elif not is_ready():
                find_parts()
        except ModelUnavailableError as error:
            return error
        return None

    async def stream(self, request: Request) -> AsyncGenerator[Delta, None]:
        tools = [keep_required_arguments(tool) for tool in request.tools]
        form = XmlCallFormat.for_tools(tools)
        messages = [*select_examples(tools), *repeat_task(request.messages)]
        body = self._body(convert_request(replace(request, tools=tools, messages=messages), form))
        if tools:
            body |= {"grammar": build_grammar(tools), "stop": list_stop_texts(tools)}
        loop = asyncio.get_running_loop()
        items: asyncio.Queue[_Item] = asyncio.Queue()
        stop = threading.Event()

        def tell(item: _Item) -> bool:
            """Hands an item over to the loop; whether the work should stop."""
            try:
                loop.call_soon_threadsafe(items.put_nowait, item)
            except RuntimeError:  # the loop is gone
                return True
            return stop.is_set() or self._closing.is_set()

        # A daemon, for the process must not wait for it; `atexit` lets it end before the interpreter does.
        worker = threading.Thread(target=self._work, args=(body, tell), name="local model", daemon=True)
        worker.start()
        fold = TextCallParser(form) if tools else OpenAIStreamParser()
        try:
            while (item := await items.get()) is not None:
                if isinstance(item, BaseException):
                    raise item
                if isinstance(item, Status):
                    yield item
                    continue
                if progress := item.get("prompt_progress"):
                    yield _reading(progress)
                for delta in fold.feed(item):
                    yield delta
            yield fold.build_message()
        finally:
            stop.set()

    async def close(self) -> None:
        self._closing.set()
        await asyncio.to_thread(self._free)

    def _free(self) -> None:
        """Waits for the running request, which stops at its next token or batch, and gives back the memory."""
        self._closing.set()
        with self._busy:
            self._engine = None
        atexit.unregister(self._free)

    def _body(self, plain: Request) -> dict[str, Any]:
        spoken: list[tuple[str, str]] = [("system", plain.system)] if plain.system else []
        spoken += [(message.role, message.text) for message in plain.messages]
        return {
            # The engine refuses what is no Unicode, such as a file name that is no UTF-8.
            "messages": [{"role": role, "content": text.encode("utf-8", "replace").decode()} for role, text in spoken],
            "stream": True,
            "stream_options": {"include_usage": True},
            "return_progress": True,
            "temperature": (self._choice.temperature if plain.temperature is None else plain.temperature) or 0.0,
            "max_tokens": plain.resolve_output_limit(self._choice.max_output_tokens or _OUTPUT_TOKENS),
            **_NO_LOOPS,
        }

    def _work(self, body: dict[str, Any], tell: Callable[[_Item], bool]) -> None:
        """One request, in a thread: loads what is not loaded, then blocks until the answer is whole or unwanted."""
        try:
            with self._busy:
                if tell(Status(text="the model reads")):
                    return
                if self._engine is None:
                    self._engine = self._load(tell)
                self._engine.handle_chat_completions(body, tell)
            tell(None)
        except ProviderError as error:
            tell(error)
        except Exception as error:  # what the engine raises is not ours to foresee, and someone waits for the end
            tell(ProviderError(f"the model's engine failed: {error}"))

    def _load(self, tell: Callable[[_Item], bool]) -> Any:
        try:
            xllamacpp = import_module("xllamacpp")
        except ImportError as error:
            raise ModelUnavailableError(f"the engine can't be loaded ({error}): {_INSTALL}") from error

        def progress(what: str, done: int, total: int) -> None:
            if tell(Status(text=_bar(what, done, total))):
                raise ProviderError("stopped while the model was prepared")

        path = _model_file(self._choice.name) if self._choice.name else find_or_assemble(progress)
        tell(Status(text=f"loading the model {path.name}"))
        params = xllamacpp.CommonParams()
        params.model.path = str(path)
        params.n_ctx = self._choice.window or WINDOW_TOKENS
        params.n_parallel = 1
        params.n_batch = params.n_ubatch = 128  # how often it tells how far it has read, and can be stopped
        params.cache_ram_mib = 512  # keeps the conversation's state while a side question is answered; 8 GB by default
        params.no_extra_bufts = True  # a second copy of the weights in another order gains nothing here
        params.warmup = False
        params.ui = False
        params.verbosity = -1
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = _idle_cores()
        # The engine can't do without an HTTP port. It gets a socket in a private folder, which is then removed, so that
        # nobody can connect.
        with TemporaryDirectory(prefix="goose-like-") as folder:
            params.hostnames = [f"{folder}/engine.sock"]
            try:
                engine = xllamacpp.Server(params)
            except RuntimeError as error:
                raise ModelUnavailableError(
                    f"{path} can't be loaded; is it a whole model of a kind that llama.cpp knows, "
                    f"and is there memory for a window of {params.n_ctx} tokens?"
                ) from error
        atexit.register(self._free)
        return engine


def _model_file(name: str) -> Path:
    """The GGUF that the profile names.

    Raises:
        ModelUnavailableError: it is not there, or another kind of file (GGUF specification: the magic bytes).
    """
    path = Path(name).expanduser()
    try:
        with path.open("rb") as file:
            magic = file.read(4)
    except OSError as error:
        raise ModelUnavailableError(
            f"no model can be read from the file {str(path)!r} ({error.strerror}); "
            "correct the path in local:PATH, or write `local` for the embedded model"
        ) from error
    if magic != b"GGUF":
        raise ModelUnavailableError(f"{path} is no GGUF file; convert the model, or choose another file")
    return path


def _idle_cores(over_s: float = 0.2) -> int:
    """How many of our cores nobody else uses just now, at least one.

    The engine's threads wait for each other at every token: one that has to share its core makes all of them slow (on
    two busy cores, two threads were six times slower than one).
    """
    try:
        cores = len(os.sched_getaffinity(0))
        idle, total = _ticks()
        time.sleep(over_s)
        idle_now, total_now = _ticks()
    except (OSError, AttributeError):  # not Linux
        return os.cpu_count() or 1
    return max(1, math.floor(cores * (idle_now - idle) / max(1, total_now - total) + 0.5))


def _ticks() -> tuple[int, int]:
    """The machine's idle time and all its time until now (proc_stat(5))."""
    with open("/proc/stat") as file:
        times = [int(value) for value in file.readline().split()[1:9]]
    return times[3] + times[4], sum(times)


def _reading(progress: Mapping[str, Any]) -> Status:
    done, total = (progress[key] - progress["cache"] for key in ("processed", "total"))
    return Status(text=_bar("the model reads", done, total) if done < total else "the model writes")


def _bar(what: str, done: int, total: int) -> str:
    share = min(1.0, done / max(1, total))
    return f"{what} {'█' * int(share * 20):░<20} {share:.0%}"
