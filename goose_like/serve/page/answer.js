// One answer, drawn while it arrives: text, steps, tables and charts, sources and suggested questions.

import { chart } from "./chart.js";
import { named } from "./dashboard.js";
import { el, shown, svg } from "./dom.js";
import { draw, link } from "./markdown.js";
import { table } from "./table.js";

export class Answer {
  constructor(ask) {
    this.text = "";
    this._ask = ask;
    this._segment = null;
    this._drawing = 0;
    this._wrong = "";
    this._latest = el("span", {}, "Thinking");
    this._list = el("ol");
    this._steps = el("details", { class: "steps busy" }, el("summary", {}, this._latest), this._list);
    this._body = el("div", { class: "body" });
    this._end = el("div", { class: "end" });
    this.element = el("article", { class: "answer", "aria-busy": "true" }, this._steps, this._body, this._end);
  }

  /** Draw one event of the stream. */
  take({ event, data }) {
    if (event === "copilotMessageChunk") this._says(data.delta);
    else if (event === "copilotStatusUpdate") this._status(data);
    else if (event === "copilotMessageArtifact") this._place(artifact(data));
    else if (event === "copilotCitationCollection") this._end.append(sources(data.citations));
    else if (event === "copilotPromptSuggestions") {
      this._end.append(el("div", { class: "buttons" }, data.suggestions.map((prompt) =>
        el("button", { class: "suggestion", type: "button", onclick: () => this._ask(prompt) }, prompt))));
    }
  }

  /** Show a function call and the dashboard's result. */
  asked(call, data) {
    const rows = data.flatMap((one) => one.items ?? []).map((item) => read(item.content));
    const wrong = data.filter((one) => one.error_type).map((one) => el("p", { class: "bad" }, one.content));
    const tables = rows.map((one) => (Array.isArray(one) ? table(one) : el("p", {}, shown(one))));
    this._latest.textContent = `Reads ${named(call)}`;
    this._list.append(el("li", {}, el("details", {}, el("summary", {}, `The dashboard gave ${named(call)}`), tables, wrong)));
    this._segment = null;
  }

  /** Show an error and a button to try again. */
  failed(words, again) {
    const button = again && el("button", { class: "plain", type: "button", onclick: () => { told.remove(); again(); } }, "Try again");
    const told = el("div", { class: "alert", role: "alert" }, el("p", {}, words), button);
    this._body.append(told);
    this._segment = null;
  }

  begin() {
    this._steps.classList.add("busy");
    this.element.setAttribute("aria-busy", "true");
  }

  /** Finish the answer; `note` tells that the user stopped it. */
  end(note, vote) {
    this._flush();
    this._steps.classList.remove("busy");
    this.element.setAttribute("aria-busy", "false");
    const count = this._list.children.length;
    this._latest.textContent = (count === 1 ? "1 step" : `${count} steps`) + (this._wrong ? ", not all went well" : "");
    this._steps.hidden = !count;
    // Without text, this is the only sign.
    if (this._wrong && !this.text) this.failed(this._wrong);
    if (note) this._body.append(el("p", { class: "quiet" }, note));
    if (vote && this.text && !this._wrong) this._end.append(thumbs(vote));
  }

  _says(delta) {
    this.text += delta;
    if (!this._segment) {
      this._segment = el("div", { class: "words" });
      this._segment.text = "";
      this._body.append(this._segment);
    }
    this._segment.text += delta;
    this._drawing ||= requestAnimationFrame(() => this._flush());
  }

  _flush() {
    cancelAnimationFrame(this._drawing);
    this._drawing = 0;
    for (const segment of this._body.querySelectorAll(":scope > .words")) draw(segment, segment.text);
  }

  _place(made) {
    this._body.append(made);
    this._segment = null;
  }

  _status({ eventType, message, details, artifacts, hidden }) {
    if (hidden) return;
    this._latest.textContent = message.length > 90 ? `${message.slice(0, 89)}…` : message;
    const kind = { WARNING: "warning", ERROR: "bad" }[eventType] ?? null;
    this._list.append(el("li", { class: kind }, message, (details ?? []).map(detail), (artifacts ?? []).map(artifact)));
    if (eventType === "ERROR") this._wrong = message;
  }
}

function read(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function detail(one) {
  if (typeof one !== "object" || !one) return el("p", { class: "quiet" }, shown(one));
  return el("dl", {}, Object.entries(one).flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, shown(value))]));
}

function artifact({ type, name, description, content, chart_params }) {
  const rows = typeof content === "string" && (type === "table" || type === "chart") ? read(content) : content;
  let made;
  if (type === "table" && Array.isArray(rows)) made = table(rows);
  else if (type === "chart" && Array.isArray(rows) && chart_params) made = chart(rows, chart_params);
  else if (type === "html") made = framed(content, name);
  else {
    made = el("div", { class: "words" });
    draw(made, typeof content === "string" ? content : JSON.stringify(content, null, 2));
  }
  return el("figure", { class: `artifact of-${type}` }, el("figcaption", {}, el("strong", {}, name),
    description && description !== name ? el("span", { class: "quiet" }, description) : null), made);
}

/** Show foreign HTML in a frame without its scripts, our origin and network access. */
function framed(html, name) {
  const frame = el("iframe", { src: "frame.html", sandbox: "allow-scripts", title: name, referrerpolicy: "no-referrer" });
  frame.addEventListener("load", () => frame.contentWindow.postMessage(html, "*"), { once: true });
  addEventListener("message", ({ source, data }) => {
    if (source === frame.contentWindow && Number.isFinite(data?.height)) {
      frame.style.height = `${Math.min(640, Math.max(60, data.height))}px`;
    }
  });
  return frame;
}

function sources(citations) {
  return el("div", { class: "sources" }, el("h3", {}, "Sources"), el("ol", {}, citations.map(({ source_info, details }) => {
    const values = Object.entries(source_info.metadata?.input_args ?? {}).map(([name, value]) => `${name} ${shown(value)}`);
    const address = source_info.metadata?.url ?? source_info.origin ?? "";
    const name = source_info.name ?? source_info.widget_id ?? "a source";
    const known = new Set([name, ...Object.values(source_info.metadata?.input_args ?? {})].map(shown));
    const more = (details ?? []).filter((one) => !Object.values(one).every((value) => known.has(shown(value))));
    return el("li", { title: source_info.description }, /^https?:/.test(address) ? link(address, name) : name,
      values.length ? el("span", { class: "quiet" }, ` ${values.join(", ")}`) : null,
      more.map((one) => el("details", {}, el("summary", {}, "details"), detail(one))));
  })));
}

function thumbs(vote) {
  const made = el("div", { class: "thumbs" });
  const button = (way, words) => el("button", {
    class: `plain ${way}`, type: "button", "aria-label": words, title: words,
    onclick: async () => {
      const taken = await vote(way);
      made.replaceChildren(el("span", { class: "quiet" }, taken ? "Thank you." : "It was not taken."));
    },
  }, svg("svg", { viewBox: "0 0 20 20", "aria-hidden": "true" },
    svg("path", { d: "M3 9h3v8H3zM6 9.5 9.6 3c1.4 0 2.2 1 2 2.3L11.2 8H15c1.2 0 2 1 1.8 2.2l-1 5.2c-.2 1-1 1.6-1.9 1.6H6" })));
  made.append(button("up", "A good answer"), button("down", "Not a good answer"));
  return made;
}
