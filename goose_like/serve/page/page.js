// The page acts as OpenBB Workspace: it keeps the conversation and sends all of it with each request.

import { Answer } from "./answer.js";
import { described, drawn, given } from "./dashboard.js";
import { el } from "./dom.js";
import { ACCEPTED, Files } from "./files.js";
import { events, refusal } from "./stream.js";

const MOST_CALLS = 20;
const STARTS = [
  "How did the price move lately?",
  "Compare what analysts expect for the four quarters.",
  "Show me the closing prices as a chart.",
];

const at = (id) => document.getElementById(id);
let messages = [];
let stop = null;
let follows = false;
let waiting = null; // continues when the user has entered the token
let token = sessionStorage.getItem("token") ?? "";
const options = {};
const files = new Files(at("files"));

/** Send a request; a 401 shows the field for the token, and `then` continues with it. */
async function request(path, init, then) {
  const headers = { ...init.headers, ...(token ? { Authorization: `Bearer ${token}` } : {}) };
  const response = await fetch(path, { ...init, headers });
  if (response.status === 401) {
    waiting = then ?? waiting;
    at("refused").hidden = !token;
    at("key").hidden = false;
    at("header").hidden = false;
    at("token").focus();
  }
  return response;
}

const post = (path, body, signal, then) =>
  request(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body), signal }, then);

function ask(text) {
  text = text.trim();
  if (!text || stop) return;
  at("welcome").hidden = true;
  at("anew").hidden = false;
  messages.push({ role: "human", content: text });
  const answer = new Answer(ask);
  follows = true;
  at("turns").append(el("p", { class: "asked" }, text), answer.element);
  run(answer, text);
}

/** Send queries until there is an answer, and answer the function calls between them. */
async function run(answer, prompt) {
  const again = () => run(answer, prompt);
  const told = messages;
  stop = new AbortController();
  const { signal } = stop;
  busy(true);
  answer.begin();
  follow();
  let said = "";
  try {
    for (let calls = 0; ; calls += 1) {
      const body = { messages, widgets: described(), context: files.described(), timezone: Intl.DateTimeFormat().resolvedOptions().timeZone, workspace_options: options };
      const response = await post("v1/query", body, signal, again);
      if (response.status === 401) return answer.end();
      if (!response.ok) return fail(await refusal(response));
      let call = null;
      for await (const event of events(response)) {
        if (event.event === "copilotMessageChunk") said += event.data.delta;
        if (event.event === "copilotFunctionCall") call = event.data;
        else answer.take(event);
      }
      if (said) told.push({ role: "ai", content: said });
      said = "";
      if (!call) return answer.end("", (vote) => feedback(vote, prompt, answer.text));
      if (calls === MOST_CALLS) return fail(`It asked ${MOST_CALLS} times for data, and still there is no answer.`);
      const data = given(call);
      answer.asked(call, data);
      told.push({ role: "ai", content: JSON.stringify(call) }, {
        role: "tool", function: call.function, input_arguments: call.input_arguments, data, extra_state: call.extra_state ?? {},
      });
    }
  } catch (error) {
    if (said) told.push({ role: "ai", content: said });
    if (signal.aborted) return answer.end("You stopped it.");
    return fail("The server can't be reached, or the stream broke off.");
  } finally {
    if (stop?.signal === signal) {
      stop = null;
      busy(false);
    }
  }

  function fail(words) {
    answer.end();
    answer.failed(words, again);
  }
}

async function feedback(vote, prompt, text) {
  const body = { vote, tags: [], user_comment: "", ai_response: text, user_prompt: prompt };
  return post("v1/feedback", body).then((response) => response.ok, () => false);
}

function busy(is) {
  at("send").hidden = is;
  at("stop").hidden = !is;
}

/** Measure how far the end of the conversation is below the window. */
const below = () => document.querySelector(".talk").getBoundingClientRect().bottom - innerHeight;

/** Scroll to the end, unless the user has scrolled away from it. */
function follow() {
  if (follows) requestAnimationFrame(() => scrollBy(0, Math.max(0, below())));
}

function grow() {
  at("words").style.height = "auto";
  at("words").style.height = `${Math.min(200, at("words").scrollHeight)}px`;
}

async function introduce() {
  const { model, limits } = await (await fetch("page.json")).json();
  at("model").textContent = [`Answers come from ${model}`, limits].filter(Boolean).join(": ");
}

async function discover() {
  const response = await request("agents.json", {});
  if (!response.ok) return;
  const [about] = Object.values(await response.json());
  at("name").textContent = document.title = about.name;
  at("description").textContent = about.description;
  const own = Object.entries(about.features).filter(([, feature]) => typeof feature === "object");
  at("options").replaceChildren(...own.map(([name, feature]) => option(name, feature)));
}

/** Create a control for a feature of the profile; its value is sent with each request. */
function option(name, { label, type, default: first, placeholder, options: choices }) {
  options[name] = first ?? (type === "select" ? choices?.[0]?.value : type === "text" ? "" : false);
  const set = (value) => { options[name] = value; };
  const control = type === "select"
    ? el("select", { onchange: ({ target }) => set(target.value) }, (choices ?? []).map((one) => el("option", { value: one.value, selected: one.value === options[name] }, one.label)))
    : type === "text"
      ? el("input", { type: "text", value: first, placeholder, oninput: ({ target }) => set(target.value) })
      : el("input", { type: "checkbox", checked: first === true, onchange: ({ target }) => set(target.checked) });
  return el("label", {}, el("span", { class: "quiet" }, label), control);
}

at("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  if (stop) return;
  const text = at("words").value;
  at("words").value = "";
  grow();
  ask(text);
});
at("words").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    at("ask").requestSubmit();
  }
});
at("words").addEventListener("input", grow);
addEventListener("scroll", () => { follows = below() < 120; }, { passive: true });
new ResizeObserver(follow).observe(at("turns"));
at("chosen").accept = ACCEPTED;
at("attach").addEventListener("click", () => at("chosen").click());
at("chosen").addEventListener("change", async () => {
  await files.add(at("chosen").files);
  at("chosen").value = "";
});
at("words").addEventListener("paste", (event) => {
  if (!event.clipboardData.files.length) return;
  event.preventDefault();
  files.add(event.clipboardData.files);
});
at("ask").addEventListener("dragover", (event) => event.preventDefault());
at("ask").addEventListener("drop", (event) => {
  event.preventDefault();
  files.add(event.dataTransfer.files);
});
at("stop").addEventListener("click", () => stop?.abort());
at("anew").addEventListener("click", () => {
  stop?.abort();
  messages = [];
  files.clear();
  at("turns").replaceChildren();
  at("welcome").hidden = false;
  at("anew").hidden = true;
  at("words").focus();
});
at("key").addEventListener("submit", (event) => {
  event.preventDefault();
  token = at("token").value.trim();
  sessionStorage.setItem("token", token);
  at("key").hidden = true;
  const then = waiting;
  waiting = null;
  discover();
  then?.();
});
at("copy").addEventListener("click", async () => {
  const copied = await navigator.clipboard?.writeText(at("address").textContent).then(() => true, () => false);
  if (copied) at("copy").textContent = "Copied";
  else getSelection().selectAllChildren(at("address"));
});

at("address").textContent = new URL(".", location.href).href.replace(/\/$/, "");
at("add").open = matchMedia("(min-width: 60rem)").matches;
at("header").hidden = !token;
at("widgets").append(...drawn());
at("starts").append(...STARTS.map((text) => el("button", { class: "suggestion", type: "button", onclick: () => ask(text) }, text)));
discover().catch(() => {});
introduce().catch(() => {});
