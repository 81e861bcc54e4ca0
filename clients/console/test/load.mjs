// Loads a module of the console into Node: what it computes is tested without a browser and without a server.
import { build } from "esbuild";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const source = join(dirname(fileURLToPath(import.meta.url)), "..", "src");

export async function load(name) {
  const { outputFiles } = await build({ entryPoints: [join(source, name)], bundle: true, write: false, format: "esm", target: "es2022", logLevel: "warning" });
  return import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString("base64")}`);
}
