/** All channels at a glance, gates, tenants and replicas. */
import { useEffect, useState } from "preact/hooks";
import { ago, counted } from "../../shared/words.ts";
import { useAsk } from "../dialog.tsx";
import { entriesPlace } from "../place.ts";
import { act } from "../server.ts";
import { Spark } from "../spark.tsx";
import type { Changed, Channel, Gate, Overview, Replica, Sign, Tenant } from "../wire.ts";
import { bytes, milliseconds, opening, percent, perSecond, scope, short, span } from "../words.ts";

export function OverviewScreen({ overview }: { overview: Overview }) {
  const now = useClock(overview.at);
  return (
    <>
      <Totals overview={overview} />
      <section aria-labelledby="channels">
        <h2 id="channels">Channels</h2>
        {overview.channels.length === 0 ? (
          <p class="soft">No channel has been declared yet.</p>
        ) : (
          <p class="soft">Latency and errors are of deliveries by {overview.instance}; everything else is of all processes.</p>
        )}
        <div class="channels">
          {overview.channels.map((channel) => (
            <ChannelCard key={channel.stats.channel} channel={channel} now={now} />
          ))}
        </div>
      </section>
      <Gates gates={overview.gates} channels={overview.channels} now={now} />
      <div class="side-by-side">
        <Tenants overview={overview} />
        <Replicas replicas={overview.replicas} instance={overview.instance} now={now} />
      </div>
    </>
  );
}

/** The database's clock, going on between overviews, by the second. */
function useClock(at: string): number {
  const [offset, setOffset] = useState(() => Date.parse(at) - Date.now());
  const [now, setNow] = useState(() => Date.parse(at));
  useEffect(() => setOffset(Date.parse(at) - Date.now()), [at]);
  useEffect(() => {
    const tick = (): void => setNow(Date.now() + offset);
    tick();
    const timer = setInterval(tick, 1000);
    return () => clearInterval(timer);
  }, [offset]);
  return now;
}

function Totals({ overview }: { overview: Overview }) {
  const stats = overview.channels.map((channel) => channel.stats);
  const sum = (of: (channel: Channel) => number): number => overview.channels.reduce((total, one) => total + of(one), 0);
  const dead = sum((one) => one.stats.dead_count);
  const held = sum((one) => one.stats.held_count);
  const oldest = Math.max(0, ...stats.map((one) => one.oldest_pending_age_seconds ?? 0));
  const about = (field: string): string => (stats.some((one) => one.approximate.includes(field)) ? "about " : "");
  return (
    <dl class="totals" aria-label="All channels">
      <Figure name="Waiting" value={about("pending_count") + short(sum((one) => one.stats.pending_count))} />
      <Figure name="Held" value={about("held_count") + short(held)} tone={held ? "calm" : ""} />
      <Figure name="On the way" value={short(sum((one) => one.stats.claimed_count))} />
      <Figure name="Dead" value={about("dead_count") + short(dead)} tone={dead ? "bad" : ""} />
      <Figure name="Oldest waits" value={oldest ? about("oldest_pending_age_seconds") + span(oldest) : "–"} />
      <Figure name="Delivered" value={perSecond(sum((one) => one.stats.delivered_per_second))} />
    </dl>
  );
}

