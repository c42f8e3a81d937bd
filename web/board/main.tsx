/** The live board: the scores of one section, large, on any screen. No controls. */
import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import "../shared/theme.css";
import { ago, figure } from "../shared/words.ts";
import { follow, type Live, type Trouble } from "./live.ts";
import { bars, type Bar } from "./rules.ts";
import "./style.css";

const TROUBLES: Record<Trouble, string> = {
  away: "No connection. Trying again…",
  gone: "This link no longer works. Ask a leader for a new one.",
  "no-term": "There is no term today. The scores come back when the next one starts.",
};

function Board({ token }: { token: string }) {
  const [live, show] = useState<Live>({});
  useEffect(() => follow(token, show), [token]);
  useEffect(keepAwake, []);
  const { scores, trouble } = live;
  useEffect(
    () => void (document.title = scores?.section ? `${scores.section.name} – live board` : "Live board"),
    [scores],
  );
  return (
    <main>
      <header>
        <h1>{scores?.section?.name ?? "Live board"}</h1>
        <p class="group">{scores?.section?.groupName}</p>
      </header>
      {scores && (
        <ol class="bars" style={{ "--rows": Math.max(3, scores.patrols.length) }}>
          {bars(scores).map((bar, index) => (
            <Row key={bar.id} bar={bar} index={index} />
          ))}
        </ol>
      )}
      {!scores && !trouble && <p class="message">One moment…</p>}
      {!scores && trouble && <p class="message">{TROUBLES[trouble]}</p>}
      <footer>
        {scores && <Age live={live} />}
        {scores && trouble && <p class="away">{TROUBLES[trouble]}</p>}
      </footer>
    </main>
  );
}

function Row({ bar, index }: { bar: Bar; index: number }) {
  return (
    <li class="patrol">
      <h2>{bar.name}</h2>
      <p class="figure">
        {bar.pending && <span class="dot" role="img" aria-label="some points are still on the way" />}
        {figure(bar.shown)}
      </p>
      <div class="track" aria-hidden="true">
        <div class={`bar fill-${bar.colour || `own-${index % 4}`}`} style={{ transform: `scaleX(${bar.share})` }} />
      </div>
    </li>
  );
}

function Age({ live }: { live: Live }) {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    setNow(Date.now());
    const timer = setInterval(() => setNow(Date.now()), 10_000);
    return () => clearInterval(timer);
  }, [live]);
  const age = ago(live.readAt ?? now, now);
  return (
    <p class={live.scores?.stale ? "stale" : ""}>
      {live.scores?.stale ? `Online Scout Manager cannot be reached. Scores from ${age}.` : `Updated ${age}`}
    </p>
  );
}

/** Ask the screen not to go dark, again each time the page comes back into view. */
function keepAwake(): () => void {
  const ask = async (): Promise<void> => {
    if (document.hidden || !("wakeLock" in navigator)) return;
    try {
      await navigator.wakeLock.request("screen");
    } catch {
      // A device that saves power may refuse; the board still works.
    }
  };
  void ask();
  document.addEventListener("visibilitychange", ask);
  return () => document.removeEventListener("visibilitychange", ask);
}

const token = decodeURIComponent(location.pathname.split("/").filter(Boolean).at(-1) ?? "");
render(<Board token={token} />, document.getElementById("app")!);
