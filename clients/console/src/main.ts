// The console: one page that speaks to the server over HTTP like any other client. This file starts it, knows which page stands
// at which address, and draws the frame around it.

import { Client, Problem } from "./client";
import { Words } from "./complete";
import { h, show } from "./dom";
import { login } from "./login";
import { catalogPage } from "./pages/catalog";
import { queriesPage } from "./pages/queries";
import { Desk } from "./pages/query";
import { accessPage, cachesPage, metricsPage, nodesPage, settingsPage, sourcesPage, viewsPage } from "./pages/server";
import { button, waiting, type Page } from "./views";

const client = new Client();
const app = document.getElementById("app") ?? document.body;
let words = new Words(client);
let desk: Desk | null = null;
let shown: Page | null = null;
let version = "";

const pages: Record<string, [string, (parameters: URLSearchParams) => Page]> = {
  query: ["Query", (parameters) => (desk ??= new Desk(client, words)).page(parameters.get("sql"))],
  catalog: ["Catalog", () => catalogPage(client)],
  queries: ["Queries", () => queriesPage(client)],
  caches: ["Caches", () => cachesPage(client)],
  views: ["Views", () => viewsPage(client)],
  sources: ["Sources", () => sourcesPage(client)],
  access: ["Access", () => accessPage(client)],
  nodes: ["Nodes", () => nodesPage(client)],
  settings: ["Settings", () => settingsPage(client)],
  metrics: ["Metrics", () => metricsPage(client)],
};

/** The page of the address. */
function route(): void {
  if (client.user === "") return;
  const [path = "", query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const name = path in pages ? path : "query";
  shown?.leave?.();
  shown = pages[name]?.[1](new URLSearchParams(query)) ?? null;
  // A statement stands in the address only until it is in the editor.
  if (query !== "") history.replaceState(null, "", `#/${name}`);
  document.title = `${pages[name]?.[0]} · Bowshot`;
  const main = document.getElementById("main");
  if (main && shown) show(main, shown.element);
  for (const link of document.querySelectorAll("#menu a")) {
    if (link.getAttribute("href") === `#/${name}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

function frame(): void {
  const links = Object.entries(pages).map(([name, [title]]) => h("li", {}, h("a", { href: `#/${name}` }, title)));
  const out = client.isKnown ? button("Log out", () => void leave()) : null;
  show(
    app,
    h("a", { class: "skip", href: "#main", click: (event: Event) => (event.preventDefault(), document.getElementById("main")?.focus()) }, "Skip to the page"),
    h(
      "header",
      { class: "top" },
      h("a", { class: "brand", href: "#/query" }, h("img", { src: "/console/icon.svg", alt: "Bowshot", width: 22, height: 22 }), h("span", { class: "brand-name" }, "Bowshot ", h("small", {}, version))),
      h("nav", { id: "menu", "aria-label": "Pages" }, h("ul", {}, ...links)),
      h("span", { class: "spacer" }),
      h("span", { class: "user" }, client.user),
      button("Theme", turn, { class: "quiet", title: "Light or dark" }),
      out,
    ),
    h("main", { id: "main", tabindex: "0" }),
    h("div", { id: "announcer", class: "unseen", "aria-live": "polite" }),
  );
  route();
}

/** Light becomes dark and dark light; the browser remembers. */
function turn(): void {
  const isDark = getComputedStyle(document.documentElement).colorScheme === "dark";
  paint(isDark ? "light" : "dark");
}

function paint(theme: string | null): void {
  const chosen = theme ?? (matchMedia("(prefers-color-scheme: light)").matches ? "light" : "dark");
  document.documentElement.dataset.theme = chosen;
  try {
    if (theme) localStorage.setItem("bowshot theme", theme);
  } catch {
    // A browser that keeps nothing shows it anyway.
  }
}

async function leave(): Promise<void> {
  await desk?.close();
  client.forget();
  ask(null);
}

function ask(reason: unknown): void {
  shown?.leave?.();
  shown = null;
  desk = null;
  client.forget();
  words = new Words(client);
  show(app, login(client, enter, reason));
  document.title = "Log in · Bowshot";
}

function enter(): void {
  frame();
  // Without them nothing is offered, and everything else works.
  void words.load();
}

async function start(): Promise<void> {
  let theme: string | null = null;
  try {
    theme = localStorage.getItem("bowshot theme");
  } catch {
    // As above.
  }
  paint(theme);
  client.refused = () => ask(new Problem(401, "expired", "the credentials are no longer good", "log in again"));
  addEventListener("hashchange", route);
  addEventListener("pagehide", () => void desk?.close());
  show(app, waiting("connecting").element);
  try {
    version = (await client.about()).version;
    if (!(await client.isOpen())) return ask(null);
    await client.whoAmI();
    enter();
  } catch (error) {
    ask(error);
  }
}

void start();
