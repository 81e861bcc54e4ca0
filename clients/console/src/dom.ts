// Elements without a framework: one function that makes them, and few that change them.

export type Child = Node | string | number | null | undefined | false;
type Handler = (event: never) => void;
export type Properties = Record<string, string | number | boolean | null | undefined | Handler>;

/** Makes an element. Functions become listeners, `true` an attribute without a value, `false` and `null` none. */
export function h<K extends keyof HTMLElementTagNameMap>(
  name: K,
  properties: Properties = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(name);
  fill(element, properties, children);
  return element;
}

/** The same for SVG. */
export function svg(name: string, properties: Properties = {}, ...children: Child[]): SVGElement {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  fill(element, properties, children);
  return element;
}

function fill(element: Element, properties: Properties, children: Child[]): void {
  for (const [name, value] of Object.entries(properties)) {
    if (typeof value === "function") {
      element.addEventListener(name, value as EventListener);
    } else if (value === true) {
      element.setAttribute(name, "");
    } else if (value !== false && value !== null && value !== undefined) {
      element.setAttribute(name, String(value));
    }
  }
  append(element, children);
}

function append(element: Element, children: Child[]): void {
  for (const child of children) {
    if (child !== null && child !== undefined && child !== false) {
      element.append(child instanceof Node ? child : String(child));
    }
  }
}

/** Puts children in the place of those that are there. */
export function show(element: Element, ...children: Child[]): void {
  element.replaceChildren();
  append(element, children);
}

/** Saves bytes under a name, as a download. */
export function download(name: string, content: Blob): void {
  const link = h("a", { href: URL.createObjectURL(content), download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

/** Tells whoever cannot see the page what has happened on it. */
export function announce(text: string): void {
  const place = document.getElementById("announcer");
  if (place) place.textContent = text;
}

let serial = 0;
/** An id that no other element has. */
export function unique(prefix: string): string {
  serial += 1;
  return `${prefix}-${serial}`;
}
