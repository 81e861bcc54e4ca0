// Draws charts: the rows of a chart's statement as bars, lines, points or a histogram, and a series of samples as a line.

import { position, type Column, type Rows } from "./arrow";
import { dayTexts, ticks, written, type Tick, type Unit } from "./axis";
import { units, type Choice, type Field } from "./chart_choice";
import { svg } from "./dom";

const [BOTTOM, TOP, RIGHT] = [46, 12, 14];
/** About the width of a letter on an axis. */
const LETTER = 7;

interface Scale {
  low: number;
  high: number;
  at: (value: number) => number;
}

function scale(low: number, high: number, from: number, to: number): Scale {
  const end = high > low ? high : low + 1;
  return { low, high: end, at: (value) => from + ((value - low) / (end - low)) * (to - from) };
}

function range(values: number[]): [number, number] {
  const known = values.filter(Number.isFinite);
  if (known.length === 0) return [0, 1];
  return [known.reduce((a, b) => Math.min(a, b)), known.reduce((a, b) => Math.max(a, b))];
}

/** What is drawn, and where. */
interface Plot {
  canvas: SVGElement;
  up: Scale;
  left: number;
  right: number;
  bottom: number;
}

/** An empty chart with its vertical axis. */
function plot(label: string, values: number[], unit: Unit, size: { width: number; height: number; bottom: number; lines: number }): Plot {
  const canvas = svg("svg", { viewBox: `0 0 ${size.width} ${size.height}`, height: size.height, class: "chart", role: "img", "aria-label": label });
  const [low, high] = range(values);
  const up = scale(low, high, size.height - size.bottom, TOP);
  const marks = ticks(up.low, up.high, size.lines, unit);
  const left = 16 + LETTER * marks.reduce((most, { label }) => Math.max(most, label.length), 1);
  const right = size.width - RIGHT;
  for (const { at, label } of marks) {
    const y = up.at(at);
    canvas.append(svg("line", { x1: left, x2: right, y1: y, y2: y, class: "rule" }), svg("text", { x: left - 6, y: y + 4, "text-anchor": "end" }, label));
  }
  return { canvas, up, left, right, bottom: size.height - size.bottom };
}

/** Labels under a chart, as many as there is room for. */
function labels({ canvas, left, right, bottom }: Plot, places: Tick[]): void {
  const widest = places.reduce((most, { label }) => Math.max(most, label.length), 1);
  const room = Math.max(1, Math.floor((right - left) / (LETTER * Math.min(widest, 16) + 14)));
  const every = Math.ceil(places.length / room);
  for (const [index, { at, label }] of places.entries()) {
    if (index % every !== 0) continue;
    const text = label.length > 16 ? `${label.slice(0, 15)}…` : label;
    canvas.append(svg("text", { x: Math.min(at, right - (LETTER * text.length) / 2 + RIGHT), y: bottom + 16, "text-anchor": "middle" }, text));
  }
}

function along({ left, right }: Plot, low: number, high: number): Scale {
  return scale(low, high, left + 8, right - 8);
}

/** Ticks of a horizontal axis. */
function below(place: Plot, x: Scale, unit: Unit): void {
  const wanted = Math.max(3, Math.min(10, (place.right - place.left) / 110));
  labels(place, ticks(x.low, x.high, wanted, unit).map(({ at, label }) => ({ at: x.at(at), label })));
}

/** Draws the rows of `chartSql`, so many pixels large. */
export function chart(rows: Rows, fields: Field[], choice: Choice, { width, height }: { width: number; height: number }): SVGElement {
  const { kind, x, y, measure } = choice;
  const unit = units(fields, choice);
  const isHistogram = kind === "histogram";
  const [xs, ys] = [rows.columns[0], isHistogram ? rows.columns[2] : rows.columns[1]];
  const label = isHistogram ? `number of rows by ${x}` : kind === "scatter" ? `${y} by ${x}` : `${measure} of ${measure === "count" ? "rows" : y} by ${x}`;
  if (!xs || !ys || rows.count === 0) {
    const canvas = svg("svg", { viewBox: `0 0 ${width} ${height}`, height, class: "chart", role: "img", "aria-label": `${label}, no rows` });
    canvas.append(svg("text", { x: width / 2, y: height / 2, "text-anchor": "middle" }, "no rows"));
    return canvas;
  }
  // Times come as seconds where the server computes with them.
  const values = numbers(ys, kind === "scatter" ? unit.y : "number");
  const isBar = kind === "bar" || isHistogram;
  const place = plot(`${label}, ${rows.count} values`, isBar ? [0, ...values] : values, unit.y, { width, height, bottom: BOTTOM, lines: 6 });
  place.canvas.append(svg("text", { x: (width + place.left) / 2, y: height - 6, "text-anchor": "middle", class: "axis-name" }, label));
  if (kind === "bar") bars(place, xs, values, unit.y);
  else if (isHistogram) bins(place, numbers(xs, unit.x), values, binWidth(rows, unit.x), unit.x);
  else if (kind === "line") line(place, xs, values, unit);
  else points(place, numbers(xs, unit.x), values, (rows.columns[2]?.texts ?? []).map(Number), unit);
  return place.canvas;
}

