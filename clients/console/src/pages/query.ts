// The editor with its tabs. Each tab has a session of its own on the server, so that options, temporary tables and transactions
// stay from one statement to the next.

import { type Client, Problem } from "../client";
import type { Words } from "../complete";
import { announce, h, show } from "../dom";
import { editor, type Editor } from "../editor";
import { counted, milliseconds, progressText, quoted } from "../format";
import { Generations } from "../generations";
import { Kept } from "../kept";
import { Results } from "../results";
import { Run } from "../run";
import { isOfServer, schemas, tableName, type TableNode } from "../schema";
import { schemaTree } from "../schema_tree";
import { changesSchema, lineAndColumn, placeOf, statementAt } from "../sqltext";
import { button, problemView, waiting, type Page } from "../views";

interface Tab {
  editor: Editor;
  session: string | null;
  run: Run | null;
  requests: Generations;
  results: Results | null;
  status: HTMLElement;
  output: HTMLElement;
  name: string;
}

const NARROW = "(max-width: 50rem)";
/** Tables that an empty tab lists. */
const START_TABLES = 200;

/** Tabs outlive the page, so that a look elsewhere ends nothing. */
export class Desk {
  private readonly kept: Kept;
  private readonly tabs: Tab[] = [];
  private current = 0;
  private made = 0;
  private readonly bar = h("div", { class: "tabs", role: "tablist", "aria-label": "Statements" });
  private readonly place = h("div", { class: "desk", role: "tabpanel", "aria-label": "Statement" });
  private readonly tree = h("div", { class: "tree" }, waiting("loading").element);
  private readonly filter = h("input", { type: "search", placeholder: "filter", "aria-label": "Filter tables and columns", input: () => this.drawSchema() });
  private readonly schema = h(
    "nav",
    { class: "schema", "aria-label": "Schema", hidden: matchMedia(NARROW).matches },
    h("header", {}, h("h2", {}, "Tables"), button("Refresh", () => void this.loadSchema(), { class: "quiet" })),
    this.filter,
    this.tree,
  );
  private isLoaded = false;
  private readonly past = h("aside", { class: "past", "aria-label": "History", hidden: true });

  constructor(
    private readonly client: Client,
    private readonly words: Words,
  ) {
    this.kept = new Kept(client.user);
    for (const text of this.kept.tabs) this.add(text);
    if (this.tabs.length === 0) this.add("");
    words.listen(() => {
      this.isLoaded = true;
      this.drawSchema();
      for (const tab of this.tabs) this.drawStart(tab);
    });
  }

  page(sql: string | null): Page {
    if (sql !== null) {
      this.current = this.tabs.findIndex((tab) => tab.editor.text().trim() === sql.trim());
      if (this.current < 0) this.current = this.add(sql);
    }
    this.draw();
    return { element: h("div", { class: "query-page" }, h("h1", { class: "unseen" }, "Query"), this.bar, h("div", { class: "desk-row" }, this.schema, this.place, this.past)) };
  }

  /** Ends what runs, and the sessions. */
  async close(): Promise<void> {
    const ends = this.tabs.map(async (tab) => {
      await tab.run?.cancel();
      if (tab.session) await this.client.closeSession(tab.session).catch(() => {});
    });
    await Promise.all(ends);
  }

  private add(text: string): number {
    this.made += 1;
    const status = h("div", { class: "status", role: "status" });
    const output = h("div", { class: "output" });
    const tab: Tab = { session: null, run: null, requests: new Generations(), results: null, status, output, name: `Query ${this.made}` } as never;
    tab.editor = editor({ text, words: this.words, changed: () => this.keep(), run: (all) => void this.run(tab, all) });
    this.tabs.push(tab);
    this.drawStart(tab);
    return this.tabs.length - 1;
  }

  private async loadSchema(): Promise<void> {
    show(this.tree, waiting("loading").element);
    await this.words.load();
  }

