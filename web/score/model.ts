/** What the score page knows and does. Owns the page's state; screens read it and call its methods. */
import {
  colour,
  id,
  type PatrolColours,
  type PendingLine,
  type Scores,
  type Section,
  type Session,
} from "../shared/wire.ts";
import { clock } from "../shared/words.ts";
import { again, snapshots, type Owner, type Snapshot, type Working } from "./queue.ts";
import { announce, send, type Sent } from "./send.ts";
import { attempt, read, Refused, session, write } from "./server.ts";
import * as store from "./store.ts";

export interface Notice {
  readonly tone: "good" | "calm" | "bad";
  readonly text: string;
}

export interface State {
  /** What this device keeps has been read. */
  readonly ready: boolean;
  /** Whether the server answered the last time. */
  readonly reachable: boolean;
  /** Whether the server knows us; undefined until it has said so. */
  readonly signedIn?: boolean;
  /** The server knows us, and Online Scout Manager wants us to sign in again. */
  readonly signInAgain: boolean;
  readonly user?: NonNullable<Session["user"]>;
  readonly sections: readonly Section[];
  readonly sectionId?: string;
  readonly scores?: Scores;
  readonly colours: PatrolColours;
  readonly working: readonly Working[];
  readonly outbox: readonly Snapshot[];
  /** How many of the leader's changes the server still works on. */
  readonly pendingWrites: number;
  /** The leader's changes that the server has not applied, those that it gave up too. */
  readonly pending: readonly PendingLine[];
  readonly busy: boolean;
  readonly trouble?: string;
  /** What this device, not the server, could not do. */
  readonly broken?: string;
  readonly notice?: Notice;
  /** A newer version of this page has come; the next load uses it. */
  readonly updated?: boolean;
}

/** What is kept to start without a network. */
interface LastSeen {
  readonly user: NonNullable<Session["user"]>;
  readonly sections: readonly Section[];
  readonly sectionId?: string;
}

const EMPTY: State = {
  ready: false,
  reachable: true,
  signInAgain: false,
  sections: [],
  colours: {},
  working: [],
  outbox: [],
  pendingWrites: 0,
  pending: [],
  busy: false,
};

export class Model {
  state: State = EMPTY;
  readonly #listeners = new Set<() => void>();
  #refreshing: Promise<void> | undefined;
  #stale = false;
  /** How often everything was forgotten: what was asked for before is not kept when it comes after. */
  #forgotten = 0;

  /** Call `listener` after every change; returns how to stop. */
  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Show what this device keeps, then what the server says. */
  async start(): Promise<void> {
    const seen = await store.recall<LastSeen>("session");
    this.#set({ ...seen, ...(await this.#kept(seen?.sectionId)), ...(await local()), ready: true });
    await this.refresh();
  }

  /** Ask the server for everything again. A call during a refresh has it done once more: what it wants to see may be newer. */
  refresh(): Promise<void> {
    this.#stale = true;
    this.#refreshing ??= this.#refreshWhileStale().finally(() => (this.#refreshing = undefined));
    return this.#refreshing;
  }

