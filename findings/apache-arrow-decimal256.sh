#!/bin/sh
# A decimal of 256 bits is its last digit as text, and in JSON: 123456789 is "9". The same number in 128 bits is "123456789".
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' INT TERM
cd "$folder"
npm install --silent --no-audit --no-fund --prefix "$folder" apache-arrow@21.2.0
cat >"$folder/finding.mjs" <<'END'
import { readFileSync } from "node:fs";
import { Decimal, makeData, makeVector, Table } from "apache-arrow";

console.log("apache-arrow", JSON.parse(readFileSync("node_modules/apache-arrow/package.json")).version);
function seen(bits) {
  const data = new Uint32Array(bits / 32);
  data[0] = 123456789;
  const column = makeVector(makeData({ type: new Decimal(0, 20, bits), length: 1, nullCount: 0, data }));
  const text = String(column.get(0));
  console.log(bits, "bits ->", text, JSON.stringify(new Table({ price: column }).toArray()));
  return text;
}
if (seen(128) !== "123456789") throw new Error("no longer right in 128 bits");
if (seen(256) !== "9") throw new Error("no longer the last digit");
END
node "$folder/finding.mjs"
