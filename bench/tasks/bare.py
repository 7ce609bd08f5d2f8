"""The floor: a bare loop over the embedded model with three tools. `python bench/tasks/bare.py TASK`.

It prints its messages in the format of `goose-like run --output-format stream-json`.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import xllamacpp

from goose_like.config.paths import cache_folder
from goose_like.providers.local import _count_idle_cores

STEPS = 40
SYSTEM = """\
You are a developer agent. You work in the current folder. Reply with one JSON object, a call of one of these tools:
{"tool": "shell", "arguments": {"command": "..."}}: runs a bash command
{"tool": "write_file", "arguments": {"path": "...", "content": "..."}}: writes a whole file
{"tool": "finish", "arguments": {"text": "..."}}: tells the user the result when the task is done
Check your work by running it."""


def build_schema() -> dict[str, Any]:
    tools = {"shell": ["command"], "write_file": ["path", "content"], "finish": ["text"]}
    return {
        "anyOf": [_object({"tool": {"const": name}, "arguments": _texts(fields)}) for name, fields in tools.items()]
    }


def _texts(fields: list[str]) -> dict[str, Any]:
    return _object({field: {"type": "string"} for field in fields})


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def open_engine() -> Any:
    params = xllamacpp.CommonParams()
    params.model.path = str(next((cache_folder() / "weights").glob("*.gguf")))
    params.n_ctx, params.n_parallel, params.verbosity, params.warmup = 8192, 1, -1, False
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = _count_idle_cores()
    params.hostnames = [f"{tempfile.mkdtemp()}/engine.sock"]
    return xllamacpp.Server(params)


def ask(server: Any, messages: list[dict[str, str]]) -> tuple[str, dict[str, int]]:
    """Return the model's text and the tokens of the request."""
    form = {"type": "json_schema", "json_schema": {"name": "call", "schema": build_schema()}}
    body = {"messages": messages, "temperature": 0, "max_tokens": 1024, "response_format": form}
    answers: list[dict[str, Any]] = []
    server.handle_chat_completions(body, answers.append)
    answer = answers[-1]
    if "choices" not in answer:
        sys.exit(f"the engine answered {answer}")
    used = answer["usage"]
    cached = used.get("prompt_tokens_details", {}).get("cached_tokens", 0)
    usage = {
        "input_tokens": used["prompt_tokens"],
        "output_tokens": used["completion_tokens"],
        "cache_read_tokens": cached,
    }
    return str(answer["choices"][0]["message"]["content"]), usage


def run_call(call: dict[str, Any]) -> str:
    arguments = call["arguments"]
    if call["tool"] == "write_file":
        path = Path(arguments["path"])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(arguments["content"])
        return "written"
    command = ["bash", "-c", arguments["command"]]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60)
    return f"{(done.stdout + done.stderr)[:4000]}\n[exit code {done.returncode}]"


def show_message(part: dict[str, str], usage: dict[str, int]) -> None:
    print(json.dumps({"type": "message_completed", "message": {"parts": [part]}, "usage": usage}), flush=True)


def main() -> None:
    server = open_engine()
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": sys.argv[1]}]
    for _ in range(STEPS):
        text, usage = ask(server, messages)
        messages.append({"role": "assistant", "content": text})
        try:
            call = json.loads(text)
            if call["tool"] == "finish":
                show_message({"type": "text", "text": call["arguments"]["text"]}, usage)
                return
            show_message({"type": "tool_call", "arguments": text}, usage)
            answer = run_call(call)
        except (ValueError, OSError, subprocess.TimeoutExpired) as error:
            answer = f"error: {error}"
        print(json.dumps({"type": "tool_finished", "result": answer}), flush=True)
        messages.append({"role": "user", "content": answer})


if __name__ == "__main__":
    main()
