// The sample dashboard: invented widgets with parameters and data.

import { chart } from "./chart.js";
import { el } from "./dom.js";
import { table } from "./table.js";

const ORIGIN = "Sample data";
const SYMBOLS = ["SAMP", "OTHR", "THRD"];
const SYMBOL = { name: "symbol", type: "ticker", description: "The ticker.", options: SYMBOLS };

const WIDGETS = [
  {
    uuid: "5a4d1c60-0000-4000-8000-000000000001",
    widget_id: "daily_prices",
    name: "Daily Prices",
    description: "Closing prices and volumes of the last trading days",
    params: [SYMBOL, { name: "days", type: "integer", description: "How many days.", options: [10, 30, 90] }],
    values: { symbol: "SAMP", days: 30 },
    picked: true,
    rows: prices,
    draw: (rows) => chart(rows, { chartType: "line", xKey: "date", yKey: ["close"] }, 190),
  },
  {
    uuid: "5a4d1c60-0000-4000-8000-000000000002",
    widget_id: "analyst_estimates",
    name: "Analyst Estimates",
    description: "Revenue (million USD) and earnings per share",
    params: [SYMBOL, { name: "period", type: "string", description: "Which reports.", options: ["quarter", "annual"] }],
    values: { symbol: "SAMP", period: "quarter" },
    picked: false,
    rows: estimates,
    draw: table,
  },
];

/** Return a random walk that is always the same for a seed. */
function walk(seed) {
  let state = [...seed].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) >>> 0, 7);
  return () => {
    state = (state * 1664525 + 1013904223) >>> 0;
    return state / 2 ** 32 - 0.5;
  };
}

function prices({ symbol, days }) {
  const next = walk(symbol);
  let close = 80 + Math.abs(next()) * 120;
  const rows = [];
  for (let day = Date.UTC(2025, 8, 1); rows.length < 120; day += 864e5) {
    close *= 1 + next() * 0.035 + 0.0008;
    const volume = Math.round((1 + next()) * 4e6);
    if (new Date(day).getUTCDay() % 6) rows.push({ date: new Date(day).toISOString().slice(0, 10), close: Math.round(close * 100) / 100, volume });
  }
  return rows.slice(-Math.max(1, Number(days) || 30));
}

function estimates({ symbol, period }) {
  const next = walk(symbol + period);
  const names = period === "annual" ? ["2026", "2027", "2028"] : ["Q1 2026", "Q2 2026", "Q3 2026", "Q4 2026"];
  const scale = period === "annual" ? 4 : 1;
  return names.map((name, at) => ({
    period: name,
    revenue: Math.round(scale * (900 + 60 * at + next() * 90)),
    eps: Math.round(scale * (1.1 + 0.08 * at + next() * 0.2) * 100) / 100,
    analysts: Math.round(14 + next() * 8),
  }));
}

/** Draw the widgets as cards with their parameters. */
export function drawn() {
  return WIDGETS.map((widget) => {
    const body = el("div", { class: "widget-body" });
    const fill = () => body.replaceChildren(widget.draw(widget.rows(widget.values)));
    const choices = widget.params.map((param) => el("label", {}, el("span", { class: "quiet" }, param.name), el("select", {
      onchange: ({ target }) => {
        widget.values = { ...widget.values, [param.name]: param.options[target.selectedIndex] };
        fill();
      },
    }, param.options.map((one) => el("option", { selected: one === widget.values[param.name] }, String(one))))));
    const picked = el("input", { type: "checkbox", checked: widget.picked, onchange: () => { widget.picked = picked.checked; } });
    fill();
    return el("article", { class: "card widget" },
      el("header", {}, el("h3", {}, widget.name), el("label", { class: "pick" }, picked, "pick")),
      el("p", { class: "quiet" }, widget.description), el("div", { class: "choices" }, choices), body);
  });
}

/** Build the field `widgets` of a request, with the picked widgets first. */
export function described() {
  const told = (widget) => ({
    uuid: widget.uuid,
    origin: ORIGIN,
    widget_id: widget.widget_id,
    name: widget.name,
    description: widget.description,
    params: widget.params.map((param) => ({ ...param, current_value: widget.values[param.name] })),
    metadata: {},
  });
  const those = (picked) => WIDGETS.filter((widget) => widget.picked === picked).map(told);
  return { primary: those(true), secondary: those(false), extra: [] };
}

/** Answer a function call with one entry per data source, as the message's `data`. */
export function given(call) {
  const { function: name, input_arguments: args = {} } = call;
  if (name === "get_widget_data" || name === "get_extra_widget_data") {
    return (args.data_sources || []).map((source) => {
      const widget = WIDGETS.find((one) => one.uuid === source.widget_uuid);
      if (!widget) return { error_type: "not_found", content: "there is no such widget on this dashboard" };
      const rows = widget.rows({ ...widget.values, ...source.input_args });
      return { items: [{ content: JSON.stringify(rows), data_format: { data_type: "object", parse_as: "table" } }] };
    });
  }
  if (name === "get_params_options") {
    const widget = WIDGETS.find((one) => one.uuid === args.widget_uuid || one.widget_id === (args.id ?? args.widget_id));
    const param = widget?.params.find((one) => [args.param, args.param_name].includes(one.name));
    if (param) return [{ items: [{ content: JSON.stringify(param.options) }] }];
  }
  return [{ error_type: "unavailable", content: `this page can't do ${name}; OpenBB Workspace may` }];
}

/** Describe a function call in a few words. */
export function named(call) {
  const sources = call.input_arguments?.data_sources;
  if (!sources) return call.input_arguments?.tool_name ?? call.function;
  return sources.map((source) => {
    const widget = WIDGETS.find((one) => one.uuid === source.widget_uuid);
    const values = Object.values(source.input_args ?? {}).join(", ");
    return (widget?.name ?? source.widget_uuid) + (values ? ` (${values})` : "");
  }).join(" and ");
}
