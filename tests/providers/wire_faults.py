"""Faults of a server and the errors that must follow, for each vendor."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from goose_like.core.errors import (
    AnswerRefusedError,
    BrokenStreamError,
    ContextLengthError,
    CredentialError,
    ModelUnavailableError,
    ProviderError,
    RateLimitError,
)
from tests.loopback import Response, block, chunk, ended, raw, refusal, started, thought, wish, words
from tests.providers.vendors import ANTHROPIC, OPENAI, RESPONSES, Vendor
from tests.responses_events import build_response, call, reason, speak


@dataclass(frozen=True)
class Fault:
    """A fault and its error. `requests` is the number of requests with three attempts; `said` is part of its text."""

    name: str
    response: Callable[[Vendor], Response]
    said: str | Callable[[Vendor], str]
    error: type[ProviderError] = BrokenStreamError
    exit_code: int = 77
    requests: int = 3

    def words(self, vendor: Vendor) -> str:
        return self.said if isinstance(self.said, str) else self.said(vendor)


def _refuse(status: int, said: str, error: type[ProviderError], exit_code: int, requests: int) -> Fault:
    return Fault(f"HTTP {status}", lambda _: refusal(status, "no way"), said, error, exit_code, requests)


def _send_nonsense(body: bytes) -> Fault:
    return Fault(f"503 with {body!r}", lambda _: Response(503, {}, [body]), "HTTP 503", ModelUnavailableError)


def _break(name: str, response: Callable[[Vendor], Response], said: str | Callable[[Vendor], str]) -> Fault:
    return Fault(name, lambda vendor: replace(response(vendor), broken=name), said)


def _describe_unfinished(vendor: Vendor) -> str:
    return vendor.unfinished


REFUSALS = (
    _refuse(400, "HTTP 400: no way", ProviderError, 1, 1),
    _refuse(401, "_API_KEY", CredentialError, 76, 1),
    _refuse(402, "credit", RateLimitError, 75, 1),
    _refuse(403, "_API_KEY", CredentialError, 76, 1),
    _refuse(404, "no model 'm1'", ModelUnavailableError, 77, 1),
    _refuse(408, "later", ModelUnavailableError, 77, 3),
    _refuse(409, "later", ModelUnavailableError, 77, 3),
    _refuse(413, "more bytes", ContextLengthError, 1, 1),
    _refuse(418, "HTTP 418: no way", ProviderError, 1, 1),
    _refuse(422, "HTTP 422: no way", ProviderError, 1, 1),
    _refuse(429, "too many requests", RateLimitError, 75, 3),
    _refuse(500, "later", ModelUnavailableError, 77, 3),
    _refuse(502, "later", ModelUnavailableError, 77, 3),
    _refuse(503, "later", ModelUnavailableError, 77, 3),
    _refuse(504, "later", ModelUnavailableError, 77, 3),
    _refuse(529, "later", ModelUnavailableError, 77, 3),
    *map(_send_nonsense, (b"", b"<html>gone</html>", b"{broken", b"null", b"[]", b"\xff\xfe", b'"words"')),
    Fault("too long", lambda _: refusal(400, "prompt is too long: 9 > 8"), "window", ContextLengthError, 1, 1),
    Fault("a redirect to nowhere", lambda _: Response(302, {"content-length": "0"}), "HTTP 302", ProviderError, 1, 1),
)

STREAMS = (
    # cut
    _break("cut within an event", lambda v: raw(v.half), "within an event"),
    _break("cut between events", lambda v: raw(v.stream(*v.said("hel"))), _describe_unfinished),
    _break("cut within a character", lambda v: raw(v.stream() + b'data: {"x": "\xf0\x9f'), "within an event"),
    _break("reset", lambda v: raw(v.half, is_reset=True, pause_s=0.02), "connection broke"),
    _break(
        "cut within HTTP chunks",
        lambda v: Response(200, {"transfer-encoding": "chunked", "connection": "close"}, [b"5\r\ndata:\r\n"]),
        "connection broke",
    ),
    _break(
        "shorter than its length",
        lambda v: Response(200, {"content-length": "9999", "connection": "close"}, [v.half]),
        "connection broke",
    ),
    _break(
        "an overlong line that never ends",
        lambda v: raw(v.stream(*v.said("x")) + b"data: " + b"x" * 2_000_000),
        "within an event",
    ),
    # silent
    _break("stalls", lambda v: raw(v.half, hang_s=30), "stalled"),
    _break("stalls after the head", lambda v: raw(hang_s=30), "stalled"),
    # no JSON, or another
    _break("split JSON", lambda v: raw(b'event: x\ndata: {"type": "mess\n\n'), "no valid JSON"),
    _break("no UTF-8", lambda v: raw(b'event: x\ndata: {"type": "\xff"}\n\n'), "no valid JSON"),
    _break("nested without end", lambda v: raw(b"data: " + b"[" * 100_000 + b"\n\n"), "no valid JSON"),
    _break("a number without end", lambda v: raw(b"data: " + b"1" * 5_000 + b"\n\n"), "no valid JSON"),
    _break("a list", lambda v: raw(b"data: [1, 2]\n\n"), "an object belongs"),
    _break("a number", lambda v: raw(b"data: 5\n\n"), "an object belongs"),
    _break("a string", lambda v: raw(b'data: "hi"\n\n'), "an object belongs"),
    # no stream, or an empty one
    _break("HTML with 200", lambda v: raw(b"<html>hello</html>", kind="text/html"), "text/html"),
    _break("JSON with 200", lambda v: raw(b'{"content": []}', kind="application/json"), "application/json"),
    _break("an empty body", lambda v: raw(b""), "no event stream"),
    _break("204", lambda v: Response(204, {"content-length": "0"}), "no event stream"),
    _break("no gzip", lambda v: Response(200, {"content-encoding": "gzip"}, [b"no gzip"]), "connection broke"),
    _break("an empty answer", lambda v: raw(v.stream(*v.last(v.stop)) + v.done), "empty"),
    Fault(
        "stopped by length before it began",
        lambda v: raw(v.stream(*v.last(v.cut)) + v.done),
        "max_output_tokens",
        requests=1,
    ),
)


def _delta(index: object, name: str = "f") -> Response:
    item = {"index": index, "id": "1", "function": {"name": name, "arguments": "{}"}}
    return raw(OPENAI.stream(chunk({"tool_calls": [item]}), chunk(finish="tool_calls")))


def _blocks(*blocks: list[dict[str, object]], stop: str = "end_turn") -> Response:
    return raw(ANTHROPIC.stream(*(event for events in blocks for event in events), *ended(stop)))


def _error(kind: str) -> dict[str, object]:
    return {"type": "error", "error": {"type": kind, "message": "boom"}}


def _fail_inside(kind: str) -> Response:
    return raw(ANTHROPIC.stream(*words(0, "x"), _error(kind)))


_ERROR = {"error": {"message": "boom", "code": 500}}

OF_OPENAI = (
    Fault("no credit", lambda _: refusal(429, code="insufficient_quota"), "credit", RateLimitError, 75, 1),
    _break("only [DONE]", lambda v: raw(v.done), "empty"),
    _break("a text that is none", lambda v: raw(v.stream(chunk({"content": True}))), "content"),
    _break("choices that are none", lambda v: raw(v.stream({"choices": {"a": 1}})), "choices"),
    _break("an index that is a word", lambda _: _delta("first"), "index"),
    _break("an index that is a yes", lambda _: _delta(True), "index"),
    _break("a call without a name", lambda _: _delta(0, ""), "without a name"),
    Fault("an error at once", lambda v: raw(v.stream(_ERROR)), "boom", ModelUnavailableError),
    Fault("an error within", lambda v: raw(v.stream(*v.said("x"), _ERROR)), "boom", ModelUnavailableError),
    _break("an error that is a string", lambda v: raw(v.stream(chunk({"content": "x"}), {"error": "boom"})), "boom"),
    _break("the server gave up", lambda v: raw(v.stream(*v.said("x"), *v.last("network_error"))), "gave up"),
    Fault(
        "an error within that tells of length",
        lambda v: raw(v.stream({"error": {"message": "exceeds the available context size"}})),
        "window",
        ContextLengthError,
        1,
        1,
    ),
    Fault(
        "a content filter",
        lambda v: raw(v.stream(*v.said("x"), *v.last("content_filter"))),
        "content filter",
        AnswerRefusedError,
        1,
        1,
    ),
)


def _report(code: str) -> Response:
    return raw(
        RESPONSES.stream(*RESPONSES.said("x"), {"type": "error", "code": code, "message": "boom", "param": None})
    )


def _give_up(error: dict[str, object] | None) -> Response:
    ended = {"type": "response.failed", "response": build_response([], "failed", error=error)}
    return raw(RESPONSES.stream(*RESPONSES.said("x"), ended))


OF_RESPONSES = (
    Fault("no credit", lambda _: refusal(429, code="insufficient_quota"), "credit", RateLimitError, 75, 1),
    Fault("too many within", lambda _: _report("rate_limit_exceeded"), "boom", RateLimitError, 75),
    Fault("broken within", lambda _: _report("server_error"), "boom", ModelUnavailableError),
    Fault("refused within", lambda _: _report("invalid_prompt"), "boom", ProviderError, 1, 1),
    Fault("no key within", lambda _: _report("401"), "boom", CredentialError, 76, 1),
    Fault("an unknown error within", lambda _: _report("fanfare"), "boom", ModelUnavailableError),
    Fault("it failed", lambda _: _give_up({"code": "server_error", "message": "boom"}), "boom", ModelUnavailableError),
    Fault("it failed without a reason", lambda _: _give_up(None), "no reason", ModelUnavailableError),
    Fault(
        "a content filter",
        lambda v: raw(v.stream(*v.said("x"), *v.last("incomplete:content_filter"))),
        "content filter",
        AnswerRefusedError,
        1,
        1,
    ),
    _break("only reasoning", lambda v: raw(v.stream(*reason(0, "rs_1", "hm"), *v.last(v.stop))), "empty"),
    _break("a call without a name", lambda v: raw(v.stream(*call(0, "fc", "1", "", "{}"), *v.last(v.stop))), "name"),
    _break("an index that is a word", lambda v: raw(v.stream(*speak("a", "x", "y"))), "output_index"),  # type: ignore[arg-type]
)

OF_ANTHROPIC = (
    Fault("no credit", lambda _: refusal(400, "Your credit balance is too low"), "credit", RateLimitError, 75, 1),
    _break("an unknown stop reason", lambda v: raw(v.stream(*v.said("x"), *v.last("bored"))), "'bored'"),
    _break("two answers", lambda v: raw(v.stream(*v.said("x"), started(), *v.said("y"))), "twice"),
    _break("a delta before its block", lambda v: raw(v.stream(*words(0, "x")[1:])), "never began"),
    _break("a delta of another index", lambda v: raw(v.stream(words(0, "x")[0], words(7, "x")[1])), "block 7"),
    _break("an index that is a word", lambda v: raw(v.stream(*block("first", {"type": "text"}))), "index"),
    _break("an index twice", lambda _: _blocks(words(0, "x"), words(0, "y")), "twice"),
    _break("a delta of another kind", lambda _: _blocks(block(0, {"type": "text"}, *_thinking())), "within a block"),
    _break("a call without a name", lambda _: _blocks(wish(0, "1", "", "{}")), "without a name"),
    _break("only thinking", lambda _: _blocks(thought(0, "hm", "SIG")), "empty"),
    Fault("an error at once", lambda v: raw(v.encode([_error("overloaded_error")])), "boom", ModelUnavailableError),
    Fault("overloaded within", lambda _: _fail_inside("overloaded_error"), "boom", ModelUnavailableError),
    Fault("broken within", lambda _: _fail_inside("api_error"), "boom", ModelUnavailableError),
    Fault("too many within", lambda _: _fail_inside("rate_limit_error"), "boom", RateLimitError, 75),
    Fault("no key within", lambda _: _fail_inside("authentication_error"), "boom", CredentialError, 76, 1),
    Fault("refused within", lambda _: _fail_inside("invalid_request_error"), "boom", ProviderError, 1, 1),
    Fault("the model declines", lambda _: _blocks(words(0, "I"), stop="refusal"), "declined", AnswerRefusedError, 1, 1),
)


def _thinking() -> list[dict[str, str]]:
    return [{"type": "thinking_delta", "thinking": "hm"}]


FAULTS = [
    *((vendor, fault) for vendor in (OPENAI, RESPONSES, ANTHROPIC) for fault in (*REFUSALS, *STREAMS)),
    *((OPENAI, fault) for fault in OF_OPENAI),
    *((RESPONSES, fault) for fault in OF_RESPONSES),
    *((ANTHROPIC, fault) for fault in OF_ANTHROPIC),
]