  private drawSchema(): void {
    if (!this.isLoaded) return;
    if (this.words.problem !== null) return show(this.tree, problemView(this.words.problem));
    const insert = (text: string) => this.tabs[this.current]?.editor.insert(text);
    const more = this.words.isPartial ? h("p", { class: "note" }, "Only the first 50,000 columns are shown.") : null;
    show(this.tree, ...schemaTree(this.words.tables, this.filter.value, { table: (table) => insert(tableName(table)), column: (name) => insert(quoted(name)) }), more);
  }

  /** Shows the tables where nothing was written yet. */
  private drawStart(tab: Tab): void {
    // A tab that already waits for them gets them even if something is written meanwhile.
    if (tab.run !== null || (tab.editor.text().trim() !== "" && !tab.output.hasChildNodes())) return;
    if (!this.isLoaded) return show(tab.output, waiting("loading the tables").element);
    if (this.words.problem !== null) return show(tab.output, problemView(this.words.problem));
    const open = (table: TableNode) => {
      tab.editor.write(`SELECT * FROM ${tableName(table)} LIMIT 100`);
      void this.run(tab, true);
    };
    const tables = schemas(this.words.tables).filter(({ name }) => !isOfServer(name)).flatMap(({ tables }) => tables);
    const items = tables.slice(0, START_TABLES).map((table) =>
      h("li", {}, h("button", { type: "button", click: () => open(table) }, h("b", {}, tableName(table)), h("small", {}, counted(table.columns.length, "column")))),
    );
    const note =
      tables.length === 0 ? "There are no tables yet: serve files (bowshot serve FILE), or create a table here."
      : tables.length > START_TABLES ? `The first ${START_TABLES} of ${tables.length} tables. Select one to see its rows.`
      : "Select a table to see its rows.";
    show(tab.output, h("section", { class: "card start" }, h("h2", {}, "Tables"), h("p", { class: "note" }, note), h("ul", {}, ...items)));
  }

  private keep(): void {
    this.kept.tabs = this.tabs.map((tab) => tab.editor.text());
  }

  private async remove(index: number): Promise<void> {
    const [tab] = this.tabs.splice(index, 1);
    if (this.tabs.length === 0) this.add("");
    this.current = Math.min(this.current, this.tabs.length - 1);
    this.keep();
    this.draw();
    tab?.results?.destroy();
    await tab?.run?.cancel();
    if (tab?.session) await this.client.closeSession(tab.session).catch(() => {});
  }

  private draw(): void {
    const tabs = this.tabs.map((tab, index) =>
      h(
        "button",
        { type: "button", role: "tab", "aria-selected": String(index === this.current), tabindex: index === this.current ? 0 : -1, click: () => this.choose(index) },
        tab.name,
      ),
    );
    this.bar.onkeydown = (event) => {
      const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? this.tabs.length - 1 : 0;
      if (step === 0) return;
      this.choose((this.current + step) % this.tabs.length);
      this.bar.querySelector<HTMLElement>("[aria-selected=true]")?.focus();
    };
    show(this.bar, ...tabs);
    const tab = this.tabs[this.current];
    if (!tab) return;
    const run = button("Run", () => void this.run(tab, false), { class: "primary", title: "Ctrl+Enter: the statement at the caret, or what is chosen" });
    const tools = h(
      "div",
      { class: "tools" },
      run,
      button("Run all", () => void this.run(tab, true), { title: "Ctrl+Shift+Enter" }),
      button("Cancel", () => void tab.run?.cancel(), { class: "cancel" }),
      tab.status,
      h("span", { class: "spacer" }),
      button("Tables", () => (this.schema.hidden = !this.schema.hidden)),
      button("History", () => this.showPast()),
      button("New tab", () => this.choose(this.add(""))),
      button("Close tab", () => void this.remove(this.current)),
    );
    show(this.place, tab.editor.element, tools, tab.output);
  }

  private choose(index: number): void {
    this.current = index;
    this.draw();
    this.tabs[index]?.editor.focus();
  }

