// Tables that a click on a header sorts.

import { el, shown } from "./dom.js";

const AT_FIRST = 50;

/** Draw a table of `rows`: the first fifty, and a button for more. */
export function table(rows) {
  const keys = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const numeric = new Set(keys.filter((key) => rows.some((row) => typeof row[key] === "number") &&
    rows.every((row) => row[key] === null || row[key] === undefined || typeof row[key] === "number")));
  const body = el("tbody");
  let [order, key, down] = [rows, null, false];
  let limit = AT_FIRST;

  const more = el("button", { class: "plain", type: "button", onclick: () => { limit = Infinity; fill(); } });
  const heads = keys.map((name) => {
    const head = el("th", { class: numeric.has(name) ? "right" : null, scope: "col" },
      el("button", { type: "button", onclick: () => sort(name) }, name));
    head.name = name;
    return head;
  });

  function sort(name) {
    [key, down] = [name, key === name ? !down : false];
    order = [...rows].sort((a, b) => compared(a[key], b[key]) * (down ? -1 : 1));
    for (const head of heads) {
      if (head.name === key) head.setAttribute("aria-sort", down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    }
    fill();
  }

  function fill() {
    body.replaceChildren(...order.slice(0, limit).map((row) =>
      el("tr", {}, keys.map((name) => el("td", { class: numeric.has(name) ? "right" : null }, shown(row[name]))))));
    more.textContent = `Show all ${rows.length} rows`;
    more.hidden = rows.length <= limit;
  }

  fill();
  if (!rows.length) return el("p", { class: "quiet" }, "no rows");
  return el("div", {}, el("div", { class: "wide", tabindex: "0" },
    el("table", { class: "sorts" }, el("thead", {}, el("tr", {}, heads)), body)), more);
}

function compared(a, b) {
  const empty = (value) => value === null || value === undefined || value === "";
  if (empty(a) || empty(b)) return empty(a) - empty(b);
  return typeof a === "number" && typeof b === "number" ? a - b : shown(a).localeCompare(shown(b), "en", { numeric: true });
}
