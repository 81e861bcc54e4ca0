// What can be done with a result: look at its rows, chart it, profile its columns, see its plan, take it elsewhere.

import type { Client, Started } from "./client";
import { chart, chartSql, kinds, measures, type Wish } from "./chart";
import { languages, program, type Language } from "./copyas";
import { announce, download, h, show } from "./dom";
import { grid, type Grid } from "./grid";
import { planView } from "./plan";
import { isQuery } from "./sqltext";
import { button, fill, problemView, rowsTable, section, select } from "./views";

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
  private wish: Wish | null = null;

  constructor(
    private readonly client: Client,
    private readonly result: Result,
  ) {
    this.element.append(this.bar, this.place);
    this.open("Rows");
  }

  grown(total: number): void {
    this.result.total = total;
    this.grid?.grown(total);
  }

  destroy(): void {
    this.grid?.destroy();
    this.grid = null;
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

  private chart(): void {
    if (this.refuses()) return;
    const columns = this.result.started.columns ?? [];
    const names = columns.map(({ name }) => name);
    const numbers = columns.filter(({ type }) => /^(U?Int|Float|Decimal)/.test(type)).map(({ name }) => name);
    const x = names[0] ?? "";
    this.wish ??= { kind: "bar", x, y: numbers.find((name) => name !== x) ?? numbers[0] ?? x, measure: "count" };
    const wish = this.wish;
    const place = h("div", { class: "chart-place" });
    const draw = () => {
      const needsMeasure = wish.kind === "bar" || wish.kind === "line";
      const choices = h(
        "div",
        { class: "choices-bar" },
        select("Kind", kinds, wish.kind, (kind) => set({ kind: kind as Wish["kind"] })),
        select("x", names, wish.x, (x) => set({ x })),
        needsMeasure ? select("Measure", measures, wish.measure, (measure) => set({ measure: measure as Wish["measure"] })) : null,
        wish.kind === "histogram" || (needsMeasure && wish.measure === "count") ? null : select("y", names, wish.y, (y) => set({ y })),
      );
      const sql = chartSql(this.result.sql, wish);
      show(this.place, choices, section("Chart", sql, place));
      void fill(place, async (signal) => chart(await this.client.query(sql, signal), wish));
    };
    const set = (change: Partial<Wish>) => {
      Object.assign(wish, change);
      draw();
    };
    draw();
  }

  private profile(): void {
    if (this.refuses()) return;
    const sql = `SUMMARIZE ${this.result.sql}`;
    const place = h("div");
    show(this.place, section("Columns at a glance", sql, place));
    const share = (value: string | null) => h("span", {}, `${value ?? 0} % `, h("meter", { min: 0, max: 100, value: value ?? 0, "aria-label": "share of nulls" }));
    void fill(place, async () => rowsTable(await this.client.query(sql), { label: "Profile of each column", columns: { null_percentage: share } }));
  }

  private plan(): void {
    const place = h("div");
    const explain = (verb: string) => {
      const sql = `${verb} ${this.result.sql}`;
      show(
        this.place,
        h("div", { class: "choices-bar" }, button("Plan", () => explain("EXPLAIN")), button("Run it and measure", () => explain("EXPLAIN ANALYZE"))),
        section("Plan", sql, place),
      );
      void fill(place, async (signal) => planView(await this.client.query(sql, signal)));
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
    const told = h("p", { class: "note", role: "status" }, "The result as it is kept, without running the statement again.");
    const forms = [
      ["CSV", "csv"],
      ["Parquet", "parquet"],
      ["Arrow", "arrow-file", "arrow"],
      ["JSON lines", "ndjson"],
    ] as const;
    const save = async (form: string, ending: string) => {
      const { query_id: id } = this.result.started;
      if (id === null) return;
      told.textContent = "The server writes the file…";
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
