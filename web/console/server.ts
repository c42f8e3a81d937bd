/** Calls to the server: one place for time limits, JSON, the mark on changes, and the stream of overviews. */
import type { Overview, Session } from "./wire.ts";

const PATIENCE = 20_000;

/** The server said no, or nothing at all (`status` 0). `message` is for people. */
export class Refused extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

let mark = "";

/** Who is signed in here. Also renews the mark. Raises Refused. */
export async function session(): Promise<Session> {
  const found = await call<Session>("GET", "session");
  mark = found.mark;
  return found;
}

export async function signIn(token: string, name: string): Promise<Session> {
  await call("POST", "session", { token, name });
  return session();
}

export async function signOut(): Promise<Session> {
  await call("DELETE", "session");
  return session();
}

/** GET and the JSON of the answer. Raises Refused. */
export function read<T>(path: string): Promise<T> {
  return call<T>("GET", path);
}

/** A change and the JSON of the answer. Raises Refused. */
export function act<T>(path: string, body?: unknown): Promise<T> {
  return call<T>("POST", path, body);
}

async function call<T>(method: string, path: string, body?: unknown): Promise<T> {
  const headers = new Headers({ Accept: "application/json" });
  if (body !== undefined) headers.set("Content-Type", "application/json");
  if (method !== "GET") headers.set("X-Console-Mark", mark);
  let response: Response;
  let text: string;
  try {
    response = await fetch(`/api/console/${path}`, {
      method,
      headers,
      body: body === undefined ? null : JSON.stringify(body),
      cache: "no-store",
      redirect: "error",
      signal: AbortSignal.timeout(PATIENCE),
    });
    text = await response.text();
  } catch (error) {
    if (error instanceof TypeError || error instanceof DOMException)
      throw new Refused(0, "The server cannot be reached."); // what fetch raises
    throw error;
  }
  if (!response.ok) throw new Refused(response.status, said(text) ?? `The server refused it (${response.status}).`);
  return (text ? JSON.parse(text) : undefined) as T;
}

function said(text: string): string | undefined {
  try {
    return (JSON.parse(text) as { message?: string }).message;
  } catch {
    return undefined; // no answer of the server's own: a proxy's page
  }
}

export interface Follower {
  readonly show: (overview: Overview) => void;
  /** Undefined when all is well again. */
  readonly trouble: (message: string | undefined) => void;
  /** Nobody is signed in any more. */
  readonly signedOut: () => void;
}

/** Follow the overview until the function that it gives is called. The browser connects again by itself; after a refusal we do. */
export function follow(follower: Follower): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let source: EventSource;
  const connect = (): void => {
    source = new EventSource("/api/console/events");
    source.addEventListener("overview", ({ data }: MessageEvent<string>) => {
      follower.trouble(undefined);
      follower.show(JSON.parse(data) as Overview);
    });
    source.addEventListener("trouble", ({ data }: MessageEvent<string>) =>
      follower.trouble((JSON.parse(data) as { message: string }).message),
    );
    source.addEventListener("error", () => {
      follower.trouble("No connection. Trying again…");
      if (source.readyState === EventSource.CLOSED) timer = setTimeout(() => void again(), 3000);
    });
  };
  const again = async (): Promise<void> => {
    try {
      if (!(await session()).signed_in) return follower.signedOut();
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
    }
    connect();
  };
  connect();
  return () => {
    clearTimeout(timer);
    source.close();
  };
}