function Figure({ name, value, tone = "" }: { name: string; value: string; tone?: string }) {
  return (
    <div class={tone}>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}

function ChannelCard({ channel, now }: { channel: Channel; now: number }) {
  const { stats, lately, series } = channel;
  const ask = useAsk();
  const release = (): void =>
    ask({
      title: "Give back expired leases?",
      text: `Entries of ${stats.channel} whose worker did not come back in time wait again at once, instead of with the next claim.`,
      yes: "Give back",
      act: async () => {
        const { count } = await act<Changed>("release-expired", { channel: stats.channel });
        return `${counted(count, "entry", "entries")} of ${stats.channel} given back.`;
      },
    });
  const about = (field: string): string => (stats.approximate.includes(field) ? "about " : "");
  const link = (state: string, count: number, name: string, tone = "") => (
    <a class={`count ${count ? tone : ""}`} href={entriesPlace({ channel: stats.channel, state })}>
      {about(`${state}_count`)}
      <b>{short(count)}</b> {name}
    </a>
  );
  return (
    <article class="card channel" aria-label={stats.channel}>
      <header>
        <h3>{stats.channel}</h3>
        <span class="soft">{channel.mode}</span>
        <span class="soft push">
          {about("backlog_bytes")}
          {bytes(stats.backlog_bytes)}
        </span>
      </header>
      <p class="counts">
        {link("pending", stats.pending_count, "waiting")}
        {stats.held_count > 0 && <span class="count calm">{about("held_count")}{short(stats.held_count)} held</span>}
        {link("claimed", stats.claimed_count, "on the way")}
        {link("dead", stats.dead_count, "dead", "bad")}
      </p>
      <div class="sparks">
        <Spark label="Backlog" value={short(stats.pending_count + stats.claimed_count)} points={series.waiting} said={short} />
        <Spark
          label="Oldest"
          value={stats.oldest_pending_age_seconds === null ? "–" : `${about("oldest_pending_age_seconds")}${span(stats.oldest_pending_age_seconds)}`}
          points={series.oldest}
          said={span}
        />
        <Spark label="Delivered" value={perSecond(stats.delivered_per_second)} points={series.delivered} said={perSecond} />
        <Spark
          label="Latency"
          value={lately.latency_ms === null ? "–" : milliseconds(lately.latency_ms)}
          points={series.latency_ms}
          said={milliseconds}
        />
        <Spark
          label="Errors"
          value={lately.error_share === null ? "–" : percent(lately.error_share)}
          points={series.errors}
          bad={(lately.error_share ?? 0) > 0}
          said={percent}
        />
        <Spark label="Dead" value={short(stats.dead_count)} points={series.dead} bad={stats.dead_count > 0} said={short} />
      </div>
      <p class="soft">
        {stats.last_success_at ? `Last delivered ${ago(Date.parse(stats.last_success_at), now)}` : "Nothing delivered yet"}
        {stats.last_error_at && ` · last error ${ago(Date.parse(stats.last_error_at), now)}`}
      </p>
      {stats.claimed_count > 0 && (
        <button type="button" class="quiet" onClick={release}>
          Give back expired leases…
        </button>
      )}
    </article>
  );
}

function Gates({ gates, channels, now }: { gates: readonly Gate[]; channels: readonly Channel[]; now: number }) {
  const ask = useAsk();
  const open = (gate: Gate): void =>
    ask({
      title: "Open this gate?",
      text: `${gate.channel}, ${scope(gate.scope)}. Entries behind it go out at once. It was closed because: ${gate.reason || "no reason was given"}.`,
      yes: "Open gate",
      danger: true,
      act: async () => {
        await act("gates/open", { channel: gate.channel, scope: gate.scope });
        return `The gate of ${scope(gate.scope)} in ${gate.channel} is open.`;
      },
    });
  const close = (): void => ask(closing(channels));
  return (
    <section aria-labelledby="gates">
      <div class="heading">
        <h2 id="gates">Closed gates</h2>
        {channels.length > 0 && (
          <button type="button" class="quiet" onClick={close}>
            Close a gate…
          </button>
        )}
      </div>
      {gates.length === 0 && <p class="soft">None: nothing is held back.</p>}
      <ul class="rows">
        {gates.map((gate) => (
          <li key={`${gate.channel} ${gate.scope}`} class="card row">
            <div class="row-main">
              <b>{gate.channel}</b> · {scope(gate.scope)}
              <p class="soft break">{gate.reason || "no reason given"}</p>
            </div>
            <p class="row-side">
              <span class="tag calm">{opening(gate.closed_until, now)}</span>
              {gate.consecutive_failures > 0 && <span class="soft">{counted(gate.consecutive_failures, "failure")}</span>}
            </p>
            <button type="button" onClick={() => open(gate)}>
              Open<span class="unseen"> the gate of {scope(gate.scope)} in {gate.channel}</span>
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}

function closing(channels: readonly Channel[]): Parameters<ReturnType<typeof useAsk>>[0] {
  return {
    title: "Close a gate",
    text: "Entries behind it wait; no attempt is spent.",
    yes: "Close gate",
    danger: true,
    fields: [
      {
        name: "channel",
        label: "Channel",
        options: channels.map(({ stats }) => ({ value: stats.channel, label: stats.channel })),
        value: channels[0]!.stats.channel,
      },
      { name: "scope", label: "What", value: "*", hint: "* for the whole channel, tenant:NAME or principal:NAME" },
      { name: "seconds", label: "For how many seconds", kind: "number", optional: true, hint: "Nothing: until somebody opens it." },
      { name: "reason", label: "Reason" },
    ],
    act: async ({ channel, scope: wanted, seconds, reason }) => {
      await act("gates/close", { channel, scope: wanted, reason, seconds: seconds ? Number(seconds) : null });
      return `The gate of ${scope(wanted ?? "")} in ${channel} is closed.`;
    },
  };
}

function Tenants({ overview }: { overview: Overview }) {
  const most = Math.max(1, ...overview.tenants.map((tenant) => tenant.waiting));
  const said = (tenant: Tenant): string =>
    tenant.waiting >= overview.counted_up_to ? `${short(tenant.waiting)} or more` : short(tenant.waiting);
  return (
    <section aria-labelledby="tenants">
      <h2 id="tenants">Tenants with the most waiting</h2>
      {overview.tenants.length === 0 && <p class="soft">Nothing waits.</p>}
      <ul class="rows">
        {overview.tenants.map((tenant) => (
          <li key={`${tenant.channel} ${tenant.tenant_id}`} class="bar-row">
            <a href={entriesPlace({ channel: tenant.channel, state: "pending", tenant: tenant.tenant_id })}>{tenant.tenant_id || "(no tenant)"}</a>
            <span class="soft">{tenant.channel}</span>
            <span class="number">{said(tenant)}</span>
            <div class="bar" aria-hidden="true">
              <div style={{ inlineSize: `${(100 * tenant.waiting) / most}%` }} />
            </div>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Replicas({ replicas, instance, now }: { replicas: readonly Replica[]; instance: string; now: number }) {
  const unseen = !replicas.some((replica) => replica.owner === instance);
  return (
    <section aria-labelledby="replicas">
      <h2 id="replicas">Replicas</h2>
      <ul class="rows">
        {unseen && (
          <li class="bar-row">
            <b class="break">{instance}</b>
            <span class="tag good">this one</span>
          </li>
        )}
        {replicas.map((replica) => (
          <ReplicaRow key={replica.owner} replica={replica} own={replica.owner === instance} now={now} />
        ))}
      </ul>
    </section>
  );
}

const DOING = { duty: "has the duty", lease: "delivers", rest: "rests on" };

/** Of a lease: how many entries, and when the last of them were taken. */
function taken({ doing, entries, since }: Sign, now: number): string {
  if (doing !== "lease") return "";
  return since ? ` (${short(entries)}, taken ${span((now - Date.parse(since)) / 1000)} ago)` : ` (${short(entries)})`;
}

function ReplicaRow({ replica, own, now }: { replica: Replica; own: boolean; now: number }) {
  const late = (now - Date.parse(replica.alive_until)) / 1000;
  const gone = late > 0 && !own;
  return (
    <li class="bar-row">
      <b class="break">{replica.owner}</b>
      <span class={`tag ${gone ? "bad" : "good"}`}>
        {own ? "this one" : gone ? `silent for ${span(late)}` : `alive, next sign within ${span(Math.ceil(-late))}`}
      </span>
      <span class="soft wide">
        {replica.signs
          .map((sign) => `${DOING[sign.doing]} ${sign.what}${taken(sign, now)}`)
          .join(" · ")}
      </span>
    </li>
  );
}
