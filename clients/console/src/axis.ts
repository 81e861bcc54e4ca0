// The axes of charts: where their ticks stand, and how values are written on them. Times are milliseconds since 1970, in UTC.

import { bytes, count, short } from "./format";

export interface Tick {
  at: number;
  label: string;
}

/** How the values of a column are written. */
export type Unit = "number" | "count" | "bytes" | "money" | "day" | "time";

/** The unit of an Arrow type. A decimal with two digits is an amount of money. */
export function unitOf(type: string): Unit {
  if (/^Date/i.test(type)) return "day";
  if (/^Timestamp/i.test(type)) return "time";
  return /^Decimal\d*\(\d+, ?2\)/i.test(type) ? "money" : "number";
}

const cents = new Intl.NumberFormat("en-US", { minimumFractionDigits: 2, maximumFractionDigits: 2 });
const precise = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 15 });

/** A value in full. */
export function written(value: number, unit: Unit): string {
  if (!Number.isFinite(value)) return "null";
  if (unit === "money") return cents.format(value);
  if (unit === "bytes") return bytes(value);
  if (unit === "number" || unit === "count") return Math.abs(value) < 1e-6 && value !== 0 ? value.toExponential(3) : precise.format(value);
  return timeText(value, unit === "day" ? DAY : 1);
}

/** Round values between two, with their labels: at most about as many as wanted. */
export function ticks(low: number, high: number, wanted: number, unit: Unit): Tick[] {
  return unit === "day" || unit === "time" ? timeTicks(low, high, wanted, unit) : numberTicks(low, high, wanted, unit);
}

function numberTicks(low: number, high: number, wanted: number, unit: Unit): Tick[] {
  const largest = Math.max(Math.abs(low), Math.abs(high));
  const isPlain = largest < (unit === "money" ? 1e9 : 1e6);
  // Round numbers of the unit that fits the largest value.
  const factor = unit === "bytes" ? 1024 ** Math.max(0, Math.min(4, Math.floor(Math.log(largest) / Math.log(1024)))) : 1;
  const rough = roundStep((high - low) / wanted / factor) * factor;
  const step = unit === "count" || unit === "bytes" ? Math.max(1, rough) : rough;
  const label = (value: number) => {
    if (unit === "bytes") return bytes(value).replace(/\.0+ /, " ");
    if (!isPlain) return short(value);
    return unit === "money" && step < 1 ? cents.format(value) : Number.isInteger(value) ? count(value) : short(value);
  };
  return multiples(low, high, step).map((at) => ({ at, label: label(at) }));
}

/** 1, 2 or 5 times a power of ten. */
function roundStep(rough: number): number {
  const power = 10 ** Math.floor(Math.log10(rough));
  return power * ([1, 2, 5, 10].find((factor) => factor * power >= rough * 0.999) ?? 10);
}

function multiples(low: number, high: number, step: number, from = 0): number[] {
  const found: number[] = [];
  const first = Math.ceil((low - from) / step - 1e-9);
  // From the index, so that errors do not add up.
  for (let index = first; index * step + from <= high + step * 1e-9 && found.length < 100; index += 1) found.push(Number((index * step + from).toPrecision(15)));
  return found;
}

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const MONTH = 30.4375 * DAY;
const YEAR = 12 * MONTH;
const STEPS = [
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500],
  ...[1, 2, 5, 10, 15, 30].map((seconds) => seconds * SECOND),
  ...[1, 2, 5, 10, 15, 30].map((minutes) => minutes * MINUTE),
  ...[1, 2, 3, 6, 12].map((hours) => hours * HOUR),
  ...[1, 2, 7, 14].map((days) => days * DAY),
];
/** 1970-01-05, from which weeks are counted. */
const MONDAY = 4 * DAY;

function timeTicks(low: number, high: number, wanted: number, unit: Unit): Tick[] {
  const rough = (high - low) / wanted;
  const step = STEPS.find((step) => step >= rough && (unit === "time" || step >= DAY));
  if (step !== undefined) {
    const from = step % (7 * DAY) === 0 ? MONDAY : 0;
    return multiples(low, high, step, from).map((at) => ({ at, label: timeText(at, step) }));
  }
  const months = [1, 3, 6].find((months) => months * MONTH >= rough * 0.9) ?? 12 * Math.max(1, roundStep(rough / YEAR));
  const found: Tick[] = [];
  const start = new Date(low);
  const first = Math.ceil((start.getUTCFullYear() * 12 + start.getUTCMonth()) / months) * months;
  for (let month = first; found.length < 100; month += months) {
    const at = Date.UTC(Math.floor(month / 12), month % 12);
    if (!(at <= high)) break;
    if (at >= low) found.push({ at, label: timeText(at, months * MONTH) });
  }
  return found;
}

/** A time as exactly as steps of a length need it. */
function timeText(at: number, step: number): string {
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return "";
  const text = date.toISOString().replace("T", " ").replace("Z", "");
  if (step >= 12 * MONTH) return text.slice(0, -19);
  if (step >= MONTH) return text.slice(0, -16);
  if (step >= DAY) return text.slice(0, -13);
  if (step >= MINUTE) return text.slice(0, -7);
  return text.replace(/\.000$/, "");
}

/** Times as texts, without the hours where all are days. */
export function dayTexts(texts: (string | null)[]): (string | null)[] {
  const midnight = /[ T]00:00:00(Z|[+-]\d\d:\d\d)?$/;
  return texts.every((text) => text === null || midnight.test(text)) ? texts.map((text) => text?.replace(midnight, "") ?? null) : texts;
}
