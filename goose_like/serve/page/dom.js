// Elements, created without ever parsing text as HTML.

const SVG = "http://www.w3.org/2000/svg";

function filled(made, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return made;
}

/** Create an HTML element: `el("a", { href, onclick }, "text", more)`. */
export const el = (name, properties = {}, ...children) => filled(document.createElement(name), properties, children);

/** Create an SVG element. */
export const svg = (name, properties = {}, ...children) =>
  filled(document.createElementNS(SVG, name), properties, children);

/** Format a value for people. */
export function shown(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return number(value);
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** Format a number with as few digits as necessary. */
export function number(value) {
  if (!Number.isFinite(value)) return String(value);
  return value.toLocaleString("en", { maximumFractionDigits: Math.abs(value) < 1 ? 6 : 2, useGrouping: Math.abs(value) >= 1e4 });
}
