// Files that the user attaches: kept for the conversation, and sent with each request as its context.

import { el } from "./dom.js";

const KINDS = ["pdf", "docx", "xlsx", "xls", "csv", "txt", "md", "html", "png", "jpg", "jpeg"];
const MOST_BYTES = 20e6;

export const ACCEPTED = KINDS.map((kind) => `.${kind}`).join(",");

/** The attached files, drawn into `place`. */
export class Files {
  constructor(place) {
    this._place = place;
    this._files = [];
  }

  /** Attach files, or show why one cannot be attached. */
  async add(list) {
    this._place.querySelectorAll(".bad").forEach((one) => one.remove());
    for (const file of list) {
      const kind = file.name.split(".").pop().toLowerCase();
      const taken = this._files.reduce((sum, one) => sum + one.size, 0);
      if (!KINDS.includes(kind)) this._refuse(`${file.name} can't be read; attach one of ${KINDS.join(", ")}`);
      else if (taken + file.size > MOST_BYTES) this._refuse(`${file.name} is too large; all files together may have 20 MB`);
      else this._draw({ name: file.name, kind, size: file.size, content: await base64(file) });
    }
  }

  /** Build the field `context` of a request. */
  described() {
    return this._files.map(({ name, kind, content }) => ({
      name, description: "a file that the person attached", metadata: {},
      data: { items: [{ content, data_format: { data_type: kind, filename: name } }] },
    }));
  }

  clear() {
    this._files = [];
    this._place.replaceChildren();
  }

  _draw(one) {
    this._files.push(one);
    const drop = () => {
      this._files = this._files.filter((other) => other !== one);
      chip.remove();
    };
    const chip = el("span", { class: "file" }, one.name,
      el("button", { class: "plain", type: "button", "aria-label": `Remove ${one.name}`, onclick: drop }, "×"));
    this._place.append(chip);
  }

  _refuse(words) {
    this._place.append(el("p", { class: "bad", role: "alert" }, words));
  }
}

const base64 = (file) => new Promise((resolve, reject) => {
  const reader = new FileReader();
  reader.onload = () => resolve(reader.result.split(",", 2)[1] ?? "");
  reader.onerror = () => reject(reader.error);
  reader.readAsDataURL(file);
});
