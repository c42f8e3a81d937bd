/** Reading something from the server for a screen. */
import { useCallback, useEffect, useState } from "preact/hooks";
import { read, Refused } from "./server.ts";

export interface Reading<T> {
  readonly data?: T;
  /** A sentence for people when it could not be read; what was read before stays. */
  readonly trouble?: string;
  readonly again: () => Promise<void>;
}

/** Read `path` now, and again whenever one of `signals` changes. */
export function useReading<T>(path: string, signals: readonly unknown[] = []): Reading<T> {
  const [found, setFound] = useState<{ data?: T; trouble?: string }>({});
  const again = useCallback(async () => {
    try {
      setFound({ data: await read<T>(path) });
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      setFound((before) => ({ ...before, trouble: error.message }));
    }
  }, [path]);
  useEffect(() => void again(), [again, ...signals]);
  return { ...found, again };
}
