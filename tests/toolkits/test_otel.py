"""What the toolkit `otel` sends, as a collector of OTLP receives it.

The names are those of version 0.1.0 of the GenAI conventions:
https://github.com/open-telemetry/semantic-conventions-genai/tree/v0.1.0 (docs/gen-ai: client-inference.md,
gen-ai-agent-spans.md, execute-tool.md), and two metrics of the version before (`OLD_METRICS`).
"""

import asyncio
import json
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from goose_like_toolkits.otel.spans import AgentSpans
from goose_like_toolkits.otel.telemetry import Telemetry
from goose_like_toolkits.otel.toolkit import NO_CONFIG, NOT_INSTALLED, OtelToolkit
from opentelemetry.context import Context
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from goose_like.agent.build import build_exchange
from goose_like.agent.exchange import Exchange
from goose_like.config.profile import Profile, ToolkitChoice
from goose_like.core.errors import ProfileError, ProviderError
from goose_like.core.events import (
    Interjected,
    Logged,
    MessageCompleted,
    SubagentEvent,
    TextDelta,
    ToolFinished,
    TurnFinished,
)
from goose_like.core.message import Message, Usage
from goose_like.core.notifier import Recorder
from goose_like.providers.base import Model, ModelPair
from goose_like.testing import trial
from tests.fakes import HEADER, PAUSE, FakeProvider, call, calls

COMMON = {"gen_ai.operation.name", "gen_ai.conversation.id"}
MODEL = {"gen_ai.provider.name", "gen_ai.request.model"}
USAGE = {
    "gen_ai.usage.input_tokens",
    "gen_ai.usage.output_tokens",
    "gen_ai.usage.cache_read.input_tokens",
    "gen_ai.usage.cache_write.input_tokens",
}
PUBLISHED = {
    "invoke_agent": COMMON | MODEL | USAGE | {"gen_ai.agent.name", "error.type"},
    "chat": COMMON
    | MODEL
    | USAGE
    | {
        "gen_ai.request.stream",
        "gen_ai.response.finish_reasons",
        "gen_ai.response.time_to_first_chunk",
        "error.type",
    },
    "execute_tool": COMMON | {"gen_ai.tool.name", "gen_ai.tool.call.id", "gen_ai.tool.type", "error.type"},
}
CONTENT = {
    "invoke_agent": {"gen_ai.input.messages", "gen_ai.output.messages"},
    "chat": {"gen_ai.output.messages"},
    "execute_tool": {"gen_ai.tool.call.arguments", "gen_ai.tool.call.result"},
}
OLD_METRICS = {"gen_ai.client.operation.duration": "s", "gen_ai.client.token.usage": "{token}"}
PUBLISHED_METRICS = {
    "gen_ai.client.inference.duration": "s",
    "gen_ai.client.inference.usage.input_tokens": "{token}",
    "gen_ai.client.inference.usage.output_tokens": "{token}",
    "gen_ai.client.inference.usage.cache_read.input_tokens": "{token}",
    "gen_ai.client.inference.usage.cache_write.input_tokens": "{token}",
}
BOUNDS = {
    "s": [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92],
    "{token}": [1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864],
}


class Collector:
    """A collector of OTLP over HTTP, with what it received."""

    def __init__(self) -> None:
        self.traces: list[ExportTraceServiceRequest] = []
        self.metrics: list[ExportMetricsServiceRequest] = []
        self.status = 200
        self.port = 0

    @property
    def spans(self) -> dict[str, Span]:
        """The spans by name."""
        found = {}
        for request in self.traces:
            for resource in request.resource_spans:
                for scope in resource.scope_spans:
                    for span in scope.spans:
                        found[span.name] = span
        return found

    @property
    def metrics_by_name(self) -> dict[str, Any]:
        found = {}
        for request in self.metrics:
            for resource in request.resource_metrics:
                for scope in resource.scope_metrics:
                    for metric in scope.metrics:
                        found[metric.name] = metric
        return found


@contextmanager
def collecting() -> Iterator[Collector]:
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.path == "/v1/traces":
                collector.traces.append(ExportTraceServiceRequest.FromString(body))
            if self.path == "/v1/metrics":
                collector.metrics.append(ExportMetricsServiceRequest.FromString(body))
            self.send_response(collector.status)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    collector.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield collector
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(autouse=True)
def no_late_senders() -> Iterator[None]:
    """Wait for what still sends after a test: its warnings would reach the session of the next one."""
    yield
    for thread in threading.enumerate():
        if thread.name == "OpenTelemetry":
            thread.join(60)


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    with collecting() as started:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{started.port}")
        yield started


