"""Tests of `goose-like serve` over real HTTP: answers, access, limits, shutdown and workers."""

import os
import re
import select
import signal
import socket
import threading
from contextlib import contextmanager
from importlib.util import find_spec

import httpx2
import pytest

from tests.e2e.command import shell
from tests.e2e.serving import build_body, join_text, read_events, serving, wait_until
from tests.processes import is_alive, list_children, read_command

pytest.importorskip("uvicorn")

SLOW = {"text": "one two three four five six", "delta_delay_s": 0.3}
NEVER = {"text": "late", "delay_s": 600}


# --- answers


def test_a_question_is_answered_in_a_stream(place):
    with serving(place, "--model", place.script("It is noon.", "It is late.")) as server:
        with server.stream(build_body("what time is it?")) as events:
            received = [*events]
        assert {name for name, _ in received} == {"copilotMessageChunk"}
        assert join_text(received) == "It is noon."
        assert join_text(read_events(server.post(build_body("and now?"), "/query"))) == "It is late."


def test_a_call_is_handed_off_and_goes_on_with_what_the_client_gave(place):
    uuid = "38181a68-9650-4940-84fb-a3f29c8869f3"
    call = {"calls": [{"tool": "get_widget_data", "arguments": {"widget_uuid": uuid}}]}
    model = place.script(call, {"text": "AAPL is at 231.", "expect": "231"})
    widget = {"uuid": uuid, "origin": "OpenBB", "widget_id": "price", "name": "Price", "description": "", "params": []}
    with serving(place, "--model", model) as server:
        body = build_body("what is the price?", widgets={"primary": [], "secondary": [widget], "extra": []})
        *_, (name, asks) = read_events(server.post(body))
        assert (name, asks["function"]) == ("copilotFunctionCall", "get_widget_data")
        body["messages"] += [
            {"role": "ai", "content": httpx2.Request("POST", server.url, json=asks).read().decode()},
            {
                "role": "tool",
                "function": "get_widget_data",
                "input_arguments": asks["input_arguments"],
                "data": [{"items": [{"content": '[{"price": 231}]', "data_format": {"data_type": "object"}}]}],
                "extra_state": asks.get("extra_state", {}),
            },
        ]
        assert join_text(read_events(server.post(body))) == "AAPL is at 231."


def test_an_error_is_told_in_the_stream(place):
    model = place.script({"error": {"status": 400, "text": "no such thing"}})
    with serving(place, "--model", model) as server:
        report = read_events(server.post(build_body("hello")))
        assert "no such thing" in str(report)


def test_time_of_a_request_is_limited(place):
    with serving(place, "--model", place.script(NEVER), "--timeout", "0.5") as server:
        assert "time limit of 0.5 s" in str(read_events(server.post(build_body("hello"))))


# --- starting


def fail_to_start(place, *options, env=None) -> tuple[int, str]:
    done = place.run("serve", *options, env=env)
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert "Traceback" not in done.stdout
    return done.returncode, done.stderr


def test_start_errors_are_one_line(place):
    model = ("--model", place.script("hi"))
    code, report = fail_to_start(place, *model, "--host", "0.0.0.0", "--port", "0")
    assert code == 2
    assert "GOOSE_LIKE_SERVE_TOKEN" in report
    with socket.create_server(("127.0.0.1", 0)) as other:
        code, report = fail_to_start(place, *model, "--port", str(other.getsockname()[1]))
    assert code == 2
    assert "--port 0" in report
    code, report = fail_to_start(place, *model, "--host", "no.such.host.invalid")
    assert (code, "'no.such.host.invalid' is not known" in report) == (2, True)
    code, report = fail_to_start(place, "--profile", "opnbb")
    assert (code, "did you mean 'openbb'?" in report) == (2, True)
    code, report = fail_to_start(place, "--model", "openai:gpt-5-mini")
    assert (code, "OPENAI_API_KEY" in report) == (76, True)
    code, report = fail_to_start(place, *model, "--origin", "*")
    assert (code, "no origin" in report) == (2, True)
    code, report = fail_to_start(place, *model, env={"GOOSE_LIKE_SERVE_SECRET": "short"})
    assert (code, "at least 32" in report) == (2, True)
    key = place.home / "state" / "serve.key"
    assert key.stat().st_mode & 0o777 == 0o600
    key.chmod(0o644)
    code, report = fail_to_start(place, *model)
    assert (code, "chmod 600" in report) == (2, True)


