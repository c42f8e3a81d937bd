/** Keeps a board's scores up to date: asks when they expire, at once when the server calls, and goes on after failures. */
import type { BoardScores } from "../shared/wire.ts";
import { pauseAfter, pollDelay } from "./rules.ts";

export type Trouble = "away" | "gone" | "no-term";

export interface Live {
  readonly scores?: BoardScores;
  /** When the scores were read, by the clock of this device. */
  readonly readAt?: number;
  readonly trouble?: Trouble;
}

const PATIENCE = 20_000;
const REASONS: Record<number, Trouble> = { 401: "gone", 403: "gone", 404: "gone", 410: "gone", 409: "no-term" };

/** Show every change by `show`, for as long as the page is open. */
export function follow(token: string, show: (live: Live) => void): void {
  let live: Live = {};
  let failures = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let asking = false;
  let askAgain = false;

  const ask = async (): Promise<void> => {
    if (asking) {
      askAgain = true;
      return;
    }
    asking = true;
    clearTimeout(timer);
    const { wait, ...found } = await read(token, failures + 1);
    failures = found.trouble === undefined ? 0 : failures + 1;
    // A link that was stopped shows nothing any more; a server that is away leaves the last scores.
    live = found.trouble === "away" ? { ...live, ...found } : found;
    show(live);
    asking = false;
    timer = setTimeout(() => void ask(), askAgain ? 0 : wait);
    askAgain = false;
  };

  void ask();
  listen(token, () => void ask());
  addEventListener("online", () => void ask());
}

async function read(token: string, attempt: number): Promise<Live & { wait: number }> {
  try {
    const signal = AbortSignal.timeout(PATIENCE);
    const response = await fetch(`/api/board/${encodeURIComponent(token)}`, {
      cache: "no-store",
      redirect: "error",
      signal,
    });
    const asked = Number(response.headers.get("Retry-After") ?? 0) * 1000 || 0;
    const trouble = REASONS[response.status] ?? "away";
    if (!response.ok) return { trouble, wait: pauseAfter(attempt, asked, Math.random()) };
    const scores = (await response.json()) as BoardScores;
    const serverNow = Date.parse(response.headers.get("Date") ?? "") || Date.now();
    const readAt = Date.now() - Math.max(0, serverNow - Date.parse(scores.cached_at));
    return { scores, readAt, wait: pollDelay(scores.cache_expires_at, serverNow, Math.random()) };
  } catch (error) {
    const expected = error instanceof TypeError || error instanceof DOMException || error instanceof SyntaxError;
    if (!expected) throw error; // those three are what no network, no patience and no JSON look like
    return { trouble: "away", wait: pauseAfter(attempt, 0, Math.random()) };
  }
}

/** Call `refresh` when the server says that scores have changed, and after each connection: something may have been missed. */
function listen(token: string, refresh: () => void): void {
  let failures = 0;
  const connect = (): void => {
    let open = false;
    const url = new URL(`/ws/board/${encodeURIComponent(token)}`, location.href);
    url.protocol = url.protocol.replace("http", "ws");
    const socket = new WebSocket(url);
    socket.addEventListener("open", () => {
      failures = 0;
      open = true;
      refresh();
    });
    socket.addEventListener("message", ({ data }) => {
      if (kind(data) === "refresh-scores") refresh();
    });
    socket.addEventListener("close", () => {
      if (open) refresh(); // is the server away, or was the link stopped?
      failures += 1;
      setTimeout(connect, pauseAfter(failures, 0, Math.random()));
    });
  };
  connect();
}

function kind(data: unknown): unknown {
  try {
    return (JSON.parse(String(data)) as { type?: unknown } | null)?.type;
  } catch {
    return undefined; // not a message of ours
  }
}
