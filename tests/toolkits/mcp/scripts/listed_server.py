"""A server without the SDK, whose tools are those in a JSON file, read anew for each list.

`announce` says that the list changed, `die` ends the server in the middle of its call, and `touch` makes a file. Other
tools return their name and arguments. With a second argument, the file of that name receives a line at each start.
"""

import json
import sys
from pathlib import Path

FILE = Path(sys.argv[1])


def send(message: dict[str, object]) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def touch(path: str) -> str:
    try:
        Path(path).touch()
    except OSError as error:
        return str(error.strerror)
    return "touched"


def answer(method: str, params: dict[str, object]) -> dict[str, object]:
    content = json.loads(FILE.read_text())
    if method == "initialize":
        info = {"name": "listed", "version": "1"}
        offered = {"tools": {"listChanged": bool(content.get("announces"))}}
        return {
            "protocolVersion": "2025-11-25",
            "capabilities": offered,
            "serverInfo": info,
            "instructions": content.get("instructions", ""),
        }
    if method == "tools/list":
        tools = []
        for name, description in content["tools"].items():
            schema = {"type": "object", "properties": {"text": {"type": "string"}}}
            tools.append({"name": name, "description": description, "inputSchema": schema})
        return {"tools": tools}
    if method == "tools/call":
        name = params["name"]
        if name == "die":
            sys.exit(3)
        if name == "touch":
            return {"content": [{"type": "text", "text": touch(params["arguments"]["text"])}]}
        if name == "announce":
            send({"method": "notifications/tools/list_changed"})
        return {"content": [{"type": "text", "text": f"{name} {json.dumps(params.get('arguments'))}"}]}
    raise KeyError(method)


if len(sys.argv) > 2:
    with open(sys.argv[2], "a") as log:
        log.write("started\n")
for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    try:
        send({"id": request["id"], "result": answer(request["method"], request.get("params") or {})})
    except KeyError:
        send({"id": request["id"], "error": {"code": -32601, "message": "unknown method"}})