def test_a_missing_extra_is_named(place):
    (place.work / "absent").mkdir()
    (place.work / "absent" / "uvicorn.py").write_text("raise ModuleNotFoundError('gone', name='uvicorn')\n")
    code, report = fail_to_start(place, env={"PYTHONPATH": str(place.work / "absent")})
    assert code == 2
    assert "pip install 'goose-like[serve]'" in report


def test_the_first_screen_says_where_what_and_what_not(place):
    with serving(place, "--profile", "default", "--model", place.script("hi"), "--token", "secret") as server:
        server.signal(signal.SIGTERM)
        screen = server.process.stdout.read()
        assert "scripted:" in screen
        assert re.search(r"left out +developer.*--toolkit developer", screen)
        assert "Bearer" in screen
        assert "secret" not in screen


@pytest.mark.skipif(find_spec("xllamacpp") is None, reason="the extra `local` is not installed")
def test_the_embedded_model_keeps_the_name_of_the_profile(place):
    with serving(place, "--model", "local") as server:
        assert [each["id"] for each in server.get("/v1/models").json()["data"]] == ["openbb"]
        assert list(server.get("/agents.json").json()) == ["openbb"]


# --- who is answered


def test_a_token_is_wanted_but_for_what_is_open(place):
    with serving(place, "--model", place.script("in"), env={"GOOSE_LIKE_SERVE_TOKEN": "s3cret\n"}) as server:
        for path in ("/healthz", "/copilots.json", "/agents.json"):
            assert server.get(path).status_code == 200
        assert server.get("/metrics").status_code == 401
        for given in ({}, {"authorization": "Bearer wrong"}, {"authorization": "Basic s3cret"}):
            answer = server.post(build_body("hello"), headers=given)
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"].startswith("Bearer")
        right = {"authorization": "Bearer s3cret"}
        assert join_text(read_events(server.post(build_body("hello"), headers=right))) == "in"
        assert server.post({"vote": "up"}, "/v1/feedback").status_code == 401
        assert server.post({"vote": "up"}, "/v1/feedback", headers=right).json() == {"status": "ok"}
        metrics = server.get("/metrics", headers=right).text
        assert 'goose_like_feedback_total{vote="up"} 1.0' in metrics


def test_pages_of_others_are_refused(place):
    with serving(place, "--model", place.script("hi", "ho"), "--origin", "https://desk.example.com") as server:
        for origin in ("https://evil.example", "null", "https://pro.openbb.co.evil.example", "http://localhost:7778"):
            assert server.post(build_body("x"), headers={"origin": origin}).status_code == 403
        for name in ("evil.example", "evil.example:7777", "127.0.0.1.evil.example"):
            assert server.get("/healthz", headers={"host": name}).status_code == 403
        for origin in ("https://pro.openbb.co", "https://desk.example.com"):
            answer = server.post(build_body("x"), headers={"origin": origin})
            assert answer.status_code == 200
            assert answer.headers["access-control-allow-origin"] == origin
            assert answer.headers["access-control-allow-credentials"] == "true"
        assert server.get("/healthz", headers={"origin": server.url}).status_code == 200
        assert server.get("/healthz", headers={"host": "desk.example.com"}).status_code == 200


def test_a_preflight_passes(place):
    asks = {
        "origin": "https://pro.openbb.co",
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization,x-anything",
        "access-control-request-private-network": "true",
    }
    with serving(place, "--model", place.script("hi"), "--token", "s3cret") as server, server.client() as client:
        answer = client.options("/v1/query", headers=asks)
        assert answer.status_code == 200
        assert answer.headers["access-control-allow-headers"] == "authorization,x-anything"
        assert answer.headers["access-control-allow-private-network"] == "true"
        foreign = client.options("/v1/query", headers=asks | {"origin": "https://evil.example"})
        assert foreign.status_code == 403


# --- limits


def test_excessive_requests_are_refused(place):
    options = ("--model", place.script("hi"), "--max-body", "1", "--max-messages", "3")
    with serving(place, *options) as server:
        large = build_body("x" * 1_000_001)
        assert server.post(large).status_code == 413
        with server.client() as client:
            pieces = (b"x" * 100_000 for _ in range(20))
            kind = {"content-type": "application/json"}
            assert client.post("/v1/query", content=pieces, headers=kind).status_code == 413
            assert client.post("/v1/query", content=b"{}", headers={"content-type": "text/plain"}).status_code == 415
            broken = client.post("/v1/query", content=b"{", headers=kind)
            assert (broken.status_code, broken.json()["detail"][0]["loc"][0]) == (422, "body")
        many = server.post({"messages": [{"role": "human", "content": "x"}] * 4, "timezone": "UTC"})
        assert (many.status_code, many.json()["detail"][0]["loc"]) == (422, ["body", "messages"])
        none = server.post({"messages": []})
        assert (none.status_code, "messages list cannot be empty" in none.text) == (422, True)
        assert server.get("/v1/query").status_code == 405
        assert server.get("/nothing").json() == {"detail": "Not Found"}


