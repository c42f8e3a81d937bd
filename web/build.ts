/** Builds every page into the Python package, compresses the files and holds the first load of each page to its limit. */
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { build, type InlineConfig, type Plugin } from "vite";
import { icon } from "./tools/icon.ts";

const HERE = import.meta.dirname;
const SCOREBOARD = resolve(HERE, "../src/carrick_scoreboard/static");
/** The console belongs to every service, not to the scoreboard alone. */
const CARRICK = resolve(HERE, "../src/carrick/web/static");
const FOLDERS = { board: join(SCOREBOARD, "board"), score: join(SCOREBOARD, "score"), console: join(CARRICK, "console") };
type Name = keyof typeof FOLDERS;
const LIMIT = 100_000;
/** What the browser needs before the page works; the icons come later. */
const FIRST_LOAD = /\.(html|js|css|webmanifest)$/;

const icons: Plugin = {
  name: "icons",
  generateBundle() {
    for (const size of [192, 512]) {
      this.emitFile({ type: "asset", fileName: `icon-${size}.png`, source: icon(size, 0.2) });
      this.emitFile({ type: "asset", fileName: `icon-maskable-${size}.png`, source: icon(size, 0) });
    }
  },
};

/** One page with all its files under `base`. */
async function page(name: Name, base: string, plugins: Plugin[]): Promise<void> {
  await bundle({
    root: join(HERE, name),
    base,
    plugins,
    build: { outDir: FOLDERS[name], assetsInlineLimit: 0, modulePreload: { polyfill: false } },
  });
}

/** The service worker: one classic script, with the files that it keeps and their version. */
async function worker(name: Name, base: string): Promise<void> {
  const outDir = FOLDERS[name];
  const files = built(outDir).map((file) => base + (file === "index.html" ? "" : file));
  await bundle({
    root: join(HERE, name),
    publicDir: false,
    define: { FILES: JSON.stringify(files), VERSION: JSON.stringify(version(outDir)) },
    build: {
      outDir,
      emptyOutDir: false,
      lib: { entry: join(HERE, name, "sw.ts"), formats: ["iife"], name: "sw", fileName: () => "sw.js" },
    },
  });
}

async function bundle(config: InlineConfig): Promise<void> {
  const jsx = { runtime: "automatic" as const, importSource: "preact" };
  await build({
    configFile: false,
    logLevel: "warn",
    oxc: { jsx },
    ...config,
    build: { target: "es2022", emptyOutDir: true, ...config.build },
  });
}

function built(folder: string): string[] {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)))
    .sort();
}

function version(folder: string): string {
  const hash = createHash("sha256");
  for (const file of built(folder)) hash.update(file).update(readFileSync(join(folder, file)));
  return hash.digest("hex").slice(0, 12);
}

/** Lay compressed twins beside the files, print the sizes, and fail when the first load is too large. */
function weigh(name: Name): void {
  const folder = FOLDERS[name];
  let total = 0;
  for (const file of built(folder).filter((one) => FIRST_LOAD.test(one))) {
    const bytes = readFileSync(join(folder, file));
    const packed = gzipSync(bytes, { level: 9 });
    writeFileSync(join(folder, `${file}.gz`), packed);
    writeFileSync(join(folder, `${file}.br`), brotliCompressSync(bytes));
    total += packed.length;
    console.log(`  ${`${name}/${file}`.padEnd(44)} ${kilobytes(bytes.length)}  gzip ${kilobytes(packed.length)}`);
  }
  console.log(
    `  ${`${name}: first load`.padEnd(44)} ${" ".repeat(10)} gzip ${kilobytes(total)} of ${kilobytes(LIMIT)}`,
  );
  if (total > LIMIT) throw new Error(`The first load of ${name} is ${total} bytes compressed; ${LIMIT} are allowed.`);
}

function kilobytes(bytes: number): string {
  return `${(bytes / 1000).toFixed(1).padStart(6)} kB`;
}

for (const folder of [SCOREBOARD, CARRICK]) rmSync(folder, { recursive: true, force: true });
await page("console", "/console/", []);
await page("board", "/board/", []);
await page("score", "/admin/", [icons]);
await worker("score", "/admin/");
for (const name of ["console", "board", "score"] as const) weigh(name);
