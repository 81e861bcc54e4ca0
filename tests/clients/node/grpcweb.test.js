// gRPC-Web on the HTTP port: protobuf-ts by fetch in both forms of the body, connect over HTTP/2 and TLS, rows by Arrow's own
// library. The messages are described by hand, from Flight.proto and FlightSql.proto.
import { create, createFileRegistry, fromJson } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema, FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createGrpcWebTransport } from "@connectrpc/connect-node";
import { GrpcWebFetchTransport } from "@protobuf-ts/grpcweb-transport";
import { MessageType } from "@protobuf-ts/runtime";
import { ServiceType, stackIntercept } from "@protobuf-ts/runtime-rpc";
import { tableFromIPC } from "apache-arrow";
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

const PACKAGE = "arrow.flight.protocol";
const SQL = "type.googleapis.com/arrow.flight.protocol.sql.";
const [STRING, BYTES, ENUM] = [9, 12, 5];

// --- protobuf-ts

const scalar = (no, name, T) => ({ no, name, kind: "scalar", T });
const nested = (no, name, T, repeat = 0) => ({ no, name, kind: "message", T: () => T, repeat });
const message = (name, ...fields) => new MessageType(`${PACKAGE}.${name}`, fields);

const Descriptor = message("FlightDescriptor", scalar(1, "type", ENUM), scalar(2, "cmd", BYTES));
const Ticket = message("Ticket", scalar(1, "ticket", BYTES));
const Endpoint = message("FlightEndpoint", nested(1, "ticket", Ticket));
const Info = message("FlightInfo", scalar(1, "schema", BYTES), nested(3, "endpoint", Endpoint, 2));
const Data = message("FlightData", scalar(2, "data_header", BYTES), scalar(1000, "data_body", BYTES));
const Action = message("Action", scalar(1, "type", STRING), scalar(2, "body", BYTES));
const Result = message("Result", scalar(1, "body", BYTES));
const Any = message("Any", scalar(1, "type_url", STRING), scalar(2, "value", BYTES));
const Query = message("Query", scalar(1, "query", STRING), scalar(2, "transaction_id", BYTES));
const Held = message("Held", scalar(1, "handle", BYTES));
const End = message("End", scalar(1, "transaction_id", BYTES), scalar(2, "action", ENUM));

const Flight = new ServiceType(`${PACKAGE}.FlightService`, [
  { name: "GetFlightInfo", options: {}, I: Descriptor, O: Info },
  { name: "DoGet", options: {}, I: Ticket, O: Data, serverStreaming: true },
  { name: "DoAction", options: {}, I: Action, O: Result, serverStreaming: true },
]);

/** Reads what an object of messages gives as one table. */
function table(messages) {
  const parts = [];
  for (const { dataHeader, dataBody } of messages) {
    const padded = Math.ceil(dataHeader.length / 8) * 8;
    const prefix = new DataView(new ArrayBuffer(8));
    prefix.setUint32(0, 0xffffffff);
    prefix.setInt32(4, padded, true);
    parts.push(new Uint8Array(prefix.buffer), dataHeader, new Uint8Array(padded - dataHeader.length), dataBody);
  }
  return tableFromIPC(new Uint8Array(Buffer.concat(parts)));
}

class Client {
  constructor(format, meta = {}, baseUrl = process.env.BOWSHOT_HTTP) {
    this.transport = new GrpcWebFetchTransport({ baseUrl, format });
    this.meta = meta;
  }

  call(name, input, more = {}) {
    const method = Flight.methods.find((one) => one.name === name);
    const options = this.transport.mergeOptions({ meta: { ...this.meta }, ...more });
    return stackIntercept(method.serverStreaming ? "serverStreaming" : "unary", this.transport, method, options, input);
  }

  async info(query, transactionId = new Uint8Array()) {
    const value = Query.toBinary({ query, transactionId });
    const cmd = Any.toBinary({ typeUrl: `${SQL}CommandStatementQuery`, value });
    const call = this.call("GetFlightInfo", { type: 2, cmd });
    const info = (await call).response;
    // The session, where the call has opened one.
    return { info, session: (await call.headers)["x-bowshot-session"] };
  }

