"""The spawners of a workspace: closing them never waits for one that does not start."""

import asyncio

from goose_like.workspace.permissions.policy import Access
from goose_like.workspace.processes.pool import SpawnerPool
from goose_like.workspace.processes.process import SpawnerClient
from goose_like.workspace.sandbox.scope import SandboxScope


async def test_closing_ends_spawners_and_does_not_wait_for_starts() -> None:
    clients: list[SpawnerClient] = []

    async def start(access: Access, scope: SandboxScope | None) -> SpawnerClient:
        if access == "network":
            await asyncio.Event().wait()  # it never starts
        if scope is not None:
            raise LookupError("it cannot start")
        clients.append(SpawnerClient())
        return clients[-1]

    pool = SpawnerPool(start)
    client = await pool.request("workspace")
    pending = pool.request("network")
    failed = pool.request("workspace", SandboxScope())
    await asyncio.wait({failed})
    await asyncio.wait_for(pool.close(), 60)
    assert clients == [client]
    assert not client.is_alive
    assert pending.cancelled()
