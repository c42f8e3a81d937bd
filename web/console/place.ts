/** Where on the console one is: the part of the address behind the #. */
import { useEffect, useState } from "preact/hooks";

export interface Place {
  readonly screen: string;
  readonly rest: string;
  readonly query: URLSearchParams;
}

export function placeOf(hash: string): Place {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?");
  const [screen = "", ...rest] = path.split("/");
  return { screen: screen || "overview", rest: decoded(rest.join("/")), query: new URLSearchParams(query) };
}

export function usePlace(): Place {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const changed = (): void => setHash(location.hash);
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return placeOf(hash);
}

export function entriesPlace(channel: string, state: string, tenant?: string): string {
  const query = new URLSearchParams({ channel, state, ...(tenant === undefined ? {} : { tenant }) });
  return `#/entries?${query.toString()}`;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // somebody typed it
  }
}