  async rows(query, transactionId) {
    const { info, session } = await this.info(query, transactionId);
    const messages = [];
    for (const { ticket } of info.endpoint) {
      for await (const data of this.call("DoGet", ticket).responses) messages.push(data);
    }
    return { rows: table(messages), session };
  }

  async action(type, command, body) {
    const wrapped = Any.toBinary({ typeUrl: SQL + command, value: body });
    const results = [];
    for await (const { body } of this.call("DoAction", { type, body: wrapped }).responses) results.push(body);
    return results;
  }
}

for (const format of ["binary", "text"]) {
  test(`rows, ${format}`, async () => {
    const { rows } = await new Client(format).rows("SELECT value, 'größe ' || value AS t FROM generate_series(1, 200000) AS s(value)");
    assert.equal(rows.numRows, 200_000);
    assert.equal(rows.get(199_999).t, "größe 200000");
    const values = rows.getChild("value").toArray();
    assert.equal(values.reduce((sum, value) => sum + value, 0n), 20_000_100_000n);
  });

  test(`errors, ${format}`, async () => {
    const client = new Client(format);
    await assert.rejects(client.rows("SELECT * FROM nowhere"), { code: "NOT_FOUND", message: /nowhere/ });
    await assert.rejects(client.rows("SELEC 1"), { code: "INVALID_ARGUMENT" });
    // One that fails behind its first rows has its status in the trailers.
    const failing = "SELECT 1000 / (value - 900000) FROM generate_series(1, 1000000) AS s(value)";
    await assert.rejects(client.rows(failing), { code: "INVALID_ARGUMENT", message: /zero/ });
  });

  test(`a transaction in a session that the client names, ${format}`, async () => {
    // Of calls that share a connection, only the first opens a session.
    const opened = await fetch(`${process.env.BOWSHOT_HTTP}/v1/sessions`, { method: "POST" });
    const { session } = await opened.json();
    assert.match(session, /^[0-9a-f-]{36}$/);
    const client = new Client(format, { "x-bowshot-session": session });
    const name = `web_${format}`;
    assert.equal((await client.rows(`CREATE TABLE ${name} (a INT)`)).session, undefined);
    const [begun] = await client.action("BeginTransaction", "ActionBeginTransactionRequest", new Uint8Array());
    const { handle } = Held.fromBinary(Any.fromBinary(begun).value);
    await client.rows(`INSERT INTO ${name} VALUES (1), (2)`, handle);
    await client.rows("SAVEPOINT s", handle);
    await client.rows(`DELETE FROM ${name}`, handle);
    await client.rows("ROLLBACK TO SAVEPOINT s", handle);
    assert.equal((await client.rows(`SELECT * FROM ${name}`)).rows.numRows, 0);
    await client.action("EndTransaction", "ActionEndTransactionRequest", End.toBinary({ transactionId: handle, action: 1 }));
    assert.equal((await new Client(format).rows(`SELECT * FROM ${name}`)).rows.numRows, 2);
    await client.rows(`DROP TABLE ${name}`);
  });
}

