// mysql2: connect, metadata, values there and back as text and binary, errors with code, cancel, transactions, bulk.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import mysql from "mysql2/promise";

const place = {
  host: "127.0.0.1",
  port: Number(process.env.BOWSHOT_MYSQL_PORT),
  user: "ada",
  database: "main",
  timezone: "Z",
  supportBigNumbers: true,
  bigNumberStrings: true,
};
const SLOW = "SELECT count(*) FROM lineitem a, lineitem b, lineitem c WHERE a.l_partkey < b.l_partkey";
let client;

before(async () => {
  client = await mysql.createConnection(place);
});
after(() => client.end());

test("connects and reads", async () => {
  await client.ping();
  const [rows, fields] = await client.query("SELECT n_nationkey, n_name FROM nation ORDER BY 1 LIMIT 2");
  assert.deepEqual(rows.map((row) => row.n_name), ["ALGERIA", "ARGENTINA"]);
  assert.deepEqual(fields.map((field) => field.name), ["n_nationkey", "n_name"]);
});

test("metadata", async () => {
  await client.query("CREATE TABLE node_meta (a INT PRIMARY KEY, b VARCHAR(9) NOT NULL)");
  const [rows] = await client.query("SHOW COLUMNS FROM node_meta");
  assert.deepEqual(rows.map(({ Field, Null, Key }) => [Field, Null, Key]), [["a", "NO", "PRI"], ["b", "NO", ""]]);
  const [tables] = await client.query("SHOW TABLES LIKE 'node_meta'");
  assert.equal(tables.length, 1);
  await client.query("DROP TABLE node_meta");
});

for (const [type, values] of [
  ["TINYINT", [0, -128]],
  ["INT", [-1, 2147483647]],
  ["BIGINT", ["-9223372036854775808", "9223372036854775807"]],
  ["DOUBLE", [0.1, 1e300]],
  ["DECIMAL(20, 5)", ["1.50000", "-99999999999.00001"]],
  ["TEXT", ["", "ä € 𝄞", "it's \"quoted\"\n\t\\"]],
  ["BLOB", [Buffer.from([]), Buffer.from([0, 255, 92, 39])]],
  ["DATETIME(6)", [new Date("2024-01-02T03:04:05.678Z")]],
]) {
  test(`values of ${type}`, async () => {
    await client.query(`CREATE TABLE node_values (n INT, v ${type})`);
    for (const [index, value] of values.entries()) {
      await client.query("INSERT INTO node_values VALUES (?, ?)", [index, value]);
      await client.execute("INSERT INTO node_values VALUES (?, ?)", [index, value]);
      for (const how of ["query", "execute"]) {
        const [rows] = await client[how]("SELECT v FROM node_values WHERE n = ?", [index]);
        assert.deepEqual(rows, [{ v: value }, { v: value }], how);
      }
    }
    await client.query("DROP TABLE node_values");
  });
}

test("errors have their number and state, and the connection goes on", async () => {
  for (const [sql, errno, sqlState] of [
    ["SELECT * FROM missing", 1146, "42S02"],
    ["SELECT missing FROM nation", 1054, "42S22"],
    ["SELECT missing(1)", 1305, "42000"],
    ["SELEC 1", 1064, "42000"],
    ["USE nowhere", 1049, "42000"],
  ]) {
    await assert.rejects(client.query(sql), (error) => {
      assert.deepEqual([error.errno, error.sqlState], [errno, sqlState], `${sql}: ${error.message}`);
      return true;
    });
  }
  assert.deepEqual((await client.query("SELECT 1 AS one"))[0], [{ one: "1" }]);
});

test("a second connection kills", async () => {
  const victim = await mysql.createConnection(place);
  setTimeout(() => client.query(`KILL QUERY ${victim.threadId}`), 500);
  await assert.rejects(victim.query(SLOW), { errno: 1317 });
  await victim.end();
});

test("transactions", async () => {
  await client.query("CREATE TABLE node_tx (a INT)");
  const other = await mysql.createConnection(place);
  await client.beginTransaction();
  await client.execute("INSERT INTO node_tx VALUES (?)", [1]);
  assert.deepEqual((await other.query("SELECT a FROM node_tx"))[0], []);
  await client.commit();
  assert.deepEqual((await other.query("SELECT a FROM node_tx"))[0], [{ a: 1 }]);
  await client.beginTransaction();
  await client.execute("DELETE FROM node_tx");
  await client.rollback();
  assert.equal((await client.query("SELECT a FROM node_tx"))[0].length, 1);
  await other.end();
  await client.query("DROP TABLE node_tx");
});

test("bulk and streams", async () => {
  await client.query("CREATE TABLE node_bulk (a BIGINT, b TEXT)");
  const rows = Array.from({ length: 5000 }, (_, n) => [n, `x${n}`]);
  const [{ affectedRows }] = await client.query("INSERT INTO node_bulk VALUES ?", [rows]);
  assert.equal(affectedRows, 5000);
  let count = 0;
  for await (const _row of client.connection.query("SELECT * FROM node_bulk").stream()) count += 1;
  assert.equal(count, 5000);
  await client.query("DROP TABLE node_bulk");
});

test("a pool", async () => {
  const pool = mysql.createPool({ ...place, connectionLimit: 4 });
  const answers = await Promise.all(Array.from({ length: 40 }, (_, n) => pool.execute("SELECT ? * 2 AS n", [n])));
  assert.deepEqual(answers.map(([rows]) => Number(rows[0].n)), Array.from({ length: 40 }, (_, n) => 2 * n));
  await pool.end();
});