/** The numbers of a column that the server computed: seconds where they are times. */
function numbers(column: Column, unit: Unit): number[] {
  const factor = unit === "day" || unit === "time" ? 1000 : 1;
  return column.texts.map((_, row) => position(column, row) * factor);
}

function binWidth(rows: Rows, unit: Unit): number {
  const step = rows.columns[1];
  return step ? (numbers(step, unit)[0] ?? 0) : 0;
}

function bar({ canvas, up }: Plot, start: number, end: number, value: number, title: string): void {
  const [from, to] = [up.at(0), up.at(Number.isFinite(value) ? value : 0)];
  const gap = (end - start) * 0.08;
  const shape = { x: start + gap, width: Math.max(1, end - start - 2 * gap), y: Math.min(from, to), height: Math.max(0.5, Math.abs(from - to)), class: "mark" };
  canvas.append(svg("rect", shape, svg("title", {}, title)));
}

function bars(place: Plot, xs: Column, values: number[], unit: Unit): void {
  const width = (place.right - place.left) / values.length;
  const names = xs.isTime ? dayTexts(xs.texts) : xs.texts;
  values.forEach((value, row) => {
    const start = place.left + row * width;
    bar(place, start, start + width, value, `${names[row] ?? "null"}: ${written(value, unit)}`);
  });
  labels(place, names.map((name, row) => ({ at: place.left + (row + 0.5) * width, label: name ?? "null" })));
}

function bins(place: Plot, starts: number[], values: number[], step: number, unit: Unit): void {
  const [low, high] = range(starts);
  const x = along(place, low, high + (step > 0 ? step : 1));
  starts.forEach((start, row) => {
    const end = start + (step > 0 ? step : 1);
    bar(place, x.at(start), x.at(end), values[row] ?? 0, `${written(start, unit)} to ${written(start + step, unit)}: ${written(values[row] ?? 0, "number")}`);
  });
  below(place, x, unit);
}

function line(place: Plot, xs: Column, values: number[], unit: { x: Unit; y: Unit }): void {
  const isOrdinal = !xs.isNumber && !xs.isTime;
  const at = xs.texts.map((_, row) => (isOrdinal ? row : position(xs, row)));
  const x = along(place, ...range(at));
  const names = xs.isTime ? dayTexts(xs.texts) : xs.texts;
  const known = values.map((value, row) => [x.at(at[row] ?? Number.NaN), place.up.at(value), row] as const).filter(([x, y]) => Number.isFinite(x) && Number.isFinite(y));
  place.canvas.append(svg("polyline", { points: known.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(" "), class: "curve" }));
  // A line of one point is none; few points are told by name.
  if (known.length <= 100) {
    for (const [cx, cy, row] of known) {
      place.canvas.append(svg("circle", { cx: cx.toFixed(1), cy: cy.toFixed(1), r: 3, class: "mark" }, svg("title", {}, `${names[row]}: ${written(values[row] ?? 0, unit.y)}`)));
    }
  }
  if (isOrdinal) labels(place, names.map((name, row) => ({ at: x.at(row), label: name ?? "null" })));
  else below(place, x, unit.x);
}

function points(place: Plot, xs: number[], ys: number[], sizes: number[], unit: { x: Unit; y: Unit }): void {
  const x = along(place, ...range(xs));
  const most = sizes.reduce((a, b) => Math.max(a, b), 1);
  xs.forEach((value, row) => {
    const [cx, cy, size] = [x.at(value), place.up.at(ys[row] ?? Number.NaN), sizes[row] ?? 1];
    if (!Number.isFinite(cx) || !Number.isFinite(cy)) return;
    const title = `${written(value, unit.x)}, ${written(ys[row] ?? 0, unit.y)}: ${size} ${size === 1 ? "row" : "rows"}`;
    place.canvas.append(svg("circle", { cx: cx.toFixed(1), cy: cy.toFixed(1), r: (2.2 + 3.5 * Math.sqrt(size / most)).toFixed(1), class: "mark point" }, svg("title", {}, title)));
  });
  below(place, x, unit.x);
}

/** Samples over time as a line from zero. */
export function series(label: string, samples: { at: number; value: number }[], unit: Unit): SVGElement {
  const values = samples.map(({ value }) => value);
  const place = plot(label, [0, ...values], unit, { width: 320, height: 130, bottom: 24, lines: 3 });
  const x = along(place, ...range(samples.map(({ at }) => at)));
  const drawn = samples.map(({ at, value }) => `${x.at(at).toFixed(1)},${place.up.at(value).toFixed(1)}`);
  place.canvas.append(svg("polyline", { points: drawn.join(" "), class: "curve" }));
  const ends = samples.length > 1 ? [samples[0], samples.at(-1)] : samples;
  const clock = (at: number) => new Date(at).toLocaleTimeString("en-GB");
  labels(place, ends.flatMap((sample) => (sample ? [{ at: x.at(sample.at), label: clock(sample.at) }] : [])));
  return place.canvas;
}
