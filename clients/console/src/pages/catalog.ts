// What there is to read: catalogs, schemas, tables, and of each table its columns, its versions and a look at its rows.

import { column } from "../arrow";
import type { Client } from "../client";
import { h, show } from "../dom";
import { bytes, count, literal, quoted } from "../format";
import type { TableNode } from "../schema";
import { schemaTree } from "../schema_tree";
import { runToEnd } from "../run";
import { fill, replace, rowsTable, section, type Page } from "../views";

const TABLES =
  "SELECT table_catalog, table_schema, table_name, table_type\nFROM information_schema.tables\n" +
  "WHERE table_schema NOT IN ('information_schema', 'pg_catalog')\nORDER BY table_catalog, table_schema = 'system', table_schema, table_name";

export function catalogPage(client: Client): Page {
  const tree = h("div", { class: "tree" });
  const detail = h("div", { class: "detail" }, h("p", { class: "note" }, "Select a table."));
  let tables: TableNode[] = [];
  const draw = () =>
    schemaTree(tables, filter.value, {
      table: (table, entry) => {
        for (const chosen of tree.querySelectorAll("[aria-current]")) chosen.removeAttribute("aria-current");
        entry.setAttribute("aria-current", "true");
        show(detail, tableDetail(client, table));
      },
    });
  const sift = () => {
    if (!tree.hasAttribute("aria-busy")) show(tree, ...draw());
  };
  const filter = h("input", { type: "search", placeholder: "filter", "aria-label": "Filter tables", input: sift });
  void fill(tree, async (signal) => {
    const rows = await client.query(TABLES, signal);
    const [catalogs, schemas, kinds] = ["table_catalog", "table_schema", "table_type"].map((name) => column(rows, name));
    tables = column(rows, "table_name").map((name, row) => ({
      catalog: catalogs?.[row] ?? "",
      schema: schemas?.[row] ?? "",
      name: name ?? "",
      isView: kinds?.[row] === "VIEW",
      columns: [],
    }));
    return draw();
  });
  return {
    element: h("div", { class: "page" }, h("h1", {}, "Catalog"), h("div", { class: "split" }, h("nav", { "aria-label": "Tables" }, filter, section("Tables", TABLES, tree)), detail)),
  };
}

function tableDetail(client: Client, { catalog, schema, name: table }: TableNode): HTMLElement {
  const name = [catalog, schema, table].map(quoted).join(".");
  const where = `table_catalog = ${literal(catalog)} AND table_schema = ${literal(schema)} AND table_name = ${literal(table)}`;
  const part = (title: string, sql: string, looks: Parameters<typeof rowsTable>[1]) => {
    const place = h("div");
    void fill(place, async () => rowsTable(await client.query(sql), looks));
    return section(title, sql, place);
  };
  const size = (value: string | null) => (value === null ? null : bytes(Number(value)));
  const number = (value: string | null) => (value === null ? null : count(Number(value)));
  const versions = h("div");
  const history = `SELECT version, committed_at, operation, rows_added, rows_removed\nFROM system.table_history\nWHERE ${where}\nORDER BY version DESC LIMIT 100`;
  void fill(versions, async () => {
    const rows = await client.query(history);
    const numbers = column(rows, "version");
    const look = (row: number) => h("a", { class: "button", href: `#/query?sql=${encodeURIComponent(`SELECT * FROM ${name} FOR VERSION AS OF ${numbers[row]} LIMIT 100`)}` }, "Show rows");
    return rowsTable(rows, { label: "Versions", action: look, columns: { rows_added: number, rows_removed: number } });
  });
  const profile = h("div", {}, h("button", { type: "button", click: () => summarize() }, "Compute profile"));
  const summary = `SUMMARIZE ${name}`;
  const summarize = () => void replace(profile, async (signal, tell) => rowsTable(await runToEnd(client, summary, signal, tell), { label: "Profile" }));
  return h(
    "div",
    {},
    h("h2", {}, name),
    h("p", {}, h("a", { class: "button primary", href: `#/query?sql=${encodeURIComponent(`SELECT * FROM ${name}`)}` }, "Open in the editor")),
    part("Columns", `SELECT column_name, column_type, is_nullable, column_default\nFROM information_schema.columns\nWHERE ${where}\nORDER BY ordinal_position`, { label: "Columns" }),
    part("Rows", `SELECT * FROM ${name} LIMIT 20`, { label: "First rows" }),
    part("Storage", `SELECT storage, row_count, bytes, segments, version, location, error\nFROM system.tables\nWHERE ${where}`, {
      label: "Storage",
      columns: { bytes: size, row_count: number },
    }),
    section("Versions", history, versions),
    section("Profile", summary, profile),
  );
}