@pytest.mark.parametrize(("option", "status"), [("--max-concurrent", 503), ("--max-concurrent-per-client", 429)])
def test_queries_at_once_are_limited(place, option, status):
    with serving(place, "--model", place.script(NEVER, "free again"), option, "1") as server:
        with server.stream(build_body("x")):
            full = server.post(build_body("y"))
            assert full.status_code == status
            assert int(full.headers["retry-after"]) > 0
        wait_until(lambda: not server.sum_metric("goose_like_running"))
        assert join_text(read_events(server.post(build_body("z")))) == "free again"


def test_a_connection_outlasts_a_pause(place):
    with (
        serving(place, "--model", place.script("hi")) as server,
        socket.create_connection(("127.0.0.1", server.port)) as connection,
    ):
        connection.sendall(b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
        came = b""
        while not came.endswith(b'{"status":"ok"}'):
            came += connection.recv(65536)
        assert not select.select([connection], [], [], 6)[0], "it was closed"


# --- clients that go


@contextmanager
def model_that_waits():
    """Run a model that sends one word and waits; yield its URL and an event that is set when its client disconnects."""
    left = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(1_000_000)
                head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
                connection.sendall(head + b'data: {"choices": [{"index": 0, "delta": {"content": "well"}}]}\n\n')
                while connection.recv(1_000_000):
                    pass
                left.set()

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1", left


def test_a_client_that_goes_stops_the_model(place):
    with model_that_waits() as (url, left):
        env = {"OPENAI_API_KEY": "x", "OPENAI_BASE_URL": url}
        with serving(place, "--model", "openai:m", env=env) as server:
            with server.stream(build_body("x")) as events:
                wait_until(lambda: next(events)[0] == "copilotMessageChunk")
            assert left.wait(60)
            wait_until(lambda: server.sum_metric(r'goose_like_requests_total\{.*ending="cancelled"'))


def test_a_client_that_goes_stops_the_tools(place):
    command = "echo $$ > pid; exec sleep 600"
    model = place.script({"calls": [shell(command)]}, "never said")
    profile = "machine: {extends: openbb, toolkits: [developer, openbb], sandbox: full}"
    (place.home / "config").mkdir()
    (place.home / "config" / "profiles.yaml").write_text(profile)
    with serving(place, "--profile", "machine", "--toolkit", "developer", "--model", model) as server:
        file = place.work / "pid"
        with server.stream(build_body("x")) as events:
            next(events)
            pid = int(wait_until(lambda: file.exists() and file.read_text().strip()))
            assert is_alive(pid)
        wait_until(lambda: not is_alive(pid))


def test_nobody_answers_questions(place):
    model = place.script(
        {"calls": [shell("echo x > made")]}, {"text": "as you like", "expect": "denied|not allowed|nobody"}
    )
    profile = "machine: {extends: openbb, toolkits: [developer, openbb], sandbox: full, approval: ask}"
    (place.home / "config").mkdir()
    (place.home / "config" / "profiles.yaml").write_text(profile)
    with serving(place, "--profile", "machine", "--toolkit", "developer", "--model", model) as server:
        assert "as you like" in join_text(read_events(server.post(build_body("x"))))
    assert not (place.work / "made").exists()


# --- ends


def test_sigterm_lets_answers_finish(place):
    with serving(place, "--model", place.script(SLOW)) as server:
        with server.stream(build_body("x")) as events:
            server.signal(signal.SIGTERM)
            assert wait_until(lambda: server.get("/healthz").status_code == 503)
            late = server.post(build_body("y"))
            assert (late.status_code, "retry-after" in late.headers) == (503, True)
            assert join_text(list(events)) == SLOW["text"]
        assert server.process.wait(60) == 0


def test_answers_that_outlast_shutdown_end_with_a_message(place):
    with serving(place, "--model", place.script(NEVER), "--drain", "0.1") as server:
        with server.stream(build_body("x")) as events:
            server.signal(signal.SIGTERM)
            assert "being stopped" in str(list(events))
        assert server.process.wait(60) == 0


def test_a_second_ctrl_c_is_at_once(place):
    with (
        serving(place, "--model", place.script(NEVER), "--drain", "600") as server,
        server.stream(build_body("x")),
    ):
        server.signal(signal.SIGINT)
        wait_until(lambda: server.get("/healthz").status_code == 503)
        server.signal(signal.SIGINT)
        assert server.process.wait(60) == 0
        assert "Traceback" not in server.log.read_text()


# --- several workers


def count_answers(server) -> float:
    return server.sum_metric("goose_like_query_seconds_count")


def test_workers_share_a_port_and_their_counts(place):
    with serving(place, "--model", place.script(*["hi"] * 40), "--workers", "2") as server:
        for _ in range(20):
            assert join_text(read_events(server.post(build_body("x")))) == "hi"
        wait_until(lambda: count_answers(server) == 20)
        assert [count_answers(server) for _ in range(8)] == [20] * 8  # whichever is asked
        server.signal(signal.SIGTERM)
        assert server.process.wait(60) == 0


def list_workers(server) -> set[int]:
    """List the ids of the worker processes that run now."""
    return {pid for pid in list_children(server.process.pid) if "spawn_main" in read_command(pid)}


def wait_for_workers(server) -> set[int]:
    """Wait for both workers: a new process has no command line until its exec has ended."""
    wait_until(lambda: len(list_workers(server)) == 2)
    return list_workers(server)


def test_a_worker_that_is_killed_is_started_again(place):
    with serving(place, "--model", place.script(*["hi"] * 9), "--workers", "2") as server:
        assert join_text(read_events(server.post(build_body("x")))) == "hi"
        wait_until(lambda: count_answers(server) == 1)
        first = wait_for_workers(server)
        os.kill(min(first), signal.SIGKILL)
        wait_until(lambda: len(list_workers(server) - first) == 1)
        wait_until(lambda: "ended (killed by SIGKILL); a new one starts" in server.log.read_text())
        assert [count_answers(server) for _ in range(8)] == [1] * 8  # nothing of what was counted is lost


def test_workers_end_with_their_parent(place):
    with serving(place, "--model", place.script("hi"), "--workers", "2") as server:
        workers = wait_for_workers(server)
        server.process.kill()
        wait_until(lambda: not any(map(is_alive, workers)))


def test_workers_finish_their_answers_or_are_stopped_at_once(place):
    options = ("--model", place.script(NEVER), "--workers", "2", "--drain", "600")
    with serving(place, *options) as server, server.stream(build_body("x")):
        server.signal(signal.SIGTERM)
        wait_until(lambda: len(list_workers(server)) == 1)  # the one that had nothing to do
        workers = list_workers(server)
        server.signal(signal.SIGINT)
        assert server.process.wait(60) == 0
        assert not any(map(is_alive, workers))


# --- logs


def test_logs_hold_content_only_when_that_is_asked_for(place):
    model = place.script("the answer is blue")
    for options in ((), ("--log-content",)):
        with serving(place, "--model", model, *options) as server:
            server.post(build_body("which colour?"))
            line = wait_until(lambda log=server.log: re.search(r".*POST /query 200 workspace stop.*", log.read_text()))[
                0
            ]
        for content in ("which colour?", "the answer is blue"):
            assert (content in line) is bool(options)


def test_its_help_names_no_commands_where_there_is_empty(place):
    assert place.run("serve", "--help").stdout.splitlines()[0].strip() == "Usage: goose-like serve [OPTIONS]"


def test_files_of_the_page_and_signs_of_life_are_not_logged(place):
    with serving(place, "--model", place.script("yes")) as server:
        for path in ("/", "/page.css", "/healthz", "/metrics", "/agents.json"):
            assert server.get(path).status_code == 200
        wait_until(lambda: "GET /agents 200" in server.log.read_text())
        assert server.log.read_text().count("\n") == 1


def test_profiles_of_a_project_need_trust(place):
    file = place.work / ".goose-like/profiles.yaml"
    file.parent.mkdir()
    file.write_text("mine:\n  toolkits: []\n")
    done = place.run("serve", "--profile", "mine", "--port", "0")
    assert done.returncode == 2
    assert "skipped untrusted files: " in done.stderr
    assert "make it: goose-like profile new mine" in done.stderr
