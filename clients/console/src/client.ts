// The server, as every other client sees it over HTTP. Credentials live in this object and nowhere else: not in a cookie, not in
// the storage of the browser.

import { read, type Rows } from "./arrow";

/** An error as the server tells it. */
export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly kind: string,
    message: string,
    readonly hint: string | null = null,
    readonly position: number | null = null,
  ) {
    super(message);
  }
}

export interface Started {
  query_id: string | null;
  columns: { name: string; type: string }[] | null;
  rows_affected: number | null;
}

export interface Progress {
  state: "running" | "finished" | "failed" | "cancelled";
  fraction: number | null;
  rows: number | null;
  error: { kind: string; message: string; hint: string | null; position?: number } | null;
}

interface Sent {
  body?: string;
  session?: string | null;
  signal?: AbortSignal;
}

export class Client {
  private authorization: string | null = null;
  user = "";
  /** Hears that the credentials are no longer good. */
  refused: () => void = () => {};

  withPassword(user: string, password: string): void {
    const text = new TextEncoder().encode(`${user}:${password}`);
    this.authorization = `Basic ${btoa(String.fromCharCode(...text))}`;
  }

  withToken(token: string): void {
    this.authorization = `Bearer ${token}`;
  }

  forget(): void {
    this.authorization = null;
    this.user = "";
  }

  get isKnown(): boolean {
    return this.authorization !== null;
  }

  private async send(method: string, path: string, { body, session, signal }: Sent = {}): Promise<Response> {
    const headers: Record<string, string> = {};
    if (this.authorization) headers.authorization = this.authorization;
    if (body !== undefined) headers["content-type"] = "text/plain; charset=utf-8";
    if (session) headers["x-bowshot-session"] = session;
    let response: Response;
    try {
      response = await fetch(path, { method, headers, body, signal, credentials: "omit", cache: "no-store", keepalive: method === "DELETE" });
    } catch (error) {
      if (signal?.aborted) throw new Problem(499, "cancelled", "the query was cancelled");
      throw new Problem(0, "unavailable", "the server cannot be reached", String(error));
    }
    if (response.ok) return response;
    const problem = await described(response);
    if (problem.status === 401 && this.user !== "") this.refused();
    throw problem;
  }

  /** Whether the server takes callers without credentials. */
  async isOpen(): Promise<boolean> {
    const told: { anonymous: boolean } = await (await this.send("GET", "/console/access")).json();
    return told.anonymous;
  }

  /** Who the credentials belong to. */
  async whoAmI(): Promise<string> {
    const response = await this.send("POST", "/v1/sql?format=arrow", { body: "SELECT current_user" });
    this.user = read(new Uint8Array(await response.arrayBuffer())).columns[0]?.texts[0] ?? "anonymous";
    return this.user;
  }

  /** Runs a statement whose result is small, and brings all of it. */
  async query(sql: string, signal?: AbortSignal): Promise<Rows> {
    const response = await this.send("POST", "/v1/sql?format=arrow", { body: sql, signal });
    const bytes = new Uint8Array(await response.arrayBuffer());
    return bytes.length === 0 ? { columns: [], count: 0 } : read(bytes);
  }

  /** Starts statements; the result of the last one is kept by the server. */
  async start(sql: string, session: string | null, signal: AbortSignal): Promise<Started> {
    return (await this.send("POST", "/v1/queries", { body: sql, session, signal })).json();
  }

  /** Rows of a result that is kept. */
  async part(id: string, offset: number, limit: number, signal?: AbortSignal): Promise<Rows> {
    const path = `/v1/queries/${id}/rows?offset=${offset}&limit=${limit}&format=arrow`;
    return read(new Uint8Array(await (await this.send("GET", path, { signal })).arrayBuffer()));
  }

  /** All rows of a result that is kept, in a form for files. */
  async whole(id: string, form: string): Promise<Response> {
    return this.send("GET", `/v1/queries/${id}/rows?format=${form}`);
  }

  async progress(id: string): Promise<Progress> {
    return (await this.send("GET", `/v1/queries/${id}`)).json();
  }

  async cancel(id: string): Promise<void> {
    await this.send("DELETE", `/v1/queries/${id}`);
  }

  async openSession(): Promise<string> {
    const opened: { session: string } = await (await this.send("POST", "/v1/sessions")).json();
    return opened.session;
  }

  async closeSession(session: string): Promise<void> {
    await this.send("DELETE", `/v1/sessions/${session}`);
  }

  async about(): Promise<{ name: string; version: string }> {
    return (await this.send("GET", "/health")).json();
  }

  async metrics(): Promise<string> {
    return (await this.send("GET", "/metrics")).text();
  }
}

async function described(response: Response): Promise<Problem> {
  const body = await response.text();
  try {
    const { error } = JSON.parse(body);
    return new Problem(response.status, error.kind, error.message, error.hint ?? null, error.position ?? null);
  } catch {
    return new Problem(response.status, "internal", `the server answered ${response.status}`, body.slice(0, 300));
  }
}
