// Numbers for the requests of one place: an answer counts only while its request is the latest one.

export class Generations {
  private latest = 0;

  /** Begins a request; all earlier ones are late from now on. */
  next(): number {
    this.latest += 1;
    return this.latest;
  }

  isLatest(generation: number): boolean {
    return generation === this.latest;
  }
}
