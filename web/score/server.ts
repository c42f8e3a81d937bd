/** Calls to the server: one place for time limits, JSON and the CSRF token. Used by the page and by the service worker. */
import { id, type Session } from "../shared/wire.ts";
import { isCsrf, said, type Answer } from "./queue.ts";

const PATIENCE = 20_000;

/** The server said no, or nothing at all (`status` 0). `message` is for people. */
export class Refused extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

let csrf: string | undefined;

/** Who is signed in here, now. Also renews the CSRF token. Raises Refused when the server cannot be reached. */
export async function session(): Promise<Session> {
  const found = await read<Session>("/api/admin/session");
  csrf = found.csrfToken;
  return {
    ...found,
    ...(found.user && { user: { ...found.user, osmUserId: id(found.user.osmUserId) } }),
    ...(found.selectedSectionId && { selectedSectionId: id(found.selectedSectionId) }),
    pendingWrites: found.pendingWrites ?? 0,
  };
}

/** GET and the JSON of the answer. Raises Refused. */
export async function read<T>(path: string): Promise<T> {
  return bodyOf<T>(await request("GET", path));
}

/** A write and the JSON of the answer. Raises Refused. */
export async function write<T>(method: string, path: string, body?: unknown, headers?: HeadersInit): Promise<T> {
  return bodyOf<T>(await attempt(method, path, body, headers));
}

/** A write and its raw answer; a refused CSRF token is renewed once, unless somebody else than `owner` has signed in. */
export async function attempt(
  method: string,
  path: string,
  body?: unknown,
  headers?: HeadersInit,
  owner?: string,
): Promise<Answer> {
  const first = await request(method, path, body, headers);
  if (!isCsrf(first)) return first;
  try {
    const now = await session();
    if (owner !== undefined && now.user?.osmUserId !== owner) return { status: 401, retryAfter: null, body: undefined };
  } catch (error) {
    if (error instanceof Refused) return "unreachable";
    throw error;
  }
  return request(method, path, body, headers);
}

async function request(method: string, path: string, body?: unknown, extra?: HeadersInit): Promise<Answer> {
  const headers = new Headers(extra);
  headers.set("Accept", "application/json");
  if (body !== undefined) headers.set("Content-Type", "application/json");
  if (method !== "GET" && csrf !== undefined) headers.set("X-CSRF-Token", csrf);
  try {
    const response = await fetch(path, {
      method,
      headers,
      body: body === undefined ? null : JSON.stringify(body),
      credentials: "same-origin",
      redirect: "manual",
      cache: "no-store",
      signal: AbortSignal.timeout(PATIENCE),
    });
    const status = response.type === "opaqueredirect" ? 302 : response.status;
    return { status, retryAfter: response.headers.get("Retry-After"), body: parsed(await response.text()) };
  } catch (error) {
    if (error instanceof TypeError || error instanceof DOMException) return "unreachable"; // what fetch raises
    throw error;
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // no JSON is no answer of the server's; whoever asked says so
  }
}

function bodyOf<T>(answer: Answer): T {
  if (answer === "unreachable") throw new Refused(0, "There is no connection to the server.");
  const ok = answer.status >= 200 && answer.status < 300;
  if (ok && (answer.body !== undefined || answer.status === 204)) return answer.body as T;
  throw new Refused(ok ? 502 : answer.status, said(answer.body) ?? `The server refused it (${answer.status}).`);
}
