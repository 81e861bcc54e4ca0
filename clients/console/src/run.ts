// One run of a statement: from its start over its progress to its end, and the result that the server keeps meanwhile.

import type { Rows } from "./arrow";
import { type Client, Problem, type Progress, type Started } from "./client";
import { progressText } from "./format";

/** How often a running statement is asked how far it is, the first times sooner, and a result is kept from expiring. */
const LOOK_MS = 250;
const FIRST_LOOK_MS = 40;
const KEEP_MS = 12_000;
/** Rows of an answer that is read at once. */
const MOST_ROWS = 100_000;

export interface Watcher {
  started: (started: Started) => void;
  /** Called several times a second while it runs; without progress until it has started. */
  moved: (progress: Progress | null, elapsed: number) => void;
  ended: (progress: Progress | null, elapsed: number) => void;
  failed: (error: unknown, elapsed: number) => void;
}

export class Run {
  id: string | null = null;
  isRunning = true;
  private readonly stop = new AbortController();
  private readonly begun = performance.now();
  private timer = 0;
  private clock = 0;
  private progress: Progress | null = null;

  constructor(
    private readonly client: Client,
    readonly sql: string,
    private readonly watcher: Watcher,
  ) {}

  private get elapsed(): number {
    return performance.now() - this.begun;
  }

  async start(session: string | null): Promise<void> {
    this.clock = window.setInterval(() => this.watcher.moved(this.progress, this.elapsed), LOOK_MS);
    try {
      const started = await this.client.start(this.sql, session, this.stop.signal);
      this.id = started.query_id;
      this.watcher.started(started);
      if (started.columns === null || this.id === null) this.end(null);
      else await this.look();
    } catch (error) {
      this.fail(error);
    }
  }

  private end(progress: Progress | null): void {
    this.isRunning = false;
    clearInterval(this.clock);
    this.watcher.ended(progress, this.elapsed);
  }

  private fail(error: unknown): void {
    const isCancelled = this.stop.signal.aborted;
    // A request that fails after the cancel was shown adds nothing.
    if (isCancelled && !this.isRunning) return;
    this.isRunning = false;
    clearTimeout(this.timer);
    clearInterval(this.clock);
    this.watcher.failed(isCancelled ? cancelled() : error, this.elapsed);
  }

  /** Asks how far the statement is, until it has ended, and then often enough that its result stays. */
  private async look(): Promise<void> {
    if (this.id === null) return;
    const progress = await this.client.progress(this.id);
    // Whoever cancelled it shows its end.
    if (this.stop.signal.aborted) return;
    if (progress.state === "failed" || progress.state === "cancelled") {
      const { error } = progress;
      const problem = error
        ? new Problem(0, error.kind, error.message, error.hint, error.position ?? null)
        : cancelled();
      return this.fail(problem);
    }
    if (progress.state === "finished" && this.isRunning) this.end(progress);
    this.progress = progress;
    if (this.isRunning) this.watcher.moved(progress, this.elapsed);
    const again = () => this.look().catch((error: unknown) => this.fail(error));
    const soon = Math.min(LOOK_MS, FIRST_LOOK_MS + this.elapsed / 4);
    this.timer = window.setTimeout(again, this.isRunning ? soon : KEEP_MS);
  }

  /** Ends the statement, or lets the server forget its result. */
  async cancel(): Promise<void> {
    clearTimeout(this.timer);
    const wasRunning = this.isRunning;
    this.stop.abort();
    if (this.id !== null) await this.client.cancel(this.id).catch(() => {});
    if (wasRunning && this.isRunning) this.fail(cancelled());
  }
}

/** Runs a query to its end, telling how far it is, and brings its rows; the server then forgets the result. */
export function runToEnd(client: Client, sql: string, signal: AbortSignal, tell: (text: string) => void): Promise<Rows> {
  return new Promise((resolve, reject) => {
    const run: Run = new Run(client, sql, {
      started: () => {},
      moved: (progress, elapsed) => tell(progressText(elapsed, progress?.fraction ?? null)),
      ended: () => {
        const rows = run.id === null ? Promise.resolve({ columns: [], count: 0 }) : client.part(run.id, 0, MOST_ROWS, signal);
        void rows.then(resolve, reject).finally(() => void run.cancel());
      },
      failed: reject,
    });
    signal.addEventListener("abort", () => {
      if (run.isRunning) void run.cancel();
    });
    void run.start(null);
  });
}

function cancelled(): Problem {
  return new Problem(499, "cancelled", "the query was cancelled");
}
