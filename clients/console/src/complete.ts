// What may come next while a statement is written: names of tables, columns and functions, which the server was asked for.

import type { Client } from "./client";
import { column } from "./arrow";
import { quoted } from "./format";
import { Generations } from "./generations";
import { tableName, tablesOfColumns, type ColumnOfTable, type TableNode } from "./schema";
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

const MOST = 50;
/** Columns that are asked for; a schema with more is shown in part. */
const MOST_COLUMNS = 50_000;

export class Words {
  tables: TableNode[] = [];
  /** Whether there are more columns than were asked for. */
  isPartial = false;
  private columns: ColumnOfTable[] = [];
  private functions: string[] = [];
  private readonly requests = new Generations();
  private readonly listeners = new Set<() => void>();
  private isAnswered = false;
  /** Why the server gave nothing the last time, where it did not. */
  problem: unknown = null;

  constructor(private readonly client: Client) {}

  /** Calls whoever shows the schema whenever it was read, and now if it was before. */
  listen(changed: () => void): void {
    this.listeners.add(changed);
    if (this.isAnswered) changed();
  }

  /** Asks the server anew. What it does not answer is not offered. */
  async load(): Promise<void> {
    const request = this.requests.next();
    let problem: unknown = null;
    try {
      await this.read(request);
    } catch (error) {
      problem = error;
    }
    if (!this.requests.isLatest(request)) return;
    this.problem = problem;
    this.isAnswered = true;
    for (const changed of this.listeners) changed();
  }

  private async read(request: number): Promise<void> {
    const [columns, functions] = await Promise.all([
      this.client.query(
        "SELECT table_catalog, table_schema, table_name, column_name, column_type FROM information_schema.columns " +
          `ORDER BY table_catalog, table_schema, table_name, ordinal_position LIMIT ${MOST_COLUMNS}`,
      ),
      this.client.query("SELECT DISTINCT routine_name FROM information_schema.routines ORDER BY 1"),
    ]);
    if (!this.requests.isLatest(request)) return;
    const [catalogs, schemas, tables, types] = ["table_catalog", "table_schema", "table_name", "column_type"].map((name) => column(columns, name));
    this.columns = column(columns, "column_name").map((name, row) => ({
      catalog: catalogs?.[row] ?? "",
      schema: schemas?.[row] ?? "",
      table: tables?.[row] ?? "",
      name: name ?? "",
      type: types?.[row] ?? "",
    }));
    this.tables = tablesOfColumns(this.columns);
    this.isPartial = columns.count >= MOST_COLUMNS;
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

function ofColumn({ name, table, type }: ColumnOfTable): Choice {
  return { insert: quoted(name), label: name, about: `${type} of ${table}` };
}

function ofTable(table: TableNode): Choice {
  return { insert: tableName(table), label: table.name, about: `table in ${table.schema}` };
}
