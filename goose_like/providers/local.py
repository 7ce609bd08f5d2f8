"""A model inside this process, run by llama.cpp's server engine (xllamacpp): no key, no network.

The engine always constrains the output, because small models write tool calls as prose otherwise. The engine is loaded
at first use, answers one request at a time, and nobody can connect to its HTTP port (see `_load_engine`).
"""

import asyncio
import atexit
import math
import os
import threading
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

from goose_like.config.paths import expand_home
from goose_like.config.private_folder import PrivateFolder
from goose_like.config.profile import ModelChoice
from goose_like.core.dataclass import dataclass
from goose_like.core.errors import GooseLikeError, ModelUnavailableError, ProviderError
from goose_like.core.events import Status, UsageRecorded
from goose_like.core.message import Usage
from goose_like.core.threads import run_in_thread

from .base import Delta, ProviderInfo, Request, SchemaDialect
from .json_tool_calls import TextCallParser
from .openai_wire import OpenAIStreamParser
from .prompt_state import name_state, restore_or_save, states_folder
from .tagged_requests import TaggedRequest
from .text_loop import LoopWatch
from .weights import INSTALL_COMMAND, find_or_assemble, find_parts, is_ready
from .xml_tool_calls import build_answer_grammar

WINDOW_TOKENS = 16_384
"""The default context window. The embedded model needs 1.1 GB of memory for weights and 30 kB per token of window."""

_OUTPUT_TOKENS = 2048

_MAX_LOOPS = 2
"""How often an answer that repeats a passage is thrown away."""

_Body = dict[str, Any]

_Item = Mapping[str, Any] | Status | BaseException | None

_Report = Callable[[_Item], bool]


