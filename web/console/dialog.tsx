/** A question before something is changed: what will happen, fields if it needs any, and an answer that names the act. */
import { createContext, type ComponentChildren } from "preact";
import { useContext, useEffect, useId, useRef, useState } from "preact/hooks";
import { Refused } from "./server.ts";

export interface Field {
  readonly name: string;
  readonly label: string;
  readonly kind?: "text" | "number";
  readonly value?: string;
  readonly hint?: string;
  readonly options?: readonly { readonly value: string; readonly label: string }[];
  readonly optional?: boolean;
}

export type Values = Readonly<Record<string, string>>;

export interface Question {
  readonly title: string;
  readonly text: ComponentChildren;
  readonly yes: string;
  readonly danger?: boolean;
  readonly fields?: readonly Field[];
  /** Does it; what it answers is told at the top of the page. Raises Refused, which the dialog shows. */
  readonly act: (values: Values) => Promise<string>;
}

/** A question that must be looked up first may be refused by the server; that is told at the top of the page. */
type Ask = (question: Question | Promise<Question>) => void;
const Asking = createContext<Ask>(() => undefined);

export function useAsk(): Ask {
  return useContext(Asking);
}

export function AskProvider({ children, tell }: { children: ComponentChildren; tell: (said: string) => void }) {
  const [question, setQuestion] = useState<Question | undefined>();
  const ask = async (asked: Question | Promise<Question>): Promise<void> => {
    try {
      setQuestion(await asked);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      tell(error.message);
    }
  };
  return (
    <Asking.Provider value={(asked) => void ask(asked)}>
      {children}
      {question && <Dialog question={question} close={() => setQuestion(undefined)} tell={tell} />}
    </Asking.Provider>
  );
}

interface Shown {
  readonly question: Question;
  readonly close: () => void;
  readonly tell: (said: string) => void;
}

function Dialog({ question, close, tell }: Shown) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [busy, setBusy] = useState(false);
  const [refused, setRefused] = useState("");
  const id = useId();
  useEffect(() => dialog.current?.showModal(), []);
  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const given = new FormData(event.currentTarget as HTMLFormElement);
    setBusy(true);
    setRefused("");
    try {
      tell(await question.act(Object.fromEntries([...given].map(([name, value]) => [name, String(value)]))));
      close();
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      setRefused(error.message);
      setBusy(false);
    }
  };
  return (
    <dialog ref={dialog} class="dialog" aria-labelledby={`${id}-title`} onCancel={close}>
      <form onSubmit={(event) => void submit(event as unknown as SubmitEvent)}>
        <h2 id={`${id}-title`}>{question.title}</h2>
        <div class="dialog-text">{question.text}</div>
        {question.fields?.map((field) => <FieldRow key={field.name} field={field} id={`${id}-${field.name}`} />)}
        {refused && (
          <p class="refused" role="alert">
            {refused}
          </p>
        )}
        <div class="buttons">
          <button type="button" onClick={close}>
            Cancel
          </button>
          <button type="submit" class={question.danger ? "danger" : "main"} disabled={busy}>
            {question.yes}
          </button>
        </div>
      </form>
    </dialog>
  );
}

function FieldRow({ field, id }: { field: Field; id: string }) {
  return (
    <div class="field">
      <label for={id}>{field.label}</label>
      {field.options ? (
        <select id={id} name={field.name} defaultValue={field.value ?? ""}>
          {field.options.map((option) => (
            <option key={option.value} value={option.value}>
              {option.label}
            </option>
          ))}
        </select>
      ) : (
        <Input field={field} id={id} />
      )}
      {field.hint && (
        <p id={`${id}-hint`} class="soft">
          {field.hint}
        </p>
      )}
    </div>
  );
}

function Input({ field, id }: { field: Field; id: string }) {
  const shared = {
    id,
    name: field.name,
    required: !field.optional,
    defaultValue: field.value ?? "",
    ...(field.hint && { "aria-describedby": `${id}-hint` }),
  };
  if (field.kind === "number") return <input {...shared} type="number" min={0} max={31_536_000} />;
  return <input {...shared} type="text" maxLength={500} autocomplete="off" />;
}
