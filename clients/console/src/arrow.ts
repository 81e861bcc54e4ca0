// Arrow streams as rows of text. Values are read off the buffers, so that 64-bit numbers, decimals and nanoseconds keep all of
// their digits; what cannot be drawn as a number has none.

import { type Data, DateUnit, Precision, type RecordBatch, tableFromIPC, TimeUnit, Type } from "apache-arrow";
import { Table as Arrow } from "apache-arrow";

export interface Column {
  name: string;
  type: string;
  isNumber: boolean;
  isTime: boolean;
  /** `null` for null. */
  texts: (string | null)[];
}

export interface Rows {
  columns: Column[];
  count: number;
}

/** Reads a whole stream. */
export function read(stream: Uint8Array): Rows {
  return rows(tableFromIPC(stream));
}

function rows(table: Arrow): Rows {
  const columns = table.schema.fields.map((field, index) => {
    const texts: (string | null)[] = [];
    for (const batch of table.batches as RecordBatch[]) {
      const data = batch.data.children[index] as Data;
      for (let row = 0; row < batch.numRows; row += 1) texts.push(text(data, row));
    }
    const { typeId } = field.type;
    const isNumber = typeId === Type.Int || typeId === Type.Float || typeId === Type.Decimal;
    const isTime = typeId === Type.Date || typeId === Type.Timestamp;
    return { name: field.name, type: String(field.type), isNumber, isTime, texts };
  });
  return { columns, count: table.numRows };
}

/** A column by its name. */
export function column(rows: Rows, name: string): (string | null)[] {
  return rows.columns.find((column) => column.name === name)?.texts ?? [];
}

/** The place of a value on an axis. */
export function position(column: Column, row: number): number {
  const value = column.texts[row];
  if (value === null || value === undefined) return Number.NaN;
  if (column.isTime) return Date.parse(/[zT ].*(Z|[+-]\d\d:\d\d)$/.test(value) ? value : `${value.replace(" ", "T")}${value.length > 10 ? "Z" : ""}`);
  return Number(value);
}

function text(data: Data, row: number): string | null {
  if (data.typeId === Type.Null || !data.getValid(row)) return null;
  return value(data, row);
}

// The type of a `Data` is only known by its number, so its fields are read as what that number says they are.
function value(data: Data, row: number): string {
  const type = data.type as never as { unit: number; scale: number; precision: number; timezone?: string; byteWidth: number };
  const values = data.values as never as ArrayLike<number | bigint> | undefined;
  const number: number | bigint = values?.[row] ?? 0;
  switch (data.typeId) {
    case Type.Bool:
      return String(((data.values as Uint8Array)[(data.offset + row) >> 3] ?? 0) & (1 << ((data.offset + row) & 7)) ? true : false);
    case Type.Float:
      return real(type.precision === Precision.HALF ? half(number as number) : (number as number));
    case Type.Decimal:
      return decimal(data.values as never as Uint32Array, row, (data.type as never as { bitWidth: number }).bitWidth / 32, type.scale);
    case Type.Utf8:
    case Type.LargeUtf8:
      return decoder.decode(slice(data, row));
    case Type.Binary:
    case Type.LargeBinary:
      return hexadecimal(slice(data, row));
    case Type.FixedSizeBinary: {
      const bytes = data.values as Uint8Array;
      return hexadecimal(bytes.subarray(row * type.byteWidth, (row + 1) * type.byteWidth));
    }
    case Type.Date:
      return type.unit === DateUnit.DAY ? day(Number(number)) : day(Math.floor(Number(number) / 86_400_000));
    case Type.Timestamp:
      return moment(BigInt(number), type.unit) + (type.timezone ? "Z" : "");
    case Type.Time:
      return clock(BigInt(number), type.unit);
    case Type.Duration:
      return `${fraction(BigInt(number), type.unit)} s`;
    case Type.Interval:
      return interval(data, row);
    case Type.List:
    case Type.FixedSizeList:
    case Type.Map:
      return `[${range(data, row).join(", ")}]`;
    case Type.Struct:
      return `{${data.children.map((child, index) => `${data.type.children[index]?.name}: ${text(child, row) ?? "null"}`).join(", ")}}`;
    case Type.Dictionary: {
      const index = Number(number);
      const chunk = data.dictionary?.data[0];
      return chunk ? (text(chunk, index) ?? "null") : "";
    }
    default:
      return String(number);
  }
}

