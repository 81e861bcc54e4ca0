// What may come next while a statement is written: names of tables, columns and functions, which the server was asked for.

import type { Client } from "./client";
import { column } from "./arrow";
import { quoted } from "./format";
import { keywords, tablesOf, wordBefore } from "./sqltext";

export interface Choice {
  insert: string;
  label: string;
  about: string;
}

export interface Completion {
  start: number;
  choices: Choice[];
}

interface Named {
  schema: string;
  table: string;
  name: string;
  type: string;
}

const MOST = 50;

export class Words {
  private columns: Named[] = [];
  private tables: { schema: string; name: string }[] = [];
  private functions: string[] = [];

  constructor(private readonly client: Client) {}

  /** Asks the server anew. What it does not answer is not offered. */
  async load(): Promise<void> {
    const [columns, functions] = await Promise.all([
      this.client.query(
        "SELECT table_schema, table_name, column_name, data_type FROM information_schema.columns ORDER BY ordinal_position LIMIT 50000",
      ),
      this.client.query("SELECT DISTINCT routine_name FROM information_schema.routines ORDER BY 1"),
    ]);
    const [schemas, tables, types] = ["table_schema", "table_name", "data_type"].map((name) => column(columns, name));
    this.columns = column(columns, "column_name").map((name, row) => ({
      schema: schemas?.[row] ?? "",
      table: tables?.[row] ?? "",
      name: name ?? "",
      type: types?.[row] ?? "",
    }));
    const seen = new Map(this.columns.map(({ schema, table }) => [`${schema}.${table}`, { schema, name: table }]));
    this.tables = [...seen.values()];
    this.functions = column(functions, "routine_name").filter((name): name is string => name !== null && !name.startsWith("__"));
  }

  /** What fits in front of a place of a statement. */
  at(sql: string, place: number): Completion {
    const { word, start, owner } = wordBefore(sql, place);
    const choices = owner === null ? this.free(sql, word) : this.owned(sql, owner);
    const wanted = word.toLowerCase();
    const fits = choices.filter(({ label }) => label.toLowerCase().startsWith(wanted) && label.toLowerCase() !== wanted);
    const unique = new Map(fits.map((choice) => [choice.label + choice.about, choice]));
    return { start, choices: [...unique.values()].slice(0, MOST) };
  }

  private owned(sql: string, owner: string): Choice[] {
    const tables = tablesOf(sql).filter(({ alias, table }) => alias === owner || table === owner);
    const names = new Set([owner, ...tables.map(({ table }) => table)]);
    const columns = this.columns.filter(({ table }) => names.has(table)).map(ofColumn);
    const inSchema = this.tables.filter(({ schema }) => schema === owner).map(ofTable);
    return [...columns, ...inSchema];
  }

  private free(sql: string, word: string): Choice[] {
    if (word === "") return [];
    const named = new Set(tablesOf(sql).map(({ table }) => table));
    return [
      ...this.columns.filter(({ table }) => named.has(table)).map(ofColumn),
      ...this.tables.map(ofTable),
      ...schemas(this.tables),
      ...keywords.map((label) => ({ insert: label, label, about: "keyword" })),
      ...this.functions.map((name) => ({ insert: `${name}(`, label: name, about: "function" })),
    ];
  }
}

function schemas(tables: { schema: string }[]): Choice[] {
  const names = new Set(tables.map(({ schema }) => schema));
  return [...names].map((name) => ({ insert: `${quoted(name)}.`, label: name, about: "schema" }));
}

function ofColumn({ name, table, type }: Named): Choice {
  return { insert: quoted(name), label: name, about: `${type} of ${table}` };
}

function ofTable({ schema, name }: { schema: string; name: string }): Choice {
  const isNear = schema === "main";
  return { insert: isNear ? quoted(name) : `${quoted(schema)}.${quoted(name)}`, label: name, about: `table in ${schema}` };
}
