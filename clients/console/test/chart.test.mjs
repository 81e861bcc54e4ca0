// Which columns a chart shows, what it asks for, and how its axes are labelled.
import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "./load.mjs";

const { chartSql, columnsFor, coverage, firstChoice, fitting, isNumeric, units } = await load("chart_choice.ts");
const { dayTexts, ticks, unitOf, written } = await load("axis.ts");

const field = (name, type) => ({ name, type });
const SALES = [field("region", "Utf8"), field("day", "Date32"), field("amount", "Decimal128(15, 2)"), field("n", "Int64")];
const labels = (...range) => ticks(...range).map(({ label }) => label);
const day = (text) => Date.parse(`${text}Z`);

test("the first numeric column is shown by the first other one", () => {
  assert.deepEqual(firstChoice(SALES), { kind: "bar", x: "region", y: "amount", measure: "sum" });
  assert.deepEqual(firstChoice(SALES.toReversed()), { kind: "line", x: "day", y: "n", measure: "sum" });
  assert.equal(firstChoice([field("n", "Int64"), field("at", 'Timestamp(µs, "UTC")')]).kind, "line");
  assert.deepEqual(firstChoice([field("a", "Int32"), field("b", "Float64")]), { kind: "line", x: "a", y: "b", measure: "sum" });
  assert.equal(firstChoice([field("a", "UInt8")]).kind, "histogram");
  assert.deepEqual(firstChoice([field("name", "Utf8")]), { kind: "bar", x: "name", y: "name", measure: "count" });
  assert.equal(isNumeric(field("i", "Interval(MonthDayNano)")), false);
});

test("a kind gets columns that fit it, and the chosen ones come back", () => {
  const choice = firstChoice(SALES);
  assert.deepEqual(columnsFor(SALES, "scatter").x, ["day", "amount", "n"]);
  assert.deepEqual(fitting(SALES, { ...choice, kind: "scatter" }), { kind: "scatter", x: "day", y: "amount", measure: "sum" });
  assert.equal(fitting(SALES, { ...choice, kind: "histogram" }).x, "amount");
  assert.deepEqual(fitting(SALES, choice), choice);
  const texts = [field("name", "Utf8")];
  assert.equal(fitting(texts, { ...firstChoice(texts), kind: "scatter" }), null);
  assert.equal(fitting(texts, { kind: "bar", x: "name", y: "name", measure: "sum" }).measure, "count");
});

test("a chart asks for the whole result, dates as numbers, names quoted", () => {
  const scatter = chartSql("SELECT 1", SALES, { kind: "scatter", x: "day", y: "amount", measure: "sum" });
  assert.match(scatter, /date_part\('epoch', day\) AS x, CAST\(amount AS DOUBLE\) AS y/);
  assert.match(chartSql("SELECT 1", SALES, { kind: "histogram", x: "day", y: "", measure: "count" }), /date_part\('epoch', day\)/);
  const bar = chartSql("SELECT 1", [field('a"b', "Utf8"), field("n", "Int64")], { kind: "bar", x: 'a"b', y: "n", measure: "sum" });
  assert.match(bar, /"a""b" AS x, sum\(n\) AS y/);
  assert.match(bar, /count\(\*\) OVER \(\) AS groups/);
  assert.match(bar, /ORDER BY y DESC NULLS LAST LIMIT/);
  // Days stand in their order, not in that of their values.
  assert.match(chartSql("SELECT 1", SALES, { kind: "bar", x: "day", y: "n", measure: "sum" }), /ORDER BY x LIMIT/);
});

test("a part of a result says that it is one", () => {
  const choice = { kind: "line", x: "day", y: "n", measure: "sum" };
  assert.equal(coverage(choice, 2000, [3500]), "first 2,000 of 3,500 values of day");
  assert.equal(coverage(choice, 90, [90]), "all 90 values of day");
  assert.equal(coverage({ ...choice, kind: "scatter" }, 2, [400, 600]), "all 1,000 rows with values");
});

test("ticks of numbers are round and whole where they count", () => {
  assert.deepEqual(labels(0, 100, 5, "number"), ["0", "20", "40", "60", "80", "100"]);
  assert.deepEqual(labels(0, 0.5, 5, "number"), ["0", "0.1", "0.2", "0.3", "0.4", "0.5"]);
  assert.deepEqual(labels(0, 3, 6, "count"), ["0", "1", "2", "3"]);
  assert.deepEqual(labels(0, 4_000_000, 4, "number"), ["0", "1M", "2M", "3M", "4M"]);
  assert.deepEqual(labels(0, 3 * 1024 ** 2, 3, "bytes"), ["0 B", "1 MiB", "2 MiB", "3 MiB"]);
  assert.deepEqual(labels(-10, 10, 4, "number"), ["-10", "-5", "0", "5", "10"]);
});

test("money has separators and two digits", () => {
  assert.equal(unitOf("Decimal128(15, 2)"), "money");
  assert.equal(unitOf("Decimal128(15, 4)"), "number");
  assert.deepEqual(labels(0, 2_000_000, 4, "money"), ["0", "500,000", "1,000,000", "1,500,000", "2,000,000"]);
  assert.deepEqual(labels(0, 1, 4, "money"), ["0.00", "0.50", "1.00"]);
  assert.equal(written(1234567.5, "money"), "1,234,567.50");
  assert.equal(written(100500, "number"), "100,500");
  assert.equal(written(Number.NaN, "money"), "null");
  assert.deepEqual(units(SALES, firstChoice(SALES)), { x: "number", y: "money" });
  assert.equal(units(SALES, { ...firstChoice(SALES), measure: "count" }).y, "count");
});

test("ticks of days are days, weeks, months or years", () => {
  assert.deepEqual(labels(day("2026-01-01"), day("2026-01-04"), 8, "day"), ["2026-01-01", "2026-01-02", "2026-01-03", "2026-01-04"]);
  // Weeks begin on Mondays.
  assert.deepEqual(labels(day("2026-01-01"), day("2026-01-28"), 5, "day"), ["2026-01-05", "2026-01-12", "2026-01-19", "2026-01-26"]);
  assert.deepEqual(labels(day("2026-01-15"), day("2026-05-20"), 4, "day"), ["2026-02", "2026-03", "2026-04", "2026-05"]);
  assert.deepEqual(labels(day("1969-06-01"), day("1972-06-01"), 3, "day"), ["1970", "1971", "1972"]);
  assert.deepEqual(labels(day("1800-01-01"), day("2000-01-01"), 4, "day"), ["1800", "1850", "1900", "1950", "2000"]);
  assert.deepEqual(labels(day("2026-01-01T00:00"), day("2026-01-01T06:00"), 3, "time"), ["2026-01-01 00:00", "2026-01-01 02:00", "2026-01-01 04:00", "2026-01-01 06:00"]);
  assert.deepEqual(dayTexts(["2026-01-01 00:00:00", null]), ["2026-01-01", null]);
  assert.deepEqual(dayTexts(["2026-01-01 00:00:00", "2026-01-01 01:00:00"])[0], "2026-01-01 00:00:00");
});
