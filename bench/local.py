"""Measure the embedded model. `python bench/local.py [--rounds N] [--threads N] [--llama-bench PROGRAM]`.

First token: from the start of `goose-like run` until the model begins its answer, with and without a kept prompt state.
Tokens per second: next to llama-bench, a part of llama.cpp, with its own settings, on the same file, with as many
threads. Without the program only our figures are printed.
"""

import argparse
import asyncio
import itertools
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from goose_like.config.profile import ModelChoice
from goose_like.core.events import MessageCompleted, Status
from goose_like.core.message import Message
from goose_like.core.tool import ToolSpec
from goose_like.providers import local
from goose_like.providers.base import Request
from goose_like.providers.weights import find_or_assemble

RUN = [sys.executable, "-m", "goose_like", "run", "--profile", "local", "--output-format", "stream-json", "Say hello."]
STAGES = {
    "start of the process": '"turn_started"',
    "loading the engine": '"the model reads ',  # with a bar
    "evaluating the prompt": '"the model writes"',
}
PROMPT_TOKENS, ANSWER_TOKENS = 256, 48
TEXT = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
TOOLS = [ToolSpec("shell", "Run a bash command.", TEXT)]


def measure_first_token(folder: Path) -> list[float]:
    """Return the seconds that each stage takes."""
    bases = {f"XDG_{name}_HOME": str(folder / name.lower()) for name in ("CONFIG", "STATE", "CACHE")}
    times = [time.perf_counter()]
    with subprocess.Popen(
        RUN, cwd=folder, env={**os.environ, **bases}, stdin=subprocess.DEVNULL, stdout=-1, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdout
        marks = list(STAGES.values())
        for line in process.stdout:
            if marks[len(times) - 1].encode() in line:
                times.append(time.perf_counter())
            if len(times) > len(marks):
                break
        process.kill()
    if len(times) <= len(marks):
        raise RuntimeError(f"{RUN} ended before the model's answer")
    return [later - earlier for earlier, later in itertools.pairwise(times)]


def print_first_token(weights: Path, rounds: int) -> None:
    taken: dict[str, list[list[float]]] = {"no kept state": [], "kept state": []}
    with tempfile.TemporaryDirectory(prefix="goose-like-bench-") as name:
        cache = Path(name) / "cache" / "goose-like"
        cache.mkdir(parents=True)
        (cache / "weights").symlink_to(weights.parent)
        for _ in range(rounds):
            shutil.rmtree(cache / "prompts", ignore_errors=True)
            for results in taken.values():
                results.append(measure_first_token(Path(name)))
    print(f"process start to first token, file cache warm, medians of {rounds}")
    for label, results in taken.items():
        stages = "  ".join(
            f"{stage} {statistics.median(times):.2f} s"
            for stage, times in zip(STAGES, zip(*results, strict=True), strict=True)
        )
        print(f"  {label:<14} {statistics.median(map(sum, results)):6.2f} s  {stages}")


async def measure_ours(provider: local.LocalProvider, number: int) -> tuple[float, float, int]:
    """Return the tokens per second of a prompt and of an answer, and the number of the prompt's new tokens."""
    words = " ".join(f"{number}{word}" for word in range(PROMPT_TOKENS // 5))
    request = Request("", "You are a developer agent.", [Message.user(f"Save these: {words}")], TOOLS)
    began = read = time.perf_counter()
    async for delta in provider.stream(request):
        if isinstance(delta, Status) and "░ 0%" in delta.text:
            began = time.perf_counter()
        if isinstance(delta, Status) and delta.text == "the model writes":
            read = time.perf_counter()
        if isinstance(delta, MessageCompleted):
            usage = delta.usage
    fresh = usage.input_tokens - usage.cache_read_tokens
    return fresh / (read - began), usage.output_tokens / (time.perf_counter() - read), fresh


def measure_llama_bench(program: str, weights: Path, threads: int, prompt_tokens: int) -> tuple[float, float]:
    """Return the tokens per second of a prompt and of an answer."""
    words = ["-m", weights, "-t", threads, "-p", prompt_tokens, "-n", ANSWER_TOKENS, "-r", 1, "-o", "json"]
    result = subprocess.run([program, *map(str, words)], capture_output=True, check=True)
    prompt, answer = json.loads(result.stdout)
    return prompt["avg_ts"], answer["avg_ts"]


async def print_speed(weights: Path, rounds: int, threads: int, program: str | None) -> None:
    local._count_idle_cores = lambda: threads  # as many as llama-bench
    provider = local.LocalProvider(ModelChoice(model="local", max_output_tokens=ANSWER_TOKENS))
    ours, theirs = [], []
    *_, prompt_tokens = await measure_ours(provider, 1)
    for number in range(2, rounds + 2):
        prompt, answer, _ = await measure_ours(provider, number)
        ours.append((prompt, answer))
        if program:
            theirs.append(measure_llama_bench(program, weights, threads, prompt_tokens))
    await provider.close()
    print(f"tokens per second with {threads} threads, medians of {rounds}")
    for label, our, their in zip(
        (f"prompt ({prompt_tokens})", f"answer ({ANSWER_TOKENS})"),
        zip(*ours, strict=True),
        zip(*theirs, strict=True) if theirs else ((), ()),
        strict=True,
    ):
        line = f"  {label:<14} goose-like {statistics.median(our):6.2f}"
        if their:
            ratio = statistics.median(our) / statistics.median(their)
            line += f"  llama-bench {statistics.median(their):6.2f}  {ratio:5.2f}x"
        print(line)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=local._count_idle_cores())
    parser.add_argument("--llama-bench", default=shutil.which("llama-bench"), metavar="PROGRAM")
    options = parser.parse_args()
    weights = find_or_assemble(lambda *progress: None)
    with weights.open("rb") as file:
        while file.read(2**24):
            pass  # warms the file cache
    print_first_token(weights, options.rounds)
    asyncio.run(print_speed(weights, options.rounds, options.threads, options.llama_bench))


if __name__ == "__main__":
    main()
