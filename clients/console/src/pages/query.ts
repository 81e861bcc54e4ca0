// The editor with its tabs. Each tab has a session of its own on the server, so that options, temporary tables and transactions
// stay from one statement to the next.

import { type Client, Problem } from "../client";
import type { Words } from "../complete";
import { announce, h, show } from "../dom";
import { editor, type Editor } from "../editor";
import { count, milliseconds } from "../format";
import { Kept } from "../kept";
import { Results } from "../results";
import { Run } from "../run";
import { lineAndColumn, placeOf, statementAt } from "../sqltext";
import { button, problemView, type Page } from "../views";

interface Tab {
  editor: Editor;
  session: string | null;
  run: Run | null;
  results: Results | null;
  status: HTMLElement;
  output: HTMLElement;
  name: string;
}

/** Tabs outlive the page, so that a look elsewhere ends nothing. */
export class Desk {
  private readonly kept: Kept;
  private readonly tabs: Tab[] = [];
  private current = 0;
  private made = 0;
  private readonly bar = h("div", { class: "tabs", role: "tablist", "aria-label": "Statements" });
  private readonly place = h("div", { class: "desk", role: "tabpanel", "aria-label": "Statement" });
  private readonly past = h("aside", { class: "past", "aria-label": "History", hidden: true });

  constructor(
    private readonly client: Client,
    private readonly words: Words,
  ) {
    this.kept = new Kept(client.user);
    for (const text of this.kept.tabs) this.add(text);
    if (this.tabs.length === 0) this.add("");
  }

  page(sql: string | null): Page {
    if (sql !== null) {
      this.current = this.tabs.findIndex((tab) => tab.editor.text().trim() === sql.trim());
      if (this.current < 0) this.current = this.add(sql);
    }
    this.draw();
    return { element: h("div", { class: "query-page" }, h("h1", { class: "unseen" }, "Query"), this.bar, h("div", { class: "desk-row" }, this.place, this.past)) };
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
    const tab: Tab = { session: null, run: null, results: null, status, output, name: `Query ${this.made}` } as never;
    tab.editor = editor({ text, words: this.words, changed: () => this.keep(), run: (all) => void this.run(tab, all) });
    this.tabs.push(tab);
    return this.tabs.length - 1;
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
    const clear = button("Forget all", () => {
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
    show(output);
    const meter = h("progress", { max: 1, "aria-label": "Progress" });
    show(status, meter, " running");
    const isLatest = () => tab.run === run;
    const done = (outcome: string, text: string) => {
      this.kept.remember({ sql, at: Date.now(), outcome });
      if (!isLatest()) return;
      show(status, text);
      announce(text);
    };
    const run: Run = new Run(this.client, sql, {
      started: (started) => {
        if (started.columns === null) return done("done", changed(started.rows_affected));
        tab.results = new Results(this.client, { sql: lastOf(sql), started, total: 0 });
        show(output, tab.results.element);
      },
      moved: ({ fraction, rows }, elapsed) => {
        if (fraction !== null && fraction > 0) meter.value = fraction;
        // What is there can be looked at while the rest is made.
        if (rows !== null && rows > 0) tab.results?.grown(rows);
        show(status, meter, ` ${milliseconds(elapsed)}${rows === null ? "" : ` · ${count(rows)} rows`}`);
      },
      ended: (progress, elapsed) => {
        if (progress === null) return;
        const rows = progress.rows ?? 0;
        tab.results?.grown(rows);
        done("done", `${count(rows)} rows in ${milliseconds(elapsed)}`);
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
  return rows === null ? "done" : `${count(rows)} rows changed`;
}

/** The statement whose result is shown: the last one. */
function lastOf(sql: string): string {
  return statementAt(sql, sql.length)?.sql ?? sql;
}
