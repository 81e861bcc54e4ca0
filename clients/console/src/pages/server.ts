// What the server keeps, where its data is, who may do what, and how it is set.

import type { Client } from "../client";
import { series } from "../chart";
import { h, show } from "../dom";
import { bytes, count, milliseconds, short } from "../format";
import { button, fill, problemView, rowsTable, section, waiting, type Page, type Shown } from "../views";

const size: Shown = (value) => (value === null ? null : bytes(Number(value)));
const number: Shown = (value) => (value === null ? null : count(Number(value)));
const cost: Shown = (value) => (value === null ? null : milliseconds(Number(value)));

const CACHES: [string, string][] = [
  ["Cached results", "SELECT tables, column_count, row_count, bytes, cost_ms, hits, created\nFROM system.result_cache\nORDER BY bytes DESC LIMIT 200"],
  ["Cached joins", "SELECT tables, column_count, row_count, bytes, disk_bytes, place, cost_ms, hits, forecast, pinned, worth, created\nFROM system.join_cache\nORDER BY worth DESC LIMIT 200"],
  ["Predicted joins", "SELECT tables, reason, rank\nFROM system.cache_forecasts\nORDER BY rank DESC LIMIT 200"],
  ["Join history", "SELECT tables, latest, conditions, count, cost_ms, unused, first_seen, last_seen\nFROM system.join_history\nORDER BY last_seen DESC LIMIT 200"],
];

const VIEWS: [string, string][] = [
  [
    "Materialized views",
    "SELECT table_schema, table_name, refresh, state, lag_ms, row_count, answered_queries, saved_ms, last_refresh, last_duration_ms, incremental, full_reason, last_error, made_by\n" +
      "FROM system.materialized_views\nORDER BY saved_ms DESC NULLS LAST, table_schema, table_name LIMIT 500",
  ],
  ["Suggested views", "SELECT definition, tables, queries, duration_ms, saving_ms, estimated_rows, estimated_bytes, dialect\nFROM system.suggested_views\nORDER BY saving_ms DESC"],
  ["Pipes", 'SELECT name, state, table_schema, table_name, location, "every", files_loaded, rows_loaded, last_loaded, last_error, owner\nFROM system.pipes\nORDER BY name'],
  ["Files that pipes could not load", "SELECT pipe, file, error, failed_at\nFROM system.pipe_errors\nORDER BY failed_at DESC LIMIT 500"],
];

const SOURCES: [string, string][] = [
  ["Files", "SELECT table_name, format, files, bytes, path, read_as, error\nFROM system.files\nORDER BY error IS NULL, table_name LIMIT 500"],
  ["Databases", "SELECT name, kind, place, read_only, attached, connections, tables, problem\nFROM system.databases\nORDER BY name"],
  ["Object stores", "SELECT place, requests, failed, bytes_read, bytes_written, bytes_from_cache, cache_bytes, last_error\nFROM system.object_stores\nORDER BY place"],
  ["Rejected lines", "SELECT table_name, path, line, column_name, value, reason\nFROM system.rejects\nLIMIT 200"],
];

const NODES: [string, string][] = [
  ["Nodes", "SELECT address, public, state, this_node, takes_work, since, last_heard, clock_skew_ms, threads, memory_bytes, build, node_id\nFROM system.nodes\nORDER BY address"],
  ["Distributed stages", "SELECT query_id, stage, task, node, exchange, operators, started\nFROM system.query_stages\nORDER BY started, query_id, stage, task LIMIT 500"],
];

const ACCESS: [string, string][] = [
  ["Roles and users", "SELECT name, kind, defined_in, is_admin, member_of\nFROM system.roles\nORDER BY kind, name LIMIT 500"],
  ["Privileges", "SELECT grantee, privilege, object_type, table_catalog, table_schema, table_name, columns, is_owner\nFROM system.grants\nORDER BY grantee, table_schema, table_name LIMIT 500"],
  ["Policies and masks", "SELECT table_schema, table_name, policy_name, kind, column_name, roles, expression\nFROM system.policies\nORDER BY table_schema, table_name, policy_name LIMIT 500"],
  ["Default privileges", "SELECT user_name, table_catalog, table_schema, grantee, privilege\nFROM system.default_privileges\nORDER BY user_name"],
  ["Tokens", "SELECT user_name, token_name, created, expires\nFROM system.tokens\nORDER BY user_name, token_name LIMIT 200"],
];

/** A page of tables, each with its statement. */
function tablesPage(client: Client, name: string, tables: [string, string][]): Page {
  const page = h("div", { class: "page" });
  const sizes = ["bytes", "disk_bytes", "memory_bytes", "bytes_read", "bytes_written", "bytes_from_cache", "cache_bytes", "estimated_bytes"];
  const counts = ["row_count", "answered_queries", "queries", "estimated_rows", "files_loaded", "rows_loaded"];
  const costs = ["cost_ms", "lag_ms", "last_duration_ms", "saved_ms", "duration_ms", "saving_ms"];
  const columns = Object.fromEntries(
    [...sizes.map((name) => [name, size] as const), ...counts.map((name) => [name, number] as const), ...costs.map((name) => [name, cost] as const)],
  );
  const draw = () => {
    for (const [index, [title, sql]] of tables.entries()) {
      const place = places[index];
      if (place) void fill(place, async (signal) => rowsTable(await client.query(sql, signal), { label: title, columns }));
    }
  };
  const places = tables.map(() => h("div"));
  show(page, h("h1", {}, name), h("p", {}, button("Refresh", draw)), ...tables.map(([title, sql], index) => section(title, sql, places[index] ?? page)));
  draw();
  return { element: page };
}

