/** Where on the console one is: the part of the address behind the #. */
import { useLayoutEffect, useState } from "preact/hooks";

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
  useLayoutEffect(() => {
    const changed = (): void => setHash(location.hash);
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return placeOf(hash);
}

/** Which entries are listed. What is empty is left out. */
export interface Filters {
  readonly channel: string;
  readonly state: string;
  readonly tenant?: string;
  readonly reason?: string;
  readonly words?: string;
}

export function entriesPlace(filters: Filters): string {
  return `#/entries?${queryOf({ ...filters })}`;
}

export function searchPlace(text: string, tenant?: string): string {
  return `#/search?${queryOf({ text, tenant })}`;
}

/** The query of an address; what is empty or undefined is left out. */
export function queryOf(values: Readonly<Record<string, string | undefined>>): string {
  const given = Object.entries(values).filter((pair): pair is [string, string] => Boolean(pair[1]));
  return new URLSearchParams(given).toString();
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // somebody typed it
  }
}
