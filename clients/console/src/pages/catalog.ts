// What there is to read: catalogs, schemas, tables, and of each table its columns, its versions and a look at its rows.

import { column } from "../arrow";
import type { Client } from "../client";
import { h, show } from "../dom";
import { bytes, count, literal, quoted } from "../format";
import { fill, rowsTable, section, type Page } from "../views";

const TABLES =
  "SELECT table_catalog, table_schema, table_name, table_type\nFROM information_schema.tables\n" +
  "WHERE table_schema NOT IN ('information_schema', 'pg_catalog')\nORDER BY table_catalog, table_schema = 'system', table_schema, table_name";

interface Name {
  catalog: string;
  schema: string;
  table: string;
}

export function catalogPage(client: Client): Page {
  const tree = h("div", { class: "tree" });
  const detail = h("div", { class: "detail" }, h("p", { class: "note" }, "Choose a table."));
  const filter = h("input", { type: "search", placeholder: "filter", "aria-label": "Filter tables", input: () => sift(tree, filter.value) });
  void fill(tree, async () => {
    const rows = await client.query(TABLES);
    const [catalogs, schemas, tables, kinds] = ["table_catalog", "table_schema", "table_name", "table_type"].map((name) => column(rows, name));
    const groups = new Map<string, HTMLElement>();
    for (let row = 0; row < rows.count; row += 1) {
      const name = { catalog: catalogs?.[row] ?? "", schema: schemas?.[row] ?? "", table: tables?.[row] ?? "" };
      const key = `${name.catalog}.${name.schema}`;
      const list = groups.get(key) ?? h("ul");
      groups.set(key, list);
      const open = () => {
        for (const chosen of tree.querySelectorAll("[aria-current]")) chosen.removeAttribute("aria-current");
        entry.setAttribute("aria-current", "true");
        show(detail, tableDetail(client, name));
      };
      const entry = h("button", { type: "button", click: open, "data-name": name.table.toLowerCase() }, name.table, kinds?.[row] === "VIEW" ? h("small", {}, " view") : null);
      list.append(h("li", {}, entry));
    }
    return [...groups].map(([key, list]) => h("details", { open: true }, h("summary", {}, key), list));
  }).then(() => sift(tree, filter.value));
  return {
    element: h("div", { class: "page" }, h("h1", {}, "Catalog"), h("div", { class: "split" }, h("nav", { "aria-label": "Tables" }, filter, section("Tables", TABLES, tree)), detail)),
  };
}

function sift(tree: HTMLElement, text: string): void {
  for (const entry of tree.querySelectorAll<HTMLElement>("[data-name]")) {
    const item = entry.parentElement;
    if (item) item.hidden = !entry.dataset.name?.includes(text.toLowerCase());
  }
}

function tableDetail(client: Client, { catalog, schema, table }: Name): HTMLElement {
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
    const look = (row: number) => h("a", { class: "button", href: `#/query?sql=${encodeURIComponent(`SELECT * FROM ${name} FOR VERSION AS OF ${numbers[row]} LIMIT 100`)}` }, "Look at it");
    return rowsTable(rows, { label: "Versions", action: look, columns: { rows_added: number, rows_removed: number } });
  });
  const profile = h("div", {}, h("button", { type: "button", click: () => summarize() }, "Read the table and summarize it"));
  const summary = `SUMMARIZE ${name}`;
  const summarize = () => void fill(profile, async () => rowsTable(await client.query(summary), { label: "Profile" }));
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
