"""OpenTelemetry's SDK: a tracer, the metrics, and what sends them. The variables `OTEL_*` configure it."""

import asyncio
import logging
import os
import re
from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.metrics import Meter, NoOpMeterProvider
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import NoOpTracerProvider, Span, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from typing_extensions import override

from goose_like import __version__
from goose_like.core.message import Usage
from goose_like.core.threads import run_in_daemon_thread

SCHEMA_URL = "https://opentelemetry.io/schemas/gen-ai/0.1.0"
"""The version of the GenAI conventions whose names are used here and in `spans.py`."""

EXIT_LIMIT_S = 1.0
"""How long the exit waits for the collector."""

_PROTOCOL = "http/protobuf"
_DURATION_BOUNDS = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92]
_TOKEN_BOUNDS = [4**power for power in range(14)]
_NAME = "goose_like"
_LOGGER = "opentelemetry"
_SIGNALS = {"spans": "TRACES", "metrics": "METRICS"}
"""The names of signals in variables by those in warnings of the SDK."""
_SILENCE = logging.NullHandler()  # for a thread that still waits for the collector after the session


class Telemetry:
    """What a session sends to a collector. `warn` is called with one line if that fails."""

    def __init__(self, warn: Callable[[str], None]) -> None:
        self._providers: dict[str, TracerProvider | MeterProvider] = {}
        self._reporter = _Reporter(warn, self._providers)
        logger = logging.getLogger(_LOGGER)
        logger.addHandler(_SILENCE)
        logger.addHandler(self._reporter)
        logger.propagate = False
        resource = _describe_program()
        tracers: TracerProvider | NoOpTracerProvider = NoOpTracerProvider()
        if self._is_wanted("TRACES"):
            with self._report_wrong_value("TRACES"):
                tracers = _make_tracers(resource)
                self._providers["TRACES"] = tracers
        meters: MeterProvider | NoOpMeterProvider = NoOpMeterProvider()
        if self._is_wanted("METRICS"):
            with self._report_wrong_value("METRICS"):
                meters = _make_meters(resource)
                self._providers["METRICS"] = meters
        self.tracer = tracers.get_tracer(_NAME, __version__, SCHEMA_URL)
        self.metrics = Metrics(meters.get_meter(_NAME, __version__, SCHEMA_URL))

    def _is_wanted(self, signal: str) -> bool:
        """Check whether the variables want a signal (`TRACES` or `METRICS`), and whether it can be sent."""
        if os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
            return False
        exporter = f"OTEL_{signal}_EXPORTER"
        name = os.environ.get(exporter, "").strip() or "otlp"
        if name == "none":
            return False
        if name != "otlp":
            self._reporter.report(f"{exporter} is {name!r}, but only otlp and none are supported")
            return False
        for variable in (f"OTEL_EXPORTER_OTLP_{signal}_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"):
            protocol = os.environ.get(variable, "").strip()
            if protocol and protocol != _PROTOCOL:
                advice = f"set it to {_PROTOCOL}, which collectors take at port 4318"
                self._reporter.report(f"{variable} is {protocol!r}, but only {_PROTOCOL} is supported; {advice}")
                return False
            if protocol:
                return True
        return True

    @contextmanager
    def _report_wrong_value(self, signal: str) -> Iterator[None]:
        """Report a value of a variable that the SDK refuses. It may belong to another program."""
        try:
            yield
        except ValueError as error:
            reason = " ".join(str(error).split())
            advice = f"correct the variables OTEL_*, or set OTEL_{signal}_EXPORTER=none"
            self._reporter.report(f"{signal.lower()} are not sent: {reason.rstrip('.')}; {advice}")

    async def close(self) -> None:
        """Send the rest. An unreachable collector delays this by a second at most."""
        sending: dict[asyncio.Task[None], str] = {}
        for signal, provider in self._providers.items():
            task = asyncio.create_task(run_in_daemon_thread(provider.shutdown, "OpenTelemetry"))
            sending[task] = signal
        if sending:
            _, late = await asyncio.wait(sending, timeout=EXIT_LIMIT_S)
            for task in late:
                task.cancel()
                self._reporter.report_lost(sending[task], "did not answer in time")
        logging.getLogger(_LOGGER).removeHandler(self._reporter)


def read_parent() -> Context:
    """Read the span that started this process from its variable `TRACEPARENT`."""
    carrier = {
        "traceparent": os.environ.get("TRACEPARENT", ""),
        "tracestate": os.environ.get("TRACESTATE", ""),
    }
    return TraceContextTextMapPropagator().extract(carrier)


