// A table of any length: only the rows that are seen are asked for and drawn. Browsers bound the height of an element below that
// of ten million rows, so the scroll bar is an element of its own whose way stands for all rows, and the wheel, the keys and
// touches move by rows.

import type { Rows } from "./arrow";
import { h, show } from "./dom";
import { count } from "./format";
import { waiting } from "./views";

const ROW_HEIGHT = 24;
const PAGE_ROWS = 200;
/** Rows on a page: more than any screen has. */
const MOST_SHOWN = 400;
/** Pages that are remembered; the others are asked for again. */
const PAGES = 24;
/** The longest way of the scroll bar, in pixels. */
const LONGEST = 4_000_000;
/** How long a page has to be looked at before it is asked for, so that whoever drags the bar asks for its end only. */
const REST_MS = 60;

export interface Source {
  columns: { name: string; type: string }[];
  /** Rows that there are, as far as known. */
  total: number;
  /** Whether all of them are there: the statement has ended. */
  isComplete: boolean;
  part: (offset: number, limit: number, signal: AbortSignal) => Promise<Rows>;
  failed: (error: unknown) => void;
}

export interface Grid {
  element: HTMLElement;
  /** More rows have become known, or the statement has ended. */
  grown: (total: number, isComplete: boolean) => void;
  destroy: () => void;
}

type Page = Rows | "asked";

