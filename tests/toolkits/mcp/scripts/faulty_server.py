"""A server with one fault, which the first argument names. It speaks the old era, without the SDK."""

import json
import os
import subprocess
import sys
import time

FAULT = sys.argv[1]
TOOL = {"name": "echo", "description": "Echo.", "inputSchema": {"type": "object", "properties": {}}}
BAD_SCHEMA = {"name": "bad", "inputSchema": {"type": "object", "properties": {"a": {"type": "nothing"}}}}


def send(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def note(name):
    """Leave a line in a file of the project."""
    with open(name, "a") as file:
        file.write(f"{os.getpid()}\n")


def initialize(number, params):
    version = "1999-01-01" if FAULT == "ancient" else params["protocolVersion"]
    info = {"name": "faulty", "version": "1"}
    capabilities = {"tools": {}}
    if FAULT == "malformed prompts":
        capabilities |= {"prompts": {}, "resources": {}}
    send(id=number, result={"protocolVersion": version, "capabilities": capabilities, "serverInfo": info})


def ask(number):
    """Ask the person, and wait for the answer."""
    schema = {"type": "object", "properties": {}}
    params = {"message": "Well?", "requestedSchema": schema}
    send(id=f"question {number}", method="elicitation/create", params=params)
    sys.stdin.readline()


def list_tools(number):
    tools = [TOOL]
    if FAULT == "wrong schema":
        tools.append(BAD_SCHEMA)
    if FAULT == "malformed tools":
        tools = [{"name": "bad"}, *tools, {"name": 5, "inputSchema": {}}, "worse", {"inputSchema": {}}]
        tools += [{"name": "wrong", "inputSchema": []}, {"name": "odd", "inputSchema": {}, "annotations": 1}]
    if FAULT == "no list":
        tools = {}
    send(id=number, result={"tools": tools})


def call(number):
    match FAULT:
        case "dies in a call" | "dies always":
            note("calls")
            print("out of luck", file=sys.stderr, flush=True)
            os._exit(4)
        case "hangs in a call":
            note("calls")
            time.sleep(600)
        case "asks":
            for count in range(12):
                ask(count)
        case "wrong ids":
            number = 4_711
        case "error code":
            send(id=number, error={"code": -32_602, "message": "no such thing", "data": {"x": 1}})
            return
        case "flood":
            while True:
                send(method="notifications/message", params={"level": "info", "data": "x" * 100})
        case "endless line":
            while True:
                sys.stdout.write("x" * 1_000_000)
        case "huge result":
            send(id=number, result={"content": [{"type": "text", "text": "x" * 100_000_000}]})
            return
        case "wrong result":
            send(id=number, result={"content": 5})
            return
        case "no object":
            send(id=number, result=[])
            return
        case "second answer":
            send(id=number, result={"content": [{"type": "text", "text": "echo"}]})
            send(id=number, result=[])
            return
        case "late answer":
            sys.stdin.readline()  # the client gives up
            send(id=number, result=[])
            return
        case "error text":
            send(id=number, error="the token is too old")
            return
        case "half a character":
            send(id=number, result={"content": [{"type": "text", "text": "cut \ud83d"}]})
            return
    send(id=number, result={"content": [{"type": "text", "text": "echo"}]})
    if FAULT == "asks without a call":
        time.sleep(0.5)
        ask(0)


def main():
    note("starts")
    if FAULT == "dead":
        sys.exit("no module named fish")
    if FAULT == "hangs at the start":
        time.sleep(600)
    if FAULT == "child":
        command = [sys.executable, "-c", "import time; time.sleep(600)", f"child-{sys.argv[2]}"]
        subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
    if FAULT == "text":
        print("Welcome to the server!", flush=True)
    for line in sys.stdin:
        message = json.loads(line)
        number = message.get("id")
        match message.get("method"):
            case "server/discover" if FAULT == "exits at the probe":
                sys.exit("what is that?")
            case "server/discover" if FAULT == "silent at the probe":
                time.sleep(600)
            case "initialize":
                initialize(number, message["params"])
            case "tools/list":
                list_tools(number)
            case "prompts/list":
                send(id=number, result={"prompts": [{"name": "good"}, {"title": "Bad."}]})
            case "resources/list":
                send(id=number, result={"resources": [{"uri": "bad://"}]})
            case "resources/templates/list":
                send(id=number, result={"resourceTemplates": [{"uriTemplate": "good://{path}", "name": "good"}]})
            case "tools/call":
                call(number)
            case _ if number is not None:
                send(id=number, error={"code": -32_601, "message": "unknown"})
    if FAULT == "stays":
        time.sleep(600)


main()