@dataclass(frozen=True, slots=True)
class _EngineRequest:
    """A request to the engine. `beginning` is one that all prompts begin with."""

    body: _Body
    beginning: _Body | None


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
        """Return the error about a missing library or model file, or None if the choice is usable."""
        if find_spec("xllamacpp") is None:
            return ModelUnavailableError(
                f"the embedded model is not installed: {INSTALL_COMMAND}; or set an API key: goose-like setup"
            )
        try:
            if choice.name:
                _find_model_file(choice.name)
            elif not is_ready():
                find_parts()
        except ModelUnavailableError as error:
            return error
        return None

    def find_schema_dialect(self, model: str) -> SchemaDialect | None:
        """See `SupportsAnswerSchema.find_schema_dialect`."""
        return "llguidance"

    async def stream(self, request: Request) -> AsyncGenerator[Delta, None]:
        """Send a request to the engine and stream its answer; see `Provider.stream`.

        A call that repeats a passage is thrown away, and its tokens are told as `UsageRecorded`.
        """
        tagged = TaggedRequest(request, self._choice.temperature)
        body = self._build_body(tagged.plain) | tagged.settings
        body["timings_per_token"] = True  # the tokens of an answer that is cut before its end
        beginning: dict[str, Any] | None = None
        if request.answer_schema is not None:
            body["grammar"] = build_answer_grammar(request.answer_schema)
        if tagged.tools:
            beginning = self._build_body(tagged.beginning) | {"max_tokens": 0}
        for loop_count in range(_MAX_LOOPS + 1):
            temperature = tagged.choose_temperature(loop_count)
            sent = _EngineRequest({**body, "temperature": temperature}, beginning)
            parser = TextCallParser(tagged.call_format) if tagged.tools else OpenAIStreamParser()
            watch = LoopWatch() if loop_count < _MAX_LOOPS else None
            async with aclosing(self._read_answer(sent, parser, watch, request.told_usage)) as deltas:
                async for delta in deltas:
                    yield delta
            if watch is None or not watch.has_found:
                yield parser.build_message()
                return
            for usage in request.told_usage:
                yield UsageRecorded(model=request.model, usage=usage, purpose="repeated passage")
            request.told_usage.clear()
            yield Status(text="the model repeats a passage; it starts again")

    async def _read_answer(
        self,
        sent: _EngineRequest,
        parser: TextCallParser | OpenAIStreamParser,
        watch: LoopWatch | None,
        told_usage: list[Usage],
    ) -> AsyncGenerator[Delta, None]:
        """Feed the parser with one answer of the engine, until its end or a loop in a call."""
        stop = threading.Event()
        items = self._start_request(sent, stop)
        try:
            while (item := await items.get()) is not None:
                if isinstance(item, BaseException):
                    raise item
                if isinstance(item, Status):
                    yield item
                    continue
                if progress := item.get("prompt_progress"):
                    yield _format_progress(progress)
                if timings := item.get("timings"):
                    told_usage[:] = [_count_tokens(timings)]
                for delta in parser.feed(item):
                    yield delta
                if watch and isinstance(parser, TextCallParser):
                    watch.look(parser.hidden_text)
                    if watch.has_found:
                        return
        finally:
            stop.set()

    def _start_request(self, sent: _EngineRequest, stop: threading.Event) -> "asyncio.Queue[_Item]":
        """Run a request in a thread until its end or `stop`, and return the queue of its items; None is the last."""
        loop = asyncio.get_running_loop()
        items: asyncio.Queue[_Item] = asyncio.Queue()

        def report(item: _Item) -> bool:
            """Pass an item to the event loop, and return whether the work should stop."""
            try:
                loop.call_soon_threadsafe(items.put_nowait, item)
            except RuntimeError:  # the loop is closed
                return True
            return stop.is_set() or self._closing.is_set()

        # A daemon thread, so that the process need not wait for it. `atexit` stops it before the interpreter ends.
        thread = threading.Thread(target=self._run_request, args=(sent, report), name="local model", daemon=True)
        thread.start()
        return items

    async def close(self) -> None:
        """Stop the running request and free the memory."""
        await run_in_thread(self._unload)

    def _unload(self) -> None:
        """Free the memory after the running request, which stops at its next token or batch."""
        self._closing.set()
        with self._busy:
            self._engine = None
        atexit.unregister(self._unload)

    def _build_body(self, plain: Request) -> dict[str, Any]:
        entries = []
        if plain.system:
            entries.append(_build_entry("system", plain.system))
        for message in plain.messages:
            entries.append(_build_entry(message.role, message.text))
        profile_limit = self._choice.max_output_tokens or _OUTPUT_TOKENS
        return {
            "messages": entries,
            "stream": True,
            "stream_options": {"include_usage": True},
            "return_progress": True,
            "temperature": plain.temperature,
            "max_tokens": plain.resolve_output_limit(profile_limit),
        }

    def _run_request(self, sent: _EngineRequest, report: _Report) -> None:
        """Run one request in a thread: load the engine if needed, and block until the answer ends or is unwanted."""
        try:
            with self._busy:
                if report(Status(text="the model reads")):
                    return
                if self._engine is None:
                    self._engine = self._load_engine(sent.beginning, report)
                self._engine.handle_chat_completions(sent.body, report)
            report(None)
        except ProviderError as error:
            report(error)
        except Exception as error:  # the engine may raise anything, and the stream waits for an end
            report(ProviderError(f"the model's engine failed: {error}"))

    def _load_engine(self, beginning: _Body | None, report: _Report) -> Any:
        try:
            xllamacpp = import_module("xllamacpp")
        except ImportError as error:
            raise ModelUnavailableError(f"the engine can't be loaded ({error}): {INSTALL_COMMAND}") from error

        def progress(action: str, done: int, total: int) -> None:
            if report(Status(text=_format_bar(action, done, total))):
                raise ProviderError("stopped while the model was prepared")

        if self._choice.name:
            path = _find_model_file(self._choice.name)
        else:
            path = find_or_assemble(progress)
        report(Status(text=f"loading the model {path.name}"))
        params = xllamacpp.CommonParams()
        params.model.path = str(path)
        params.n_ctx = self._choice.window or WINDOW_TOKENS
        params.n_parallel = 1
        params.n_batch = params.n_ubatch = 128  # tokens between two progress reports, at which it can stop
        params.cache_ram_mib = 512  # keeps the conversation during side questions; the default is 8 GB
        params.no_extra_bufts = True  # a reordered second copy of the weights gains nothing
        params.warmup = False
        params.ui = False
        # Fitting layers into a GPU reads the model's header again, which takes a second.
        cpu = xllamacpp.ggml_backend_dev_type.GGML_BACKEND_DEVICE_TYPE_CPU
        params.fit_params = any(device["type"] != cpu for device in xllamacpp.get_device_info())
        params.verbosity = -1
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = _count_idle_cores()
        params.slot_save_path = f"{states_folder()}/"
        # The engine needs an HTTP port. Give it a socket in a private folder and remove the folder, so that nobody can
        # connect.
        with PrivateFolder("engine") as folder:
            engine_socket = folder.path / "engine.sock"
            params.hostnames = [str(engine_socket)]
            try:
                engine = xllamacpp.Server(params)
            except RuntimeError as error:
                raise ModelUnavailableError(
                    f"{path} can't be loaded; is it a whole model of a kind that llama.cpp knows, "
                    f"and is there memory for a window of {params.n_ctx} tokens?"
                ) from error
            if beginning:
                name = name_state(path, xllamacpp.__version__, beginning)
                restore_or_save(engine_socket, name, lambda: _evaluate(engine, beginning, report))
        atexit.register(self._unload)
        return engine


