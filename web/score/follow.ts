/** Keeps the page up to date by itself: what waits goes out when it can, and what the server still works on is followed. */
import { nextDue } from "./queue.ts";
import { CHANGES } from "./send.ts";
import type { Model } from "./model.ts";

const FIRST_LOOK = 1_000;
const SLOWEST_LOOK = 30_000;
const LOOK_WHEN_AWAY = 15_000;

/** Follow until the page closes. */
export function follow(model: Model): void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let look = FIRST_LOOK;
  let pending = 0;

  const plan = (): void => {
    clearTimeout(timer);
    const { pendingWrites, reachable, outbox } = model.state;
    if (pendingWrites !== pending) look = FIRST_LOOK;
    pending = pendingWrites;
    const waits = [nextDue(outbox)]
      .filter((time) => time !== null)
      .map((time) => Math.max(FIRST_LOOK, time - Date.now()));
    if (pendingWrites > 0) waits.push(look);
    if (!reachable) waits.push(LOOK_WHEN_AWAY);
    if (waits.length > 0) timer = setTimeout(() => void act(), Math.min(...waits));
  };

  const act = async (): Promise<void> => {
    look = Math.min(SLOWEST_LOOK, look * 1.5);
    if (!document.hidden || model.state.outbox.length > 0) await model.look();
    plan();
  };

  const back = (): void => {
    if (!model.state.ready) return;
    look = FIRST_LOOK;
    if (!nudge()) void model.sendLeft();
    void model.refresh();
  };

  model.subscribe(plan);
  new BroadcastChannel(CHANGES).addEventListener(
    "message",
    ({ data }) => void (data === "sent" ? model.refresh() : model.reload()),
  );
  addEventListener("online", back);
  addEventListener("focus", back);
  document.addEventListener("visibilitychange", () => document.hidden || back());
}

/** Have the service worker send what is left: it goes on when this page is closed. Returns whether there is one. */
export function nudge(): boolean {
  const worker = navigator.serviceWorker?.controller;
  worker?.postMessage("send");
  return worker != null;
}
