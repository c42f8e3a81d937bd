/** What an id, a key, a group or a tenant names, in any channel and state. */
import { counted } from "../../shared/words.ts";
import { entriesPlace, queryOf, searchPlace, type Place } from "../place.ts";
import type { Search } from "../wire.ts";
import { useLoaded } from "./loaded.ts";
import { NAMES, Row } from "./row.tsx";

/** The one box, at the top of every screen. */
export function SearchBox({ place }: { place: Place }) {
  const text = place.screen === "search" ? (place.query.get("text") ?? "") : "";
  const search = (event: Event): void => {
    event.preventDefault();
    const wanted = String(new FormData(event.currentTarget as HTMLFormElement).get("text")).trim();
    if (wanted) location.hash = searchPlace(wanted);
  };
  return (
    <form class="search" role="search" onSubmit={search}>
      <input
        key={text}
        name="text"
        type="search"
        maxLength={255}
        defaultValue={text}
        aria-label="Find an entry by its id, key, group or tenant"
        placeholder="Id, key, group or tenant"
        autocomplete="off"
        autocapitalize="off"
        spellcheck={false}
      />
      <button type="submit">Find</button>
    </form>
  );
}

export function SearchScreen({ place }: { place: Place }) {
  const text = place.query.get("text") ?? "";
  const tenant = place.query.get("tenant") ?? undefined;
  return (
    <section aria-labelledby="search">
      <h2 id="search" class="break">
        {text ? `“${text}”` : "Search"}
      </h2>
      {text ? (
        <Results key={`${text} ${tenant}`} text={text} tenant={tenant} />
      ) : (
        <p class="soft">Type an entry's id, a key, a group or a tenant above.</p>
      )}
    </section>
  );
}

function Results({ text, tenant }: { text: string; tenant: string | undefined }) {
  const { value, refused } = useLoaded<Search>(`search?${queryOf({ text, tenant })}`);
  if (refused) return <p class="refused" role="alert">{refused}</p>;
  if (!value) return <p class="soft">One moment…</p>;
  const { hits, cut } = value;
  return (
    <>
      <p class="soft found" role="status">
        {hits.length === 0 ? "No entry has that id, key, group or tenant" : `${cut ? "The first " : ""}${counted(hits.length, "entry", "entries")}`}
        {tenant !== undefined && ` (keys and groups of tenant ${tenant})`}.
      </p>
      <Further found={value} />
      <ul class="rows">
        {hits.map(({ entry, matches }) => (
          <Row key={entry.id} line={entry} found={matches} />
        ))}
      </ul>
      <Unseen found={value} text={text} />
    </>
  );
}

/** Whole lists of a tenant that was found: a search shows the first entries only. */
function Further({ found }: { found: Search }) {
  const lists = new Map<string, string>();
  for (const { entry, matches } of found.hits) {
    if (!matches.includes("tenant")) continue;
    const { channel, state, tenant_id: tenant } = entry;
    lists.set(entriesPlace({ channel, state, tenant }), `${NAMES[state].toLowerCase()} in ${channel}`);
  }
  if (lists.size === 0) return null;
  return (
    <p class="links">
      <span class="soft">All of this tenant:</span>
      {[...lists].map(([place, name]) => (
        <a key={place} href={place}>
          {name}
        </a>
      ))}
    </p>
  );
}

/** Where the look ended, and the way on from there. */
function Unseen({ found, text }: { found: Search; text: string }) {
  const again = (event: Event): void => {
    event.preventDefault();
    location.hash = searchPlace(text, String(new FormData(event.currentTarget as HTMLFormElement).get("tenant")).trim());
  };
  return (
    <>
      {found.ended_unseen && (
        <p class="soft note">
          Among delivered and dead entries, only the newest were looked at for a tenant or a group. Ids and keys are found however old they are.
        </p>
      )}
      {found.tenants_unseen && (
        <form class="note" onSubmit={again}>
          <label class="narrow">
            There are too many tenants to look at all of them. Look for this key or group of one tenant:
            <input name="tenant" maxLength={255} required />
          </label>
          <button type="submit">Look there</button>
        </form>
      )}
    </>
  );
}
