/** Links to the live board of this section. The server lists none, so this device remembers those that it made. */
import { useEffect, useState } from "preact/hooks";
import type { BoardLink } from "../../shared/wire.ts";
import { useModel } from "../app.tsx";
import { useAsk } from "../ask.tsx";
import { write } from "../server.ts";
import { recall, remember } from "../store.ts";

export function BoardLinks() {
  const { model, state } = useModel();
  const ask = useAsk();
  const key = `boards:${state.sectionId}`;
  const path = `/api/admin/sections/${state.sectionId}/boards`;
  const [links, setLinks] = useState<readonly BoardLink[]>([]);
  useEffect(() => void recall<BoardLink[]>(key).then((kept) => setLinks(kept ?? [])), [key]);

  const keep = async (next: readonly BoardLink[]) => {
    await remember(key, next);
    setLinks(next);
  };
  const create = () => model.trying(async () => keep([...links, await write<BoardLink>("POST", path)]));
  const copy = async (link: BoardLink) => {
    await navigator.clipboard.writeText(link.url);
    model.tell("good", "Link copied.");
  };
  const end = async (link: BoardLink) => {
    const question = { text: "Stop this link? Screens that show it go dark.", yes: "Stop the link" };
    if (!(await ask(question))) return;
    await model.trying(async () => {
      await write("DELETE", `${path}/${encodeURIComponent(link.token)}`);
      await keep(links.filter((one) => one.token !== link.token));
    });
  };
  return (
    <section class="panel" aria-labelledby="boards">
      <h2 id="boards">Live board</h2>
      <p>
        Open this link on a TV, a laptop or a phone, and everybody sees the scores. Who has the link sees them without
        signing in.
      </p>
      <ul class="lines bare">
        {links.map((link) => (
          <li key={link.token} class="line">
            <img class="code" src={`/board/${link.token}/qr.svg`} alt="QR code of the link" width="96" height="96" />
            <a class="grow long" href={link.url}>
              {link.url}
            </a>
            <button type="button" class="plain small" onClick={() => void copy(link)}>
              Copy
            </button>
            <button type="button" class="plain small" onClick={() => void end(link)}>
              Stop
            </button>
          </li>
        ))}
      </ul>
      <button type="button" class="plain" onClick={() => void create()}>
        Make a link
      </button>
    </section>
  );
}
