// Pieces that several pages are made of: tables of rows that are all there, errors, the statements behind a page.

import type { Rows } from "./arrow";
import { Problem } from "./client";
import { h, show, type Child } from "./dom";
import { Generations } from "./generations";

/** What a page has to do with the rest of the console. */
export interface Page {
  element: HTMLElement;
  /** Called when another page takes its place. */
  leave?: () => void;
}

export type Shown = (value: string | null, row: number) => Child;

interface Looks {
  label: string;
  /** How columns look that are not just their text, by name; `null` leaves one away. */
  columns?: Record<string, Shown | null>;
  /** What can be done with a row. */
  action?: (row: number) => Child;
}

/** Rows as a table, all of them. */
export function rowsTable(rows: Rows, { label, columns = {}, action }: Looks): HTMLElement {
  const shown = rows.columns.filter(({ name }) => columns[name] !== null);
  const head = h(
    "tr",
    {},
    ...shown.map(({ name, isNumber }) => h("th", { scope: "col", class: isNumber ? "right" : "" }, name.replaceAll("_", " "))),
    action ? h("th", { scope: "col" }, "") : null,
  );
  const body = h("tbody");
  for (let row = 0; row < rows.count; row += 1) {
    const cells = shown.map(({ name, texts, isNumber }) => {
      const value = texts[row] ?? null;
      const look = columns[name];
      const content = look ? look(value, row) : value;
      return h("td", { class: value === null && !look ? "null" : isNumber ? "right" : "" }, content ?? "null");
    });
    body.append(h("tr", {}, ...cells, action ? h("td", { class: "actions" }, action(row)) : null));
  }
  if (rows.count === 0) body.append(h("tr", {}, h("td", { colspan: shown.length + 1, class: "null" }, "no rows")));
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": label },
    h("table", {}, h("caption", { class: "unseen" }, label), h("thead", {}, head), body),
  );
}

/** An error, with what to do next. */
export function problemView(error: unknown, ...more: Child[]): HTMLElement {
  const problem = error instanceof Problem ? error : new Problem(0, "error", String(error));
  return h(
    "div",
    { class: "problem", role: "alert" },
    h("b", {}, problem.kind.replaceAll("_", " ")),
    h("span", {}, problem.message),
    problem.hint ? h("small", {}, problem.hint) : null,
    ...more,
  );
}

/** How a page says that it waits, and for what. */
export interface Waiting {
  element: HTMLElement;
  tell: (text: string) => void;
}

export function waiting(text: string): Waiting {
  const told = h("span", {}, text);
  return { element: h("p", { class: "waiting" }, h("span", { class: "spinner", "aria-hidden": "true" }), told), tell: (text) => show(told, text) };
}

interface Place {
  requests: Generations;
  stop: AbortController;
}

const places = new WeakMap<HTMLElement, Place>();

export type Work = (signal: AbortSignal, tell: (text: string) => void) => Promise<Child | Child[]>;

/** Shows what a statement gives in a place, or why it gives nothing. An empty place says that it waits; other content stays until
 * the answer is there. Earlier requests of the place end, and their late answers are dropped. */
export async function fill(place: HTMLElement, work: Work): Promise<void> {
  const requests = places.get(place)?.requests ?? new Generations();
  places.get(place)?.stop.abort();
  const stop = new AbortController();
  places.set(place, { requests, stop });
  const request = requests.next();
  const wait = waiting("loading");
  if (place.textContent === "" || place.firstElementChild?.className === "waiting") show(place, wait.element);
  place.setAttribute("aria-busy", "true");
  let made: Child | Child[];
  try {
    made = await work(stop.signal, wait.tell);
  } catch (error) {
    made = problemView(error);
  }
  if (!requests.isLatest(request)) return;
  show(place, ...(Array.isArray(made) ? made : [made]));
  place.removeAttribute("aria-busy");
}

/** The same where the answer has another label than what is there: that goes at once. */
export async function replace(place: HTMLElement, work: Work): Promise<void> {
  show(place);
  await fill(place, work);
}

/** Ends the request of a place; its answer is dropped. */
export function stopFilling(place: HTMLElement): void {
  places.get(place)?.requests.next();
  places.get(place)?.stop.abort();
}

/** A part of a page with its statement, which can be opened in the editor. */
export function section(title: string | null, sql: string, place: HTMLElement, ...more: Child[]): HTMLElement {
  return h(
    "section",
    { class: "card" },
    title === null ? null : h("header", {}, h("h2", {}, title), ...more),
    place,
    h(
      "details",
      { class: "behind" },
      h("summary", {}, "SQL of this view"),
      h("pre", { tabindex: "0" }, sql),
      h("a", { class: "button", href: `#/query?sql=${encodeURIComponent(sql)}` }, "Open in the editor"),
    ),
  );
}

/** A button. */
export function button(label: string, click: () => void, properties: Record<string, string | boolean> = {}): HTMLButtonElement {
  return h("button", { type: "button", click, ...properties }, label);
}

/** A choice of one of several. */
export function select(label: string, values: readonly string[], value: string, change: (value: string) => void): HTMLElement {
  const field = h(
    "select",
    { "aria-label": label, change: () => change(field.value) },
    ...values.map((name) => h("option", { value: name, selected: name === value }, name)),
  );
  return h("label", { class: "field" }, label, field);
}
