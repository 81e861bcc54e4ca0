// What can be done with a result: look at its rows, chart it, profile its columns, see its plan, take it elsewhere.

import type { Client, Started } from "./client";
import { chart } from "./chart";
import { chartSql, columnsFor, coverage, firstChoice, fitting, kinds, measures, type Choice } from "./chart_choice";
import { languages, program, type Language } from "./copyas";
import { announce, download, h, show } from "./dom";
import { grid, type Grid } from "./grid";
import { planView } from "./plan";
import { runToEnd } from "./run";
import { isQuery } from "./sqltext";
import { button, problemView, replace, rowsTable, section, select, stopFilling, waiting, type Work } from "./views";

export interface Result {
  sql: string;
  started: Started;
  total: number;
}

const views = ["Rows", "Chart", "Profile", "Plan", "Copy as", "Export"] as const;
type View = (typeof views)[number];

export class Results {
  readonly element = h("div", { class: "results" });
  private readonly bar = h("div", { class: "views", role: "tablist", "aria-label": "Views of the result" });
  private readonly place = h("div", { class: "view", role: "tabpanel" });
  private view: View = "Rows";
  private grid: Grid | null = null;
  private choice: Choice | null = null;
  private isComplete = false;
  /** Draws a chart again where the room for it changes. */
  private sized: ResizeObserver | null = null;
  /** Where an answer of a view comes. */
  private answer = h("div");

  constructor(
    private readonly client: Client,
    private readonly result: Result,
  ) {
    this.element.append(this.bar, this.place);
    this.open("Rows");
  }

  /** Tells how many rows there are, or will be while the statement runs. */
  grown(total: number, isComplete: boolean): void {
    this.result.total = total;
    this.isComplete = isComplete;
    this.grid?.grown(total, isComplete);
  }

  destroy(): void {
    this.grid?.destroy();
    this.grid = null;
    this.sized?.disconnect();
    this.sized = null;
    stopFilling(this.answer);
  }

  private open(view: View): void {
    this.view = view;
    const tabs = views.map((name) =>
      h("button", { type: "button", role: "tab", "aria-selected": String(name === view), tabindex: name === view ? 0 : -1, click: () => this.open(name) }, name),
    );
    this.bar.onkeydown = (event) => {
      const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? views.length - 1 : 0;
      if (step === 0) return;
      this.open(views[(views.indexOf(this.view) + step) % views.length] ?? "Rows");
      this.bar.querySelector<HTMLElement>("[aria-selected=true]")?.focus();
    };
    show(this.bar, ...tabs);
    this.place.setAttribute("aria-label", view);
    this.destroy();
    this.answer = h("div", { class: "answer" });
    const made: Record<View, () => void> = {
      Rows: () => this.rows(),
      Chart: () => this.chart(),
      Profile: () => this.profile(),
      Plan: () => this.plan(),
      "Copy as": () => this.copy(),
      Export: () => this.export(),
    };
    made[view]();
  }

  private rows(): void {
    const { started, total } = this.result;
    const id = started.query_id;
    if (id === null || started.columns === null) return;
    const told = h("div");
    const made = grid({
      columns: started.columns,
      total,
      isComplete: this.isComplete,
      part: (offset, limit, signal) => this.client.part(id, offset, limit, signal),
      failed: (error) => show(told, problemView(error)),
    });
    this.grid = made;
    show(this.place, told, made.element);
  }

  /** Says so where a statement cannot be read from by another one. */
  private refuses(): boolean {
    if (isQuery(this.result.sql)) return false;
    show(this.place, h("p", { class: "note" }, "Only queries have this view: SELECT, WITH, VALUES, TABLE."));
    return true;
  }

  /** A card with an answer of the server, which replaces what was there; it tells how far the statement is. */
  private card(sql: string, choices: HTMLElement | null, work: Work): void {
    show(this.place, choices, section(null, sql, this.answer));
    void replace(this.answer, work);
  }

