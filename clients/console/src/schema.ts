// The schema as a tree: catalogs, schemas, tables, columns, and the shortest name by which a statement finds a table.

import { quoted } from "./format";

export interface ColumnOfTable {
  catalog: string;
  schema: string;
  table: string;
  name: string;
  type: string;
}

export interface TableNode {
  catalog: string;
  schema: string;
  name: string;
  isView?: boolean;
  columns: { name: string; type: string }[];
}

export interface SchemaNode {
  catalog: string;
  name: string;
  tables: TableNode[];
}

/** Where a session begins. */
const CATALOG = "bowshot";
const SCHEMA = "main";
const OF_THE_SERVER = ["system", "information_schema", "pg_catalog"];

/** The tables of columns, in their order. */
export function tablesOfColumns(columns: ColumnOfTable[]): TableNode[] {
  const tables = new Map<string, TableNode>();
  for (const { catalog, schema, table, name, type } of columns) {
    const key = JSON.stringify([catalog, schema, table]);
    const node = tables.get(key) ?? { catalog, schema, name: table, columns: [] };
    node.columns.push({ name, type });
    tables.set(key, node);
  }
  return [...tables.values()];
}

/** Schemas by catalog: where a session begins first, what the server tells of itself last. */
export function schemas(tables: TableNode[]): SchemaNode[] {
  const found = new Map<string, SchemaNode>();
  for (const table of tables) {
    const key = JSON.stringify([table.catalog, table.schema]);
    const node = found.get(key) ?? { catalog: table.catalog, name: table.schema, tables: [] };
    node.tables.push(table);
    found.set(key, node);
  }
  const rank = ({ catalog, name }: SchemaNode) => [catalog === CATALOG ? 0 : 1, catalog, OF_THE_SERVER.indexOf(name), name === SCHEMA ? 0 : 1, name] as const;
  const before = (a: SchemaNode, b: SchemaNode) => {
    const [first, second] = [rank(a), rank(b)];
    const at = first.findIndex((part, index) => part !== second[index]);
    return at < 0 ? 0 : (first[at] ?? "") < (second[at] ?? "") ? -1 : 1;
  };
  return [...found.values()].sort(before);
}

/** Whether a schema describes the server and not the data. */
export function isOfServer(schema: string): boolean {
  return OF_THE_SERVER.includes(schema);
}

/** The shortest name of a table in a new session. */
export function tableName({ catalog, schema, name }: { catalog: string; schema: string; name: string }): string {
  const parts = catalog !== CATALOG ? [catalog, schema, name] : schema !== SCHEMA ? [schema, name] : [name];
  return parts.map(quoted).join(".");
}

/** The tables whose name, or one of whose columns, contains a text. */
export function matching(tables: TableNode[], text: string): TableNode[] {
  const wanted = text.trim().toLowerCase();
  const fits = (name: string) => name.toLowerCase().includes(wanted);
  return wanted === "" ? tables : tables.filter(({ name, columns }) => fits(name) || columns.some((column) => fits(column.name)));
}