test("a call that is given up ends its query", async () => {
  const client = new Client("binary");
  const { info } = await client.info("SELECT * FROM generate_series(1, 2000000000)");
  const abort = new AbortController();
  const call = client.call("DoGet", info.endpoint[0].ticket, { abort: abort.signal });
  await assert.rejects(async () => {
    for await (const _ of call.responses) abort.abort();
  });
  const ended = async () => {
    const { rows } = await client.rows("SELECT count(*) AS n FROM system.queries WHERE outcome = 'running' AND statement LIKE '%2000000000%' AND statement NOT LIKE '%system%'");
    return rows.get(0).n === 0n;
  };
  for (let waited = 0; !(await ended()); waited += 1) {
    assert.ok(waited < 100, "the query still runs");
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
});

test("options of the session by headers", async () => {
  // A name of the machine that no connection of the other tests has: the first call of a connection opens its session.
  const place = process.env.BOWSHOT_HTTP.replace("127.0.0.1", "localhost");
  const wrong = new Client("binary", { "bowshot-nonsense": "1" }, place);
  await assert.rejects(wrong.rows("SELECT 1"), { code: "INVALID_ARGUMENT" });
  const client = new Client("binary", { "bowshot-time-zone": "+05:00" }, place);
  const { rows } = await client.rows("SELECT current_setting('time_zone') AS zone");
  assert.equal(rows.get(0).zone, "+05:00");
});

// --- connect, over HTTP/2

const field = (number, name, type, more = {}) => ({ number, name, type: `TYPE_${type}`, label: "LABEL_OPTIONAL", ...more });
const file = {
  name: "Flight.proto",
  package: PACKAGE,
  syntax: "proto3",
  messageType: [
    { name: "FlightDescriptor", field: [field(1, "type", "INT32"), field(2, "cmd", "BYTES")] },
    { name: "Ticket", field: [field(1, "ticket", "BYTES")] },
    { name: "FlightEndpoint", field: [field(1, "ticket", "MESSAGE", { typeName: `.${PACKAGE}.Ticket` })] },
    {
      name: "FlightInfo",
      field: [field(3, "endpoint", "MESSAGE", { typeName: `.${PACKAGE}.FlightEndpoint`, label: "LABEL_REPEATED" })],
    },
    { name: "FlightData", field: [field(2, "data_header", "BYTES"), field(1000, "data_body", "BYTES")] },
    { name: "PutResult", field: [field(1, "app_metadata", "BYTES")] },
  ],
  service: [
    {
      name: "FlightService",
      method: [
        { name: "GetFlightInfo", inputType: `.${PACKAGE}.FlightDescriptor`, outputType: `.${PACKAGE}.FlightInfo` },
        { name: "DoGet", inputType: `.${PACKAGE}.Ticket`, outputType: `.${PACKAGE}.FlightData`, serverStreaming: true },
        // As a server would have it that takes one message: what the real one is, gRPC-Web cannot send.
        { name: "DoPut", inputType: `.${PACKAGE}.FlightData`, outputType: `.${PACKAGE}.PutResult`, serverStreaming: true },
      ],
    },
  ],
};

function overHttp2(headers = {}) {
  const registry = createFileRegistry(
    create(FileDescriptorSetSchema, { file: [fromJson(FileDescriptorProtoSchema, file)] }),
  );
  const transport = createGrpcWebTransport({
    baseUrl: process.env.BOWSHOT_TLS_HTTP,
    httpVersion: "2",
    nodeOptions: { ca: readFileSync(process.env.BOWSHOT_TLS_AUTHORITY) },
    interceptors: [
      (next) => (request) => {
        for (const [name, value] of Object.entries(headers)) request.header.set(name, value);
        return next(request);
      },
    ],
  });
  return createClient(registry.getService(`${PACKAGE}.FlightService`), transport);
}

test("HTTP/2 over TLS, many calls at once", async () => {
  const client = overHttp2();
  const one = async (number) => {
    const cmd = new TextEncoder().encode(`SELECT value + ${number} AS v FROM generate_series(1, 20000) AS s(value) ORDER BY v`);
    const info = await client.getFlightInfo({ type: 2, cmd });
    const messages = [];
    for await (const data of client.doGet(info.endpoint[0].ticket)) messages.push(data);
    return table(messages);
  };
  const tables = await Promise.all(Array.from({ length: 20 }, (_, number) => one(number)));
  tables.forEach((rows, number) => {
    assert.equal(rows.numRows, 20_000);
    assert.equal(rows.get(0).v, BigInt(number + 1));
  });
});

test("HTTP/2: errors, deadlines, and what gRPC-Web cannot carry", async () => {
  const client = overHttp2();
  const cmd = (sql) => ({ type: 2, cmd: new TextEncoder().encode(sql) });
  const code = async (call) => {
    try {
      await call();
    } catch (error) {
      return ConnectError.from(error).code;
    }
    return null;
  };
  assert.equal(await code(() => client.getFlightInfo(cmd("SELECT * FROM nowhere"))), Code.NotFound);
  const slow = cmd("SELECT count(*) FROM lineitem a, lineitem b, lineitem c WHERE a.l_partkey < b.l_partkey");
  assert.equal(await code(() => client.getFlightInfo(slow, { timeoutMs: 300 })), Code.DeadlineExceeded);
  assert.equal(await code(async () => {
    for await (const _ of client.doPut({})) assert.fail("an answer");
  }), Code.Unimplemented);
});
