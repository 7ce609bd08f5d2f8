"""The toolkit `otel`: it sends what happens in a session to a collector of OpenTelemetry."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from goose_like.core.errors import ProfileError
from goose_like.core.events import Event, UsageRecorded
from goose_like.core.tool import current_call
from goose_like.toolkit import Notifier, Requirements, Toolkit

if TYPE_CHECKING:
    from .spans import AgentSpans
    from .telemetry import Telemetry

_WITH_CONTENT = ("true", "span_only", "span_and_event")
NOT_INSTALLED = "the toolkit 'otel' needs packages of OpenTelemetry: pip install 'goose-like[otel]'"
NO_CONFIG = "the toolkit 'otel' has no settings here; set variables such as OTEL_EXPORTER_OTLP_ENDPOINT"


class OtelToolkit(Toolkit):
    """Sends traces and metrics. It has no tools, and the model does not know of it.

    In a subagent it does nothing, because the toolkit of the parent receives the events of subagents, too.
    """

    has_local_access = False
    is_read_only = True
    is_confined = True

    def __init__(self, notifier: Notifier, requires: Requirements, **kwargs: Any) -> None:
        super().__init__(notifier, requires, **kwargs)
        if self.config:
            raise ProfileError(NO_CONFIG, ("config",))
        self._telemetry: Telemetry | None = None
        self._spans: AgentSpans | None = None
        if not self.workspace.is_child:
            self._open()

    def _open(self) -> None:
        try:
            from .spans import AgentSpans  # a start without this toolkit imports nothing
            from .telemetry import Telemetry, make_variables, read_parent
        except ImportError as error:
            raise ProfileError(NOT_INSTALLED) from error
        wanted = os.environ.get("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "")
        has_content = wanted.strip().lower() in _WITH_CONTENT
        self._telemetry = Telemetry(self.notifier.log)
        spans = AgentSpans(self._telemetry, "goose_like", read_parent(), has_content=has_content)
        self._spans = spans
        self.workspace.variable_sources.append(lambda: make_variables(spans.find_span(current_call.get(""))))

    @override
    def context_updates(self) -> Mapping[str, str]:
        if self._spans:
            self._spans.start_request()
        return {}

    @override
    def on_event(self, event: Event) -> None:
        if self._spans is None:
            return
        self._spans.record(event)
        # Steps of subagents are counted with the events of the subagent.
        if isinstance(event, UsageRecorded) and not event.steps:
            self._spans.count_side_question(event)

    @override
    async def close(self) -> None:
        if self._spans:
            self._spans.close()
        if self._telemetry:
            await self._telemetry.close()
