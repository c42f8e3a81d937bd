/** Something read from the server, again when asked for, and while it may change with the news of the stream. */
import { createContext } from "preact";
import { useContext, useEffect, useRef, useState } from "preact/hooks";
import { read, Refused } from "../server.ts";

const EVERY = 5000;

/** When the last overview was taken: it goes on while the server sends news. */
export const News = createContext("");

export interface Loaded<T> {
  readonly value: T | undefined;
  readonly refused: string;
  readonly load: () => void;
}

/** `live`: read it anew with the news, every five seconds at most. */
export function useLoaded<T>(path: string, live: (value: T) => boolean = () => false): Loaded<T> {
  const [value, setValue] = useState<T | undefined>();
  const [refused, setRefused] = useState("");
  const loaded = useRef(0);
  const news = useContext(News);
  const load = (): void => {
    loaded.current = Date.now();
    const found = (read: T): void => {
      setValue(() => read);
      setRefused("");
    };
    read<T>(path).then(found, (error: unknown) => {
      if (!(error instanceof Refused)) throw error;
      setRefused(error.message);
    });
  };
  useEffect(load, [path]);
  useEffect(() => {
    if (value !== undefined && live(value) && Date.now() - loaded.current >= EVERY) load();
  }, [news]);
  return { value, refused, load };
}
