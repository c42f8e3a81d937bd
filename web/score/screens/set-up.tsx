/** What is set up once: displays in the hall, a link for the live board, patrol colours, the account. */
import { counted } from "../../shared/words.ts";
import { useModel } from "../app.tsx";
import { useAsk } from "../ask.tsx";
import { unsent } from "../queue.ts";
import { BoardLinks } from "./board-links.tsx";
import { Colours } from "./colours.tsx";
import { Displays } from "./displays.tsx";

export function SetUp() {
  return (
    <>
      <h1>Set up</h1>
      <BoardLinks />
      <Colours />
      <Displays />
      <Account />
    </>
  );
}

function Account() {
  const { model, state } = useModel();
  const ask = useAsk();
  const leave = async () => {
    const kept = unsent(state.outbox);
    const text =
      kept === 0
        ? "Sign out on this device?"
        : `${counted(kept, "change")} not sent yet. They stay on this device until you sign in again. Sign out?`;
    if (await ask({ text, yes: "Sign out" })) await model.signOut();
  };
  return (
    <section class="panel" aria-labelledby="account">
      <h2 id="account">You</h2>
      <p>Signed in as {state.user?.name}.</p>
      <button type="button" class="plain" onClick={() => void leave()}>
        Sign out
      </button>
    </section>
  );
}
