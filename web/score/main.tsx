import { render } from "preact";
import "../shared/theme.css";
import { App } from "./app.tsx";
import { follow, nudge } from "./follow.ts";
import { Model } from "./model.ts";
import "./style/frame.css";
import "./style/parts.css";
import "./style/cards.css";

const model = new Model();
render(<App model={model} />, document.getElementById("app")!);
follow(model);
const started = model.start();
if ("serviceWorker" in navigator) {
  // The first worker takes over a page that has none; any later one brings a newer version of it.
  const newer = navigator.serviceWorker.controller !== null;
  navigator.serviceWorker.addEventListener("controllerchange", () => newer && model.update());
  await navigator.serviceWorker.register("/admin/sw.js", { scope: "/admin/" });
  await navigator.serviceWorker.ready;
}
await started;
if (!nudge()) await model.sendLeft();
