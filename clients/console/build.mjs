// Builds the console into the folder that is named, or into `dist`, which is checked in: the program embeds it. The same source
// gives the same bytes, which `cargo xtask console --check` relies on.
import { build } from "esbuild";
import { copyFile, mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const target = process.argv[2] ?? join(here, "dist");
await mkdir(target, { recursive: true });
const common = { bundle: true, minify: true, legalComments: "none", charset: "utf8", logLevel: "warning", absWorkingDir: here };
await build({
  ...common,
  entryPoints: ["src/main.ts"],
  outfile: join(target, "console.js"),
  format: "esm",
  target: "es2022",
});
await build({ ...common, entryPoints: ["src/console.css"], outfile: join(target, "console.css"), target: "es2022" });
for (const name of ["index.html", "icon.svg"]) {
  await copyFile(join(here, "src", name), join(target, name));
}

// The licenses of what the script carries.
const parts = ["The console of Bowshot carries these packages:\n"];
for (const name of ["apache-arrow", "flatbuffers", "tslib"]) {
  const folder = join(here, "node_modules", name);
  const { version, license } = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
  parts.push(`${name} ${version} (${license})`);
}
for (const [name, file] of [
  ["apache-arrow", "NOTICE.txt"],
  ["apache-arrow", "LICENSE.txt"],
  ["tslib", "LICENSE.txt"],
]) {
  parts.push(`\n---- ${name}: ${file} ----\n`, await readFile(join(here, "node_modules", name, file), "utf8"));
}
await writeFile(join(target, "NOTICE"), parts.join("\n"));
