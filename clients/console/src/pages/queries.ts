// What runs now and what ran before, as `system.queries` tells it: each user's own. Whoever may end a statement may end it here.

import { column, type Rows } from "../arrow";
import type { Client } from "../client";
import { announce, h, show } from "../dom";
import { bytes, count, literal, milliseconds } from "../format";
import { button, fill, problemView, replace, rowsTable, section, select, type Page, type Shown } from "../views";

const LIVE =
  "SELECT query_id, user_name, query_tag, statement, outcome, waits_for, started, duration_ms, rows, memory_bytes, progress\n" +
  "FROM system.queries\nWHERE outcome IN ('running', 'queued', 'planning', 'blocked') OR progress IS NOT NULL\nORDER BY started";
const SESSIONS =
  "SELECT session_id, user_name, count(*) AS statements, sum(CASE WHEN error IS NULL THEN 0 ELSE 1 END) AS failed,\n" +
  "  min(started) AS first_statement, max(started) AS latest_statement\n" +
  "FROM system.queries\nGROUP BY session_id, user_name\nORDER BY latest_statement DESC\nLIMIT 50";

function past(outcome: string, order: string, tag: string): string {
  const conditions = [];
  if (outcome !== "all") conditions.push(`outcome = ${literal(outcome)}`);
  if (tag !== "") conditions.push(`query_tag = ${literal(tag)}`);
  const where = conditions.length > 0 ? `WHERE ${conditions.join(" AND ")}\n` : "";
  return (
    "SELECT query_id, query_tag, statement, outcome, started, duration_ms, rows, bytes, error, user_name\n" +
    `FROM system.queries\n${where}ORDER BY ${order === "slowest" ? "duration_ms" : "started"} DESC\nLIMIT 200`
  );
}

const time: Shown = (value) => (value === null ? null : milliseconds(Number(value)));
const size: Shown = (value) => (value === null ? null : bytes(Number(value)));
const number: Shown = (value) => (value === null ? null : count(Number(value)));
const moment: Shown = (value) => (value === null ? null : h("time", { datetime: value, title: value }, value.slice(5, 23)));
const id: Shown = (value) => h("code", { title: value ?? "" }, (value ?? "").slice(0, 8));
const statement: Shown = (value) =>
  h("a", { href: `#/query?sql=${encodeURIComponent(value ?? "")}`, title: value ?? "" }, h("code", {}, (value ?? "").length > 120 ? `${value?.slice(0, 120)}…` : (value ?? "")));
const share: Shown = (value) => (value === null ? null : h("meter", { min: 0, max: 1, value, "aria-label": "progress" }));

export function queriesPage(client: Client): Page {
  const live = h("div");
  const told = h("div");
  const ran = h("div");
  const sessions = h("div");
  let outcome = "all";
  let order = "latest";
  let tag = "";
  let isHere = true;
  let isHeld = false;

  const kill = async (what: string, which: string) => {
    try {
      await client.query(`KILL ${what} ${literal(which)}`);
      announce(`${what.toLowerCase()} ${which} was ended`);
      show(told);
    } catch (error) {
      show(told, problemView(error));
    }
    await Promise.all([look(), list()]);
  };
  const look = () =>
    fill(live, async (signal) => {
      const rows = await client.query(LIVE, signal);
      // A button that is replaced between press and release loses the click.
      while (live.matches(":active")) await new Promise((done) => setTimeout(done, 50));
      const ids = column(rows, "query_id");
      return rowsTable(rows, {
        label: "Running statements",
        columns: { query_id: id, statement, started: moment, duration_ms: time, rows: number, memory_bytes: size, progress: share },
        action: (row) => button("Kill", () => void kill("QUERY", ids[row] ?? ""), { class: "danger", "aria-label": `Kill ${ids[row]}` }),
      });
    });
  const list = (put = fill) =>
    put(ran, async (signal) => {
      const rows = await client.query(past(outcome, order, tag), signal);
      const table = rowsTable(rows, {
        label: "Past statements",
        columns: { query_id: id, statement, started: moment, duration_ms: time, rows: number, bytes: size },
      });
      return [bars(rows), table];
    });
  const open = () =>
    fill(sessions, async () => {
      const rows = await client.query(SESSIONS);
      const ids = column(rows, "session_id");
      return rowsTable(rows, {
        label: "Sessions",
        columns: { session_id: id, first_statement: moment, latest_statement: moment },
        action: (row) => button("End", () => void kill("SESSION", ids[row] ?? ""), { class: "danger", "aria-label": `End session ${ids[row]}` }),
      });
    });
  const draw = () => {
    const tagged = h("input", {
      type: "search",
      value: tag,
      placeholder: "all",
      change: () => {
        tag = tagged.value;
        draw();
      },
    });
    const choices = [
      select("Outcome", ["all", "finished", "failed", "cancelled"], outcome, (value) => {
        outcome = value;
        draw();
      }),
      select("Order", ["latest", "slowest"], order, (value) => {
        order = value;
        draw();
      }),
      h("label", { class: "field" }, "Tag", tagged),
      button("Refresh", () => void list()),
    ];
    const held = h("input", { type: "checkbox", checked: isHeld, change: () => (isHeld = held.checked) });
    const hold = h("label", { class: "field" }, held, "Pause");
    show(page, h("h1", {}, "Queries"), told, section("Running", LIVE, live, hold), section("Past", past(outcome, order, tag), ran, ...choices), section("Sessions", SESSIONS, sessions));
    void list(replace);
  };
  const page = h("div", { class: "page" });
  draw();
  void look();
  void open();
  const tick = window.setInterval(() => {
    // A look that takes longer than a tick is waited for, or none would ever be shown.
    if (isHere && !isHeld && !document.hidden && !live.hasAttribute("aria-busy")) void look();
  }, 2000);
  return {
    element: page,
    leave: () => {
      isHere = false;
      clearInterval(tick);
    },
  };
}

/** When the statements ran and how long each took. */
function bars(rows: Rows): HTMLElement {
  const begun = column(rows, "started").map((text) => Date.parse(`${text?.replace(" ", "T") ?? ""}`));
  const took = column(rows, "duration_ms").map(Number);
  const outcomes = column(rows, "outcome");
  const first = Math.min(...begun);
  const last = Math.max(...begun.map((start, row) => start + (took[row] ?? 0)));
  const line = h("div", { class: "timeline", role: "img", "aria-label": `${rows.count} statements over ${milliseconds(Math.max(0, last - first) || 0)}` });
  begun.forEach((start, row) => {
    const bar = h("i", { class: outcomes[row] ?? "", title: `${milliseconds(took[row] ?? 0)} ${outcomes[row]}` });
    bar.style.left = `${(100 * (start - first)) / (last - first || 1)}%`;
    bar.style.width = `max(2px, ${(100 * (took[row] ?? 0)) / (last - first || 1)}%)`;
    line.append(bar);
  });
  return line;
}
