"""The floor: the bare loop with the anthropic SDK's typed call."""

import asyncio
import subprocess

from anthropic import AsyncAnthropic


async def main() -> None:
    messages = [{"role": "user", "content": "go"}]
    client = AsyncAnthropic()
    while True:
        call = None
        async with client.messages.stream(model="bench", max_tokens=1000, messages=messages) as stream:
            for block in (await stream.get_final_message()).content:
                call = block if block.type == "tool_use" else call
        if call is None:
            return
        output = subprocess.run(["bash", "-c", call.input["command"]], capture_output=True, text=True).stdout
        messages.append({"role": "assistant", "content": [call.model_dump(include={"type", "id", "name", "input"})]})
        result = {"type": "tool_result", "tool_use_id": call.id, "content": output}
        messages.append({"role": "user", "content": [result]})


asyncio.run(main())
