"""Pauses of all workers after one was refused."""

import asyncio
from pathlib import Path

import pytest

from goose_like.core.errors import RateLimitError
from goose_like.core.message import Message
from goose_like.jobs.batch import pauses as module
from goose_like.jobs.batch.pauses import FilePauses
from goose_like.providers.base import Request
from goose_like.providers.retry import RetryPolicy, stream_with_retries
from goose_like.providers.shared_pauses import shared_pauses
from tests.fakes import FakeProvider


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SPREAD_S", 0.0)


async def _ask(provider: FakeProvider, folder: Path) -> list[str]:
    shared_pauses.set(FilePauses(folder))
    request = Request("m", "", [Message.user("go")])
    return [type(delta).__name__ async for delta in stream_with_retries(provider, request, RetryPolicy())]


async def test_a_refusal_of_one_worker_holds_for_the_others(tmp_path: Path) -> None:
    refused = FakeProvider([RateLimitError("slow down", retry_after_s=1.0), "ok"])
    other = FakeProvider(["ok"])
    first = asyncio.create_task(_ask(refused, tmp_path))
    await asyncio.sleep(0.3)
    second = asyncio.create_task(_ask(other, tmp_path))
    await asyncio.sleep(0.3)
    assert (len(refused.requests), len(other.requests)) == (1, 0)
    assert await second == ["TextDelta", "MessageCompleted"]
    assert await first == ["Retrying", "TextDelta", "MessageCompleted"]


async def test_the_longest_pause_holds_and_only_for_its_model(tmp_path: Path) -> None:
    held = FilePauses(tmp_path)
    await held.hold("m", 60)
    await held.hold("m", 1)
    await held.wait("other")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1.2):
            await FilePauses(tmp_path).wait("m")
