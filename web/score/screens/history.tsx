/** What was applied, by whom; with undo. */
import { useEffect, useState } from "preact/hooks";
import type { History as Page, HistoryLine } from "../../shared/wire.ts";
import { clock, figure, signed } from "../../shared/words.ts";
import { useModel } from "../app.tsx";
import { useAsk } from "../ask.tsx";
import { useReading } from "../reading.ts";
import { read, write } from "../server.ts";

const PAGE = 30;

export function History() {
  const { model, state } = useModel();
  const path = `/api/admin/sections/${state.sectionId}/history?limit=${PAGE}`;
  const { data, trouble, again } = useReading<Page>(path, [state.scores, state.pendingWrites]);
  const [older, setOlder] = useState<Page | undefined>();
  useEffect(() => setOlder(undefined), [path]);
  const lines = [...(data?.history ?? []), ...(older?.history ?? [])];
  const next = older ? older.next : data?.next;
  const more = async () => {
    const page = await read<Page>(`${path}&before=${encodeURIComponent(next!)}`);
    setOlder((before) => ({ ...page, history: [...(before?.history ?? []), ...page.history] }));
  };
  return (
    <>
      <h1>History</h1>
      {trouble && <p class="notice calm">{trouble}</p>}
      {data && lines.length === 0 && (
        <p class="empty">No points yet. They appear here once they are in Online Scout Manager.</p>
      )}
      <ul class="lines">
        {lines.map((line) => (
          <Line key={line.id} line={line} done={again} />
        ))}
      </ul>
      {next && (
        <button type="button" class="plain" onClick={() => void model.trying(more)}>
          Show older
        </button>
      )}
    </>
  );
}

function Line({ line, done }: { line: HistoryLine; done: () => Promise<void> }) {
  const { model } = useModel();
  const ask = useAsk();
  const undo = async () => {
    const text = `Undo ${signed(line.points)} for ${line.patrolName}? The patrol then gets ${signed(-line.points)}.`;
    if (!(await ask({ text, yes: "Undo" }))) return;
    // One key for the undo of one line: asked twice, it is still one undo.
    const key = { "X-Idempotency-Key": `undo-${line.id}` };
    const undone = await model.trying(() =>
      write("POST", `/api/admin/history/${encodeURIComponent(line.id)}/undo`, undefined, key),
    );
    if (undone) model.tell("good", `Undone: ${line.patrolName} ${signed(line.points)}.`);
    await Promise.all([model.refresh(), done()]);
  };
  return (
    <li class={line.undoneBy ? "line undone" : "line"}>
      <span class={line.points < 0 ? "points-tag less" : "points-tag"}>{signed(line.points)}</span>
      <div class="grow">
        <p class="line-title">
          {line.patrolName}{" "}
          <span class="change">
            {line.previousScore !== null && line.newScore !== null && (
              <>
                {figure(line.previousScore)} → {figure(line.newScore)}
              </>
            )}
          </span>
        </p>
        <p class="small-print">
          {line.userName}, {clock(Date.parse(line.createdAt), Date.now())}
        </p>
      </div>
      {line.undoneBy && <span class="small-print">undone</span>}
      {line.isOwn && !line.undoneBy && (
        <button
          type="button"
          class="plain small"
          aria-label={`Undo ${signed(line.points)} for ${line.patrolName}`}
          onClick={() => void undo()}
        >
          Undo
        </button>
      )}
    </li>
  );
}
