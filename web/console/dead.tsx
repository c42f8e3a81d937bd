/** What can be done with dead entries, as questions. A redrive is counted by the server before anybody is asked. */
import { counted } from "../shared/words.ts";
import type { Question } from "./dialog.tsx";
import { act, Refused } from "./server.ts";
import type { Changed } from "./wire.ts";

/** Send these round again, or with no ids all dead entries of the channel. */
export async function redriving(channel: string, ids: readonly string[] | undefined, done: () => void): Promise<Question> {
  const wanted = ids === undefined ? { channel, everything: true } : { channel, ids };
  let found: string;
  try {
    const { count } = await act<Changed>("redrive", { ...wanted, dry_run: true });
    found = `${counted(count, "dead entry", "dead entries")} of ${channel} would go round again, attempts back to 0.`;
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    found = `They could not be counted: ${error.message}`;
  }
  return {
    title: ids === undefined ? "Redrive all dead entries?" : "Redrive?",
    text: <p>{found}</p>,
    yes: "Redrive",
    fields: [
      { name: "spread", label: "Spread over seconds", kind: "number", value: "60", hint: "So that the destination is not flooded. 0: all at once." },
    ],
    act: async ({ spread }) => {
      const { count } = await act<Changed>("redrive", { ...wanted, spread_seconds: Number(spread) });
      done();
      return `${counted(count, "entry", "entries")} of ${channel} will be tried again.`;
    },
  };
}

export function discarding(channel: string, ids: readonly string[], done: () => void): Question {
  return {
    title: "Discard for good?",
    text: `${counted(ids.length, "dead entry", "dead entries")} of ${channel} will be removed with what they carry. This cannot be taken back.`,
    yes: "Discard",
    danger: true,
    act: async () => {
      const { count } = await act<Changed>("discard", { channel, ids });
      done();
      return `${counted(count, "entry", "entries")} of ${channel} removed.`;
    },
  };
}