@asynccontextmanager
async def open_exchange(script: list[Any], *names: str, recorder: Recorder | None = None) -> AsyncIterator[Exchange]:
    """Open an exchange with the toolkit `otel` and a scripted model."""
    model = Model(FakeProvider(script), "gpt-x", "mistral:gpt-x")
    toolkits = tuple(ToolkitChoice(name=name) for name in (*names, "otel"))
    profile = Profile(name="mine", toolkits=toolkits, sandbox="full", approval="yolo")
    async with build_exchange(profile, recorder or Recorder(), models=ModelPair(model, model)) as exchange:
        yield exchange


def read(span: Any) -> dict[str, Any]:
    """Read the attributes of a span or a point."""
    values = {}
    for attribute in span.attributes:
        value = attribute.value
        kind = value.WhichOneof("value")
        content = getattr(value, kind)
        if kind == "array_value":
            content = [item.string_value for item in content.values]
        values[attribute.key] = content
    return values


def shell(command: str, id: str) -> Any:
    return call("shell", json.dumps({"command": command}), id)


ANSWER = MessageCompleted(
    message=Message.assistant("It says hello."),
    usage=Usage(input_tokens=1200, output_tokens=7, cache_read_tokens=1000, cache_write_tokens=100),
)
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


async def test_a_collector_gets_the_spans_and_metrics_of_a_run(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEPARENT", PARENT)
    script = [calls(shell("echo $TRACEPARENT", "c1")), [TextDelta(text="It"), ANSWER]]
    async with open_exchange(script, "developer") as exchange:
        await exchange.reply("say hello")
        (output,) = [result.output for message in exchange.history.messages for result in message.tool_results]
    spans = collector.spans
    assert spans.keys() == {"invoke_agent goose_like", "chat gpt-x", "execute_tool shell"}
    turn = spans["invoke_agent goose_like"]
    command = spans["execute_tool shell"]
    assert (turn.trace_id.hex(), turn.parent_span_id.hex()) == tuple(PARENT.split("-")[1:3])
    assert command.parent_span_id == spans["chat gpt-x"].parent_span_id == turn.span_id
    assert f"00-{turn.trace_id.hex()}-{command.span_id.hex()}-01" in output
    for name, span in spans.items():
        operation, _, _ = name.partition(" ")
        attributes = read(span)
        assert attributes.keys() <= PUBLISHED[operation], name
        assert attributes["gen_ai.operation.name"] == operation
        assert turn.start_time_unix_nano <= span.start_time_unix_nano <= span.end_time_unix_nano
    assert spans["chat gpt-x"].kind == Span.SPAN_KIND_CLIENT
    chat = read(spans["chat gpt-x"])
    del chat["gen_ai.response.time_to_first_chunk"]
    assert chat == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "mistral_ai",
        "gen_ai.request.model": "gpt-x",
        "gen_ai.request.stream": True,
        "gen_ai.conversation.id": "temporary",
        "gen_ai.usage.input_tokens": 1200,
        "gen_ai.usage.output_tokens": 7,
        "gen_ai.usage.cache_read.input_tokens": 1000,
        "gen_ai.usage.cache_write.input_tokens": 100,
        "gen_ai.response.finish_reasons": ["stop"],
    }
    assert read(turn)["gen_ai.usage.input_tokens"] == 1210
    resource = read(collector.traces[0].resource_spans[0].resource)
    assert resource["service.name"] == "goose_like"
    assert collector.traces[0].resource_spans[0].scope_spans[0].schema_url.endswith("/gen-ai/0.1.0")


async def test_a_collector_gets_the_metrics(collector: Collector) -> None:
    async with open_exchange([ANSWER]) as exchange:
        await exchange.reply("say hello")
    metrics = collector.metrics_by_name
    assert {name: metric.unit for name, metric in metrics.items()} == OLD_METRICS | PUBLISHED_METRICS
    for name, metric in metrics.items():
        points = metric.histogram.data_points or metric.sum.data_points
        for point in points:
            attributes = read(point)
            kind = attributes.pop("gen_ai.token.type", "")
            assert attributes == {
                "gen_ai.operation.name": "chat",
                "gen_ai.provider.name": "mistral_ai",
                "gen_ai.request.model": "gpt-x",
            }
            if metric.HasField("histogram"):
                assert list(point.explicit_bounds) == BOUNDS[metric.unit]
                assert point.count == 1
            if kind:
                assert point.sum == {"input": 1200, "output": 7}[kind]
        assert len(points) == (2 if name == "gen_ai.client.token.usage" else 1)
    assert metrics["gen_ai.client.inference.usage.cache_read.input_tokens"].sum.data_points[0].as_int == 1000


