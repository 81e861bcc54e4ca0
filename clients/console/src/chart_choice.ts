// Which columns a chart shows, and the statement that gives what is drawn. The server aggregates over the whole result.

import { unitOf, type Unit } from "./axis";
import { count, quoted } from "./format";

export const kinds = ["bar", "line", "scatter", "histogram"] as const;
export type Kind = (typeof kinds)[number];
export const measures = ["count", "sum", "avg", "min", "max"] as const;
export type Measure = (typeof measures)[number];

export interface Field {
  name: string;
  type: string;
}

export interface Choice {
  kind: Kind;
  x: string;
  y: string;
  measure: Measure;
}

const BARS = 100;
const POINTS = 2000;
const BINS = 30;
const CELLS = 80;

export function isNumeric({ type }: Field): boolean {
  return /^(U?Int\d|Float|Decimal)/i.test(type);
}

export function isTime({ type }: Field): boolean {
  return /^(Date|Timestamp)/i.test(type);
}

/** The first numeric column by the first other one: over time as a line, else as bars. */
export function firstChoice(fields: Field[]): Choice {
  const [y, second] = fields.filter(isNumeric);
  const x = fields.find((field) => !isNumeric(field));
  if (y && x) return { kind: isTime(x) ? "line" : "bar", x: x.name, y: y.name, measure: "sum" };
  if (y && second) return { kind: "line", x: y.name, y: second.name, measure: "sum" };
  if (y) return { kind: "histogram", x: y.name, y: y.name, measure: "count" };
  return { kind: "bar", x: x?.name ?? "", y: x?.name ?? "", measure: "count" };
}

/** The columns that fit an axis. */
export function columnsFor(fields: Field[], kind: Kind): { x: string[]; y: string[] } {
  const names = (some: Field[]) => some.map(({ name }) => name);
  const measurable = names(fields.filter((field) => isNumeric(field) || isTime(field)));
  if (kind === "scatter") return { x: measurable, y: measurable };
  if (kind === "histogram") return { x: measurable, y: [] };
  return { x: names(fields), y: names(fields.filter(isNumeric)) };
}

/** The choice with columns that fit its kind, the chosen ones where they do; `null` where none does. */
export function fitting(fields: Field[], choice: Choice): Choice | null {
  const { x: xs, y: ys } = columnsFor(fields, choice.kind);
  const measured = ys.length > 0 ? ys : xs;
  const y = measured.includes(choice.y) ? choice.y : (measured[0] ?? "");
  const isHistogram = choice.kind === "histogram";
  const other = isHistogram && xs.includes(y) ? y : (xs.find((name) => name !== y) ?? xs[0]);
  const x = xs.includes(choice.x) ? choice.x : other;
  if (x === undefined) return null;
  return { ...choice, x, y, measure: ys.length > 0 ? choice.measure : "count" };
}

/** The units in which a chart's axes are written. */
export function units(fields: Field[], { kind, x, y, measure }: Choice): { x: Unit; y: Unit } {
  const unit = (name: string) => unitOf(fields.find((field) => field.name === name)?.type ?? "");
  const isCounted = kind === "histogram" || (kind !== "scatter" && measure === "count");
  return { x: unit(x), y: isCounted ? "count" : unit(y) };
}

/** The statement whose rows the chart draws. */
export function chartSql(sql: string, fields: Field[], { kind, x, y, measure }: Choice): string {
  const from = `FROM (\n${sql}\n) AS result`;
  const [column, other] = [quoted(x), quoted(y)];
  const value = measure === "count" ? "count(*)" : `${measure}(${other})`;
  const isOrdered = fields.some((field) => field.name === x && (isNumeric(field) || isTime(field)));
  const number = (name: string) => (fields.some((field) => field.name === name && isTime(field)) ? `date_part('epoch', ${quoted(name)})` : `CAST(${quoted(name)} AS DOUBLE)`);
  const grouped = (where: string, end: string) =>
    `SELECT x, y, count(*) OVER () AS groups FROM (\nSELECT ${column} AS x, ${value} AS y\n${from}\n${where}GROUP BY 1\n) AS grouped\n${end}`;
  switch (kind) {
    case "bar":
      return grouped("", `ORDER BY ${isOrdered ? "x" : "y DESC NULLS LAST"} LIMIT ${BARS}`);
    case "line":
      return grouped(`WHERE ${column} IS NOT NULL `, `ORDER BY x LIMIT ${POINTS}`);
    case "histogram":
      return (
        `WITH v AS (SELECT ${number(x)} AS v ${from} WHERE ${column} IS NOT NULL),\n` +
        `b AS (SELECT min(v) AS low, (max(v) - min(v)) / ${BINS} AS step FROM v)\n` +
        `SELECT low + step * least(${BINS - 1}, CASE WHEN step > 0 THEN floor((v - low) / step) ELSE 0 END) AS x, max(step) AS step, count(*) AS y\n` +
        `FROM v CROSS JOIN b GROUP BY 1 ORDER BY 1`
      );
    case "scatter":
      return (
        `WITH v AS (SELECT ${number(x)} AS x, ${number(y)} AS y ${from} WHERE ${column} IS NOT NULL AND ${other} IS NOT NULL),\n` +
        `b AS (SELECT min(x) AS x0, (max(x) - min(x)) / ${CELLS} AS dx, min(y) AS y0, (max(y) - min(y)) / ${CELLS} AS dy FROM v)\n` +
        `SELECT avg(x) AS x, avg(y) AS y, count(*) AS n FROM v CROSS JOIN b\n` +
        `GROUP BY CASE WHEN dx > 0 THEN floor((x - x0) / dx) END, CASE WHEN dy > 0 THEN floor((y - y0) / dy) END`
      );
  }
}

/** How much of the result a chart shows: `drawn` rows, of which `amounts` is the third column of the answer. */
export function coverage({ kind, x }: Choice, drawn: number, amounts: number[]): string {
  if (kind === "scatter" || kind === "histogram") {
    const rows = amounts.reduce((sum, amount) => sum + amount, 0);
    return `all ${count(rows)} rows with values`;
  }
  const all = amounts[0] ?? 0;
  return drawn < all ? `first ${count(drawn)} of ${count(all)} values of ${x}` : `all ${count(all)} values of ${x}`;
}