export const cachesPage = (client: Client): Page => tablesPage(client, "Caches", CACHES);
export const viewsPage = (client: Client): Page => tablesPage(client, "Views", VIEWS);
export const sourcesPage = (client: Client): Page => tablesPage(client, "Sources", SOURCES);
export const nodesPage = (client: Client): Page => tablesPage(client, "Nodes", NODES);
export const accessPage = (client: Client): Page => tablesPage(client, "Access", ACCESS);

export function settingsPage(client: Client): Page {
  const sql = "SHOW ALL";
  const place = h("div");
  const sift = () => {
    for (const row of place.querySelectorAll<HTMLElement>("tbody tr")) row.hidden = !row.textContent?.toLowerCase().includes(filter.value.toLowerCase());
  };
  const filter = h("input", { type: "search", placeholder: "filter", "aria-label": "Filter settings", input: sift });
  void fill(place, async () => rowsTable(await client.query(sql), { label: "Session settings" })).then(sift);
  return {
    element: h(
      "div",
      { class: "page" },
      h("h1", {}, "Settings"),
      h("p", { class: "note" }, "The settings with which your sessions start. SET name = value in the editor changes one for its tab."),
      section("Session settings", sql, place, filter),
    ),
  };
}

const LOOK_MS = 2000;
const POINTS = 150;

interface Sample {
  name: string;
  about: string;
  kind: string;
  value: number;
}

/** Metrics in Prometheus text format, by name. Those with several labels are added up. */
export function samples(text: string): Sample[] {
  const found = new Map<string, Sample>();
  const about = new Map<string, string>();
  const kinds = new Map<string, string>();
  for (const line of text.split("\n")) {
    const told = /^# (HELP|TYPE) (\S+) (.*)$/.exec(line);
    if (told) {
      (told[1] === "HELP" ? about : kinds).set(told[2] ?? "", told[3] ?? "");
      continue;
    }
    const sample = /^([a-zA-Z_:][\w:]*)(\{.*\})? (\S+)$/.exec(line);
    const name = sample?.[1] ?? "";
    if (!sample || /_(bucket|info)$/.test(name)) continue;
    const base = name.replace(/_(sum|count)$/, "");
    const known = found.get(name);
    const value = Number(sample[3]);
    if (known) known.value += value;
    else found.set(name, { name, about: about.get(name) ?? about.get(base) ?? "", kind: kinds.get(name) ?? "counter", value });
  }
  return [...found.values()].sort((a, b) => a.name.localeCompare(b.name));
}

export function metricsPage(client: Client): Page {
  const places = h("div", { class: "metrics" });
  const told = h("div", {}, waiting("loading").element);
  const past = new Map<string, Measured[]>();
  const before = new Map<string, number>();
  let at = performance.now();
  let isAsking = false;
  let isPaused = false;
  const look = async () => {
    if (isAsking || isPaused || document.hidden) return;
    isAsking = true;
    try {
      const text = await client.metrics();
      const now = performance.now();
      const passed = (now - at) / 1000;
      at = now;
      const cards = samples(text).map((sample) => {
        const isCounter = sample.kind !== "gauge";
        const last = before.get(sample.name);
        before.set(sample.name, sample.value);
        const known = past.get(sample.name) ?? [];
        // A rate needs two samples.
        if (!isCounter || last !== undefined) known.push({ at: Date.now(), value: isCounter ? Math.max(0, sample.value - (last ?? 0)) / passed : sample.value });
        past.set(sample.name, known.slice(-POINTS));
        return card(sample, known.slice(-POINTS), isCounter);
      });
      show(places, ...cards);
      show(told);
    } catch (error) {
      show(told, problemView(error));
    } finally {
      isAsking = false;
    }
  };
  void look();
  const tick = window.setInterval(() => void look(), LOOK_MS);
  const pause = h("input", { type: "checkbox", change: () => (isPaused = pause.checked) });
  return {
    element: h(
      "div",
      { class: "page" },
      h("h1", {}, "Metrics"),
      h("p", { class: "note" }, "The metrics of ", h("code", {}, "GET /metrics"), ", every two seconds since this page was opened. Counters are shown as rates per second."),
      h("p", {}, h("label", { class: "field" }, pause, "Pause")),
      told,
      places,
    ),
    leave: () => clearInterval(tick),
  };
}

interface Measured {
  at: number;
  value: number;
}

function card({ name, about }: Sample, values: Measured[], isCounter: boolean): HTMLElement {
  const latest = values.at(-1)?.value;
  const isBytes = /bytes/.test(name);
  const shown = latest === undefined ? "…" : isBytes ? bytes(Math.round(latest)) : short(latest);
  const title = name.replace(/^bowshot_/, "").replaceAll("_", " ");
  return h(
    "section",
    { class: "card metric" },
    h("h2", {}, title),
    h("b", {}, `${shown}${isCounter ? " /s" : ""}`),
    values.length === 0 ? null : series(`${title}, the last ${values.length} samples`, values, isBytes ? "bytes" : "number"),
    about === "" ? null : h("small", {}, about),
  );
}
