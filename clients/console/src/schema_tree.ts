// Catalogs, schemas, tables and columns as a tree; what a click on a name does is the caller's matter.

import { h, show } from "./dom";
import { isOfServer, matching, schemas, type SchemaNode, type TableNode } from "./schema";

export interface Wishes {
  /** A table was clicked, at this entry. */
  table: (table: TableNode, entry: HTMLElement) => void;
  /** A column was clicked; without it, tables show no columns. */
  column?: (name: string) => void;
}

/** The tree of the tables that match a filter. Columns are drawn when their table is opened. */
export function schemaTree(tables: TableNode[], filter: string, wishes: Wishes): HTMLElement[] {
  const isFiltered = filter.trim() !== "";
  const catalogs = new Map<string, SchemaNode[]>();
  for (const schema of schemas(matching(tables, filter))) catalogs.set(schema.catalog, [...(catalogs.get(schema.catalog) ?? []), schema]);
  if (catalogs.size === 0) return [h("p", { class: "note" }, isFiltered ? "No table matches." : "There are no tables.")];
  return [...catalogs].map(([catalog, found]) =>
    h("details", { open: true, class: "catalog" }, h("summary", {}, catalog), ...found.map((schema) => branch(schema, isFiltered, wishes))),
  );
}

function branch({ name, tables }: SchemaNode, isFiltered: boolean, wishes: Wishes): HTMLElement {
  const list = h("ul");
  const draw = () => {
    if (element.open && list.childElementCount === 0) show(list, ...tables.map((table) => item(table, wishes)));
  };
  const element = h("details", { open: isFiltered || !isOfServer(name), toggle: draw }, h("summary", {}, name, " ", h("small", {}, `${tables.length}`)), list);
  draw();
  return element;
}

function item(table: TableNode, { table: clicked, column }: Wishes): HTMLElement {
  const entry: HTMLElement = h("button", { type: "button", "data-name": table.name.toLowerCase(), click: () => clicked(table, entry) }, table.name, table.isView ? h("small", {}, " view") : null);
  if (!column) return h("li", {}, entry);
  const columns = h("ul", { class: "columns", hidden: true });
  const fold = h("button", { type: "button", class: "fold", "aria-expanded": "false", "aria-label": `Columns of ${table.name}`, click: () => turn() }, "▸");
  const turn = () => {
    columns.hidden = !columns.hidden;
    fold.setAttribute("aria-expanded", String(!columns.hidden));
    fold.textContent = columns.hidden ? "▸" : "▾";
    if (columns.childElementCount > 0) return;
    show(columns, ...table.columns.map(({ name, type }) => h("li", {}, h("button", { type: "button", click: () => column(name) }, h("span", {}, name), " ", h("small", {}, type)))));
  };
  return h("li", {}, h("div", { class: "table-row" }, fold, entry), columns);
}
