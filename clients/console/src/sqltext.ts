// SQL as text: its tokens for colours, its statements, the word that is being written.

export interface Token {
  kind: "keyword" | "text" | "number" | "comment" | "name" | "quoted" | "sign" | "space";
  start: number;
  end: number;
}

const KEYWORDS = new Set(
  (
    "add all alter and any as asc begin between by case cast catalog check column comment commit constraint copy create cross " +
    "current database default delete desc describe distinct drop else end except exists explain analyze extract false fetch " +
    "filter first for foreign from full group having if ilike in inner insert intersect interval into is join key kill last " +
    "lateral left like limit materialized merge natural not null nulls of offset on optimize or order outer over partition " +
    "pivot primary query recursive references refresh replace returning right rollback row rows schema select session set " +
    "show summarize table tables temporary then to true truncate union unique unnest update use using vacuum values version " +
    "view when where window with within"
  ).split(" "),
);

const PATTERN =
  /(--[^\n]*|\/\*[\s\S]*?(?:\*\/|$))|('(?:[^']|'')*(?:'|$))|("(?:[^"]|"")*(?:"|$))|(\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|([\p{L}_][\p{L}\p{N}_$]*)|(\s+)|([\s\S])/gu;

export function tokens(sql: string): Token[] {
  const found: Token[] = [];
  for (const match of sql.matchAll(PATTERN)) {
    const start = match.index;
    const end = start + match[0].length;
    const [, comment, text, quoted, number, word, space] = match;
    const kind =
      comment !== undefined ? "comment"
      : text !== undefined ? "text"
      : quoted !== undefined ? "quoted"
      : number !== undefined ? "number"
      : word !== undefined ? (KEYWORDS.has(word.toLowerCase()) ? "keyword" : "name")
      : space !== undefined ? "space"
      : "sign";
    found.push({ kind, start, end });
  }
  return found;
}

export interface Statement {
  start: number;
  end: number;
  sql: string;
}

/** The statements of a text, without their semicolons. */
export function statements(sql: string): Statement[] {
  const found: Statement[] = [];
  let start = 0;
  const close = (end: number) => {
    const part = sql.slice(start, end);
    const lead = part.length - part.trimStart().length;
    const text = part.trim();
    if (text !== "" && tokens(text).some((token) => token.kind !== "comment" && token.kind !== "space")) {
      found.push({ start: start + lead, end: start + lead + text.length, sql: text });
    }
    start = end + 1;
  };
  for (const token of tokens(sql)) {
    if (token.kind === "sign" && sql[token.start] === ";") close(token.start);
  }
  close(sql.length);
  return found;
}

/** The statement in which a place lies, or after which it stands. */
export function statementAt(sql: string, place: number): Statement | null {
  const all = statements(sql);
  return all.findLast((statement) => statement.start <= place) ?? all[0] ?? null;
}

/** Whether a statement gives rows that another query can read from. */
export function isQuery(sql: string): boolean {
  const first = tokens(sql).find((token) => token.kind !== "comment" && token.kind !== "space");
  return first !== undefined && /^(select|with|values|table|from|\()$/i.test(sql.slice(first.start, first.end));
}

/** Whether statements may change what tables there are. */
export function changesSchema(sql: string): boolean {
  return tokens(sql).some((token) => /^(create|drop|alter|attach|detach|rollback)$/i.test(sql.slice(token.start, token.end)));
}

/** What is written in front of a place: the word, and the name with a dot before it. */
export function wordBefore(sql: string, place: number): { word: string; start: number; owner: string | null } {
  const before = sql.slice(0, place);
  const word = /[\p{L}\p{N}_$]*$/u.exec(before)?.[0] ?? "";
  const start = place - word.length;
  const owner = /([\p{L}_][\p{L}\p{N}_$]*|"[^"]+")\.$/u.exec(sql.slice(0, start))?.[1] ?? null;
  return { word, start, owner: owner?.replaceAll('"', "") ?? null };
}

/** Tables that a statement names, with their aliases. */
export function tablesOf(sql: string): { table: string; alias: string }[] {
  const pattern = /\b(?:from|join|update|into|,)\s+((?:[\w$]+|"[^"]+")(?:\.(?:[\w$]+|"[^"]+"))*)(?:\s+(?:as\s+)?([a-z_][\w$]*))?/gi;
  const found = [...sql.matchAll(pattern)].map((match) => {
    const table = (match[1] ?? "").split(".").at(-1)?.replaceAll('"', "") ?? "";
    const alias = match[2] && !KEYWORDS.has(match[2].toLowerCase()) ? match[2] : table;
    return { table, alias };
  });
  return found;
}

/** Line and column of a place, both from 1 on. */
export function lineAndColumn(text: string, place: number): [number, number] {
  const lines = text.slice(0, place).split("\n");
  return [lines.length, (lines.at(-1)?.length ?? 0) + 1];
}

/** The place in a string of a position that counts characters from 1 on. */
export function placeOf(text: string, position: number): number {
  return [...text].slice(0, position - 1).join("").length;
}

export const keywords: readonly string[] = [...KEYWORDS].map((word) => word.toUpperCase());
