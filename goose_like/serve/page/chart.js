// Charts as SVG: lines, bars, points or a pie. Colours are CSS classes, so that they fit light and dark mode.

import { el, number, shown, svg } from "./dom.js";

const EDGE = { top: 12, right: 14, bottom: 30, left: 52 };
const COLOURS = 8;

/** Draw a chart of `rows` as wide as its place, and draw it again when the width changes. */
export function chart(rows, how, height = 260) {
  const place = el("div", { class: "chart" });
  const round = how.chartType === "pie" || how.chartType === "donut";
  let width = 0;
  new ResizeObserver(([entry]) => {
    const now = Math.round(entry.contentRect.width);
    if (!now || now === width) return;
    width = now;
    place.replaceChildren(...(round ? pie(rows, how) : axes(rows, how, width, height)));
  }).observe(place);
  return place;
}

const value = (given) => (given === null || given === undefined || given === "" ? NaN : Number(given));

function axes(rows, how, width, height) {
  const keys = [how.yKey].flat();
  const { left, right, top, bottom } = EDGE;
  const [wide, high] = [width - left - right, height - top - bottom];
  const points = keys.map((key) => rows.map((row) => value(row[key])));
  const every = points.flat().filter(Number.isFinite);
  if (!every.length) return [el("p", { class: "quiet" }, "There are no numbers to draw.")];

  const isBar = how.chartType === "bar";
  const byNumber = how.chartType === "scatter" || (!isBar && rows.every((row) => typeof row[how.xKey] === "number"));
  const along = rows.map((row, at) => (byNumber ? value(row[how.xKey]) : at));
  const marks = ticks(isBar ? Math.min(0, ...every) : Math.min(...every), isBar ? Math.max(0, ...every) : Math.max(...every), 5);
  const [low, most] = [marks[0], marks.at(-1)];
  const [from, to] = [Math.min(...along.filter(Number.isFinite)), Math.max(...along.filter(Number.isFinite))];
  const step = wide / Math.max(1, rows.length);
  const x = (at) => left + (isBar ? (at + 0.5) * step : to > from ? ((at - from) / (to - from)) * wide : wide / 2);
  const y = (at) => top + high - ((at - low) / (most - low || 1)) * high;

  const drawn = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": `${how.chartType} chart of ${keys.join(", ")}` });
  for (const mark of marks) {
    drawn.append(
      svg("line", { class: mark === 0 ? "zero" : "grid", x1: left, x2: width - right, y1: y(mark), y2: y(mark) }),
      svg("text", { class: "tick", x: left - 8, y: y(mark) + 4, "text-anchor": "end" }, compact(mark)));
  }
  const labels = byNumber ? ticks(from, to, Math.max(2, Math.floor(wide / 90))).filter((at) => at >= from && at <= to) : spread(rows.length, Math.max(2, Math.floor(wide / 84)));
  for (const at of labels) {
    drawn.append(svg("text", { class: "tick", x: x(at), y: height - 8, "text-anchor": x(at) > width - right - 24 && !isBar ? "end" : "middle" },
      clip(byNumber ? compact(at) : shown(rows[at][how.xKey]))));
  }
  keys.forEach((key, series) => {
    const tip = (at) => svg("title", {}, `${shown(rows[at][how.xKey])}: ${key} ${number(points[series][at])}`);
    const there = rows.map((_, at) => at).filter((at) => Number.isFinite(points[series][at]) && Number.isFinite(along[at]));
    if (isBar) {
      const thick = Math.min(48, (step * 0.72) / keys.length);
      for (const at of there) {
        const [a, b] = [y(Math.max(0, points[series][at])), y(Math.min(0, points[series][at]))];
        drawn.append(svg("rect", { class: `fill-${series % COLOURS}`, x: x(at) + (series - keys.length / 2) * thick + 0.5, y: a, width: Math.max(1, thick - 1), height: Math.max(1, b - a), rx: Math.min(3, thick / 4) }, tip(at)));
      }
      return;
    }
    if (how.chartType === "line") {
      const order = byNumber ? [...there].sort((a, b) => along[a] - along[b]) : there;
      drawn.append(svg("polyline", { class: `line stroke-${series % COLOURS}`, points: order.map((at) => `${x(along[at])},${y(points[series][at])}`).join(" ") }));
    }
    const radius = how.chartType === "scatter" ? 4 : there.length > 40 ? 0 : 3;
    // Invisible points also react to the mouse.
    for (const at of there) drawn.append(svg("circle", { class: radius ? `fill-${series % COLOURS}` : "hidden-point", cx: x(along[at]), cy: y(points[series][at]), r: radius || 5 }, tip(at)));
  });
  return [drawn, keys.length > 1 ? legend(keys) : null].filter(Boolean);
}

