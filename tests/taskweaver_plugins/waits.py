import asyncio

from taskweaver.plugin import register_plugin, test_plugin


@register_plugin
async def waits(value, *, times=1):
    for _ in range(times):
        await asyncio.sleep(0)
    return value


@test_plugin()
async def test_it_waits(plugin):
    """It gives what it was given."""
    assert await plugin(3) == 3