async def test_content_is_sent_only_on_request_and_masked(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true")
    monkeypatch.setenv("TEAM_TOKEN", "tok-91827364")
    script = [calls(shell("echo tok-$((91827364))", "c1")), ANSWER]
    async with open_exchange(script, "developer") as exchange:
        await exchange.reply("use tok-91827364")
    spans = collector.spans
    for name, span in spans.items():
        operation, _, _ = name.partition(" ")
        assert CONTENT[operation] <= read(span).keys() <= PUBLISHED[operation] | CONTENT[operation]
    assert "91827364" not in read(spans["execute_tool shell"])["gen_ai.tool.call.result"]
    (said,) = json.loads(read(spans["invoke_agent goose_like"])["gen_ai.input.messages"])
    assert said["role"] == "user"
    assert said["parts"][0]["content"].startswith("use ")
    assert "91827364" not in said["parts"][0]["content"]
    (answered,) = json.loads(read(spans["chat gpt-x"])["gen_ai.output.messages"])
    assert answered == {
        "role": "assistant",
        "parts": [{"type": "text", "content": "It says hello."}],
        "finish_reason": "stop",
    }


async def test_a_failed_request_and_a_failed_call_are_errors(collector: Collector) -> None:
    script = [calls(call("shell", "{}", "c1")), ProviderError("no such model")]
    async with open_exchange(script, "developer") as exchange:
        end = await exchange.reply("go")
    assert end.reason == "error"
    spans = collector.spans
    for name, error in (
        ("invoke_agent goose_like", "error"),
        ("chat gpt-x", "error"),
        ("execute_tool shell", "tool_error"),
    ):
        assert read(spans[name])["error.type"] == error
        assert spans[name].status.code == Status.STATUS_CODE_ERROR
        assert spans[name].status.message == ""


async def interrupt_after(kind: str, *script: Any) -> None:
    """Run a turn and interrupt it after the first event of a kind."""
    recorder = Recorder()
    async with open_exchange(list(script), "developer", recorder=recorder) as exchange:
        turn = asyncio.create_task(exchange.reply("go"))
        while not any(event.type == kind for event in recorder.events):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn


async def test_an_interrupted_turn_ends_its_spans(collector: Collector) -> None:
    await interrupt_after("tool_progress", calls(shell("echo started; sleep 600", "c1")))
    spans = collector.spans
    assert spans.keys() == {"invoke_agent goose_like", "chat gpt-x", "execute_tool shell"}
    for name in ("invoke_agent goose_like", "execute_tool shell"):
        assert read(spans[name])["error.type"] == "cancelled"


async def test_an_interrupted_request_is_an_error(collector: Collector) -> None:
    await interrupt_after("text_delta", [TextDelta(text="It"), PAUSE])
    chat = collector.spans["chat gpt-x"]
    assert read(chat)["error.type"] == "cancelled"
    assert chat.status.code == Status.STATUS_CODE_ERROR
    duration = collector.metrics_by_name["gen_ai.client.inference.duration"].histogram
    assert read(duration.data_points[0])["error.type"] == "cancelled"


async def test_a_resumed_turn_and_an_interrupted_request(collector: Collector) -> None:
    telemetry = Telemetry(print)
    spans = AgentSpans(telemetry, "goose_like", Context(), has_content=False)
    spans.record(HEADER.model_copy(update={"is_resumed": True}))  # there is no event for the start of the turn
    spans.start_request()
    spans.record(Interjected(message=Message.user("stop that")))
    spans.record(TurnFinished(reason="handed_off"))
    await telemetry.close()
    chat = collector.spans["chat x"]
    turn = collector.spans["invoke_agent goose_like"]
    assert chat.parent_span_id == turn.span_id
    assert read(chat)["error.type"] == "cancelled"
    assert turn.status.code == Status.STATUS_CODE_UNSET


async def test_a_subagent_is_an_agent_below_its_call(collector: Collector) -> None:
    delegate = call("delegate", json.dumps({"task": "look"}), "c1")
    script = [calls(delegate), calls(shell("echo $TRACEPARENT", "c1")), "Seen.", ANSWER]
    recorder = Recorder()
    async with open_exchange(script, "developer", "delegate", recorder=recorder) as exchange:
        await exchange.reply("go")
    nested = [event.event for event in recorder.events if isinstance(event, SubagentEvent)]
    (output,) = [event.result.output for event in nested if isinstance(event, ToolFinished)]
    spans = collector.spans
    turn = spans["invoke_agent goose_like"]
    outer = spans["execute_tool delegate"]
    inner = spans["invoke_agent mine"]
    command = spans["execute_tool shell"]
    assert outer.parent_span_id == turn.span_id
    assert inner.parent_span_id == outer.span_id
    assert command.parent_span_id == inner.span_id
    assert f"00-{turn.trace_id.hex()}-{command.span_id.hex()}-" in output
    assert read(inner)["gen_ai.conversation.id"] == "temporary"
    counted = collector.metrics_by_name["gen_ai.client.inference.usage.input_tokens"]
    assert sum(point.as_int for point in counted.sum.data_points) == 10 + 10 + 1200


def test_a_start_without_the_toolkit_imports_nothing_of_it() -> None:
    program = (
        "import sys, goose_like.agent.build, goose_like_toolkits.otel.toolkit; "
        "print([name for name in sys.modules if name.startswith('opentelemetry')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


# --- what people get wrong


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        (
            "OTEL_EXPORTER_OTLP_PROTOCOL",
            "grpc",
            "OTEL_EXPORTER_OTLP_PROTOCOL is 'grpc', but only http/protobuf is supported",
        ),
        ("OTEL_TRACES_EXPORTER", "zipkin", "OTEL_TRACES_EXPORTER is 'zipkin', but only otlp and none are supported"),
        ("OTEL_SDK_DISABLED", "true", ""),
    ],
)
async def test_what_cannot_or_must_not_be_sent(
    name: str, value: str, problem: str, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    recorder = Recorder()
    async with open_exchange([ANSWER], recorder=recorder) as exchange:
        await exchange.reply("go")
    assert collector.spans == {}
    logged = [event.text for event in recorder.events if isinstance(event, Logged)]
    assert len(logged) == bool(problem)
    for text in logged:
        assert text.startswith(f"OpenTelemetry: {problem}")


@pytest.mark.parametrize(
    ("name", "value", "lost"),
    [
        ("OTEL_METRIC_EXPORT_INTERVAL", "0", "metrics"),
        ("OTEL_METRICS_EXEMPLAR_FILTER", "wrong", "metrics"),
        ("OTEL_BSP_MAX_QUEUE_SIZE", "1", "traces"),
        ("OTEL_BSP_SCHEDULE_DELAY", "-1", "traces"),
        ("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "many", "traces"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "long", ""),
        ("OTEL_EXPERIMENTAL_RESOURCE_DETECTORS", "wrong", ""),
        ("OTEL_TRACES_SAMPLER", "wrong", ""),
    ],
)
async def test_a_setting_for_another_program_stops_no_session(
    name: str, value: str, lost: str, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    recorder = Recorder()
    async with open_exchange([ANSWER], recorder=recorder) as exchange:
        end = await exchange.reply("go")
    assert end.reason == "stop"
    logged = [event.text for event in recorder.events if isinstance(event, Logged)]
    assert len(logged) == 1
    assert logged[0].startswith(f"OpenTelemetry: {lost} are not sent: ") == bool(lost)
    assert bool(collector.traces) == (lost != "traces")
    assert bool(collector.metrics) == (lost != "metrics")


async def test_an_unreachable_collector_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # nobody listens
        endpoint = f"http://127.0.0.1:{closed.getsockname()[1]}"
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
        recorder = Recorder()
        async with open_exchange([ANSWER], recorder=recorder) as exchange:
            end = await exchange.reply("go")
    assert end.reason == "stop"
    logged = [event.text for event in recorder.events if isinstance(event, Logged)]
    lines = []
    for signal in ("traces", "metrics"):
        lost = f"{signal} are lost, as the collector {endpoint} cannot be reached"
        advice = f"check OTEL_EXPORTER_OTLP_ENDPOINT, or set OTEL_{signal.upper()}_EXPORTER=none"
        lines.append(f"OpenTelemetry: {lost}; {advice}")
    assert len(logged) == 1
    assert logged[0] in lines


async def test_the_exit_does_not_wait_for_a_silent_collector(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # it accepts, and never answers
        monkeypatch.setenv(
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", f"http://127.0.0.1:{silent.getsockname()[1]}/v1/traces"
        )
        monkeypatch.setenv("OTEL_METRICS_EXPORTER", "none")
        recorder = Recorder()
        async with open_exchange([ANSWER], recorder=recorder) as exchange:
            await exchange.reply("go")
        (logged,) = [event.text for event in recorder.events if isinstance(event, Logged)]
    assert "/v1/traces did not answer in time; " in logged


async def test_a_collector_that_refuses_is_one_line(collector: Collector) -> None:
    collector.status = 401
    recorder = Recorder()
    async with open_exchange([ANSWER], recorder=recorder) as exchange:
        await exchange.reply("go")
    (logged,) = [event.text for event in recorder.events if isinstance(event, Logged)]
    assert f"{collector.port} answered 401; " in logged


async def test_the_toolkit_has_no_settings(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match=NO_CONFIG):
        async with trial(OtelToolkit, tmp_path, config={"endpoint": "x"}):
            pass


async def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("spans", "telemetry"):
        monkeypatch.delitem(sys.modules, f"goose_like_toolkits.otel.{name}", raising=False)
    monkeypatch.setitem(sys.modules, "opentelemetry.context", None)
    with pytest.raises(ProfileError) as caught:
        async with trial(OtelToolkit, tmp_path):
            pass
    assert str(caught.value) == NOT_INSTALLED
