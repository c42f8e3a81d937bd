/** A question before something that cannot be taken back. */
import { createContext, type ComponentChildren } from "preact";
import { useContext, useEffect, useRef, useState } from "preact/hooks";

interface Question {
  readonly text: string;
  readonly yes: string;
}
type Ask = (question: Question) => Promise<boolean>;

const Asking = createContext<Ask>(() => Promise.resolve(false));

/** `await ask({ text, yes })` shows the question and tells whether the answer was yes. */
export function useAsk(): Ask {
  return useContext(Asking);
}

export function AskProvider({ children }: { children: ComponentChildren }) {
  const [open, setOpen] = useState<(Question & { answer: (yes: boolean) => void }) | undefined>();
  const ask: Ask = (question) =>
    new Promise((resolve) => {
      const answer = (yes: boolean) => {
        setOpen(undefined);
        resolve(yes);
      };
      setOpen({ ...question, answer });
    });
  return (
    <Asking.Provider value={ask}>
      {children}
      {open && <Dialog {...open} />}
    </Asking.Provider>
  );
}

function Dialog({ text, yes, answer }: Question & { answer: (yes: boolean) => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} class="ask" aria-labelledby="ask-text" onCancel={() => answer(false)}>
      <p id="ask-text">{text}</p>
      <div class="row">
        <button type="button" class="plain" onClick={() => answer(false)}>
          Cancel
        </button>
        <button type="button" class="main" onClick={() => answer(true)}>
          {yes}
        </button>
      </div>
    </dialog>
  );
}
