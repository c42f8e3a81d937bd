import { render } from "preact";
import "../shared/theme.css";
import { App } from "./app.tsx";
import { follow, nudge } from "./follow.ts";
import { Model } from "./model.ts";
import "./style/frame.css";
import "./style/parts.css";
import "./style/cards.css";

const model = new Model();
addEventListener("unhandledrejection", ({ reason }) => model.broke(reason));
addEventListener("error", ({ error, message }) => model.broke(error ?? message));
render(<App model={model} />, document.getElementById("app")!);
follow(model);
const started = model.start();
if ("serviceWorker" in navigator) await install(navigator.serviceWorker);
await started;
if (!nudge()) await model.sendLeft();

/** The first worker takes over a page that has none; any later one brings a newer version of it. */
async function install(workers: ServiceWorkerContainer): Promise<void> {
  const newer = workers.controller !== null;
  workers.addEventListener("controllerchange", () => newer && model.update());
  try {
    await workers.register("/admin/sw.js", { scope: "/admin/" });
    await workers.ready;
  } catch (error) {
    console.warn("No service worker, so the page needs a network to start; the next start tries again.", error);
  }
}