  /** Have the server read the scores again, too. */
  async refreshDeeply(): Promise<void> {
    const { sectionId, signedIn } = this.state;
    await this.#busily(async () => {
      if (signedIn && sectionId) await this.trying(() => write("POST", `/api/admin/sections/${sectionId}/refresh`));
      await this.refresh();
    });
  }

  /** Read again what this device keeps: another tab or the service worker has changed it. */
  async reload(): Promise<void> {
    this.#set(await local());
  }

  async chooseSection(sectionId: string): Promise<void> {
    this.#set({ sectionId, colours: {}, ...(await this.#kept(sectionId)) });
    await this.#remember();
    await this.refresh();
  }

  /** Change the chosen points of a patrol. */
  async choose(patrol: { id: string; name: string }, change: (points: number) => number): Promise<void> {
    const { sectionId } = this.state;
    if (sectionId === undefined) return;
    await store.choose({ sectionId, patrolId: patrol.id, patrolName: patrol.name }, change);
    await this.#changed();
  }

  async clear(): Promise<void> {
    if (this.state.sectionId === undefined) return;
    await store.clear(this.state.sectionId);
    await this.#changed();
  }

  /** Put what is chosen into the outbox, with its keys, and send it. */
  async submit(): Promise<void> {
    const owner = this.#owner();
    if (owner === undefined) return;
    const made = await store.submit(owner.sectionId, (chosen) =>
      snapshots(chosen, owner, () => crypto.randomUUID(), Date.now()),
    );
    await this.#changed();
    if (made > 0) await this.sendNow();
  }

  /** Send what waits because a person wants it now. */
  async sendNow(): Promise<void> {
    await askForSync();
    await this.#busily(async () => {
      const sent = await send(true);
      await this.refresh();
      const own = this.state.outbox.filter((one) => one.userId === this.state.user?.osmUserId);
      const notice = told(sent, own);
      if (notice) this.#set({ notice });
      else this.hush();
      if (own.length > 0) await navigator.storage?.persist?.(); // unsent points are not to be cleared away to save room
    });
  }

  /** Send what has become due by itself, and look whether the server got further. Costs little when it did not. */
  async look(): Promise<void> {
    await send(false);
    try {
      const { authenticated, pendingWrites, signInAgain = false } = await session();
      const known = this.state;
      const same = authenticated === known.signedIn && signInAgain === known.signInAgain;
      if (!same || pendingWrites !== known.pendingWrites || !known.reachable) await this.refresh();
    } catch (error) {
      this.#refused(error);
    }
  }

  /** Send what is left, as the service worker would: the page is back or the network is. */
  async sendLeft(): Promise<void> {
    await send(true);
    await this.refresh();
  }

  /** Try a refused or waiting snapshot again; its key stays. */
  async retry(id: number): Promise<void> {
    await store.settle(id, (one) => again(one, Date.now()));
    await this.sendNow();
  }

  /** Give up a snapshot that was not sent. */
  async discard(id: number): Promise<void> {
    await store.settle(id, () => null);
    await this.#changed();
  }

  /** Sign out here. What was seen is forgotten; points that were not sent stay. */
  async signOut(): Promise<void> {
    await attempt("POST", "/admin/logout");
    await this.trying(async () => {
      if ((await session()).authenticated) throw new Refused(500, "Signing out did not work. Please try again.");
      await this.#forget(false);
    });
  }

  async saveColours(colours: PatrolColours): Promise<void> {
    const path = `/api/admin/sections/${this.state.sectionId}/settings`;
    const done = await this.trying(() => write("PUT", path, { patrolColors: colours }));
    if (done) this.#set({ colours, notice: { tone: "good", text: "Colours saved." } });
  }

  /** Tell the leader something, in place of what was told before. */
  tell(tone: Notice["tone"], text: string): void {
    this.#set({ notice: { tone, text } });
  }

  /** Something failed on this device that nobody waits for, most likely its storage. */
  broke(error: unknown): void {
    this.#set({ broken: error instanceof Error ? error.message : String(error) });
  }

  /** A newer version of this page has come. */
  update(): void {
    this.#set({ updated: true });
  }

  /** Run something that the server may refuse, and tell the leader if it does. Returns whether it worked. */
  async trying(action: () => Promise<unknown>): Promise<boolean> {
    try {
      await action();
      return true;
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      if (error.status === 401) this.#set({ signedIn: false });
      this.tell("bad", error.message);
      return false;
    }
  }

  hush(): void {
    const { notice: _, ...rest } = this.state;
    this.#replace(rest);
  }

  async #busily(work: () => Promise<void>): Promise<void> {
    this.#set({ busy: true });
    try {
      await work();
    } finally {
      this.#set({ busy: false });
    }
  }

  async #refreshWhileStale(): Promise<void> {
    while (this.#stale) {
      this.#stale = false;
      await this.#refresh();
    }
  }

  /** What left the outbox meanwhile may not be in what the server said: then nothing is shown, and all is asked again. */
  async #refresh(): Promise<void> {
    const before = await local();
    let seen: Partial<State> = {};
    try {
      const found = await session();
      const { authenticated, pendingWrites, signInAgain = false } = found;
      this.#set({ reachable: true, signedIn: authenticated, signInAgain, pendingWrites });
      if (found.authenticated && found.user) seen = await this.#refreshFor(found, found.user);
    } catch (error) {
      this.#refused(error);
    }
    const here = await local();
    if (someLeft(before.outbox, here.outbox)) this.#stale = true;
    else this.#set({ ...seen, ...here });
  }

  /** What is to be shown of the chosen section. */
  async #refreshFor(found: Session, user: NonNullable<Session["user"]>): Promise<Partial<State>> {
    if (this.state.user && this.state.user.osmUserId !== user.osmUserId) await this.#forget(true);
    const forgotten = this.#forgotten;
    const [answer, { pending }] = await Promise.all([
      read<{ sections: Section[] }>("/api/admin/sections"),
      read<{ pending: PendingLine[] }>("/api/admin/pending"),
    ]);
    if (forgotten !== this.#forgotten) return {};
    const sections = answer.sections.map((one) => ({ ...one, id: id(one.id) }));
    // Only now, after the last wait: the leader may have chosen another section meanwhile.
    const wanted = [this.state.sectionId, found.selectedSectionId, sections[0]?.id];
    const sectionId = wanted.find((one) => sections.some((section) => section.id === one));
    this.#set({ user, sections, pending, pendingWrites: found.pendingWrites, ...(sectionId && { sectionId }) });
    await this.#remember();
    if (sectionId === undefined) return { scores: { patrols: [] } };
    return found.signInAgain ? {} : this.#refreshSection(sectionId);
  }

  async #refreshSection(sectionId: string): Promise<Partial<State>> {
    const forgotten = this.#forgotten;
    const path = `/api/admin/sections/${encodeURIComponent(sectionId)}`;
    const [scores, settings] = await Promise.all([
      read<Scores>(`${path}/scores`),
      read<{ patrolColors?: Record<string, unknown> }>(`${path}/settings`),
    ]);
    if (forgotten !== this.#forgotten) return {};
    const colours = Object.fromEntries(
      Object.entries(settings.patrolColors ?? {}).map(([key, name]) => [key, colour(name)]),
    );
    const kept = { scores: { ...scores, patrols: scores.patrols.map((one) => ({ ...one, id: id(one.id) })) }, colours };
    await store.remember(`section:${sectionId}`, kept);
    return this.state.sectionId === sectionId ? { ...kept, trouble: "" } : {};
  }

  /** The server said no: signed out, away, or a sentence for the leader. */
  #refused(error: unknown): void {
    if (!(error instanceof Refused)) throw error;
    if (error.status === 0) this.#set({ reachable: false });
    else if (error.status === 401) this.#set({ signedIn: false });
    else this.#set({ trouble: error.message });
  }

  /** Somebody else is here, or nobody: forget what the last one saw. Points that were not sent stay. */
  async #forget(signedIn: boolean): Promise<void> {
    this.#forgotten += 1;
    await store.forget();
    this.#replace({ ...EMPTY, ready: true, signedIn, ...(await local()) });
  }

  #owner(): Owner | undefined {
    const { user, sections, sectionId } = this.state;
    const section = sections.find((one) => one.id === sectionId);
    if (!user || !section) return undefined;
    return { userId: user.osmUserId, userName: user.name, sectionId: section.id, sectionName: section.name };
  }

  async #kept(sectionId: string | undefined): Promise<Partial<State>> {
    const kept = sectionId && (await store.recall<Pick<State, "scores" | "colours">>(`section:${sectionId}`));
    return kept || { scores: { patrols: [] } };
  }

  async #remember(): Promise<void> {
    const { user, sections, sectionId } = this.state;
    if (user) await store.remember("session", { user, sections, ...(sectionId && { sectionId }) } satisfies LastSeen);
  }

  async #changed(): Promise<void> {
    announce("chosen");
    await this.reload();
  }

  #set(change: Partial<State>): void {
    this.#replace({ ...this.state, ...change });
  }

  #replace(state: State): void {
    this.state = state;
    this.#listeners.forEach((listener) => listener());
  }
}

