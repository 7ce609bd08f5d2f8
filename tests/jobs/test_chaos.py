"""Batches whose driver and workers are killed. `--batch-kills 20` kills twenty of them in a batch of 200 inputs."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.processes import is_alive, list_children

RECIPE = """
version: 1.0.0
title: Write
description: Writes a word
prompt: "Write {{ word }} into out.txt."
parameters:
  - {key: word, input_type: string, requirement: required, description: the word}
"""
SCRIPT = """
- {delay_s: 0.3, calls: [{tool: write_file, arguments: {path: out.txt, content: done}}]}
- {delay_s: 0.3, text: Done.}
"""


class Batch:
    """A batch in a folder, whose driver is started as often as it is killed."""

    def __init__(self, folder: Path, count: int, workers: int, *options: str) -> None:
        self.results = folder / "r.jsonl"
        self._folder = folder / "work"
        self._folder.mkdir()
        (self._folder / "r.yaml").write_text(RECIPE)
        (folder / "in.jsonl").write_text("".join(json.dumps({"word": f"w{n}"}) + "\n" for n in range(count)))
        (folder / "s.yaml").write_text(SCRIPT)
        fixed = ("--trust", "--model", f"scripted:{folder}/s.yaml", "--workers", str(workers), "--retries", "9")
        self._words = ["batch", "r.yaml", str(folder / "in.jsonl"), "-o", str(self.results), *fixed, *options]
        self._log = folder / "log"

    def start(self) -> "subprocess.Popen[bytes]":
        words = self._words
        if self.results.exists():
            words = ["batch", "resume", str(self.results)]
        with self._log.open("ab") as log:
            return subprocess.Popen([sys.executable, "-m", "goose_like", *words], cwd=self._folder, stderr=log)

    def read(self) -> list[dict[str, Any]]:
        if not self.results.exists():
            return []
        return [json.loads(line) for line in self.results.read_text().splitlines(keepends=True) if line[-1] == "\n"]

    def read_log(self) -> str:
        return self._log.read_text()


@pytest.mark.slow
def test_each_result_appears_once(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    kills = request.config.getoption("--batch-kills")
    count = kills * 10
    batch = Batch(tmp_path, count, 8 if kills >= 20 else 4)
    chance = random.Random(kills)
    seen: dict[int, dict[str, Any]] = {}
    processes = set[int]()
    driver = batch.start()
    for kill in range(kills):
        wait_for_lines(batch, driver, len(batch.read()) + chance.randint(1, 5))
        workers = list_children(driver.pid)
        processes.update(workers)
        if kill % 2 and workers:
            os.kill(chance.choice(workers), signal.SIGKILL)
        else:
            driver.kill()
            driver.wait()
            driver = batch.start()
        note(batch, seen)
    wait_for_lines(batch, driver, count)
    processes.update(list_children(driver.pid))
    assert driver.wait() == 0, batch.read_log()
    check(batch, seen, count)
    while any(map(is_alive, processes)):
        time.sleep(0.05)


@pytest.mark.slow
def test_a_lost_node_of_a_cluster_costs_attempts_only(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    kills = request.config.getoption("--batch-kills")
    if kills < 20:
        pytest.skip("starts two nodes: run it with --batch-kills 20")
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 4})
    try:
        node = cluster.add_node(num_cpus=4)
        batch = Batch(tmp_path, 200, 8, "--engine", "ray", "--address", cluster.address, "--cpus", "1")
        seen: dict[int, dict[str, Any]] = {}
        driver = batch.start()
        wait_for_lines(batch, driver, 30)
        cluster.remove_node(node, allow_graceful=False)
        note(batch, seen)
        wait_for_lines(batch, driver, 60)
        cluster.add_node(num_cpus=4)
        driver.kill()
        driver.wait()
        note(batch, seen)
        driver = batch.start()
        assert driver.wait() == 0, batch.read_log()
        check(batch, seen, 200)
    finally:
        cluster.shutdown()


def wait_for_lines(batch: Batch, driver: "subprocess.Popen[bytes]", count: int) -> None:
    while len(batch.read()) < count and driver.poll() is None:
        time.sleep(0.05)


def note(batch: Batch, seen: dict[int, dict[str, Any]]) -> None:
    """Remember the lines so far. A finished input keeps its line."""
    for line in batch.read():
        assert seen.setdefault(line["number"], line) == line


def check(batch: Batch, seen: dict[int, dict[str, Any]], count: int) -> None:
    note(batch, seen)
    lines = batch.read()
    assert sorted(line["number"] for line in lines) == list(range(1, count + 1)), batch.read_log()
    assert {line["status"] for line in lines} == {"done"}, batch.read_log()
    assert all("+done" in Path(line["patch"]).read_text() for line in lines)
    assert list((batch.results.with_suffix(".batch") / "places").iterdir()) == []