  private chart(): void {
    if (this.refuses()) return;
    const fields = this.result.started.columns ?? [];
    const wanted = (this.choice ??= firstChoice(fields));
    const draw = () => {
      this.sized?.disconnect();
      const choice = fitting(fields, wanted);
      const { kind, x, y, measure } = choice ?? wanted;
      const fits = columnsFor(fields, kind);
      const isGrouped = kind === "bar" || kind === "line";
      const hasY = kind === "scatter" || (isGrouped && measure !== "count");
      const choices = h(
        "div",
        { class: "choices-bar" },
        select("Kind", kinds, kind, (kind) => set({ kind: kind as Choice["kind"] })),
        select("x", fits.x, x, (x) => set({ x })),
        isGrouped ? select("Measure", fits.y.length > 0 ? measures : ["count"], measure, (measure) => set({ measure: measure as Choice["measure"] })) : null,
        hasY ? select("y", fits.y, y, (y) => set({ y })) : null,
      );
      if (!choice) {
        stopFilling(this.answer);
        return show(this.place, choices, h("p", { class: "note" }, "This chart needs a column of numbers, dates or times."));
      }
      const sql = chartSql(this.result.sql, fields, choice);
      this.card(sql, choices, async (signal, tell) => {
        const rows = await runToEnd(this.client, sql, signal, tell);
        const canvas = h("div", { class: "chart-place" });
        const size = () => ({ width: Math.max(280, canvas.clientWidth), height: Math.max(160, Math.min(innerHeight * 0.42, this.place.clientHeight - 140)) });
        this.sized = new ResizeObserver(() => show(canvas, chart(rows, fields, choice, size())));
        this.sized.observe(canvas);
        return [h("p", { class: "note" }, coverage(choice, rows.count, (rows.columns[2]?.texts ?? []).map(Number))), canvas];
      });
    };
    const set = (change: Partial<Choice>) => {
      Object.assign(wanted, change);
      draw();
    };
    draw();
  }

  private profile(): void {
    if (this.refuses()) return;
    const sql = `SUMMARIZE ${this.result.sql}`;
    const share = (value: string | null) => h("span", {}, `${value ?? 0} % `, h("meter", { min: 0, max: 100, value: value ?? 0, "aria-label": "share of nulls" }));
    this.card(sql, null, async (signal, tell) =>
      rowsTable(await runToEnd(this.client, sql, signal, tell), { label: "Profile of each column", columns: { null_percentage: share } }),
    );
  }

  private plan(): void {
    const explain = (verb: string) => {
      const sql = `${verb} ${this.result.sql}`;
      const choices = h("div", { class: "choices-bar" }, button("Explain", () => explain("EXPLAIN")), button("Explain analyze", () => explain("EXPLAIN ANALYZE"), { title: "Runs the statement and measures rows and times of each step" }));
      this.card(sql, choices, async (signal, tell) => planView(await runToEnd(this.client, sql, signal, tell)));
    };
    explain("EXPLAIN");
  }

  private copy(): void {
    let language: Language = "Python";
    const code = h("pre", { class: "code", tabindex: "0", "aria-label": "Program" });
    const flight = h("input", { value: `grpc://${location.hostname}:50051`, size: 28, input: () => draw() });
    const draw = () => {
      const place = { origin: location.origin, flight: flight.value, user: this.client.user };
      code.textContent = program(language, this.result.sql, place);
    };
    const copy = async () => {
      await navigator.clipboard.writeText(code.textContent ?? "");
      announce("copied");
    };
    show(
      this.place,
      h(
        "div",
        { class: "choices-bar" },
        select("Language", languages, language, (name) => {
          language = name as Language;
          draw();
        }),
        h("label", { class: "field" }, "Address of Flight SQL", flight),
        button("Copy", () => void copy()),
      ),
      code,
    );
    draw();
  }

  private export(): void {
    const told = h("div", { class: "note", role: "status" }, "Saves the result without running the statement again.");
    const forms = [
      ["CSV", "csv"],
      ["Parquet", "parquet"],
      ["Arrow", "arrow-file", "arrow"],
      ["JSON lines", "ndjson"],
    ] as const;
    const save = async (form: string, ending: string) => {
      const { query_id: id } = this.result.started;
      if (id === null) return;
      show(told, waiting("writing the file").element);
      try {
        const response = await this.client.whole(id, form);
        await store(`result.${ending}`, response);
        told.textContent = `result.${ending} is saved.`;
      } catch (error) {
        told.textContent = error instanceof Error ? error.message : String(error);
      }
    };
    show(this.place, h("div", { class: "choices-bar" }, ...forms.map(([label, form, ending]) => button(label, () => void save(form, ending ?? form)))), told);
  }
}

/** Saves what comes: piece by piece where the browser can, else when all is there. */
async function store(name: string, response: Response): Promise<void> {
  const choose = (window as { showSaveFilePicker?: (wish: unknown) => Promise<{ createWritable: () => Promise<WritableStream> }> }).showSaveFilePicker;
  if (choose && response.body && !navigator.webdriver) {
    const file = await choose({ suggestedName: name });
    await response.body.pipeTo(await file.createWritable());
    return;
  }
  download(name, await response.blob());
}
