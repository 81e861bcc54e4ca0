// One run of a statement: from its start over its progress to its end, and the result that the server keeps meanwhile.

import { type Client, Problem, type Progress, type Started } from "./client";

/** How often a running statement is asked how far it is, the first times sooner, and a result is kept from expiring. */
const LOOK_MS = 250;
const FIRST_LOOK_MS = 40;
const KEEP_MS = 12_000;

export interface Watcher {
  started: (started: Started) => void;
  moved: (progress: Progress, elapsed: number) => void;
  ended: (progress: Progress | null, elapsed: number) => void;
  failed: (error: unknown, elapsed: number) => void;
}

export class Run {
  id: string | null = null;
  isRunning = true;
  private readonly stop = new AbortController();
  private readonly begun = performance.now();
  private timer = 0;

  constructor(
    private readonly client: Client,
    readonly sql: string,
    private readonly watcher: Watcher,
  ) {}

  private get elapsed(): number {
    return performance.now() - this.begun;
  }

  async start(session: string | null): Promise<void> {
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
    this.watcher.ended(progress, this.elapsed);
  }

  private fail(error: unknown): void {
    const isCancelled = this.stop.signal.aborted;
    // A request that fails after the cancel was shown adds nothing.
    if (isCancelled && !this.isRunning) return;
    this.isRunning = false;
    clearTimeout(this.timer);
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
    else if (this.isRunning) this.watcher.moved(progress, this.elapsed);
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

function cancelled(): Problem {
  return new Problem(499, "cancelled", "the query was cancelled");
}
