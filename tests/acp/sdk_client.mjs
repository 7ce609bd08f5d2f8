// Drives goose-like with the protocol's TypeScript SDK, and prints all messages as JSON.
// Usage: node sdk_client.mjs SDK_MODULE FOLDER COMMAND [WORD...]

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";

const [sdk, folder, command, ...words] = process.argv.slice(2);
const { client, methods, ndJsonStream, PROTOCOL_VERSION } = await import(sdk);

const received = [];
const sent = [];
const updates = [];
const asked = [];
const file = join(folder, "a.py");
const mcpServers = [];
let choice = "allow";
let unsaved = null;
let news = () => {};

function start() {
  const child = spawn(command, words, { cwd: folder, stdio: ["pipe", "pipe", "inherit"] });
  const lines = ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
  const keep = (list) => new TransformStream({
    transform(message, controller) {
      list.push(message);
      controller.enqueue(message);
    },
  });
  const outgoing = keep(sent);
  outgoing.readable.pipeTo(lines.writable).catch(() => {});
  const stream = { readable: lines.readable.pipeThrough(keep(received)), writable: outgoing.writable };
  const exit = new Promise((resolve) => child.on("exit", resolve));
  return { stream, exit, child };
}

function note(params) {
  asked.push(params);
  news();
}

const app = client({ name: "tests" })
  .onNotification(methods.client.session.update, ({ params }) => {
    updates.push(params.update);
    news();
  })
  .onRequest(methods.client.session.requestPermission, async ({ params }) => {
    note(params);
    if (choice === "never") await new Promise(() => {});
    return { outcome: { outcome: "selected", optionId: choice } };
  })
  .onRequest(methods.client.elicitation.create, ({ params }) => {
    note(params);
    return { action: "accept", content: { answer: "f" } };
  })
  .onRequest(methods.client.fs.readTextFile, ({ params }) => {
    note(params);
    return { content: unsaved ?? readFileSync(params.path, "utf8") };
  })
  .onRequest(methods.client.fs.writeTextFile, ({ params }) => {
    note(params);
    unsaved = null;
    writeFileSync(params.path, params.content);
    return {};
  });

async function waitUntil(isSo) {
  while (!isSo()) await new Promise((resolve) => { news = resolve; });
}

function readText() {
  const chunks = updates.filter((update) => update.sessionUpdate === "agent_message_chunk");
  return chunks.map((chunk) => chunk.content.text).join("");
}

const initialize = (agent) => agent.request(methods.agent.initialize, {
  protocolVersion: PROTOCOL_VERSION,
  clientInfo: { name: "tests", version: "1" },
  clientCapabilities: {
    fs: { readTextFile: true, writeTextFile: true },
    terminal: true,
    auth: { terminal: true },
    elicitation: { form: {} },
    session: { notices: {}, compaction: {} },
  },
});

async function workInSession(agent) {
  const started = await initialize(agent);
  assert.equal(started.protocolVersion, PROTOCOL_VERSION);
  await agent.request(methods.agent.authenticate, { methodId: "variable" });
  await assert.rejects(agent.request(methods.agent.logout, {}), { code: -32601 });
  const opened = await agent.request(methods.agent.session.new, { cwd: folder, mcpServers });
  const { sessionId } = opened;
  const prompt = (text, options) => agent.request(
    methods.agent.session.prompt, { sessionId, prompt: [{ type: "text", text }] }, options);

  writeFileSync(file, "x = 1\n");
  unsaved = "x = 2\n";
  assert.equal((await prompt("change it")).stopReason, "end_turn");
  assert.equal(readFileSync(file, "utf8"), "x = 3\n");
  assert.ok(asked.some((params) => params.content === "x = 3\n"));
  assert.ok(updates.some((update) => update.content?.[0]?.oldText === "x = 2\n"));
  assert.match(readText(), /changed/);

  choice = "deny";
  assert.equal((await prompt("run it")).stopReason, "end_turn");
  assert.match(readText(), /not run/);

  choice = "never";
  let count = asked.length;
  const permission = prompt("run it again");
  await waitUntil(() => asked.length > count);
  await agent.notify(methods.agent.session.cancel, { sessionId });
  assert.equal((await permission).stopReason, "cancelled");

  count = asked.length;
  const abort = new AbortController();
  const aborted = prompt("and again", { cancellationSignal: abort.signal });
  await waitUntil(() => asked.length > count);
  abort.abort();
  assert.equal((await aborted).stopReason, "cancelled");
  choice = "allow";

  await prompt("/mode plan");
  for (const [configId, value] of [["effort", "low"], ["model", opened.configOptions[1].currentValue], ["mode", "plan"]]) {
    const changed = await agent.request(methods.agent.session.setConfigOption, { sessionId, configId, value });
    assert.equal(changed.configOptions.find((option) => option.id === configId).currentValue, value);
  }
  await agent.request(methods.agent.session.setMode, { sessionId, modeId: "plan" });
  await prompt("/compact");
  await prompt("/undo");
  const before = updates.length;
  await agent.request(methods.agent.session.load, { sessionId, cwd: folder, mcpServers });
  const replayed = updates.slice(before).map((update) => update.sessionUpdate);
  for (const kind of ["user_message_chunk", "agent_message_chunk", "tool_call", "tool_call_update"]) {
    assert.ok(replayed.includes(kind), kind);
  }
  await agent.request(methods.agent.session.close, { sessionId });
  await assert.rejects(prompt("still there?"));
  await agent.request(methods.agent.session.resume, { sessionId, cwd: folder });
  const listed = await agent.request(methods.agent.session.list, { cwd: folder });
  assert.deepEqual(listed.sessions.map((session) => session.sessionId), [sessionId]);
  return sessionId;
}

async function leaveDuringATurn(agent, child) {
  await initialize(agent);
  const { sessionId } = await agent.request(methods.agent.session.new, { cwd: folder, mcpServers });
  const count = asked.length;
  choice = "never";
  agent.request(methods.agent.session.prompt, { sessionId, prompt: [{ type: "text", text: "go" }] }).catch(() => {});
  await waitUntil(() => asked.length > count);
  child.stdin.end();
  return sessionId;
}

async function deleteSession(agent, sessionId) {
  await initialize(agent);
  await agent.request(methods.agent.session.resume, { sessionId, cwd: folder });
  await agent.request(methods.agent.session.delete, { sessionId });
  const listed = await agent.request(methods.agent.session.list, {});
  assert.ok(!listed.sessions.some((session) => session.sessionId === sessionId));
}

const runs = [];
async function connect(work) {
  const { stream, exit, child } = start();
  const result = await app.connectWith(stream, (agent) => work(agent, child));
  child.stdin.end();
  assert.equal(await exit, 0);
  runs.push({ received: received.splice(0), sent: sent.splice(0) });
  return result;
}

await connect(workInSession);
const left = await connect(leaveDuringATurn);
await connect((agent) => deleteSession(agent, left));
console.log(JSON.stringify(runs));
process.exit(0);