def _build_entry(role: str, text: str) -> dict[str, str]:
    # The engine refuses lone surrogates, for example from a file name that is no UTF-8.
    content = text.encode("utf-8", "replace").decode()
    return {"role": role, "content": content}


def _evaluate(engine: Any, body: dict[str, Any], report: Callable[[_Item], bool]) -> bool:
    """Let the engine evaluate a prompt, and return whether it came to its end."""
    is_done = False

    def show(item: Mapping[str, Any]) -> bool:
        nonlocal is_done
        is_done = is_done or "usage" in item
        text = "the model reads"
        if progress := item.get("prompt_progress"):
            text = _format_bar("the model reads its rules", progress["processed"], progress["total"])
        return report(Status(text=text))

    engine.handle_chat_completions(body, show)
    return is_done


def _find_model_file(name: str) -> Path:
    """Return the path of the GGUF file that the profile names.

    Raises:
        ModelUnavailableError: The file is missing or has other magic bytes than the GGUF specification.
    """
    path = expand_home(name)
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


def _count_idle_cores(over_s: float = 0.2) -> int:
    """Count the cores that no other process uses now, at least one.

    The engine's threads wait for each other at every token, so one thread on a shared core slows down all of them. On
    two busy cores, two threads were six times slower than one.
    """
    try:
        cores = len(os.sched_getaffinity(0))
        idle, total = _read_ticks()
        time.sleep(over_s)
        idle_now, total_now = _read_ticks()
    except (OSError, AttributeError):  # not Linux
        return os.cpu_count() or 1
    idle_ticks = idle_now - idle
    all_ticks = max(1, total_now - total)
    idle_cores = math.floor(cores * idle_ticks / all_ticks + 0.5)
    return max(1, idle_cores)


def _read_ticks() -> tuple[int, int]:
    """Read the idle time and the total time of the machine, in ticks. Source: proc_stat(5)."""
    with open("/proc/stat") as file:
        values = file.readline().split()[1:9]
    times = list(map(int, values))
    idle = times[3] + times[4]
    return idle, sum(times)


def _count_tokens(timings: Mapping[str, Any]) -> Usage:
    """Count the tokens so far: what the engine had in its cache, read and wrote."""
    cached = timings["cache_n"]
    return Usage(
        input_tokens=cached + timings["prompt_n"],
        output_tokens=timings["predicted_n"],
        cache_read_tokens=cached,
    )


def _format_progress(progress: Mapping[str, Any]) -> Status:
    done = progress["processed"] - progress["cache"]
    total = progress["total"] - progress["cache"]
    if done >= total:
        return Status(text="the model writes")
    return Status(text=_format_bar("the model reads", done, total))


def _format_bar(action: str, done: int, total: int) -> str:
    share = min(1.0, done / max(1, total))
    bar = "█" * int(share * 20)
    return f"{action} {bar:░<20} {share:.0%}"
