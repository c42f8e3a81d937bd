/**
 * The service worker: the pages without a network, and points that go out after the page was closed.
 * The build writes the list of files and its version into it, so a new build is a new worker with a new cache.
 */
import { send } from "./send.ts";

declare const self: ServiceWorkerGlobalScope;
declare const FILES: readonly string[];
declare const VERSION: string;

interface SyncEvent extends ExtendableEvent {
  readonly tag: string;
}

const PREFIX = "carrick-score-";
const CACHE = PREFIX + VERSION;

self.addEventListener("install", (event) => {
  event.waitUntil(keepFiles().then(() => self.skipWaiting()));
});

self.addEventListener("activate", (event) => {
  event.waitUntil(dropOldCaches().then(() => self.clients.claim()));
});

self.addEventListener("fetch", (event) => {
  const url = new URL(event.request.url);
  const ours = url.origin === self.location.origin && event.request.method === "GET" && FILES.includes(url.pathname);
  if (ours) event.respondWith(kept(url.pathname, event.request));
});

// Background Sync: the browser calls when there is a network, also after the page was closed; it calls again if this fails.
self.addEventListener("sync" as "message", (event) => {
  if ((event as unknown as SyncEvent).tag === "client-outbox") event.waitUntil(sendAll());
});

// Where the browser has no Background Sync, the page asks on start, on focus and when it is online again.
self.addEventListener("message", (event) => {
  if (event.data === "send") event.waitUntil(send(true));
});

async function sendAll(): Promise<void> {
  const { stopped } = await send(true);
  if (stopped === "later") throw new Error("Points are still waiting for the network.");
}

async function keepFiles(): Promise<void> {
  const cache = await caches.open(CACHE);
  await cache.addAll(FILES.map((path) => new Request(path, { cache: "reload" })));
}

async function dropOldCaches(): Promise<void> {
  const names = await caches.keys();
  await Promise.all(
    names.filter((name) => name.startsWith(PREFIX) && name !== CACHE).map((name) => caches.delete(name)),
  );
}

async function kept(path: string, request: Request): Promise<Response> {
  const cache = await caches.open(CACHE);
  return (await cache.match(path)) ?? fetch(request);
}
