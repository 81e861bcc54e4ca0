// The field in which SQL is written: a text area, which keyboards, screen readers and input methods know, over a copy of its
// text in colours. The list of completions is a listbox that the text area controls.

import { h, show, unique } from "./dom";
import type { Completion, Words } from "./complete";
import { tokens } from "./sqltext";

export interface Editor {
  element: HTMLElement;
  text: () => string;
  write: (text: string) => void;
  /** Puts a text in the place of the chosen part. */
  insert: (text: string) => void;
  /** The chosen part, and where the caret is. */
  selection: () => { start: number; end: number };
  mark: (place: number | null) => void;
  focus: (place?: number) => void;
}

export interface Wishes {
  text: string;
  words: Words;
  changed: (text: string) => void;
  run: (all: boolean) => void;
}

export function editor({ text, words, changed, run }: Wishes): Editor {
  const list = unique("choices");
  const area = h("textarea", {
    spellcheck: "false",
    autocapitalize: "off",
    autocomplete: "off",
    wrap: "off",
    "aria-label": "SQL",
    "aria-autocomplete": "list",
    "aria-controls": list,
    placeholder: "SELECT … (Ctrl+Enter runs the statement at the caret)",
  });
  const colours = h("pre", { class: "colours", "aria-hidden": "true" });
  const popup = h("ul", { id: list, class: "choices", role: "listbox", "aria-label": "Completions", hidden: true });
  const element = h("div", { class: "editor" }, colours, area, popup);
  let marked: number | null = null;
  let offered: Completion | null = null;
  let chosen = 0;

  const paint = () => {
    const sql = area.value;
    const parts: Node[] = [];
    for (const token of tokens(sql)) {
      const piece = h("span", { class: token.kind }, sql.slice(token.start, token.end));
      if (marked !== null && token.start <= marked && marked < token.end) piece.classList.add("wrong");
      parts.push(piece);
    }
    if (marked !== null && marked >= sql.length) parts.push(h("span", { class: "wrong" }, " "));
    show(colours, ...parts, "\n");
    follow();
  };
  const follow = () => {
    colours.scrollTop = area.scrollTop;
    colours.scrollLeft = area.scrollLeft;
  };
  const close = () => {
    offered = null;
    popup.hidden = true;
    area.removeAttribute("aria-activedescendant");
  };
  const offer = () => {
    const completion = words.at(area.value, area.selectionStart);
    if (completion.choices.length === 0) return close();
    offered = completion;
    chosen = 0;
    draw();
  };
  const draw = () => {
    if (!offered) return;
    const items = offered.choices.map((choice, index) =>
      h(
        "li",
        {
          id: `${list}-${index}`,
          role: "option",
          "aria-selected": String(index === chosen),
          mousedown: (event: MouseEvent) => {
            event.preventDefault();
            chosen = index;
            accept();
          },
        },
        h("span", {}, choice.label),
        h("small", {}, choice.about),
      ),
    );
    show(popup, ...items);
    popup.hidden = false;
    area.setAttribute("aria-activedescendant", `${list}-${chosen}`);
    place();
    items[chosen]?.scrollIntoView({ block: "nearest" });
  };
  // The letters all have one width, so that the place of the caret is known by counting.
  const place = () => {
    const before = area.value.slice(0, offered?.start ?? 0);
    const line = before.split("\n").length;
    const column = before.length - before.lastIndexOf("\n") - 1;
    const style = getComputedStyle(area);
    const height = Number.parseFloat(style.lineHeight);
    popup.style.top = `${line * height + Number.parseFloat(style.paddingTop) - area.scrollTop}px`;
    popup.style.left = `min(${column}ch - ${area.scrollLeft}px + 0.8rem, 100% - 18rem)`;
  };
  const accept = () => {
    const choice = offered?.choices[chosen];
    if (!offered || !choice) return;
    area.setRangeText(choice.insert, offered.start, area.selectionStart, "end");
    close();
    edited();
  };
  const edited = () => {
    marked = null;
    paint();
    changed(area.value);
  };
  const keys = (event: KeyboardEvent) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      close();
      run(event.shiftKey);
    } else if (event.key === " " && event.ctrlKey) {
      event.preventDefault();
      offer();
    } else if (offered && ["ArrowDown", "ArrowUp"].includes(event.key)) {
      event.preventDefault();
      const size = offered.choices.length;
      chosen = (chosen + (event.key === "ArrowDown" ? 1 : size - 1)) % size;
      draw();
    } else if (offered && (event.key === "Tab" || (event.key === "Enter" && !event.shiftKey))) {
      event.preventDefault();
      accept();
    } else if (event.key === "Escape" && offered) {
      event.stopPropagation();
      close();
    }
  };

  area.addEventListener("input", () => {
    edited();
    const before = area.value[area.selectionStart - 1] ?? "";
    if (/[\p{L}\p{N}_.]/u.test(before)) offer();
    else close();
  });
  area.addEventListener("keydown", keys);
  area.addEventListener("scroll", follow);
  area.addEventListener("blur", close);
  area.addEventListener("click", close);
  area.value = text;
  paint();

  return {
    element,
    text: () => area.value,
    write: (sql) => {
      area.value = sql;
      close();
      edited();
    },
    insert: (text) => {
      area.setRangeText(text, area.selectionStart, area.selectionEnd, "end");
      close();
      edited();
      area.focus();
    },
    selection: () => ({ start: area.selectionStart, end: area.selectionEnd }),
    mark: (at) => {
      marked = at;
      paint();
    },
    focus: (at) => {
      area.focus();
      if (at !== undefined) area.setSelectionRange(at, at);
    },
  };
}
