/** How the application stands with Online Scout Manager: its block, and what is left of each user's budget. */
import { ago } from "../../shared/words.ts";
import { useAsk } from "../dialog.tsx";
import { act } from "../server.ts";
import type { Osm } from "../wire.ts";
import { opening, span } from "../words.ts";
import { useLoaded } from "./loaded.ts";

export function OsmScreen() {
  const { value: osm, refused, load } = useLoaded<Osm>("osm", () => true);
  const ask = useAsk();
  if (refused) return <p class="refused" role="alert">{refused}</p>;
  if (!osm) return <p class="soft">One moment…</p>;
  const clear = (): void =>
    ask({
      title: "Clear OSM's block?",
      text: "Calls to Online Scout Manager go out again. Do it only when the cause is gone: OSM makes a second offence permanent.",
      yes: "Clear block",
      danger: true,
      fields: [{ name: "reason", label: "Reason", hint: "What was wrong, and what was done about it. Kept in the audit." }],
      act: async ({ reason }) => {
        await act("osm/unblock", { reason });
        load();
        return "The block is cleared; calls go out again.";
      },
    });
  return (
    <section aria-labelledby="osm">
      <div class="heading">
        <h2 id="osm">Online Scout Manager</h2>
        <button type="button" class="quiet push" onClick={load}>
          Refresh
        </button>
      </div>
      {osm.block ? (
        <div class="card alarm">
          <p>
            <b>OSM has blocked the application</b> {ago(Date.parse(osm.block.blocked_at), Date.now())}. No call leaves while it stands.
          </p>
          <p class="soft break">{osm.block.header || "OSM gave no reason."}</p>
          <button type="button" class="danger" onClick={clear}>
            Clear block…
          </button>
        </div>
      ) : (
        <p>
          <span class="tag good">not blocked</span> OSM answers the application.
        </p>
      )}
      {osm.endings.map((ending) => (
        <p key={ending.endpoint}>
          <span class="tag bad">{ending.ends_at ? `ends ${ending.ends_at.slice(0, 10)}` : "will end"}</span> OSM will no longer answer
          the call {ending.endpoint} (it says: {ending.said}). A newer release of Carrick may do without it.
        </p>
      ))}
      {osm.problem && <p class="soft">{osm.problem}</p>}
      <h3>Users</h3>
      {osm.users.length === 0 && <p class="soft">Nobody has signed in yet.</p>}
      <ul class="rows">
        {osm.users.map((user) => (
          <User key={user.user_id} user={user} />
        ))}
      </ul>
    </section>
  );
}

function User({ user }: { user: Osm["users"][number] }) {
  const share = user.remaining !== null && user.limit ? (100 * user.remaining) / user.limit : undefined;
  return (
    <li class="card row">
      <div class="row-main">
        <b>{user.name || user.user_id}</b>
        <p class="soft">
          {user.last_used_at ? `used ${ago(Date.parse(user.last_used_at), Date.now())}` : "not used yet"}
          {user.revoked_at && " · must sign in again"}
          {user.reset_at && Date.parse(user.reset_at) > Date.now() && ` · budget anew in ${span((Date.parse(user.reset_at) - Date.now()) / 1000)}`}
        </p>
        {share !== undefined && (
          <div class="bar" aria-hidden="true">
            <div style={{ inlineSize: `${share}%` }} />
          </div>
        )}
      </div>
      <p class="row-side">
        {user.blocked_until && <span class="tag bad">{opening(user.blocked_until, Date.now())}</span>}
        <span class="number">{user.remaining === null ? "budget not known" : `${user.remaining} of ${user.limit ?? "?"} calls left`}</span>
      </p>
    </li>
  );
}
