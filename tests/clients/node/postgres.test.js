// node-postgres: connect, metadata, values there and back, errors with code, cancel, transactions, bulk.
import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { after, before, test } from "node:test";
import pg from "pg";
import copy from "pg-copy-streams";
import Cursor from "pg-cursor";

const place = { host: "127.0.0.1", port: Number(process.env.BOWSHOT_PG_PORT), user: "ada", database: "bowshot" };
const SLOW = "SELECT count(*) FROM lineitem a, lineitem b, lineitem c WHERE a.l_partkey < b.l_partkey";
let client;

async function connected() {
  const other = new pg.Client(place);
  await other.connect();
  return other;
}

before(async () => {
  client = await connected();
});
after(() => client.end());

test("connects and reads", async () => {
  const { rows, fields } = await client.query("SELECT n_nationkey, n_name FROM nation ORDER BY 1 LIMIT 2");
  assert.deepEqual(rows.map((row) => row.n_name), ["ALGERIA", "ARGENTINA"]);
  assert.deepEqual(fields.map((field) => field.name), ["n_nationkey", "n_name"]);
});

test("metadata", async () => {
  await client.query("CREATE TABLE node_meta (a INT PRIMARY KEY, b TEXT NOT NULL)");
  const { rows } = await client.query(
    "SELECT column_name, is_nullable FROM information_schema.columns WHERE table_name = $1 ORDER BY ordinal_position",
    ["node_meta"],
  );
  assert.deepEqual(rows, [
    { column_name: "a", is_nullable: "NO" },
    { column_name: "b", is_nullable: "NO" },
  ]);
  await client.query("DROP TABLE node_meta");
});

for (const [type, values] of [
  ["smallint", [0, -32768]],
  ["integer", [-1, 2147483647]],
  ["bigint", ["-9223372036854775808", "9223372036854775807"]],
  ["double precision", [0.1, 1e300, -0.5]],
  ["numeric(20, 5)", ["1.50000", "-99999999999.00001"]],
  ["boolean", [true, false]],
  ["text", ["", "ä € 𝄞", "it's \"quoted\"\n\t\\"]],
  ["bytea", [Buffer.from([]), Buffer.from([0, 255, 92, 39])]],
  ["timestamptz", [new Date("2024-01-02T03:04:05.678Z")]],
  ["integer[]", [[1, null, 3], []]],
  ["text[]", [["a b", "", "null", null, '"\\']]],
]) {
  test(`values of ${type}`, async () => {
    for (const value of values) {
      const { rows } = await client.query(`SELECT $1::${type} AS v, NULL::${type} AS n`, [value]);
      assert.deepEqual(rows, [{ v: value, n: null }]);
      const named = await client.query({ name: `get ${type}`, text: `SELECT $1::${type} AS v`, values: [value] });
      assert.deepEqual(named.rows[0].v, value);
    }
  });
}

test("errors have their code, and the connection goes on", async () => {
  for (const [sql, code, position] of [
    ["SELECT * FROM missing", "42P01", "15"],
    ["SELECT missing FROM nation", "42703", "8"],
    ["SELECT missing(1)", "42883", "8"],
    ["SELEC 1", "42601", "1"],
    ["SELECT 1 / 0", "22012", undefined],
    ["SELECT 'x'::int", "22P02", undefined],
    ["SELECT 2147483647::int + 1::int", "22003", undefined],
  ]) {
    await assert.rejects(client.query(sql), (error) => {
      assert.deepEqual([error.code, error.position], [code, position], `${sql}: ${error.message}`);
      return true;
    });
  }
  assert.equal((await client.query("SELECT 1 AS one")).rows[0].one, "1");
});

test("a second connection cancels", async () => {
  const victim = await connected();
  const running = victim.query(SLOW);
  setTimeout(() => new pg.Client(place).cancel(victim, victim.activeQuery ?? victim._activeQuery), 500);
  await assert.rejects(running, { code: "57014" });
  await victim.end();
});

test("transactions", async () => {
  await client.query("CREATE TABLE node_tx (a INT)");
  const other = await connected();
  await client.query("BEGIN");
  await client.query("INSERT INTO node_tx VALUES (1)");
  assert.equal((await other.query("SELECT count(*)::int AS n FROM node_tx")).rows[0].n, 0);
  await client.query("SAVEPOINT s");
  await client.query("INSERT INTO node_tx VALUES (2)");
  await client.query("ROLLBACK TO s");
  await client.query("COMMIT");
  assert.deepEqual((await other.query("SELECT a FROM node_tx")).rows, [{ a: 1 }]);
  await client.query("BEGIN");
  await assert.rejects(client.query("SELECT * FROM missing"));
  await assert.rejects(client.query("SELECT 1"), { code: "25P02" });
  await client.query("ROLLBACK");
  await other.end();
  await client.query("DROP TABLE node_tx");
});

test("cursors and bulk", async () => {
  await client.query("CREATE TABLE node_bulk (a BIGINT, b TEXT)");
  const lines = Array.from({ length: 20000 }, (_, n) => `${n}\tx${n}\n`);
  await pipeline(Readable.from(lines), client.query(copy.from("COPY node_bulk FROM STDIN")));
  let bytes = 0;
  for await (const part of client.query(copy.to("COPY node_bulk TO STDOUT (FORMAT csv)"))) bytes += part.length;
  assert.ok(bytes > 200000);
  const cursor = client.query(new Cursor("SELECT a FROM node_bulk ORDER BY a"));
  let count = 0;
  for (let rows = await cursor.read(3000); rows.length; rows = await cursor.read(3000)) count += rows.length;
  await cursor.close();
  assert.equal(count, 20000);
  await client.query("DROP TABLE node_bulk");
});

test("a pool", async () => {
  const pool = new pg.Pool({ ...place, max: 4 });
  const answers = await Promise.all(Array.from({ length: 40 }, (_, n) => pool.query("SELECT $1::int * 2 AS n", [n])));
  assert.deepEqual(answers.map(({ rows }) => rows[0].n), Array.from({ length: 40 }, (_, n) => 2 * n));
  await pool.end();
});
