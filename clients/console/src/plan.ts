// A plan as a tree: the server tells it as indented lines, each with its figures where it was measured.

import type { Rows } from "./arrow";
import { h } from "./dom";

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

/** All plans of an answer of EXPLAIN: the one that runs, or was measured, first. */
export function planView(answer: Rows): HTMLElement {
  const [kinds, plans] = [answer.columns[0]?.texts ?? [], answer.columns[1]?.texts ?? []];
  const parts = plans.map((plan, index) => {
    const roots = steps(plan ?? "");
    const total = every(roots).reduce((sum, step) => sum + (step.nanoseconds ?? 0), 0);
    const tree = h("ul", { class: "plan" }, ...roots.map((root) => branch(root, total)));
    return h("section", {}, h("h3", {}, (kinds[index] ?? "plan").replaceAll("_", " ")), tree);
  });
  return h("div", { class: "plans", tabindex: "0", role: "region", "aria-label": "Plan" }, ...parts.reverse());
}

function every(roots: Step[]): Step[] {
  return roots.flatMap((step) => [step, ...every(step.children)]);
}

/** A step and those below it, which can be folded away. */
function branch(step: Step, total: number): HTMLElement {
  const { name, detail, metrics, rows, nanoseconds, children } = step;
  const share = nanoseconds === null || total === 0 ? null : nanoseconds / total;
  const time = metrics.find(([key]) => key === "elapsed_compute")?.[1];
  const head = [
    h("b", {}, name),
    rows === null ? null : h("span", { class: "tag" }, `${rows} ${rows === "1" ? "row" : "rows"}`),
    time ? h("span", { class: "tag" }, time) : null,
    share === null ? null : h("meter", { min: 0, max: 1, value: share, "aria-label": `share of the computing time of ${name}` }),
    share === null ? null : h("small", {}, `${Math.round(share * 100)} %`),
  ];
  const others = metrics.filter(([key]) => key !== "output_rows" && key !== "elapsed_compute");
  const more = others.length === 0 ? null : h("details", { class: "figures" }, h("summary", {}, "All metrics"), h("code", {}, others.map(([key, value]) => `${key}=${value}`).join("\n")));
  const about = [detail === "" ? null : h("code", { class: "step-detail" }, detail), more];
  if (children.length === 0) return h("li", {}, h("div", { class: "step" }, ...head), ...about);
  return h("li", {}, h("details", { open: true }, h("summary", { class: "step" }, ...head), ...about, h("ul", {}, ...children.map((child) => branch(child, total)))));
}
