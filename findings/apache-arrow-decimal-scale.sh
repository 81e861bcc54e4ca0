#!/bin/sh
# Decimals of Arrow for JavaScript lose their point wherever they become text: -1.50 is "-150", in JSON too.
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
// 128 bits of -150 and 5, with two digits behind the point.
const data = new Uint32Array([0xffffff6a, 0xffffffff, 0xffffffff, 0xffffffff, 5, 0, 0, 0]);
const column = makeVector(makeData({ type: new Decimal(2, 10), length: 2, nullCount: 0, data }));
const table = new Table({ price: column });
const texts = [...column].map(String);
console.log("scale", column.type.scale, "->", texts, JSON.stringify(table.toArray()));
if (texts.join() !== "-150,5") throw new Error("no longer without the point");
END
node "$folder/finding.mjs"
