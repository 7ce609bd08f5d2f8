import os
import subprocess
import sys

import pytest

pytest.importorskip("prometheus_client")

from goose_like.core.message import Usage
from goose_like.serve.middleware import Metrics, RequestRecord
from goose_like.serve.settings import METRICS_FOLDER_VARIABLE

FIRST = RequestRecord("query", 200, "copilot", "stop", 0.3, Usage(input_tokens=7))
SECOND = RequestRecord("query", 200, "copilot", "stop", 3.0, Usage(input_tokens=5))
EXPECTED = (
    'goose_like_requests_total{dialect="copilot",ending="stop",path="query",status="200"} 2.0',
    'goose_like_query_seconds_bucket{le="0.5"} 1.0',
    'goose_like_query_seconds_bucket{le="+Inf"} 2.0',
    "goose_like_query_seconds_sum 3.3",
    "goose_like_query_seconds_count 2.0",
    'goose_like_tokens_total{kind="input"} 12.0',
    'goose_like_tokens_total{kind="cache_read"} 0.0',
    'goose_like_feedback_total{vote="up"} 0.0',
    'goose_like_feedback_total{vote="other"} 1.0',
    "goose_like_running 1.0",
)


def test_thumbs_are_votes():
    metrics = Metrics()
    for vote in ("thumbs_up", "up", "thumbs_down"):
        metrics.count_vote(vote)
    lines = metrics.export().decode().splitlines()
    assert {'goose_like_feedback_total{vote="up"} 2.0', 'goose_like_feedback_total{vote="down"} 1.0'} <= set(lines)


def test_metrics_of_one_process():
    metrics = Metrics()
    metrics.count_request(FIRST)
    metrics.count_request(SECOND)
    metrics.count_vote("sideways")
    with metrics.track_query():
        assert metrics.running_queries == 1
        lines = metrics.export().decode().splitlines()
    assert set(EXPECTED) <= set(lines)
    assert "_created" not in "".join(lines)
    assert metrics.running_queries == 0


WORKER = """
import os, sys
from goose_like.serve.middleware import Metrics
from tests.serve.test_middleware import FIRST, SECOND

metrics = Metrics()
query = metrics.track_query()
query.__enter__()
if sys.argv[1] == "first":
    metrics.count_request(FIRST)
    print(os.getpid())
    sys.stdout.flush()
    os.kill(os.getpid(), 9)
metrics.count_request(SECOND)
metrics.count_vote("sideways")
print(metrics.running_queries)
if sys.argv[1] == "second":
    from prometheus_client.multiprocess import mark_process_dead
    mark_process_dead(sys.argv[2])
    print(metrics.running_queries)
    print(metrics.export().decode())
"""


def test_metrics_of_several_processes_are_summed_and_outlive_them(tmp_path):
    environment = {**os.environ, METRICS_FOLDER_VARIABLE: str(tmp_path)}

    def run(*arguments):
        command = [sys.executable, "-c", WORKER, *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)

    pid = run("first").stdout.strip()
    done = run("second", pid)
    assert not done.returncode, done.stderr
    before, after, *lines = done.stdout.splitlines()
    assert (before, after) == ("2", "1")  # a dead worker's queries do not run any more, but its counts stay
    assert set(EXPECTED) <= set(lines)
    assert "_created" not in "".join(lines)
