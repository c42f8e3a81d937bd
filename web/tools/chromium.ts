/** Where Chromium is: the one that CHROMIUM names, else the one of the package, unpacked once beside it. */
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";

const MODULES = resolve(import.meta.dirname, "../node_modules");
const PACKAGE = join(MODULES, "@sparticuz/chromium");

export interface Chromium {
  readonly path: string;
  readonly env: Record<string, string>;
}

/** The browser and what its process needs: libraries and fonts come along, so a bare machine will do. */
export async function chromium(): Promise<Chromium> {
  const own = process.env.CHROMIUM;
  if (own) return { path: own, env: {} };
  const { version } = JSON.parse(readFileSync(join(PACKAGE, "package.json"), "utf8")) as { version: string };
  const folder = join(MODULES, `.chromium-${version}`);
  if (!existsSync(folder)) await unpack(folder);
  return {
    path: join(folder, "chromium"),
    env: { LD_LIBRARY_PATH: join(folder, "al2023/lib"), FONTCONFIG_FILE: join(folder, "fonts.conf") },
  };
}

/** Unpack under a name of our own, then rename: two processes that start at once do not see each other's halves. */
async function unpack(folder: string): Promise<void> {
  const mine = `${folder}.${process.pid}`;
  mkdirSync(mine);
  process.env.TMPDIR = mine; // where the package unpacks to
  const { inflate } = await import("@sparticuz/chromium");
  for (const part of ["chromium.br", "fonts.tar.br", "swiftshader.tar.br", "al2023.tar.br"])
    await inflate(join(PACKAGE, "bin", part));
  delete process.env.TMPDIR;
  const fonts = `<dir>${folder}/fonts</dir><dir>/usr/share/fonts</dir><cachedir>${folder}/fonts-cache</cachedir>`;
  writeFileSync(join(mine, "fonts.conf"), `<?xml version="1.0"?><fontconfig>${fonts}</fontconfig>`);
  try {
    renameSync(mine, folder);
  } catch (error) {
    if (!existsSync(folder)) throw error;
    rmSync(mine, { recursive: true }); // another process was first
  }
}
