/** The displays in the hall (scoreboards): rename, move to another section, take away their access. */
import { id, type Scoreboard } from "../../shared/wire.ts";
import { ago } from "../../shared/words.ts";
import { useModel } from "../app.tsx";
import { useAsk } from "../ask.tsx";
import { useReading } from "../reading.ts";
import { SectionOptions } from "../sections.tsx";
import { write } from "../server.ts";

export function Displays() {
  const { data, trouble, again } = useReading<{ scoreboards: Scoreboard[] }>("/api/admin/scoreboards");
  return (
    <section class="panel" aria-labelledby="displays">
      <h2 id="displays">Displays</h2>
      {trouble && <p class="notice calm">{trouble}</p>}
      {data?.scoreboards.length === 0 && <p>No display yet. Switch one on: it shows a code and where to type it.</p>}
      <ul class="lines bare">
        {data?.scoreboards.map((board) => (
          <Display key={board.id} board={board} done={again} />
        ))}
      </ul>
    </section>
  );
}

function Display({ board, done }: { board: Scoreboard; done: () => Promise<void> }) {
  const { model, state } = useModel();
  const ask = useAsk();
  const change = async (method: string, part: string, body: unknown, said: string) => {
    const path = `/api/admin/scoreboards/${encodeURIComponent(board.id)}${part}`;
    if (await model.trying(() => write(method, path, body))) model.tell("good", said);
    await done();
  };
  const rename = (event: SubmitEvent) => {
    event.preventDefault();
    const name = String(new FormData(event.currentTarget as HTMLFormElement).get("name")).trim();
    void change("PUT", "/name", { name }, "Name saved.");
  };
  const revoke = async () => {
    const question = {
      text: `Take away ${board.name}? It then shows no scores until somebody sets it up again.`,
      yes: "Take away",
    };
    if (await ask(question)) await change("DELETE", "", undefined, `${board.name} was taken away.`);
  };
  return (
    <li class="display">
      <form class="row" onSubmit={rename}>
        <label class="field grow">
          <span>Name</span>
          <input name="name" required maxLength={100} defaultValue={board.name} />
        </label>
        <button type="submit" class="plain small" aria-label={`Save the name of ${board.name}`}>
          Save
        </button>
      </form>
      <label class="field">
        <span>Shows</span>
        <select
          value={id(board.sectionId ?? "")}
          aria-label={`Section that ${board.name} shows`}
          onChange={(event) =>
            void change("PUT", "/section", { sectionId: event.currentTarget.value }, "Section changed.")
          }
        >
          {!board.sectionId && <option value="">no section</option>}
          <SectionOptions sections={state.sections} />
        </select>
      </label>
      <div class="row">
        <p class="small-print grow">
          {board.lastUsedAt ? `Last seen ${ago(Date.parse(board.lastUsedAt), Date.now())}` : "Not seen yet"}
        </p>
        <button type="button" class="plain small" aria-label={`Take away ${board.name}`} onClick={() => void revoke()}>
          Take away
        </button>
      </div>
    </li>
  );
}
