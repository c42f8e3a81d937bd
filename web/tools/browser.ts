/**
 * A browser for the tests, driven over standard input and output: one JSON object a line, answered in the order in which they finish.
 *
 * {"id", "target", "steps", "method", "args"}: start at the object `target` (0 is the bridge below), follow `steps` (calls that
 * narrow, such as getByRole), call `method`. The answer is {"id", "value"}, or {"id", "handle"} for an object to be a target
 * later, or {"id", "error"}.
 */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { chromium as driver, type BrowserContext, type BrowserContextOptions, type Page } from "playwright-core";
import { chromium } from "./chromium.ts";

type Call = readonly [string, ...unknown[]];
interface Request {
  readonly id: number;
  readonly target: number;
  readonly steps: readonly Call[];
  readonly method: string;
  readonly args: readonly unknown[];
}

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const PATIENCE = 10_000;

const { path, env } = await chromium();
const browser = await driver.launch({
  executablePath: path,
  env: { ...(process.env as Record<string, string>), ...env },
  args: ["--no-sandbox", "--disable-gpu"],
});
const objects: unknown[] = [];
const handles = new Map<unknown, number>();
const problems = new Map<BrowserContext, string[]>();
const waiting = new Map<BrowserContext, (() => void)[]>();

function kept(context: BrowserContext): (() => void)[] {
  if (!waiting.has(context)) waiting.set(context, []);
  return waiting.get(context)!;
}

/** What is not a method of Playwright. */
const bridge = {
  async open(options: BrowserContextOptions): Promise<BrowserContext> {
    const context = await browser.newContext(options);
    const found: string[] = [];
    problems.set(context, found);
    context.setDefaultTimeout(PATIENCE);
    context.on("console", (message) => {
      if (["error", "warning"].includes(message.type()))
        found.push(`${message.type()}: ${message.text()} (${message.location().url})`);
    });
    context.on("weberror", (error) => found.push(`uncaught: ${error.error().stack || error.error()}`));
    return context;
  },

  /** Errors and warnings that the pages of this context wrote, since the last call. */
  problems(context: number): string[] {
    return problems.get(objects[context] as BrowserContext)!.splice(0);
  },

  /** What axe finds wrong with the page as it is now. */
  async axe(page: number): Promise<string[]> {
    const target = objects[page] as Page;
    await target.evaluate(AXE);
    return target.evaluate(async () => {
      const axe = (
        globalThis as unknown as {
          axe: { run(options: object): Promise<{ violations: { id: string; nodes: { html: string }[] }[] }> };
        }
      ).axe;
      const { violations } = await axe.run({ preload: false }); // the pages let nothing fetch their styles again
      return violations.flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.html}`));
    });
  },

  /** Do what a browser with Background Sync does when the network is back. The page may be closed; `page` is any of its context. */
  async sync(page: number, scope: string, tag: string): Promise<void> {
    const target = objects[page] as Page;
    const session = await target.context().newCDPSession(target);
    const registrationId = await new Promise<string>((resolve) => {
      session.on("ServiceWorker.workerRegistrationUpdated", ({ registrations }) => {
        const ours = registrations.find((one) => one.scopeURL === scope && !one.isDeleted);
        if (ours) resolve(ours.registrationId);
      });
      void session.send("ServiceWorker.enable");
    });
    await session.send("ServiceWorker.dispatchSyncEvent", {
      origin: new URL(scope).origin,
      registrationId,
      tag,
      lastChance: false,
    });
    await session.detach();
  },

  /**
   * Answer requests of the context's pages whose path ends so with `answer` instead of asking the server, so many times;
   * without an answer they wait until `letGo`, and with "late" the server's answer does.
   */
  async intercept(
    context: number,
    method: string,
    end: string,
    answer: object | "late" | null,
    times: number,
  ): Promise<void> {
    const target = objects[context] as BrowserContext;
    let left = times;
    await target.route(
      (url) => url.pathname.endsWith(end),
      async (route) => {
        if (route.request().method() !== method || left <= 0) return route.fallback();
        left -= 1;
        if (answer !== null && answer !== "late") return route.fulfill(answer);
        const response = answer === "late" ? await route.fetch() : undefined;
        const gone = new Promise<void>((go) => kept(target).push(go));
        await gone;
        return response ? route.fulfill({ response }) : route.fallback();
      },
    );
  },

  /** How many requests have been kept waiting and not let go. */
  keptWaiting(context: number): number {
    return kept(objects[context] as BrowserContext).length;
  },

  letGo(context: number): void {
    for (const go of kept(objects[context] as BrowserContext).splice(0)) go();
  },

  async press(page: number, key: string): Promise<void> {
    await (objects[page] as Page).keyboard.press(key);
  },
};
objects.push(bridge);

async function answer(request: Request): Promise<object> {
  try {
    let target = objects[request.target];
    for (const [method, ...args] of request.steps) target = call(target, method, args);
    return reply(await call(target, request.method, request.args));
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error) };
  }
}

function call(target: unknown, method: string, args: readonly unknown[]): unknown {
  return (target as Record<string, (...given: unknown[]) => unknown>)[method]!(...args);
}

/** Plain values as they are; what has methods of its own stays here and gets a handle. */
function reply(value: unknown): object {
  const kept = typeof value === "object" && value !== null && "on" in value;
  if (!kept) return { value: Buffer.isBuffer(value) || isResponse(value) ? null : (value ?? null) };
  if (!handles.has(value)) handles.set(value, objects.push(value) - 1);
  return { handle: handles.get(value) };
}

function isResponse(value: unknown): boolean {
  return typeof value === "object" && value !== null && "request" in value;
}

for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line) as Request;
  void answer(request).then((said) => process.stdout.write(`${JSON.stringify({ id: request.id, ...said })}\n`));
}
await browser.close();
