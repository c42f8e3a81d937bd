/** Something read from the server, again when asked for. */
import { useEffect, useState } from "preact/hooks";
import { read, Refused } from "../server.ts";

export interface Loaded<T> {
  readonly value: T | undefined;
  readonly refused: string;
  readonly load: () => void;
}

export function useLoaded<T>(path: string): Loaded<T> {
  const [value, setValue] = useState<T | undefined>();
  const [refused, setRefused] = useState("");
  const load = (): void => {
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
  return { value, refused, load };
}