function pie(rows, how) {
  const sizes = rows.map((row) => Math.max(0, value(row[how.angleKey]) || 0));
  const total = sizes.reduce((sum, size) => sum + size, 0);
  if (!total) return [el("p", { class: "quiet" }, "There are no sizes to draw.")];
  const drawn = svg("svg", { viewBox: "-104 -104 208 208", width: 220, height: 220, role: "img", "aria-label": `${how.chartType} chart of ${how.angleKey}` });
  const hole = how.chartType === "donut" ? 58 : 0;
  let from = 0;
  sizes.forEach((size, at) => {
    if (!size) return;
    const to = from + size / total;
    drawn.append(svg("path", { class: `sector fill-${at % COLOURS}`, d: sector(from, to, hole), "fill-rule": "evenodd" },
      svg("title", {}, `${shown(rows[at][how.calloutLabelKey])}: ${number(size)} (${percent(size / total)})`)));
    from = to;
  });
  const names = rows.map((row, at) => `${shown(row[how.calloutLabelKey])} · ${percent(sizes[at] / total)}`);
  return [el("div", { class: "round" }, drawn, legend(names))];
}

function sector(from, to, hole) {
  const at = (share, radius) => `${radius * Math.sin(2 * Math.PI * share)} ${-radius * Math.cos(2 * Math.PI * share)}`;
  const circle = (radius) => `M 0 ${-radius} A ${radius} ${radius} 0 1 1 0 ${radius} A ${radius} ${radius} 0 1 1 0 ${-radius} Z`;
  if (to - from > 0.9999) return circle(100) + (hole ? circle(hole) : "");
  const large = to - from > 0.5 ? 1 : 0;
  const inner = hole ? `L ${at(to, hole)} A ${hole} ${hole} 0 ${large} 0 ${at(from, hole)}` : "L 0 0";
  return `M ${at(from, 100)} A 100 100 0 ${large} 1 ${at(to, 100)} ${inner} Z`;
}

const legend = (names) => el("ul", { class: "legend" }, names.map((name, at) =>
  el("li", {}, svg("svg", { viewBox: "0 0 10 10", width: 10, height: 10, "aria-hidden": "true" }, svg("rect", { class: `fill-${at % COLOURS}`, width: 10, height: 10, rx: 3 })), name)));

/** Return round numbers from below the lowest to above the highest. */
function ticks(low, high, count) {
  if (low === high) [low, high] = [low - (Math.abs(low) || 1) / 2, high + (Math.abs(high) || 1) / 2];
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].find((one) => one * power >= rough) * power;
  const first = Math.floor(low / step + 1e-9);
  return Array.from({ length: Math.ceil(high / step - 1e-9) - first + 1 }, (_, at) => +((first + at) * step).toPrecision(12));
}

function spread(count, most) {
  const step = Math.max(1, Math.ceil(count / most));
  return Array.from({ length: Math.ceil(count / step) }, (_, at) => at * step);
}

const clip = (text) => (text.length > 12 ? `${text.slice(0, 11)}…` : text);
const percent = (share) => `${(100 * share).toFixed(share < 0.1 ? 1 : 0)}%`;
const compact = (value) => (Math.abs(value) >= 1e4 ? value.toLocaleString("en", { notation: "compact", maximumFractionDigits: 1 }) : number(value));