export function grid(source: Source): Grid {
  const pages = new Map<number, Page>();
  const gone = new AbortController();
  let total = source.total;
  let isComplete = source.isComplete;
  /** Until a row came, the number of rows is what the plan promises. */
  let hasRows = false;
  let top = 0;
  let active = { row: 0, column: 0 };
  let timer = 0;
  let frame = 0;

  const head = h("div", { class: "grid-row grid-head", role: "row" });
  const body = h("div", { class: "grid-body", role: "rowgroup" });
  const table = h(
    "div",
    { class: "grid-table", role: "grid", tabindex: "0", "aria-label": "Result", "aria-colcount": source.columns.length + 1 },
    h("div", { role: "rowgroup" }, head),
    body,
  );
  const wide = h("div", { class: "grid-wide" }, table);
  const way = h("div", {});
  const bar = h("div", { class: "grid-bar", tabindex: "-1", "aria-hidden": "true" }, way);
  const place = h("div", { class: "grid-place", role: "status" });
  const wait = waiting("waiting for the first row").element;
  const element = h("div", { class: "grid" }, wide, bar, place);

  const least = (type: string) => (type.startsWith("Timestamp") ? 190 : type.startsWith("Date") ? 110 : 90);
  const widths = source.columns.map(({ name, type }) => Math.max(least(type), Math.min(260, 9 * Math.max(name.length, type.length * 0.7) + 24)));
  const template = ["5.5rem", ...widths.map((width) => `${width}px`)].join(" ");
  const fits = () => Math.max(1, Math.min(MOST_SHOWN, Math.floor((wide.clientHeight - 2 * ROW_HEIGHT) / ROW_HEIGHT)));
  const last = () => Math.max(0, total - fits());
  const numeric = source.columns.map(({ type }) => /^(U?Int|Float|Decimal)/i.test(type));

  const drawHead = () => {
    head.style.gridTemplateColumns = template;
    const cells = source.columns.map(({ name, type }, index) =>
      h(
        "div",
        { role: "columnheader", class: numeric[index] ? "right" : "", title: `${name}: ${type}` },
        h("b", {}, name),
        h("small", {}, type),
      ),
    );
    show(head, h("div", { role: "columnheader", class: "number" }, "#"), ...cells);
  };
  const draw = () => {
    frame = 0;
    const isWaiting = !isComplete && !hasRows;
    const shown = isWaiting ? 0 : Math.min(fits() + 1, total - Math.floor(top));
    const first = Math.floor(top);
    const rows: Node[] = [];
    for (let row = first; row < first + shown; row += 1) rows.push(line(row));
    show(body, ...rows);
    body.style.transform = `translateY(${-(top - first) * ROW_HEIGHT}px)`;
    table.setAttribute("aria-rowcount", String(isWaiting ? -1 : total + 1));
    if (isWaiting) {
      if (!wait.isConnected) show(place, wait);
    } else place.textContent = total === 0 ? "no rows" : `rows ${count(first + 1)} to ${count(Math.min(total, first + fits()))} of ${count(total)}`;
    const current = document.getElementById(`cell-${active.row}-${active.column}`);
    if (current) table.setAttribute("aria-activedescendant", current.id);
    else table.removeAttribute("aria-activedescendant");
    clearTimeout(timer);
    timer = window.setTimeout(want, REST_MS, first, first + shown);
  };
  const redraw = () => {
    if (!frame) frame = requestAnimationFrame(draw);
  };
  const line = (row: number) => {
    const page = pages.get(Math.floor(row / PAGE_ROWS));
    const at = row % PAGE_ROWS;
    const element = h("div", { class: "grid-row", role: "row", "aria-rowindex": row + 2 });
    element.style.gridTemplateColumns = template;
    element.append(h("div", { class: "number", role: "rowheader" }, count(row + 1)));
    source.columns.forEach((_, column) => {
      const value = page && page !== "asked" ? page.columns[column]?.texts[at] : undefined;
      const kind = value === null ? "null" : numeric[column] ? "right" : "";
      const isActive = row === active.row && column === active.column;
      const cell = h(
        "div",
        { role: "gridcell", id: `cell-${row}-${column}`, class: `${kind}${isActive ? " active" : ""}` },
        value === null ? "null" : value === undefined ? "…" : value.length > 500 ? `${value.slice(0, 500)}…` : value,
      );
      cell.addEventListener("click", () => {
        active = { row, column };
        redraw();
      });
      element.append(cell);
    });
    return element;
  };
  /** Asks for the pages of these rows that are not there. */
  const want = (first: number, end: number) => {
    for (let page = Math.floor(first / PAGE_ROWS); page * PAGE_ROWS < end; page += 1) {
      const found = pages.get(page);
      if (found) {
        // The one that was looked at last is forgotten last.
        pages.delete(page);
        pages.set(page, found);
      } else {
        pages.set(page, "asked");
        void ask(page);
      }
    }
    for (const page of [...pages.keys()].slice(0, Math.max(0, pages.size - PAGES))) pages.delete(page);
  };
  const ask = async (page: number) => {
    try {
      const rows = await source.part(page * PAGE_ROWS, PAGE_ROWS, gone.signal);
      pages.set(page, rows);
      hasRows ||= rows.count > 0;
      const end = page * PAGE_ROWS + rows.count;
      if (rows.count > 0 && end > total) grown(end, isComplete);
      redraw();
    } catch (error) {
      pages.delete(page);
      if (!gone.signal.aborted) source.failed(error);
    }
  };
  const grown = (rows: number, complete: boolean) => {
    isComplete = complete;
    // The last page may have been asked for while it was short.
    const page = Math.floor(total / PAGE_ROWS);
    const known = pages.get(page);
    if (rows > total && known && known !== "asked" && known.count < PAGE_ROWS) pages.delete(page);
    total = rows;
    way.style.height = `${Math.min(LONGEST, Math.max(0, total - fits()) * ROW_HEIGHT + bar.clientHeight)}px`;
    redraw();
  };
  /** Goes to a row, and lets the scroll bar follow unless it led. */
  const go = (row: number, led = false) => {
    top = Math.max(0, Math.min(last(), row));
    if (!led && last() > 0) {
      quiet = Math.round((top / last()) * (way.clientHeight - bar.clientHeight));
      bar.scrollTop = quiet;
    }
    redraw();
  };
  let quiet = 0;
  bar.addEventListener("scroll", () => {
    const longest = way.clientHeight - bar.clientHeight;
    if (Math.abs(bar.scrollTop - quiet) <= 1 || longest <= 0) return;
    quiet = bar.scrollTop;
    go((bar.scrollTop / longest) * last(), true);
  });
  wide.addEventListener(
    "wheel",
    (event) => {
      if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) return;
      event.preventDefault();
      go(top + event.deltaY / (event.deltaMode === 0 ? ROW_HEIGHT : 1));
    },
    { passive: false },
  );
  let touched = 0;
  wide.addEventListener("touchstart", (event) => (touched = event.touches[0]?.clientY ?? 0), { passive: true });
  wide.addEventListener(
    "touchmove",
    (event) => {
      const at = event.touches[0]?.clientY ?? 0;
      go(top + (touched - at) / ROW_HEIGHT);
      touched = at;
    },
    { passive: true },
  );
  table.addEventListener("keydown", (event) => {
    const { row, column } = active;
    const end = total - 1;
    const moves: Record<string, [number, number]> = {
      ArrowDown: [row + 1, column],
      ArrowUp: [row - 1, column],
      ArrowRight: [row, column + 1],
      ArrowLeft: [row, column - 1],
      PageDown: [row + fits(), column],
      PageUp: [row - fits(), column],
      Home: event.ctrlKey ? [0, column] : [row, 0],
      End: event.ctrlKey ? [end, column] : [row, source.columns.length - 1],
    };
    if (event.key.toLowerCase() === "c" && (event.ctrlKey || event.metaKey)) {
      const page = pages.get(Math.floor(row / PAGE_ROWS));
      if (page && page !== "asked") void navigator.clipboard.writeText(page.columns[column]?.texts[row % PAGE_ROWS] ?? "");
      return;
    }
    const move = moves[event.key];
    if (!move) return;
    event.preventDefault();
    active = {
      row: Math.max(0, Math.min(end, move[0])),
      column: Math.max(0, Math.min(source.columns.length - 1, move[1])),
    };
    if (active.row < top) go(active.row);
    else if (active.row >= top + fits()) go(active.row - fits() + 1);
    else redraw();
    const left = widths.slice(0, active.column).reduce((sum, width) => sum + width, 0);
    if (left < wide.scrollLeft) wide.scrollLeft = left;
    else if (left + 360 > wide.scrollLeft + wide.clientWidth) wide.scrollLeft = left + 360 - wide.clientWidth;
  });
  const sized = new ResizeObserver(() => grown(total, isComplete));
  sized.observe(element);
  drawHead();
  if (total === 0) {
    // Of a result that is still made, the first rows come as soon as they are there.
    pages.set(0, "asked");
    void ask(0);
  }

  return {
    element,
    grown,
    destroy: () => {
      gone.abort();
      sized.disconnect();
      clearTimeout(timer);
      cancelAnimationFrame(frame);
    },
  };
}
