// Bundles the panel into one module and collects the licences of what went into it.
// `npm ci && npm run build`; the results are committed, so that installing needs no Node.
import { build } from "esbuild";
import { copyFile, readFile, readdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";

const here = path.dirname(fileURLToPath(import.meta.url));
const target = path.join(here, "..", "cutegen_nb", "notebook", "static");

// The panel explains its words with the entries of the documentation's glossary.
const page = path.join(here, "..", "docs", "reference", "glossary.md");
const glossary = {
  name: "glossary",
  setup(made) {
    made.onResolve({ filter: /^glossary:entries$/ }, () => ({ path: page, namespace: "glossary" }));
    made.onLoad({ filter: /.*/, namespace: "glossary" }, async () => ({
      contents: JSON.stringify(entries(await readFile(page, "utf8"))),
      loader: "json",
      watchFiles: [page],
    }));
  },
};

/** Terms in small letters with their text, which has no links: `- **A, B**: text`. */
function entries(markdown) {
  const found = {};
  for (const [, heads, text] of markdown.matchAll(/^- \*\*(.+?)\*\*:\s+([\s\S]+?)(?=\n- |\n\n|$(?![\s\S]))/gm)) {
    const plain = text.replace(/\[[^\]]*\]\([^)]*\)\.?/g, "").replace(/[*`]/g, "").replace(/\s+/g, " ").trim();
    for (const head of heads.split(/[,:]/)) found[head.trim().toLowerCase()] ??= plain;
  }
  return found;
}

const result = await build({
  absWorkingDir: here,
  entryPoints: ["src/panel.js"],
  bundle: true,
  charset: "ascii",
  format: "esm",
  legalComments: "none",
  metafile: true,
  minify: !process.env.DEBUG,
  plugins: [glossary],
  outfile: path.join(target, "panel.js"),
  target: "es2022",
});
for (const name of ["panel.css", "loader.js"]) await copyFile(path.join(here, "src", name), path.join(target, name));

const packages = new Set();
for (const file of Object.keys(result.metafile.inputs)) {
  const found = /^node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(file);
  if (found) packages.add(found[1]);
}
const parts = ["Third-party software in panel.js, with its licences.\n"];
for (const name of [...packages].sort()) {
  const folder = path.join(here, "node_modules", name);
  const { version, license } = JSON.parse(await readFile(path.join(folder, "package.json"), "utf8"));
  const file = (await readdir(folder)).find((entry) => /^licen[cs]e/i.test(entry));
  if (!file) throw new Error(`${name} ${version} carries no licence file; it cannot be shipped.`);
  const text = (await readFile(path.join(folder, file), "utf8")).trim();
  parts.push(`${"-".repeat(72)}\n${name} ${version} (${license})\n\n${text}\n`);
}
await writeFile(path.join(target, "panel.LICENSES.txt"), parts.join("\n"));

const bytes = Object.values(result.metafile.outputs)[0].bytes;
console.log(`panel.js: ${Math.round(bytes / 1024)} KB from ${packages.size} packages`);
