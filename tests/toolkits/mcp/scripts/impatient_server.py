"""A server without the SDK that loads http://one.test, and gives up long before a person answers a question.

It offers a tool, a prompt and a resource. The file `gave-up` says that it gave up.
"""

import json
import sys
import urllib.error
import urllib.request
from pathlib import Path

CAPABILITIES = {"tools": {}, "prompts": {}, "resources": {}}


def load():
    """The page, or an error."""
    try:
        with urllib.request.urlopen("http://one.test/hello", timeout=0.5) as page:
            return page.read().decode(), False
    except OSError as error:
        Path("gave-up").touch()
        return f"no page: {error}", True


def answer(method, params):
    match method:
        case "initialize":
            info = {"name": "impatient", "version": "1"}
            return {"protocolVersion": params["protocolVersion"], "capabilities": CAPABILITIES, "serverInfo": info}
        case "tools/list":
            return {"tools": [{"name": "fetch", "inputSchema": {"type": "object", "properties": {}}}]}
        case "prompts/list":
            return {"prompts": [{"name": "page"}]}
        case "resources/list":
            return {"resources": [{"uri": "page://one", "name": "one"}]}
        case "tools/call":
            text, is_error = load()
            return {"content": [{"type": "text", "text": text}], "isError": is_error}
        case "prompts/get":
            content = {"type": "text", "text": load()[0]}
            return {"messages": [{"role": "user", "content": content}]}
        case "resources/read":
            text, is_error = load()
            if is_error:
                raise KeyError
            return {"contents": [{"uri": "page://one", "text": text}]}
    raise KeyError


for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    try:
        reply = {"result": answer(request["method"], request.get("params") or {})}
    except KeyError:
        reply = {"error": {"code": -32_601, "message": "nothing to give"}}
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], **reply}), flush=True)
