// Markdown as elements. HTML in it stays text, images are not loaded, and links lead only to web and mail.

import { el } from "./dom.js";

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([^`\s]*)/;
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/;
const FORMULA = /^\s*(?:(\$\$)|(\\\[))\s*$/;
const DISPLAYED = /\$\$([^]+?)\$\$|\\\[([^]+?)\\\]/g;
const RULE = /^ {0,3}([-*_])(\s*\1){2,}\s*$/;
const DIVIDER = /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;

/** Draw `text` into `place`; unchanged paragraphs stay as they are. */
export function draw(place, text) {
  const sources = blocks(text);
  sources.forEach((source, at) => {
    const there = place.children[at];
    if (there && there.source === source) return;
    const made = block(source);
    made.source = source;
    if (there) there.replaceWith(made);
    else place.append(made);
  });
  while (place.children.length > sources.length) place.lastElementChild.remove();
}

function blocks(text) {
  const found = [];
  let lines = [];
  let fence = null;
  const close = () => {
    if (lines.length) found.push(lines.join("\n"));
    lines = [];
  };
  for (const line of text.split("\n")) {
    const opens = line.match(FENCE);
    const formula = line.match(FORMULA);
    if (fence === "$$" || fence === "\\]") {
      lines.push(line);
      if (line.trim() === fence) [fence] = [null, close()];
    } else if (fence) {
      lines.push(line);
      if (opens && opens[1].startsWith(fence) && !opens[2]) [fence] = [null, close()];
    } else if (opens) {
      close();
      lines.push(line);
      fence = opens[1];
    } else if (formula) {
      close();
      lines.push(line);
      fence = formula[1] ?? "\\]";
    } else if (!line.trim()) {
      // An empty line between the items of a list does not end it.
      if (lines.length && ITEM.test(lines[0])) lines.push("");
      else close();
    } else {
      const list = lines.length && ITEM.test(lines[0]);
      const goesOn = list && (continues(lines[0], line) || /^\s{2,}/.test(line) || (lines.at(-1) !== "" && !ITEM.test(line)));
      if (/^#{1,6}\s/.test(line) || (list ? !goesOn : lines.length && !/^\s*\|/.test(lines[0]) && ITEM.test(line))) close();
      lines.push(line);
      if (/^#{1,6}\s/.test(line)) close();
    }
  }
  close();
  return found.map((source) => source.trimEnd());
}

/** Tell whether a line is an item of the list that `first` started, or of a nested one. */
function continues(first, line) {
  const [began, item] = [first.match(ITEM), line.match(ITEM)];
  return item && (item[1].length > began[1].length + 1 || /\d/.test(item[2]) === /\d/.test(began[2]));
}

function block(source) {
  const lines = source.split("\n");
  const fence = lines[0].match(FENCE);
  if (fence) {
    const last = lines.length > 1 && lines.at(-1).trim().startsWith(fence[1]) ? -1 : undefined;
    return el("pre", {}, el("code", {}, lines.slice(1, last).join("\n")));
  }
  const heading = lines[0].match(/^(#{1,6})\s+(.*?)\s*#*$/);
  if (heading) return el(`h${Math.min(6, heading[1].length + 2)}`, {}, phrases(heading[2]));
  if (RULE.test(source)) return el("hr");
  if (lines.every((line) => /^\s*>/.test(line))) {
    const quote = el("blockquote");
    draw(quote, lines.map((line) => line.replace(/^\s*> ?/, "")).join("\n"));
    return quote;
  }
  if (lines.length > 1 && lines[0].includes("|") && DIVIDER.test(lines[1])) return table(lines);
  if (ITEM.test(lines[0])) return list(lines);
  return el("p", {}, broken(source));
}

function broken(text) {
  const made = [];
  let from = 0;
  const plain = (part) => part.split("\n").flatMap((line, at) => (at ? [el("br"), ...phrases(line)] : phrases(line)));
  for (const found of text.matchAll(DISPLAYED)) {
    const before = text.slice(from, found.index).replace(/\n$/, "");
    made.push(...(before ? plain(before) : []), formula(found[0], found[1] ?? found[2], true));
    from = found.index + found[0].length;
  }
  const rest = text.slice(from).replace(from ? /^\n/ : /^(?!)/, "");
  return rest ? [...made, ...plain(rest)] : made;
}

/** Draw a TeX formula as MathML; one that is not valid stays text. */
function formula(source, tex, displayed) {
  const made = el("span", { class: displayed ? "formula wide" : "formula" });
  try {
    globalThis.temml.render(tex.trim(), made, { displayMode: displayed, throwOnError: true });
  } catch {
    made.replaceChildren(source);
  }
  return made;
}

function list(lines) {
  const [, indent, mark] = lines[0].match(ITEM);
  const ordered = /\d/.test(mark);
  const made = el(ordered ? "ol" : "ul", ordered && parseInt(mark) !== 1 ? { start: parseInt(mark) } : {});
  let item = [];
  const close = () => {
    if (!item.length) return;
    const ends = item.findIndex((line, at) => at && (!line.trim() || ITEM.test(line) || FENCE.test(line)));
    const [head, rest] = ends < 0 ? [item, []] : [item.slice(0, ends), item.slice(ends)];
    const entry = el("li", {}, broken(head.join("\n")));
    if (rest.some((line) => line.trim())) {
      const inner = el("div");
      draw(inner, rest.join("\n"));
      entry.append(...inner.children);
    }
    made.append(entry);
    item = [];
  };
  for (const line of lines) {
    const found = line.match(ITEM);
    if (found && found[1].length <= indent.length + 1) {
      close();
      item = [found[3]];
    } else item.push(line.replace(/^( {1,4}|\t)/, ""));
  }
  close();
  return made;
}

const cells = (line) => line.trim().replace(/^\||\|$/g, "").split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll("\\|", "|"));

function table(lines) {
  const sides = cells(lines[1]).map((cell) => (cell.endsWith(":") ? (cell.startsWith(":") ? "middle" : "right") : null));
  const row = (kind, line) => el("tr", {}, cells(line).map((cell, at) => el(kind, { class: sides[at] }, phrases(cell))));
  const body = lines.slice(2).filter((line) => line.trim());
  return el("div", { class: "wide" }, el("table", {},
    el("thead", {}, row("th", lines[0])), el("tbody", {}, body.map((line) => row("td", line)))));
}

const PHRASE = new RegExp(
  [
    /\\\((?<tex>.+?)\\\)/,
    /(?<![\p{L}\p{N}\\$])\$(?<tex2>(?=[^\s$])[^$]*?[^\s$\\])\$(?![\p{L}\p{N}$])/,
    /\\(?<bare>[\\$`*_{}[\]()#+\-.!|~>])/,
    /(?<ticks>`+)(?<code>.+?)\k<ticks>(?!`)/,
    /!?\[(?<label>[^\]]+)\]\((?<to>[^()\s]*(?:\([^()\s]*\)[^()\s]*)*)(?:\s+"[^"]*")?\)/,
    /<(?<auto>https?:[^>\s]+)>/,
    /(?<url>https?:\/\/[^\s<>"'`*]*[^\s<>"'`*.,;:!?)\]])/,
    /\*\*(?<strong>(?=\S).+?)\*\*(?!\*)/,
    /(?<![\p{L}\p{N}])__(?<strong2>(?=\S).+?)__(?![\p{L}\p{N}])/,
    /\*(?<em>(?=\S)[^*]*?[^\s*])\*/,
    /(?<![\p{L}\p{N}])_(?<em2>(?=\S)[^_]*?[^\s_])_(?![\p{L}\p{N}])/,
    /~~(?<gone>.+?)~~/,
  ].map((one) => one.source).join("|"),
  "gu",
);

function phrases(text) {
  const made = [];
  let from = 0;
  for (const found of text.matchAll(PHRASE)) {
    if (found.index > from) made.push(text.slice(from, found.index));
    from = found.index + found[0].length;
    const { tex, tex2, bare, code, label, to, auto, url, strong, strong2, em, em2, gone } = found.groups;
    if (tex || tex2) made.push(formula(found[0], tex || tex2, false));
    else if (bare) made.push(bare);
    else if (code !== undefined) made.push(el("code", {}, code.trim() || code));
    else if (label) made.push(link(to, phrases(label)));
    else if (auto || url) made.push(link(auto || url, auto || url));
    else if (strong || strong2) made.push(el("strong", {}, phrases(strong || strong2)));
    else if (em || em2) made.push(el("em", {}, phrases(em || em2)));
    else made.push(el("s", {}, phrases(gone)));
  }
  if (from < text.length) made.push(text.slice(from));
  return made;
}

/** Create a link, or plain text if it would not lead to web or mail. */
export function link(to, words) {
  if (!/^(https?:\/\/|mailto:)/i.test(to)) return el("span", {}, words);
  return el("a", { href: to, target: "_blank", rel: "noopener noreferrer" }, words);
}
