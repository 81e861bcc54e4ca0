// Quick charts. The server aggregates: what comes to the browser is what is drawn. Each chart is a statement that can be seen.

import { position, type Column, type Rows } from "./arrow";
import { svg } from "./dom";
import { quoted, short } from "./format";

export const kinds = ["bar", "line", "scatter", "histogram"] as const;
export type Kind = (typeof kinds)[number];
export const measures = ["count", "sum", "avg", "min", "max"] as const;
export type Measure = (typeof measures)[number];

export interface Wish {
  kind: Kind;
  x: string;
  y: string;
  measure: Measure;
}

const BARS = 40;
const POINTS = 2000;
const BINS = 30;
const CELLS = 80;

/** The statement whose rows the chart draws. */
export function chartSql(sql: string, { kind, x, y, measure }: Wish): string {
  const from = `FROM (\n${sql}\n) AS result`;
  const [column, other] = [quoted(x), quoted(y)];
  const value = measure === "count" ? "count(*)" : `${measure}(${other})`;
  switch (kind) {
    case "bar":
      return `SELECT ${column} AS x, ${value} AS y\n${from}\nGROUP BY 1 ORDER BY 2 DESC LIMIT ${BARS}`;
    case "line":
      return `SELECT ${column} AS x, ${value} AS y\n${from}\nWHERE ${column} IS NOT NULL GROUP BY 1 ORDER BY 1 LIMIT ${POINTS}`;
    case "histogram":
      return (
        `WITH v AS (SELECT CAST(${column} AS DOUBLE) AS v ${from} WHERE ${column} IS NOT NULL),\n` +
        `b AS (SELECT min(v) AS low, (max(v) - min(v)) / ${BINS} AS step FROM v)\n` +
        `SELECT low + step * least(${BINS - 1}, CASE WHEN step > 0 THEN floor((v - low) / step) ELSE 0 END) AS x, max(step) AS step, count(*) AS y\n` +
        `FROM v CROSS JOIN b GROUP BY 1 ORDER BY 1`
      );
    case "scatter":
      return (
        `WITH v AS (SELECT CAST(${column} AS DOUBLE) AS x, CAST(${other} AS DOUBLE) AS y ${from} WHERE ${column} IS NOT NULL AND ${other} IS NOT NULL),\n` +
        `b AS (SELECT min(x) AS x0, (max(x) - min(x)) / ${CELLS} AS dx, min(y) AS y0, (max(y) - min(y)) / ${CELLS} AS dy FROM v)\n` +
        `SELECT avg(x) AS x, avg(y) AS y, count(*) AS n FROM v CROSS JOIN b\n` +
        `GROUP BY CASE WHEN dx > 0 THEN floor((x - x0) / dx) END, CASE WHEN dy > 0 THEN floor((y - y0) / dy) END`
      );
  }
}

const [WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT] = [900, 360, 62, 46, 12, 14];

/** Draws the rows of `chartSql`. */
export function chart(rows: Rows, { kind, x, y, measure }: Wish): SVGElement {
  const [xs, ys] = [rows.columns[0], kind === "histogram" ? rows.columns[2] : rows.columns[1]];
  const label = kind === "histogram" ? `How often values of ${x} come` : kind === "scatter" ? `${y} over ${x}` : `${measure} of ${measure === "count" ? "rows" : y} by ${x}`;
  const canvas = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "chart", role: "img", "aria-label": `${label}, ${rows.count} values` });
  if (!xs || !ys || rows.count === 0) {
    canvas.append(svg("text", { x: WIDTH / 2, y: HEIGHT / 2, "text-anchor": "middle" }, "no rows"));
    return canvas;
  }
  const values = ys.texts.map((_, row) => position(ys, row));
  const known = values.filter(Number.isFinite);
  const isBar = kind === "bar" || kind === "histogram";
  const low = Math.min(isBar ? 0 : Number.POSITIVE_INFINITY, ...known);
  const high = Math.max(isBar ? 0 : Number.NEGATIVE_INFINITY, ...known);
  const up = scale(low, high === low ? low + 1 : high, HEIGHT - BOTTOM, TOP);
  axis(canvas, up);
  canvas.append(svg("text", { x: (WIDTH + LEFT) / 2, y: HEIGHT - 6, "text-anchor": "middle", class: "axis-name" }, label));
  if (isBar) bars(canvas, xs, values, up, kind === "histogram" ? position(rows.columns[1] ?? ys, 0) : null);
  else marks(canvas, rows, xs, values, up, kind);
  return canvas;
}