def make_variables(span: Span) -> dict[str, str]:
    """Make the variables that tell a command its parent span."""
    carrier: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(carrier, set_span_in_context(span))
    return {name.upper(): value for name, value in carrier.items()}


def _make_tracers(resource: Resource) -> TracerProvider:
    tracers = TracerProvider(resource=resource, shutdown_on_exit=False)
    tracers.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return tracers


def _make_meters(resource: Resource) -> MeterProvider:
    reader = PeriodicExportingMetricReader(OTLPMetricExporter())
    return MeterProvider([reader], resource, shutdown_on_exit=False)


def _describe_program() -> Resource:
    attributes: dict[str, Any] = {
        "service.name": _NAME,
        "service.version": __version__,
        # Each session counts from zero: without an id, the sums of two would be one broken series.
        "service.instance.id": str(uuid4()),
    }
    return Resource.create({**attributes, **OTELResourceDetector().detect().attributes})


class Metrics:
    """The metrics of requests: those of the conventions, and two that they replaced, which dashboards still show."""

    def __init__(self, meter: Meter) -> None:
        self._durations = []
        for name in ("gen_ai.client.inference.duration", "gen_ai.client.operation.duration"):
            histogram = meter.create_histogram(name, "s", explicit_bucket_boundaries_advisory=_DURATION_BOUNDS)
            self._durations.append(histogram)
        self._usage = meter.create_histogram(
            "gen_ai.client.token.usage", "{token}", explicit_bucket_boundaries_advisory=_TOKEN_BOUNDS
        )
        counted = "gen_ai.client.inference.usage"
        self._input = meter.create_counter(f"{counted}.input_tokens", "{token}")
        self._output = meter.create_counter(f"{counted}.output_tokens", "{token}")
        self._cache_read = meter.create_counter(f"{counted}.cache_read.input_tokens", "{token}")
        self._cache_write = meter.create_counter(f"{counted}.cache_write.input_tokens", "{token}")

    def measure_request(self, duration_s: float, attributes: Mapping[str, str]) -> None:
        """Count a request with its duration."""
        for histogram in self._durations:
            histogram.record(duration_s, attributes)

    def count_tokens(self, usage: Usage, attributes: Mapping[str, str]) -> None:
        """Count the tokens of a request."""
        self._usage.record(usage.input_tokens, {**attributes, "gen_ai.token.type": "input"})
        self._usage.record(usage.output_tokens, {**attributes, "gen_ai.token.type": "output"})
        self._input.add(usage.input_tokens, attributes)
        self._output.add(usage.output_tokens, attributes)
        if usage.cache_read_tokens:
            self._cache_read.add(usage.cache_read_tokens, attributes)
        if usage.cache_write_tokens:
            self._cache_write.add(usage.cache_write_tokens, attributes)


class _Reporter(logging.Handler):
    """Turns the first warning of the SDK into one line for the person. Its other lines go nowhere.

    The SDK warns all sessions of a process. A signal that is not among those of this session, `signals`, is another's.
    """

    def __init__(self, warn: Callable[[str], None], signals: Container[str]) -> None:
        super().__init__(logging.WARNING)
        self._signals = signals
        self._warn = warn
        self._has_warned = False

    @override
    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        lost = re.search(r"(spans|metrics) batch", text)
        if lost is None:
            first_line, _, _ = text.partition("\n")
            self.report(first_line)
            return
        reason = "cannot be reached"
        status = re.search(r"code: (\d+)", text)
        if status:
            reason = f"answered {status[1]}"
        signal = _SIGNALS[lost[1]]
        if signal in self._signals:
            self.report_lost(signal, reason)

    def report_lost(self, signal: str, reason: str) -> None:
        """Report that the collector does not take a signal, `TRACES` or `METRICS`."""
        general = os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4318")
        endpoint = os.environ.get(f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT", general)
        advice = f"check OTEL_EXPORTER_OTLP_ENDPOINT, or set OTEL_{signal}_EXPORTER=none"
        self.report(f"{signal.lower()} are lost, as the collector {endpoint} {reason}; {advice}")

    def report(self, text: str) -> None:
        """Report a problem, if it is the first one."""
        if not self._has_warned:
            self._has_warned = True
            self._warn(f"OpenTelemetry: {text}")
