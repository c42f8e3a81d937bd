/**
 * What this device keeps, in IndexedDB. The only file that knows IndexedDB.
 * Every change is one transaction, so two tabs, a service worker and a closed page cannot tear it.
 */
import { openDB, type DBSchema, type IDBPDatabase } from "idb";
import { allowed, type Snapshot, type Working } from "./queue.ts";

interface Schema extends DBSchema {
  "working-scores": { key: [string, string]; value: Working };
  "client-outbox": { key: number; value: Snapshot };
  "last-seen": { key: string; value: unknown };
}

let opening: Promise<IDBPDatabase<Schema>> | undefined;

function database(): Promise<IDBPDatabase<Schema>> {
  opening ??= openDB<Schema>("carrick-score", 1, {
    upgrade(db) {
      db.createObjectStore("working-scores", { keyPath: ["sectionId", "patrolId"] });
      db.createObjectStore("client-outbox", { keyPath: "id", autoIncrement: true });
      db.createObjectStore("last-seen");
    },
    blocking(_current, _blocked, event) {
      (event.target as IDBDatabase).close();
      opening = undefined;
    },
    terminated() {
      opening = undefined;
    },
  }).catch((error: unknown) => {
    opening = undefined; // whoever asks next tries again
    throw error;
  });
  return opening;
}

/** Everything that is being chosen, in all sections. */
export async function working(): Promise<Working[]> {
  return (await database()).getAll("working-scores");
}

/** Change the chosen points of a patrol by `change(points so far)`; none left removes it. */
export async function choose(patrol: Omit<Working, "points">, change: (points: number) => number): Promise<void> {
  const transaction = (await database()).transaction("working-scores", "readwrite");
  const { store } = transaction;
  const before = await store.get([patrol.sectionId, patrol.patrolId]);
  const points = allowed(change(before?.points ?? 0));
  await (points === 0 ? store.delete([patrol.sectionId, patrol.patrolId]) : store.put({ ...patrol, points }));
  await transaction.done;
}

/** Forget what is being chosen in a section. */
export async function clear(sectionId: string): Promise<void> {
  await (await database()).delete("working-scores", ofSection(sectionId));
}

/**
 * Move what is chosen in a section into the outbox, in one transaction: a second tap finds nothing left to move.
 * Returns how many snapshots were made.
 */
export async function submit(sectionId: string, make: (chosen: Working[]) => Omit<Snapshot, "id">[]): Promise<number> {
  const transaction = (await database()).transaction(["working-scores", "client-outbox"], "readwrite");
  const chosen = transaction.objectStore("working-scores");
  const made = make(await chosen.getAll(ofSection(sectionId)));
  for (const snapshot of made) await transaction.objectStore("client-outbox").add(snapshot as Snapshot);
  await chosen.delete(ofSection(sectionId));
  await transaction.done;
  return made.length;
}

/** Every snapshot that the server has not taken, oldest first. */
export async function outbox(): Promise<Snapshot[]> {
  return (await database()).getAll("client-outbox");
}

/** Replace a snapshot by `change(it)`, or remove it when that is null. One that is gone meanwhile stays gone. */
export async function settle(id: number, change: (snapshot: Snapshot) => Snapshot | null): Promise<void> {
  const transaction = (await database()).transaction("client-outbox", "readwrite");
  const before = await transaction.store.get(id);
  const after = before && change(before);
  if (after) await transaction.store.put(after);
  else if (before) await transaction.store.delete(id);
  await transaction.done;
}

/** Keep what was last seen, to start without a network. */
export async function remember(key: string, value: unknown): Promise<void> {
  await (await database()).put("last-seen", value, key);
}

/** What was last seen under this key. */
export async function recall<T>(key: string): Promise<T | undefined> {
  return (await (await database()).get("last-seen", key)) as T | undefined;
}

/** Forget whatever was seen (after signing out). Points that were not sent stay. */
export async function forget(): Promise<void> {
  await (await database()).clear("last-seen");
}

function ofSection(sectionId: string): IDBKeyRange {
  return IDBKeyRange.bound([sectionId], [sectionId, []]);
}