async function local(): Promise<Pick<State, "working" | "outbox">> {
  const [working, outbox] = await Promise.all([store.working(), store.outbox()]);
  return { working, outbox };
}

function someLeft(before: readonly Snapshot[], after: readonly Snapshot[]): boolean {
  return before.some((one) => after.every((other) => other.id !== one.id));
}

/** Ask the browser to wake the service worker when there is a network, even if this page is closed by then. */
async function askForSync(): Promise<void> {
  const registration = await navigator.serviceWorker?.getRegistration();
  const sync = (registration as { sync?: { register(tag: string): Promise<void> } } | undefined)?.sync;
  try {
    await sync?.register("client-outbox");
  } catch {
    // The browser has it but does not allow it here: then the page asks on start, on focus and when online again.
  }
}

function nextTry(time: number | undefined): string {
  return time === undefined ? "" : ` Next try at ${clock(time, Date.now())}.`;
}

/** What to say after sending, given what is left of one's own; nothing when the page asks to sign in anyway. */
function told(sent: Sent, left: readonly Snapshot[]): Notice | undefined {
  if (sent.rejected > 0) return { tone: "bad", text: "Some points were refused. Look under Waiting." };
  if (sent.stopped === "sign-in") return undefined;
  const waiting = left.find((one) => one.status === "waiting");
  const safe = "Your points are safe on this device and go out by themselves.";
  if (waiting) return { tone: "calm", text: `${waiting.reason ?? ""} ${safe}`.trim() };
  if (sent.message) return { tone: "calm", text: sent.message + nextTry(sent.retryAt) };
  return sent.taken > 0 || left.length === 0 ? { tone: "good", text: "Points sent." } : undefined;
}
