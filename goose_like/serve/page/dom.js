// Elements, made without ever reading text as HTML.

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

/** An element of HTML: `el("a", { href, onclick }, "text", more)`. */
export const el = (name, properties = {}, ...children) => filled(document.createElement(name), properties, children);

/** An element of SVG. */
export const svg = (name, properties = {}, ...children) =>
  filled(document.createElementNS(SVG, name), properties, children);

/** A value as a person reads it. */
export function shown(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return number(value);
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** A number in as few digits as tell it. */
export function number(value) {
  if (!Number.isFinite(value)) return String(value);
  return value.toLocaleString("en", { maximumFractionDigits: Math.abs(value) < 1 ? 6 : 2, useGrouping: Math.abs(value) >= 1e4 });
}