  private showPast(): void {
    this.past.hidden = !this.past.hidden;
    const items = this.kept.history.map(({ sql, at, outcome }) =>
      h(
        "li",
        {},
        h(
          "button",
          { type: "button", click: () => this.choose(this.add(sql)) },
          h("code", {}, sql.length > 300 ? `${sql.slice(0, 300)}…` : sql),
          h("small", {}, `${new Date(at).toLocaleString()} · ${outcome}`),
        ),
      ),
    );
    const clear = button("Clear history", () => {
      this.kept.forget();
      this.past.hidden = true;
    });
    show(this.past, h("header", {}, h("h2", {}, "History"), clear), h("ul", {}, ...items));
  }

  private async run(tab: Tab, all: boolean): Promise<void> {
    const { editor, status, output } = tab;
    const whole = editor.text();
    const { start, end } = editor.selection();
    const statement = statementAt(whole, start);
    const [sql, before] = all ? [whole, 0] : start !== end ? [whole.slice(start, end), start] : [statement?.sql ?? "", statement?.start ?? 0];
    if (sql.trim() === "") return;
    editor.mark(null);
    tab.results?.destroy();
    tab.results = null;
    const wait = waiting("waiting for the first row");
    show(output, wait.element);
    const meter = h("progress", { max: 1, "aria-label": "Progress" });
    show(status, meter, " running");
    const request = tab.requests.next();
    const isLatest = () => tab.requests.isLatest(request);
    const done = (outcome: string, text: string) => {
      this.kept.remember({ sql, at: Date.now(), outcome });
      if (!isLatest()) return;
      show(status, text);
      announce(text);
    };
    const run: Run = new Run(this.client, sql, {
      started: (started) => {
        if (started.columns === null) {
          if (isLatest()) show(output);
          if (changesSchema(sql)) void this.words.load();
          return done("done", changed(started.rows_affected));
        }
        if (!isLatest()) return;
        tab.results = new Results(this.client, { sql: lastOf(sql), started, total: 0 });
        show(output, tab.results.element);
      },
      moved: (progress, elapsed) => {
        if (!isLatest()) return;
        const { fraction, rows } = progress ?? { fraction: null, rows: null };
        if (fraction !== null && fraction > 0) meter.value = fraction;
        // What is there can be looked at while the rest is made.
        if (rows !== null && rows > 0) tab.results?.grown(rows, false);
        show(status, meter, ` ${progressText(elapsed, fraction)}`);
      },
      ended: (progress, elapsed) => {
        if (progress === null) return;
        const rows = progress.rows ?? 0;
        if (isLatest()) tab.results?.grown(rows, true);
        done("done", `${counted(rows, "row")} in ${milliseconds(elapsed)}`);
      },
      failed: (error) => {
        done(error instanceof Problem ? error.kind : "failed", "");
        if (isLatest()) this.tell(tab, error, whole, before);
      },
    });
    // The run before ends without a word: what it still answers is no longer shown.
    const earlier = tab.run;
    tab.run = run;
    await earlier?.cancel();
    if (!isLatest()) return;
    try {
      tab.session ??= await this.client.openSession();
    } catch (error) {
      if (isLatest()) this.tell(tab, error, whole, before);
      return;
    }
    await run.start(tab.session);
  }

  /** Shows an error, and where in the text it lies. */
  private tell(tab: Tab, error: unknown, whole: string, before: number): void {
    if (error instanceof Problem && error.kind === "not_found" && error.message.startsWith("session not found")) tab.session = null;
    show(tab.status);
    if (!(error instanceof Problem) || error.position === null) return show(tab.output, problemView(error));
    const place = before + placeOf(whole.slice(before), error.position);
    tab.editor.mark(place);
    const [line, column] = lineAndColumn(whole, place);
    show(tab.output, problemView(error, button(`Go to line ${line}, column ${column}`, () => tab.editor.focus(place))));
  }
}

function changed(rows: number | null): string {
  return rows === null ? "done" : `${counted(rows, "row")} changed`;
}

/** The statement whose result is shown: the last one. */
function lastOf(sql: string): string {
  return statementAt(sql, sql.length)?.sql ?? sql;
}