const decoder = new TextDecoder();

function slice(data: Data, row: number): Uint8Array {
  const offsets = data.valueOffsets as never as ArrayLike<number | bigint>;
  return (data.values as Uint8Array).subarray(Number(offsets[row]), Number(offsets[row + 1]));
}

function range(data: Data, row: number): string[] {
  const child = data.children[0];
  const size = (data.type as never as { listSize?: number }).listSize;
  const offsets = data.valueOffsets as never as ArrayLike<number> | undefined;
  const start = size === undefined ? Number(offsets?.[row]) : row * size;
  const end = size === undefined ? Number(offsets?.[row + 1]) : start + size;
  const parts: string[] = [];
  for (let at = start; child && at < end; at += 1) parts.push(text(child, at) ?? "null");
  return parts;
}

function hexadecimal(bytes: Uint8Array): string {
  let out = "";
  for (const byte of bytes) out += byte.toString(16).padStart(2, "0");
  return out;
}

function half(bits: number): number {
  const exponent = (bits >> 10) & 31;
  const part = bits & 1023;
  const sign = bits & 0x8000 ? -1 : 1;
  if (exponent === 31) return part ? Number.NaN : sign * Number.POSITIVE_INFINITY;
  return sign * (exponent ? 2 ** (exponent - 15) * (1 + part / 1024) : 2 ** -14 * (part / 1024));
}

function real(value: number): string {
  return Object.is(value, -0) ? "-0" : String(value);
}

function decimal(words: Uint32Array, row: number, width: number, scale: number): string {
  let value = 0n;
  for (let word = width - 1; word >= 0; word -= 1) value = (value << 32n) | BigInt(words[row * width + word] ?? 0);
  value = BigInt.asIntN(width * 32, value);
  if (scale <= 0) return String(value * 10n ** BigInt(-scale));
  const digits = String(value < 0n ? -value : value).padStart(scale + 1, "0");
  return `${value < 0n ? "-" : ""}${digits.slice(0, -scale)}.${digits.slice(-scale)}`;
}

const DIGITS: Record<number, number> = {
  [TimeUnit.SECOND]: 0,
  [TimeUnit.MILLISECOND]: 3,
  [TimeUnit.MICROSECOND]: 6,
  [TimeUnit.NANOSECOND]: 9,
};

/** Whole seconds, and the digits behind them. */
function seconds(value: bigint, unit: number): [bigint, string] {
  const digits = DIGITS[unit] ?? 0;
  const one = 10n ** BigInt(digits);
  const rest = ((value % one) + one) % one;
  const shown = digits ? String(rest).padStart(digits, "0").replace(/0+$/, "") : "";
  return [(value - rest) / one, shown ? `.${shown}` : ""];
}

function fraction(value: bigint, unit: number): string {
  const [whole, rest] = seconds(value < 0n ? -value : value, unit);
  return `${value < 0n ? "-" : ""}${whole}${rest}`;
}

function day(days: number): string {
  const date = new Date(days * 86_400_000);
  return Number.isNaN(date.getTime()) ? `day ${days}` : date.toISOString().slice(0, -14);
}

function clock(value: bigint, unit: number): string {
  const [whole, rest] = seconds(value, unit);
  const two = (part: bigint) => String(part).padStart(2, "0");
  return `${two(whole / 3600n)}:${two((whole / 60n) % 60n)}:${two(whole % 60n)}${rest}`;
}

function moment(value: bigint, unit: number): string {
  const [whole, rest] = seconds(value, unit);
  const date = new Date(Number(whole) * 1000);
  if (Number.isNaN(date.getTime())) return `${whole}${rest} s`;
  return date.toISOString().slice(0, -5).replace("T", " ") + rest;
}

function interval(data: Data, row: number): string {
  const words = data.values as never as Int32Array;
  const width = words.length / data.length;
  const at = row * width;
  if (width === 1) return `${words[at]} months`;
  if (width === 2) return `${words[at]} days ${words[at + 1]} ms`;
  const nanoseconds = BigInt.asIntN(64, (BigInt(words[at + 3] ?? 0) << 32n) | BigInt((words[at + 2] ?? 0) >>> 0));
  return `${words[at]} months ${words[at + 1]} days ${fraction(nanoseconds, TimeUnit.NANOSECOND)} s`;
}
