"""The floor: an agent loop with nothing but httpx2 and subprocess. `floor_httpx.py [--no-shell]`."""

import asyncio
import json
import os
import subprocess
import sys

import httpx2


async def main() -> None:
    messages = [{"role": "user", "content": "go"}]
    has_shell = "--no-shell" not in sys.argv
    async with httpx2.AsyncClient() as client:
        while True:
            call = None
            body = {"model": "bench", "messages": messages, "stream": True}
            async with client.stream(
                "POST", os.environ["OPENAI_BASE_URL"] + "/chat/completions", json=body
            ) as response:
                async for line in response.aiter_lines():
                    if line.startswith("data: {"):
                        for choice in json.loads(line[6:])["choices"]:
                            call = (choice["delta"].get("tool_calls") or [call])[0]
            if call is None:
                return
            command = json.loads(call["function"]["arguments"])["command"]
            shell = ["bash", "-c", command]
            output = subprocess.run(shell, capture_output=True, text=True).stdout if has_shell else command
            messages.append({"role": "assistant", "tool_calls": [call]})
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": output})


asyncio.run(main())
