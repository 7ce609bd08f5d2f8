"""The floor: the bare loop with the openai SDK's typed call."""

import asyncio
import json
import subprocess

from openai import AsyncOpenAI


async def main() -> None:
    messages = [{"role": "user", "content": "go"}]
    client = AsyncOpenAI()
    while True:
        call = None
        stream = await client.chat.completions.create(model="bench", messages=messages, stream=True)
        async for chunk in stream:
            for choice in chunk.choices:
                call = (choice.delta.tool_calls or [call])[0]
        if call is None:
            return
        command = json.loads(call.function.arguments)["command"]
        output = subprocess.run(["bash", "-c", command], capture_output=True, text=True).stdout
        messages.append({"role": "assistant", "tool_calls": [call.model_dump(exclude={"index"})]})
        messages.append({"role": "tool", "tool_call_id": call.id, "content": output})


asyncio.run(main())
