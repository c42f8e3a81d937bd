/** The frame of the score page: header, the screen that the address names, navigation. */
import { createContext, type ComponentType } from "preact";
import { useContext, useEffect, useLayoutEffect, useState } from "preact/hooks";
import { counted } from "../shared/words.ts";
import type { Model, State } from "./model.ts";
import { unsent } from "./queue.ts";
import { AskProvider } from "./ask.tsx";
import { SectionOptions } from "./sections.tsx";
import { History } from "./screens/history.tsx";
import { Scores } from "./screens/scores.tsx";
import { SetUp } from "./screens/set-up.tsx";
import { SignIn, SignInBanner } from "./screens/sign-in.tsx";
import { Waiting } from "./screens/waiting.tsx";

const SCREENS: Record<string, { readonly title: string; readonly screen: ComponentType }> = {
  "": { title: "Scores", screen: Scores },
  history: { title: "History", screen: History },
  waiting: { title: "Waiting", screen: Waiting },
  "set-up": { title: "Set up", screen: SetUp },
};

const Shared = createContext<Model | undefined>(undefined);

/** The page's model; the component is drawn again after each of its changes. */
export function useModel(): { model: Model; state: State } {
  const model = useContext(Shared)!;
  const [state, draw] = useState(model.state);
  // A layout effect: others run after the next frame, and what changes before it would not be seen.
  useLayoutEffect(() => {
    draw(model.state);
    return model.subscribe(() => draw(model.state));
  }, [model]);
  return { model, state };
}

/** How many points wait, here and at the server together. */
export function waitingCount(state: State): number {
  return unsent(state.outbox) + state.pendingWrites;
}

/** How many changes need a person: refused here, or given up at the server. */
export function stuckCount(state: State): number {
  return (
    state.outbox.filter((one) => one.status === "rejected").length +
    state.pending.filter((one) => one.state === "dead").length
  );
}

export function App({ model }: { model: Model }) {
  return (
    <Shared.Provider value={model}>
      <AskProvider>
        <Page />
      </AskProvider>
    </Shared.Provider>
  );
}

function Page() {
  const { state } = useModel();
  const route = useRoute();
  const { title, screen: Screen } = SCREENS[route] ?? SCREENS[""]!;
  useEffect(() => void (document.title = `${title} – Patrol points`), [title]);
  if (!state.ready) return <Starting />;
  if (!state.user) return <SignIn />;
  return (
    <>
      <Header />
      <main id="main" tabIndex={-1}>
        <SignInBanner />
        <Broken />
        <NoticeLine />
        <Screen key={`${route} ${state.sectionId}`} />
      </main>
      <Navigation current={SCREENS[route] ? route : ""} />
    </>
  );
}

/** Before it is known who is there: a moment, unless this device is in the way. */
function Starting() {
  const { state } = useModel();
  if (state.broken === undefined) return <main class="starting">One moment…</main>;
  return (
    <main class="welcome">
      <img src="/admin/icon.svg" alt="" width="96" height="96" />
      <h1>Patrol points</h1>
      <Broken />
    </main>
  );
}

function Header() {
  const { model, state } = useModel();
  const waiting = waitingCount(state);
  const stuck = stuckCount(state);
  return (
    <header class="top">
      <label class="section-choice">
        <span class="unseen">Section</span>
        <select value={state.sectionId} onChange={(event) => void model.chooseSection(event.currentTarget.value)}>
          <SectionOptions sections={state.sections} />
        </select>
      </label>
      <div class="signs" role="status">
        {!state.reachable && <span class="pill away">No signal</span>}
        {stuck > 0 && (
          <a class="pill stuck" href="#/waiting">
            {stuck} need{stuck === 1 ? "s" : ""} you
          </a>
        )}
        {waiting > 0 && (
          <a class="pill waiting" href="#/waiting">
            <span class="dot" aria-hidden="true" />
            {waiting} waiting<span class="unseen">: {counted(waiting, "change")} not applied yet</span>
          </a>
        )}
      </div>
    </header>
  );
}

/** What this device could not do. What it keeps already is not touched by it. */
function Broken() {
  const { state } = useModel();
  return (
    <div class="notices" role="alert">
      {state.broken !== undefined && (
        <p class="notice bad">
          <span>
            This device could not do something that this page needs ({state.broken}). Points that it keeps already are
            safe.
          </span>
          <button type="button" class="plain small" onClick={() => location.reload()}>
            Reload
          </button>
        </p>
      )}
    </div>
  );
}

function NoticeLine() {
  const { model, state } = useModel();
  const { notice, trouble } = state;
  useEffect(() => {
    if (notice?.tone !== "good") return;
    const timer = setTimeout(() => model.hush(), 5000);
    return () => clearTimeout(timer);
  }, [notice]);
  return (
    <div class="notices" role="status">
      {trouble && <p class="notice bad">{trouble}</p>}
      {state.updated && (
        <p class="notice good">
          <span>A new version of this page is ready.</span>
          <button type="button" class="plain small" onClick={() => location.reload()}>
            Reload
          </button>
        </p>
      )}
      {notice && (
        <p class={`notice ${notice.tone}`}>
          <span>{notice.text}</span>
          <button type="button" class="quiet" aria-label="Dismiss this message" onClick={() => model.hush()}>
            ✕
          </button>
        </p>
      )}
    </div>
  );
}

function Navigation({ current }: { current: string }) {
  const { state } = useModel();
  const waiting = waitingCount(state);
  return (
    <nav class="tabs" aria-label="Pages">
      {Object.entries(SCREENS).map(([route, { title }]) => (
        <a
          key={route}
          href={`#/${route}`}
          class={`tab tab-${route || "scores"}`}
          aria-current={route === current ? "page" : undefined}
        >
          <span class="tab-icon" aria-hidden="true" />
          {title}
          {route === "waiting" && waiting > 0 && (
            <span class="badge" aria-hidden="true">
              {waiting}
            </span>
          )}
        </a>
      ))}
    </nav>
  );
}

function useRoute(): string {
  const read = () => location.hash.replace(/^#\/?/, "");
  const [route, setRoute] = useState(read);
  useLayoutEffect(() => {
    const changed = () => {
      setRoute(read());
      scrollTo(0, 0);
      document.getElementById("main")?.focus();
    };
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return route;
}
