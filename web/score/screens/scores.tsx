/** The patrols: their scores, and points to give. */
import { useEffect, useRef } from "preact/hooks";
import type { Patrol } from "../../shared/wire.ts";
import { ago, figure, signed } from "../../shared/words.ts";
import { useModel } from "../app.tsx";
import type { State } from "../model.ts";
import { usePull } from "../pull.ts";
import { MOST_POINTS, onTheWay } from "../queue.ts";

const STEPS = [-1, 1, 3, 5];

export function Scores() {
  const { model, state } = useModel();
  const pulled = usePull(() => void model.refreshDeeply());
  const patrols = state.scores?.patrols ?? [];
  return (
    <>
      <div class="pull" style={{ height: `${pulled}px` }} aria-hidden="true">
        {pulled > 0 && "Pull to refresh"}
      </div>
      <div class="heading">
        <h1>Scores</h1>
        <Freshness />
        <button type="button" class="plain small" disabled={state.busy} onClick={() => void model.refreshDeeply()}>
          Refresh
        </button>
      </div>
      {patrols.length === 0 && (
        <p class="empty">{state.signedIn && !state.trouble ? "No patrols in this section yet." : "No scores yet."}</p>
      )}
      <ul class="cards">
        {patrols.map((patrol) => (
          <Card key={patrol.id} patrol={patrol} />
        ))}
      </ul>
      <SubmitBar />
    </>
  );
}

function Freshness() {
  const { state } = useModel();
  const { fetchedAt, message } = state.scores ?? {};
  if (state.busy) return <p class="age">Working…</p>;
  const age = fetchedAt && ago(Date.parse(fetchedAt), Date.now());
  return age ? <p class="age">{message ? `${age}: ${message}` : age}</p> : null;
}

function chosen(state: State, patrolId: string): number {
  return state.working.find((one) => one.sectionId === state.sectionId && one.patrolId === patrolId)?.points ?? 0;
}

function Card({ patrol }: { patrol: Patrol }) {
  const { model, state } = useModel();
  const points = chosen(state, patrol.id);
  const moving = patrol.pendingDelta + onTheWay(state.outbox, state.sectionId ?? "", patrol.id);
  const pending = patrol.hasPending || moving !== 0;
  const total = patrol.score + moving;
  return (
    <li class={`card edge-${state.colours[patrol.id] || "none"}`}>
      <div class="card-head">
        <h2>{patrol.name}</h2>
        <p class="score">
          <span class="unseen">{patrol.name} has </span>
          {figure(total)}
          <span class="unseen"> points</span>
          {points !== 0 && <span class="becomes"> → {figure(total + points)}</span>}
        </p>
      </div>
      {pending && (
        <p class="moving">
          <span class="dot" aria-hidden="true" /> {signed(moving)} on the way
        </p>
      )}
      <div class="controls" role="group" aria-label={`Points for ${patrol.name}`}>
        {STEPS.map((step) => (
          <button
            key={step}
            type="button"
            class={`step ${step < 0 ? "less" : ""}`}
            aria-label={`${patrol.name} ${signed(step)}`}
            onClick={() => void model.choose(patrol, (before) => before + step)}
          >
            {signed(step)}
          </button>
        ))}
        <PointsField patrol={patrol} points={points} />
      </div>
    </li>
  );
}

/** The number field. While it has the focus it shows what is typed; only whole numbers reach the model. */
function PointsField({ patrol, points }: { patrol: Patrol; points: number }) {
  const { model } = useModel();
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    const shown = field.current!;
    if (Number(shown.value) !== points) shown.value = points === 0 ? "" : String(points);
  }, [points]);
  return (
    <input
      ref={field}
      class={points === 0 ? "points" : "points set"}
      type="number"
      step="1"
      min={-MOST_POINTS}
      max={MOST_POINTS}
      placeholder="0"
      aria-label={`Points to give to ${patrol.name}`}
      onInput={(event) => {
        const typed = event.currentTarget.valueAsNumber;
        void model.choose(patrol, () => typed);
      }}
    />
  );
}

function SubmitBar() {
  const { model, state } = useModel();
  const patrols = state.scores?.patrols ?? [];
  const place = (patrolId: string) => patrols.findIndex((patrol) => patrol.id === patrolId);
  const working = state.working
    .filter((one) => one.sectionId === state.sectionId)
    .sort((a, b) => place(a.patrolId) - place(b.patrolId));
  if (working.length === 0) return null;
  return (
    <form
      class="submit-bar"
      aria-label="Send the points"
      onSubmit={(event) => {
        event.preventDefault();
        void model.submit();
      }}
    >
      <p class="summary">{working.map((one) => `${one.patrolName} ${signed(one.points)}`).join(" · ")}</p>
      <div class="row">
        <button type="button" class="plain" onClick={() => void model.clear()}>
          Clear
        </button>
        <button type="submit" class="main grow">
          Send points
        </button>
      </div>
    </form>
  );
}
