// Generations, the schema tree, plans, metrics and progress, without a browser.
import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "./load.mjs";

const { Generations } = await load("generations.ts");
const { matching, schemas, tableName, tablesOfColumns } = await load("schema.ts");
const { counted, progressText } = await load("format.ts");
const { steps } = await load("plan.ts");
const { samples } = await load("pages/server.ts");
const { changesSchema } = await load("sqltext.ts");

test("a late answer is one of an earlier request", () => {
  const requests = new Generations();
  const first = requests.next();
  assert.equal(requests.isLatest(first), true);
  const second = requests.next();
  assert.equal(requests.isLatest(first), false);
  assert.equal(requests.isLatest(second), true);
});

test("columns become tables, and tables schemas in an order for people", () => {
  const column = (catalog, schema, table, name) => ({ catalog, schema, table, name, type: "BIGINT" });
  const tables = tablesOfColumns([
    column("bowshot", "system", "queries", "query_id"),
    column("archive", "main", "orders", "id"),
    column("bowshot", "finance", "orders", "id"),
    column("bowshot", "main", "orders", "id"),
    column("bowshot", "main", "orders", "total"),
  ]);
  assert.deepEqual(tables.map(({ columns }) => columns.length), [1, 1, 1, 2]);
  assert.deepEqual(schemas(tables).map(({ catalog, name }) => `${catalog}.${name}`), ["bowshot.main", "bowshot.finance", "bowshot.system", "archive.main"]);
  assert.deepEqual(tables.map(tableName), ["system.queries", "archive.main.orders", "finance.orders", "orders"]);
  assert.equal(tableName({ catalog: "bowshot", schema: "main", name: 'Year "End"' }), '"Year ""End"""');
  assert.deepEqual(matching(tables, " TOTAL ").map(tableName), ["orders"]);
  assert.equal(matching(tables, "").length, 4);
});

test("progress names time and input, and never rows that are not there", () => {
  assert.equal(progressText(200, null), "running for 0 s");
  assert.equal(progressText(2900, 0), "running for 2 s");
  assert.equal(progressText(2900, 0.5), "running for 2 s, 50 % of the input read");
  assert.equal(progressText(61_000, 0.9985), "running for 61 s, 99 % of the input read");
  assert.equal(progressText(1000, 0.999), "running for 1 s, all input read");
  assert.deepEqual([0, 1, 2000].map((rows) => counted(rows, "row")), ["0 rows", "1 row", "2,000 rows"]);
});

test("a measured plan is a tree with rows and times", () => {
  const [root] = steps(
    "AggregateExec: mode=Final, metrics=[output_rows=7, elapsed_compute=1.5ms]\n  DataSourceExec: file_groups={1 group: [[a, b]]}, metrics=[output_rows=1.00 K, elapsed_compute=20µs]\n  EmptyExec\n",
  );
  assert.deepEqual([root.name, root.rows, root.nanoseconds, root.children.length], ["AggregateExec", "7", 1.5e6, 2]);
  assert.deepEqual([root.children[0].rows, root.children[0].nanoseconds], ["1.00 K", 20_000]);
  assert.deepEqual([root.children[1].name, root.children[1].rows], ["EmptyExec", null]);
});

test("metrics are added over their labels", () => {
  const found = samples('# HELP a About\n# TYPE a gauge\na{x="1"} 2\na{x="2"} 3\n# TYPE b histogram\nb_bucket{le="1"} 1\nb_sum 4\n');
  assert.deepEqual(found.map(({ name, about, kind, value }) => [name, about, kind, value]), [["a", "About", "gauge", 5], ["b_sum", "", "counter", 4]]);
});

test("only statements that may change tables make the schema be read again", () => {
  assert.equal(changesSchema("SELECT 'create table' /* drop */"), false);
  assert.equal(changesSchema("INSERT INTO t VALUES (1); CREATE VIEW v AS SELECT 1"), true);
});
