// Numbers, times and names as people read them, and as SQL reads them.

const whole = new Intl.NumberFormat("en-US");

export function count(value: number): string {
  return whole.format(value);
}

export function bytes(value: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? value : value.toFixed(value < 10 ? 2 : 1)} ${units[unit]}`;
}

export function milliseconds(value: number): string {
  if (value < 1) return `${value.toFixed(2)} ms`;
  if (value < 1000) return `${value.toFixed(value < 10 ? 1 : 0)} ms`;
  if (value < 60_000) return `${(value / 1000).toFixed(2)} s`;
  return `${Math.floor(value / 60_000)} min ${Math.round((value % 60_000) / 1000)} s`;
}

/** A number of things. */
export function counted(value: number, noun: string): string {
  return `${count(value)} ${noun}${value === 1 ? "" : "s"}`;
}

/** How far a statement is. What the plan promises as rows is none of it: they are not there yet. */
export function progressText(elapsed: number, fraction: number | null): string {
  const time = `running for ${elapsed < 1000 ? "0" : Math.floor(elapsed / 1000)} s`;
  if (fraction === null || fraction <= 0) return time;
  return fraction >= 0.999 ? `${time}, all input read` : `${time}, ${Math.floor(fraction * 100)} % of the input read`;
}

/** A number of a chart's axis. */
export function short(value: number): string {
  const size = Math.abs(value);
  if (size >= 1e9) return `${trim(value / 1e9)}G`;
  if (size >= 1e6) return `${trim(value / 1e6)}M`;
  if (size >= 1e4) return `${trim(value / 1e3)}k`;
  if (size !== 0 && size < 1e-3) return value.toExponential(1);
  return trim(value);
}

function trim(value: number): string {
  return String(Number(value.toPrecision(4)));
}

/** A name in SQL. */
export function quoted(name: string): string {
  return /^[a-z_][a-z0-9_]*$/.test(name) && !RESERVED.has(name) ? name : `"${name.replaceAll('"', '""')}"`;
}

/** A text in SQL. */
export function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

const RESERVED = new Set(
  (
    "all and any as asc between by case cast check column cross current_date current_user desc distinct else end except " +
    "exists false fetch for from full group having in inner intersect into is join left like limit natural not null offset " +
    "on or order outer primary references right select session_user set some table then to true union unique user using " +
    "values when where window with"
  ).split(" "),
);
