// Runs the suites and tells how many tests have passed and failed, in the words of `cargo xtask test`.
import { run } from "node:test";
import { spec } from "node:test/reporters";

let [passed, failed] = [0, 0];
const files = ["postgres.test.js", "mysql.test.js", "grpcweb.test.js"].map((name) => new URL(name, import.meta.url).pathname);
const tests = run({ files, concurrency: 1, timeout: 120_000 });
tests.on("test:pass", () => (passed += 1));
tests.on("test:fail", () => (failed += 1));
tests.on("end", () => setImmediate(() => {
  console.log(`${passed} passed, ${failed} failed`);
  process.exitCode = failed || !passed ? 1 : 0;
}));
tests.compose(spec).pipe(process.stdout);
