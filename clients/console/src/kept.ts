// Texts that the browser keeps between visits: tabs and history, of each user apart. Never credentials, never rows.

const LIMIT = 400_000;

export interface Past {
  sql: string;
  at: number;
  outcome: string;
}

export class Kept {
  constructor(private readonly user: string) {}

  private read<T>(name: string, otherwise: T): T {
    try {
      return JSON.parse(localStorage.getItem(`bowshot ${this.user} ${name}`) ?? "null") ?? otherwise;
    } catch {
      return otherwise;
    }
  }

  private write(name: string, value: unknown): void {
    const text = JSON.stringify(value);
    if (text.length > LIMIT) return;
    try {
      localStorage.setItem(`bowshot ${this.user} ${name}`, text);
    } catch {
      // A browser that keeps nothing is no reason to fail.
    }
  }

  get tabs(): string[] {
    return this.read("tabs", [""]);
  }

  set tabs(texts: string[]) {
    this.write("tabs", texts);
  }

  get history(): Past[] {
    return this.read("history", []);
  }

  remember(past: Past): void {
    const others = this.history.filter(({ sql }) => sql !== past.sql);
    this.write("history", [past, ...others].slice(0, 200));
  }

  forget(): void {
    this.write("history", []);
  }
}
