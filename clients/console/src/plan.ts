// A plan as a tree: the server tells it as indented lines, each with its figures where it was measured.

import type { Rows } from "./arrow";
import { h, show } from "./dom";

export interface Step {
  name: string;
  detail: string;
  metrics: [string, string][];
  /** Rows that it gave, as the plan writes them. */
  rows: string | null;
  nanoseconds: number | null;
  children: Step[];
}

/** The steps of a plan. */
export function steps(text: string): Step[] {
  const roots: Step[] = [];
  const path: { indent: number; step: Step }[] = [];
  for (const line of text.split("\n")) {
    if (line.trim() === "") continue;
    const indent = line.length - line.trimStart().length;
    const step = read(line.trim());
    while (path.length > 0 && (path.at(-1)?.indent ?? 0) >= indent) path.pop();
    (path.at(-1)?.step.children ?? roots).push(step);
    path.push({ indent, step });
  }
  return roots;
}

function read(line: string): Step {
  const measured = /,? ?metrics=\[(.*)\]$/.exec(line);
  const rest = measured ? line.slice(0, measured.index) : line;
  const colon = rest.indexOf(":");
  const name = colon < 0 ? rest : rest.slice(0, colon);
  const detail = colon < 0 ? "" : rest.slice(colon + 1).trim();
  const metrics = (measured?.[1] ?? "")
    .split(/, (?=[a-z_0-9]+=)/)
    .filter((part) => part.includes("="))
    .map((part): [string, string] => [part.slice(0, part.indexOf("=")), part.slice(part.indexOf("=") + 1)]);
  const metric = (wanted: string) => metrics.find(([key]) => key === wanted)?.[1] ?? null;
  return { name, detail, metrics, rows: metric("output_rows"), nanoseconds: duration(metric("elapsed_compute")), children: [] };
}

/** Nanoseconds of `7.05µs`. */
export function duration(text: string | null): number | null {
  const match = /^([\d.]+)(ns|µs|us|ms|s|m)$/.exec(text ?? "");
  if (!match) return null;
  const units: Record<string, number> = { ns: 1, µs: 1e3, us: 1e3, ms: 1e6, s: 1e9, m: 6e10 };
  return Number(match[1]) * (units[match[2] ?? ""] ?? 0);
}

/** All plans of an answer of EXPLAIN. */
export function planView(answer: Rows): HTMLElement {
  const [kinds, plans] = [answer.columns[0]?.texts ?? [], answer.columns[1]?.texts ?? []];
  const parts = plans.map((plan, index) => {
    const roots = steps(plan ?? "");
    const longest = Math.max(1, ...every(roots).map((step) => step.nanoseconds ?? 0));
    const tree = h("ul", { class: "plan", role: "tree", "aria-label": kinds[index] ?? "plan" });
    show(tree, ...roots.map((root) => branch(root, longest)));
    return h("section", {}, h("h3", {}, (kinds[index] ?? "").replaceAll("_", " ")), tree);
  });
  return h("div", { class: "plans", tabindex: "0", role: "region", "aria-label": "Plan" }, ...parts);
}

function every(roots: Step[]): Step[] {
  return roots.flatMap((step) => [step, ...every(step.children)]);
}

function branch(step: Step, longest: number): HTMLElement {
  const meter = step.nanoseconds === null ? null : h("meter", { min: 0, max: longest, value: step.nanoseconds, title: "computing", "aria-label": "computing time" });
  const figures = step.metrics.filter(([key]) => key !== "output_rows" && key !== "elapsed_compute");
  const time = step.metrics.find(([key]) => key === "elapsed_compute")?.[1];
  const head = [
    h("b", {}, step.name),
    step.rows === null ? null : h("span", { class: "tag" }, `${step.rows} rows`),
    time ? h("span", { class: "tag" }, time) : null,
    meter,
    step.detail === "" ? null : h("code", {}, step.detail),
  ];
  const more = figures.length === 0 ? null : h("details", {}, h("summary", {}, "figures"), h("code", {}, figures.map(([key, value]) => `${key}=${value}`).join("\n")));
  const item = h("li", { role: "treeitem", "aria-expanded": step.children.length > 0 ? "true" : null }, h("div", { class: "step" }, ...head, more));
  if (step.children.length > 0) item.append(h("ul", { role: "group" }, ...step.children.map((child) => branch(child, longest))));
  return item;
}
