// Bundles static/src into static/dist. Entry files keep stable names (the static storage hashes them);
// lazy chunks carry a content hash because their names are written into the code.
import * as esbuild from "esbuild";
import { cp, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(fileURLToPath(import.meta.url));
const src = resolve(root, "static/src");
const dist = resolve(root, process.env.KB_ASSETS_OUT || "static/dist");
const modules = resolve(root, "node_modules");
const watch = process.argv.includes("--watch");

const version = async (name) => JSON.parse(await readFile(join(modules, name, "package.json"), "utf8")).version;

/** One SVG sprite holding only the icons named in icons.json, drawn in the current text colour. */
async function buildSprite() {
  const names = JSON.parse(await readFile(join(src, "icons.json"), "utf8"));
  const symbols = [];
  for (const [name, source] of Object.entries(names).sort()) {
    const svg = await readFile(join(modules, "lucide-static/icons", `${source}.svg`), "utf8");
    const body = svg.slice(svg.indexOf(">", svg.indexOf("<svg")) + 1, svg.lastIndexOf("</svg>"));
    symbols.push(`<symbol id="${name}" viewBox="0 0 24 24">${body.replace(/\s+/g, " ").trim()}</symbol>`);
  }
  await writeFile(join(dist, "icons.svg"), `<svg xmlns="http://www.w3.org/2000/svg">${symbols.join("")}</svg>\n`);
}

/** pdf.js loads its worker, character maps and decoders by URL, so they are copied beside the bundle. */
async function copyPdfAssets(folder) {
  const from = join(modules, "pdfjs-dist");
  const to = join(dist, folder);
  await mkdir(to, { recursive: true });
  await cp(join(from, "legacy/build/pdf.worker.min.mjs"), join(to, "worker.js"));
  for (const name of ["cmaps", "standard_fonts", "wasm", "iccs"]) await cp(join(from, name), join(to, name), { recursive: true });
}

const pdfFolder = `pdfjs-${await version("pdfjs-dist")}`;
const options = {
  entryPoints: [
    { in: join(src, "js/app.js"), out: "app" },
    { in: join(src, "css/app.css"), out: "app" },
    { in: join(src, "css/katex.css"), out: "katex" },
  ],
  outdir: dist,
  bundle: true,
  splitting: true,
  format: "esm",
  target: ["chrome123", "firefox121", "safari17.5"],
  minify: !watch,
  sourcemap: watch ? "linked" : false,
  chunkNames: "[name]-[hash]",
  assetNames: "media/[name]-[hash]",
  loader: { ".woff2": "file", ".woff": "empty", ".ttf": "empty" },
  define: { PDFJS_FOLDER: JSON.stringify(pdfFolder) },
  legalComments: "none",
  logLevel: "warning",
};

await rm(dist, { recursive: true, force: true });
await mkdir(dist, { recursive: true });
if (watch) {
  const context = await esbuild.context(options);
  await context.watch();
} else {
  await esbuild.build(options);
}
await Promise.all([buildSprite(), copyPdfAssets(pdfFolder), cp(join(src, "brand/mark.svg"), join(dist, "mark.svg"))]);
