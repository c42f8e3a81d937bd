/** What the server says, as on the wire. Ids are strings here whatever the server sends: see `id`. */

export interface Patrol {
  readonly id: string;
  readonly name: string;
  readonly score: number;
  readonly pendingDelta: number;
  readonly hasPending: boolean;
}

export interface Section {
  readonly id: string;
  readonly name: string;
  readonly groupName: string;
}

export interface Session {
  readonly authenticated: boolean;
  readonly user?: { readonly osmUserId: string; readonly name: string };
  readonly selectedSectionId?: string;
  readonly csrfToken?: string;
  readonly pendingWrites: number;
  /** Online Scout Manager no longer accepts the sign-in: points wait until the leader signs in again. */
  readonly signInAgain?: boolean;
}

export interface Scores {
  readonly patrols: readonly Patrol[];
  readonly fetchedAt?: string;
  /** Why Online Scout Manager would not be asked now. */
  readonly message?: string;
}

export interface HistoryLine {
  readonly id: string;
  readonly patrolId: string;
  readonly patrolName: string;
  readonly points: number;
  readonly previousScore: number | null;
  readonly newScore: number | null;
  readonly userName: string;
  readonly createdAt: string;
  readonly undoneBy?: string;
  /** The leader gave these points, and may take them back. */
  readonly isOwn?: boolean;
}

export interface History {
  readonly history: readonly HistoryLine[];
  readonly next?: string;
}

export interface PendingLine {
  readonly id: string;
  readonly sectionId: string;
  readonly patrolId: string;
  readonly patrolName: string;
  readonly points: number;
  readonly state: "pending" | "claimed" | "dead";
  readonly reason: string;
  readonly message: string;
  readonly retryAt?: string;
  readonly createdAt: string;
  /** Of what needs a person: the score that is there. */
  readonly found?: number;
}

export interface Scoreboard {
  readonly id: string;
  readonly name: string;
  readonly sectionId?: string;
  readonly lastUsedAt?: string;
}

export interface BoardLink {
  readonly token: string;
  readonly url: string;
}

export interface BoardScores {
  readonly patrols: readonly Patrol[];
  readonly cached_at: string;
  readonly cache_expires_at: string;
  readonly stale: boolean;
  readonly settings?: { readonly patrolColors?: PatrolColours };
  readonly section?: { readonly name: string; readonly groupName: string };
}

export const COLOURS = ["red", "green", "blue", "yellow", "cyan", "magenta", "orange", "white"] as const;
export type Colour = (typeof COLOURS)[number] | "";
export type PatrolColours = Readonly<Record<string, Colour>>;

/** The colour as far as the pages know it; an unknown one is none. */
export function colour(name: unknown): Colour {
  return COLOURS.find((known) => known === name) ?? "";
}

/** An id as a string: some servers write the same id as a number. */
export function id(value: unknown): string {
  return String(value);
}