interface Scale {
  low: number;
  high: number;
  at: (value: number) => number;
}

function scale(low: number, high: number, from: number, to: number): Scale {
  return { low, high, at: (value) => from + ((value - low) / (high - low)) * (to - from) };
}

/** Round numbers between two. */
export function ticks(low: number, high: number, wanted: number): number[] {
  const rough = (high - low) / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5, 10].find((factor) => factor * power >= rough) ?? 10);
  const found: number[] = [];
  for (let tick = Math.ceil(low / step) * step; tick <= high + step * 1e-9 && found.length < 50; tick += step) found.push(tick);
  return found;
}

function axis(canvas: SVGElement, up: Scale): void {
  for (const tick of ticks(up.low, up.high, 6)) {
    const y = up.at(tick);
    canvas.append(
      svg("line", { x1: LEFT, x2: WIDTH - RIGHT, y1: y, y2: y, class: "rule" }),
      svg("text", { x: LEFT - 6, y: y + 4, "text-anchor": "end" }, short(tick)),
    );
  }
}

function bars(canvas: SVGElement, xs: Column, values: number[], up: Scale, step: number | null): void {
  const width = (WIDTH - LEFT - RIGHT) / values.length;
  const every = Math.ceil(values.length / 12);
  values.forEach((value, row) => {
    const start = LEFT + row * width;
    const from = up.at(0);
    const to = up.at(Number.isFinite(value) ? value : 0);
    const named = step === null ? (xs.texts[row] ?? "null") : `${short(position(xs, row))} to ${short(position(xs, row) + step)}`;
    canvas.append(
      svg(
        "rect",
        { x: start + width * 0.08, width: Math.max(1, width * 0.84), y: Math.min(from, to), height: Math.max(0.5, Math.abs(from - to)), class: "mark" },
        svg("title", {}, `${named}: ${short(value)}`),
      ),
    );
    if (row % every === 0) {
      const text = step === null ? named : short(position(xs, row));
      canvas.append(svg("text", { x: start + width / 2, y: HEIGHT - BOTTOM + 16, "text-anchor": "middle" }, text.length > 12 ? `${text.slice(0, 11)}…` : text));
    }
  });
}

function marks(canvas: SVGElement, rows: Rows, xs: Column, values: number[], up: Scale, kind: Kind): void {
  const isOrdinal = !xs.isNumber && !xs.isTime;
  const at = xs.texts.map((_, row) => (isOrdinal ? row : position(xs, row)));
  const known = at.filter(Number.isFinite);
  const [low, high] = [known.reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY), known.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY)];
  const along = scale(low, high === low ? low + 1 : high, LEFT + 6, WIDTH - RIGHT - 6);
  for (const tick of ticks(along.low, along.high, 8)) {
    const text = isOrdinal ? (xs.texts[Math.round(tick)] ?? "") : xs.isTime ? new Date(tick).toISOString().slice(0, 16).replace("T", " ") : short(tick);
    canvas.append(svg("text", { x: along.at(tick), y: HEIGHT - BOTTOM + 16, "text-anchor": "middle" }, text));
  }
  const points = values.map((value, row) => [along.at(at[row] ?? Number.NaN), up.at(value)] as const);
  const drawn = points.filter(([x, y]) => Number.isFinite(x) && Number.isFinite(y));
  if (kind === "line") {
    canvas.append(svg("polyline", { points: drawn.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(" "), class: "curve" }));
    return;
  }
  const sizes = rows.columns[2]?.texts.map(Number) ?? [];
  const most = sizes.reduce((a, b) => Math.max(a, b), 1);
  points.forEach(([x, y], row) => {
    if (!Number.isFinite(x) || !Number.isFinite(y)) return;
    const size = sizes[row] ?? 1;
    canvas.append(svg("circle", { cx: x.toFixed(1), cy: y.toFixed(1), r: (2.2 + 3.5 * Math.sqrt(size / most)).toFixed(1), class: "mark point" }, svg("title", {}, `${size} rows`)));
  });
}
