/** The console: who is signed in, the frame around the screens, and the stream that keeps them up to date. */
import { useEffect, useState } from "preact/hooks";
import { AskProvider } from "./dialog.tsx";
import { usePlace, type Place } from "./place.ts";
import { Devices } from "./screens/devices.tsx";
import { Entries } from "./screens/entries.tsx";
import { EntryScreen } from "./screens/entry.tsx";
import { News } from "./screens/loaded.ts";
import { OsmScreen } from "./screens/osm.tsx";
import { OverviewScreen } from "./screens/overview.tsx";
import { SearchBox, SearchScreen } from "./screens/search.tsx";
import { SignIn } from "./screens/sign-in.tsx";
import { follow, Refused, session, signOut } from "./server.ts";
import type { Overview, Session } from "./wire.ts";

const TITLES: Readonly<Record<string, string>> = {
  overview: "Overview",
  entries: "Entries",
  osm: "OSM",
  devices: "Displays",
  search: "Search",
};

export function App() {
  const [who, setWho] = useState<Session | undefined>();
  const [refused, setRefused] = useState("");
  useEffect(() => {
    session().then(setWho, (error: unknown) => {
      if (!(error instanceof Refused)) throw error;
      setRefused(error.message);
    });
  }, []);
  if (refused) return <main class="alone">{refused}</main>;
  if (!who) return <main class="alone">One moment…</main>;
  return who.signed_in ? <Frame who={who} setWho={setWho} /> : <SignIn service={who.service} done={setWho} />;
}

function Frame({ who, setWho }: { who: Session; setWho: (session: Session) => void }) {
  const place = usePlace();
  const [overview, show] = useState<Overview | undefined>();
  const [trouble, setTrouble] = useState<string | undefined>();
  const [told, tell] = useState("");
  useEffect(() => follow({ show, trouble: setTrouble, signedOut: () => setWho({ ...who, signed_in: false }) }), []);
  const here = place.screen === "entry" ? "entries" : place.screen;
  useEffect(() => {
    document.title = `${TITLES[here] ?? "Console"} – ${who.service} – Carrick console`;
    tell("");
  }, [here]);
  return (
    <AskProvider tell={tell}>
      <header class="top">
        <h1>
          Carrick <span class="soft">{who.service}</span>
        </h1>
        <p class={`live${trouble ? " away" : ""}`} role="status">
          <span class="live-dot" aria-hidden="true" />
          {trouble ?? (overview ? `Live · ${who.instance}` : "Connecting…")}
        </p>
        <p class="who">
          {who.is_demo ? (
            <span class="soft">open: demo</span>
          ) : (
            <>
              <span class="soft">{who.name}</span>
              <button type="button" class="quiet" onClick={() => void signOut().then(setWho)}>
                Sign out
              </button>
            </>
          )}
        </p>
      </header>
      <nav aria-label="Screens">
        {["overview", "entries", ...who.panels].map((name) => (
          <a key={name} href={`#/${name}`} aria-current={here === name ? "page" : undefined}>
            {TITLES[name] ?? name}
          </a>
        ))}
        <SearchBox place={place} />
      </nav>
      <main>
        <div role="status" class={told ? "told" : "unseen"}>
          {told}
        </div>
        <News.Provider value={overview?.at ?? ""}>
          <Screen place={place} overview={overview} />
        </News.Provider>
      </main>
    </AskProvider>
  );
}

function Screen({ place, overview }: { place: Place; overview: Overview | undefined }) {
  if (place.screen === "entries") return <Entries place={place} overview={overview} />;
  if (place.screen === "entry") return <EntryScreen key={place.rest} id={place.rest} />;
  if (place.screen === "search") return <SearchScreen place={place} />;
  if (place.screen === "osm") return <OsmScreen />;
  if (place.screen === "devices") return <Devices />;
  return overview ? <OverviewScreen overview={overview} /> : <p class="soft">One moment…</p>;
}
