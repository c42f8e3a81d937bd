/** What is not applied yet: on this device and at the server; why, and what one can do. */
import { useEffect } from "preact/hooks";
import type { PendingLine } from "../../shared/wire.ts";
import { clock, signed } from "../../shared/words.ts";
import { useModel, waitingCount } from "../app.tsx";
import { useAsk } from "../ask.tsx";
import type { Snapshot } from "../queue.ts";
import { write } from "../server.ts";
import { LOGIN } from "./sign-in.tsx";

export function Waiting() {
  const { model, state } = useModel();
  const { pending } = state;
  useEffect(() => void model.refresh(), [model]);
  return (
    <>
      <h1>Waiting</h1>
      {waitingCount(state) === 0 && pending.length === 0 && (
        <p class="empty">Nothing is waiting. All points are in Online Scout Manager.</p>
      )}
      <Here />
      {pending.length > 0 && <h2>At the server</h2>}
      <ul class="lines">
        {pending.map((line) => (
          <There key={line.id} line={line} />
        ))}
      </ul>
    </>
  );
}

function Here() {
  const { model, state } = useModel();
  if (state.outbox.length === 0) return null;
  return (
    <>
      <div class="heading">
        <h2>On this device</h2>
        <button type="button" class="plain small" disabled={state.busy} onClick={() => void model.sendNow()}>
          Send now
        </button>
      </div>
      <ul class="lines">
        {state.outbox.map((snapshot) => (
          <OnDevice key={snapshot.id} snapshot={snapshot} />
        ))}
      </ul>
    </>
  );
}

function OnDevice({ snapshot }: { snapshot: Snapshot }) {
  const { model, state } = useModel();
  const ask = useAsk();
  const what = snapshot.updates.map((one) => `${one.patrolName} ${signed(one.points)}`).join(", ");
  const foreign = state.user !== undefined && snapshot.userId !== state.user.osmUserId;
  const refused = snapshot.status === "rejected";
  const discard = async () => {
    if (await ask({ text: `Discard ${what}? These points are then gone.`, yes: "Discard" }))
      await model.discard(snapshot.id);
  };
  return (
    <li class={refused ? "line stuck" : "line"}>
      <div class="grow">
        <p class="line-title">{what}</p>
        <p class="small-print">
          {snapshot.sectionName}, {clock(snapshot.createdAt, Date.now())}
        </p>
        <p class="why">{foreign ? `Entered by ${snapshot.userName}, who must sign in to send it.` : why(snapshot)}</p>
      </div>
      <div class="acts">
        {refused && (
          <button
            type="button"
            class="plain small"
            aria-label={`Try again: ${what}`}
            onClick={() => void model.retry(snapshot.id)}
          >
            Try again
          </button>
        )}
        {(refused || foreign) && (
          <button type="button" class="plain small" aria-label={`Discard ${what}`} onClick={() => void discard()}>
            Discard
          </button>
        )}
      </div>
    </li>
  );
}

function why(snapshot: Snapshot): string {
  if (snapshot.status === "rejected") return `Refused: ${snapshot.reason}`;
  if (snapshot.notBefore && snapshot.notBefore > Date.now()) {
    return `${snapshot.reason} It is sent again after ${clock(snapshot.notBefore, Date.now())}.`;
  }
  return snapshot.reason ? `${snapshot.reason} It then goes out by itself.` : "On its way.";
}

function There({ line }: { line: PendingLine }) {
  const { model } = useModel();
  const ask = useAsk();
  const name = line.patrolName || `Patrol ${line.patrolId}`;
  const what = `${name} ${signed(line.points)}`;
  const review = line.reason === "needs_review";
  const stuck = line.state === "dead";
  const act = async (action: "retry" | "discard") => {
    const seen = `${action}?found=${line.found ?? "none"}`;
    await model.trying(() => write("POST", `/api/admin/pending/${encodeURIComponent(line.id)}/${seen}`));
    await model.refresh();
  };
  const discard = async () => {
    if (await ask({ text: `Discard ${what}? These points are then gone.`, yes: "Discard" })) await act("discard");
  };
  return (
    <li class={stuck ? "line stuck" : "line"}>
      <div class="grow">
        <p class="line-title">{what}</p>
        <p class="why">{line.message}</p>
        {line.retryAt && (
          <p class="small-print">Will be tried again at {clock(Date.parse(line.retryAt), Date.now())}.</p>
        )}
        {line.reason === "auth_revoked" && (
          <a class="button plain small" href={LOGIN}>
            Sign in again
          </a>
        )}
      </div>
      {line.state !== "claimed" && (
        <div class="acts">
          {stuck && (
            <button
              type="button"
              class="plain small"
              aria-label={`${review ? "Apply anyway" : "Try again"}: ${what}`}
              onClick={() => void act("retry")}
            >
              {review ? "Apply anyway" : "Try again"}
            </button>
          )}
          <button type="button" class="plain small" aria-label={`Discard ${what}`} onClick={() => void discard()}>
            Discard
          </button>
        </div>
      )}
    </li>
  );
}
